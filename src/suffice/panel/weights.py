"""Weights of voters, learned from gold answers, or without them from how often voters agree with each other."""

from collections.abc import Sequence

import numpy as np
import scipy

from suffice.panel.voters import PoolVoter
from suffice.pools import Question
from suffice.tally import FloatArray

USUAL, PULL = 3.0, 0.5
"""The weight that every voter is pulled to, and how strongly: little, but some questions leave it open."""

LEAST = 0.1
"""No voter weighs less than this part of the weightiest: what a few questions say of it may be chance."""


def learn_weights(voters: Sequence[PoolVoter], labels: bool = True) -> tuple[float, ...]:
    """The weights of voters whose questions are aligned, the largest being 1.

    With gold answers, those with which the shares of a question's answers tell the right one best: P(answer) goes by
    exp(Σ weight × share). Without, by how often a voter and the others agree; of two voters both weigh the same.

    Args:
        voters: The voters, as `aligned` gives them.
        labels: False takes no notice of gold answers.

    >>> learn_weights([PoolVoter.of("a=smollm2-135m__arithmetic,price=1")])
    (1.0,)
    """
    if len(voters) == 1:
        return (1.0,)
    shares = [_shares(same) for same in zip(*(voter.pool for voter in voters), strict=True)]
    labelled = [(share, gold) for share, gold in shares if labels and gold is not None]
    weights = _from_gold(labelled, len(voters)) if labelled else _from_agreement([share for share, _ in shares])
    return tuple(np.maximum(weights / weights.max(), LEAST).round(4).tolist())


def _shares(same: Sequence[Question]) -> tuple[FloatArray, int | None]:
    """What share of a voter's responses gives each answer, at [voter, answer], and which of these is gold, if any."""
    answers = list(dict.fromkeys(label for question in same for label in question.labels))
    counts = [[question.answers.count(answer) for answer in answers] for question in same]
    sizes = [[max(len(question.answers), 1)] for question in same]
    gold = next((question.gold for question in same if question.gold is not None), None)
    shares: FloatArray = np.array(counts, float).reshape(len(same), -1) / sizes
    return shares, answers.index(gold) if gold in answers else None


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
    weights: FloatArray = np.maximum(found.x, 1e-6)
    return weights


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
