"""Repeats: for each question, orders in which its answers might have arrived, as arrays."""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from suffice.errors import OptionError, PoolError
from suffice.pools.pool import Pool, Question
from suffice.tally import NONE, IntArray, Standings

ABSENT = -2
"""The code of a gold answer that no response gave, or that is not known."""

BATCH_CELLS = 4_000_000
"""How many vote counts the standings of one batch hold: enough for array speed, and a few megabytes."""


@dataclass(frozen=True)
class Episodes:
    """Some questions, each in `repeats` orders of arrival: row q·repeats + r is question q in its r-th order.

    `answers` are codes, and `labels[q][code]` gives the answer back; `gold` has one code a question. `tokens` are 0
    where the pool doesn't tell them.
    """

    questions: tuple[Question, ...]
    repeats: int
    labels: list[list[str]]
    gold: IntArray
    answers: IntArray
    tokens: IntArray

    @cached_property
    def standings(self) -> Standings:
        """The votes after each draw, which all controllers share."""
        return Standings(self.answers)


def draw_episodes(pool: Pool, budget: int, repeats: int, seed: int) -> Iterator[Episodes]:
    """Draw `budget` of each question's responses, `repeats` times, without replacement and in random order.

    They come in batches of questions. A question's draws depend on the seed, its id and its number of answers
    alone, so adding or reordering questions changes nothing for the others.
    """
    for name, value, least in (("budget", budget, 1), ("repeats", repeats, 1), ("seed", seed, 0)):
        if value < least:
            raise OptionError(f"{name} must be at least {least}, not {value}")
    for question in pool.questions:
        if len(question.answers) < budget:
            raise PoolError(
                f'{pool.name}: question "{question.id}" has {len(question.answers)} answers, fewer than the budget '
                f"of {budget}; lower the budget or collect more"
            )
    size = max(1, BATCH_CELLS // (repeats * budget * budget))
    starts = range(0, len(pool.questions), size)
    return (_draw(pool.questions[start : start + size], budget, repeats, seed) for start in starts)


def _draw(questions: tuple[Question, ...], budget: int, repeats: int, seed: int) -> Episodes:
    labels = [list(dict.fromkeys(a for a in question.answers if a is not None)) for question in questions]
    gold = np.full(len(questions), ABSENT)
    answers = np.empty((len(questions), repeats, budget), np.int32)
    tokens = np.zeros((len(questions), repeats, budget), np.int64)
    for row, question in enumerate(questions):
        codes: dict[str | None, int] = {answer: code for code, answer in enumerate(labels[row])} | {None: NONE}
        order = _orders(question, repeats, seed)[:, :budget]
        answers[row] = np.array([codes[answer] for answer in question.answers])[order]
        if question.tokens is not None:
            tokens[row] = np.array([count or 0 for count in question.tokens])[order]
        if question.gold is not None:
            gold[row] = codes.get(question.gold, ABSENT)
    return Episodes(questions, repeats, labels, gold, answers.reshape(-1, budget), tokens.reshape(-1, budget))


def _orders(question: Question, repeats: int, seed: int) -> IntArray:
    """Random orders of a question's responses, a row a repeat."""
    random = np.random.default_rng([seed, zlib.crc32(question.id.encode("utf-8", "surrogatepass"))])
    return random.permuted(np.tile(np.arange(len(question.answers)), (repeats, 1)), axis=1)
