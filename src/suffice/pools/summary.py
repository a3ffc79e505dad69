"""What a pool looks like: how hard its questions are and how much their answers differ."""

from dataclasses import dataclass

import numpy as np

from suffice.pools.pool import AnyPool, get_pool


@dataclass(frozen=True)
class Summary:
    """One pool in figures: shares in percent, entropy in nats, None where the pool can't tell.

    >>> summary = summarise("smollm2-135m__arithmetic")
    >>> summary.questions, summary.samples
    (40, (64, 64))
    """

    pool: str
    questions: int
    samples: tuple[int, int]
    one_sample_accuracy: float | None
    majority_accuracy: float | None
    entropy: float
    none_share: float
    mean_tokens: float | None
    tokens_95: float | None


def summarise(pool: AnyPool) -> Summary:
    """Describe a pool; the majority is that of all its samples.

    Args:
        pool: A `Pool`, the name of a bundled one, or a path.

    Raises:
        PoolError: Where there is no such pool, or its file is wrong.

    >>> round(summarise("smollm2-135m__arithmetic").majority_accuracy)
    50
    """
    pool = get_pool(pool)
    one_sample = [question.share_right for question in pool.questions if question.share_right is not None]
    majority = [one.majority == one.gold for one in pool.questions if one.share_right is not None]
    answers = [answer for question in pool.questions for answer in question.answers]
    tokens = [count for question in pool.questions for count in question.tokens or () if count is not None]
    sizes = [len(question.answers) for question in pool.questions]
    return Summary(
        pool=pool.name,
        questions=len(pool.questions),
        samples=(min(sizes), max(sizes)),
        one_sample_accuracy=100 * float(np.mean(one_sample)) if one_sample else None,
        majority_accuracy=100 * float(np.mean(majority)) if majority else None,
        entropy=float(np.mean([question.entropy for question in pool.questions])),
        none_share=100 * answers.count(None) / max(len(answers), 1),
        mean_tokens=float(np.mean(tokens)) if tokens else None,
        tokens_95=float(np.percentile(tokens, 95)) if tokens else None,
    )
