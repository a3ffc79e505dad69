"""Voters of replays, with their pools and prices, and the weights of their votes."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
import scipy

from suffice.errors import OptionError, PoolError
from suffice.pools import Pool, Question, load_pool
from suffice.tally import FloatArray

USUAL, PULL = 3.0, 0.5
"""The weight that every voter is pulled to, and how strongly: little, but some questions leave it open."""

LEAST = 0.1
"""No voter weighs less than this part of the weightiest: what a few questions say of it may be chance."""


@dataclass(frozen=True)
class PoolVoter:
    """A voter whose responses were drawn beforehand: its name, its price for a million tokens, its pool.

    >>> PoolVoter.of("small=smollm2-135m__arithmetic,price=0.1")
    PoolVoter(name='small', price=0.1, pool=Pool('small', 40 questions × 64 responses))
    """

    name: str
    price: float
    pool: Pool

    @staticmethod
    def of(text: str) -> "PoolVoter":
        named, comma, priced = text.rpartition(",price=")
        name, equals, paths = named.partition("=")
        if not (comma and equals and name and paths):
            raise OptionError(f'must be NAME=POOL[+POOL…],price=P, not "{text}"', "voter")
        return PoolVoter(name, price_of(priced, "voter"), joined(name, [load_pool(path) for path in paths.split("+")]))


def price_of(text: str | float, argument: str) -> float:
    """A price for a million tokens; in any money."""
    with suppress(ValueError):
        price = float(text)
        if 0 < price < float("inf"):
            return price
    raise OptionError(f'has a price that must be a number above 0, not "{text}"', argument)


def joined(name: str, pools: Sequence[Pool]) -> Pool:
    questions = {question.id: question for pool in pools for question in pool.questions}
    if len(questions) < sum(map(len, pools)):
        raise PoolError(f"{name}: a question's id is in two of its pools; ids must differ")
    return Pool(name, tuple(questions.values()))


def aligned(voters: Iterable[PoolVoter]) -> tuple[PoolVoter, ...]:
    """Keep the questions that all voters have, in the order of the first; gold is the first that is known."""
    given = tuple(voters)
    if len({voter.name for voter in given}) < len(given) or not given:
        raise OptionError("must be given at least once, and each name only once", "voter")
    common = set.intersection(*({question.id for question in voter.pool} for voter in given))
    if not common:
        raise PoolError(f"{' and '.join(voter.name for voter in given)} have no question in common: ids must be equal")
    order = [question.id for question in given[0].pool if question.id in common]
    golds = {one.id: one.gold for voter in reversed(given) for one in voter.pool if one.gold is not None}
    found = []
    for voter in given:
        by_id = {question.id: question for question in voter.pool}
        questions = tuple(replace(by_id[one], gold=golds.get(one)) for one in order)
        if any(question.tokens is None or None in question.tokens for question in questions):
            raise PoolError(f"{voter.name}: there are responses without a count of tokens, and a price is for those")
        if any(question.structured for question in questions):
            raise PoolError(f"{voter.name} has structured answers, which a panel does not vote on")
        found.append(replace(voter, pool=Pool(voter.name, questions)))
    return tuple(found)


def learn_weights(voters: Sequence[PoolVoter], labels: bool = True) -> tuple[float, ...]:
    """The weights of voters whose questions are aligned, the largest being 1.

    With gold answers, those with which the shares of a question's answers tell the right one best: P(answer) goes by
    exp(Σ weight × share). Without, or where `labels` are not to count, by how often a voter and the others agree; of
    two voters both weigh the same.
    """
    if len(voters) == 1:
        return (1.0,)
    shares = [_shares(same) for same in zip(*(voter.pool for voter in voters), strict=True)]
    labelled = [(share, gold) for share, gold in shares if labels and gold is not None]
    weights = _from_gold(labelled, len(voters)) if labelled else _from_agreement([share for share, _ in shares])
    return tuple(np.maximum(weights / weights.max(), LEAST).round(4).tolist())


def _shares(same: Sequence[Question]) -> tuple[FloatArray, int | None]:
    """The share of a voter's responses that give each answer, at [voter, answer], and the place of gold."""
    answers = list(dict.fromkeys(label for question in same for label in question.labels))
    counts = [[question.answers.count(answer) for answer in answers] for question in same]
    sizes = [[max(len(question.answers), 1)] for question in same]
    shares: FloatArray = np.array(counts, float).reshape(len(same), -1) / sizes
    return shares, answers.index(same[0].gold) if same[0].gold in answers else None


def _from_gold(labelled: Sequence[tuple[FloatArray, int]], voters: int) -> FloatArray:
    kinds = np.array([share.shape[1] for share, _ in labelled])
    shares = np.zeros((voters, len(kinds), kinds.max()))
    for row, (share, _) in enumerate(labelled):
        shares[:, row, : kinds[row]] = share
    gold = shares[:, np.arange(len(kinds)), [place for _, place in labelled]]
    given = np.arange(kinds.max()) < kinds[:, None]

    def surprise(weights: FloatArray) -> float:
        likely = np.where(given, np.exp(np.tensordot(weights, shares, axes=1)), 0).sum(axis=1)
        return float((np.log(likely) - weights @ gold).sum() + PULL * ((weights - USUAL) ** 2).sum())

    found = scipy.optimize.minimize(surprise, np.full(voters, USUAL), method="L-BFGS-B", bounds=[(0, None)] * voters)
    return np.maximum(found.x, 1e-6)


def _from_agreement(shares: Sequence[FloatArray]) -> FloatArray:
    """Log odds of agreement: of a voter's responses with the others' majority, and of theirs with its own."""
    agreed = np.zeros(len(shares[0]))
    for share in shares:
        for voter in range(len(share)) if share.size else ():
            others = np.delete(share, voter, axis=0).mean(axis=0)
            agreed[voter] += (share[voter, others.argmax()] + others[share[voter].argmax()]) / 2
    # Half a question more on either side keeps the odds finite.
    odds = (agreed + 0.5) / (len(shares) - agreed + 0.5)
    return np.maximum(np.log(odds), 1e-6)
