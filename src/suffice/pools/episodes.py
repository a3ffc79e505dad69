"""Repeats: for each question, orders in which its answers might have arrived, as arrays."""

import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.errors import OptionError, whole_number
from suffice.pools.pool import Pool, Question
from suffice.tally import NONE, FloatArray, IntArray, Standings, elected

BATCH_CELLS = 6_000_000
"""How many vote counts the standings of one batch hold: enough for array speed, and a few megabytes."""

MOST_CELLS = 1_000_000_000
"""As many as the repeats of one question may hold: they are never split."""


@dataclass(frozen=True)
class Episodes:
    """Some questions, each in `repeats` orders of arrival: row q·repeats + r is question q in its r-th order."""

    questions: tuple[Question, ...]
    repeats: int
    seed: int
    orders: IntArray
    """Which of a question's responses are drawn, at [question, draw, repeat]."""

    def question(self, row: int) -> Question:
        return self.questions[row // self.repeats]

    def row(self, row: int) -> list[str | None]:
        """The answers of a row, in order of arrival."""
        labels = self.question(row).labels
        return [None if code == NONE else labels[code] for code in self.answers[row]]

    def codes(self, answers: Iterable[str | None]) -> IntArray:
        """The codes of one answer for each question, repeated so that each row has its own."""
        codes = [question.code(answer) for question, answer in zip(self.questions, answers, strict=True)]
        return np.repeat(codes, self.repeats)

    @cached_property
    def answers(self) -> IntArray:
        """The code of each draw's answer."""
        return self._by_draw([question.codes for question in self.questions])

    @cached_property
    def tokens(self) -> IntArray:
        """The tokens of each draw, 0 where they are not known."""
        return self._by_draw([question.token_counts for question in self.questions])

    @cached_property
    def gold(self) -> IntArray:
        """The code of each row's gold answer: ABSENT where no response gave it, NONE where it is not known."""
        return self.codes(question.gold for question in self.questions)

    @cached_property
    def standings(self) -> Standings:
        """The votes after each draw, which all controllers share."""
        return Standings(self.answers)

    @cached_property
    def spent(self) -> IntArray:
        """The tokens of the first n draws of each row, at [n, row]."""
        return np.cumsum(np.vstack([np.zeros(len(self.tokens), np.int64), self.tokens.T]), axis=0)

    @cached_property
    def second(self) -> tuple[IntArray, IntArray]:
        """The rows whose questions have responses for a second vote, and the codes that it draws: none of the first's.

        A question needs twice the budget.
        """
        budget = self.orders.shape[1]
        suffices = [len(question.answers) >= 2 * budget for question in self.questions]
        rich = tuple(compress(self.questions, suffices))
        rows = np.flatnonzero(np.repeat(suffices, self.repeats))
        if not rich:
            return rows, self.answers[:0]
        orders = _orders(rich, 2 * budget, self.repeats, self.seed)[:, budget:]
        return rows, Episodes(rich, self.repeats, self.seed, orders).answers

    @cached_property
    def second_reference(self) -> FloatArray:
        """The code that the second vote of each row elects; NaN where there is none."""
        rows, codes = self.second
        reference = np.full(len(self.answers), np.nan)
        reference[rows] = elected(codes)
        return reference

    @cached_property
    def lengths(self) -> FloatArray:
        """The tokens of each draw, NaN where they are not known."""
        return self._by_draw([question.lengths for question in self.questions])

    def signal(self, name: str) -> FloatArray:
        """A signal of each draw, NaN where it is not known."""
        return self._by_draw([one.signal_values.get(name, np.full(len(one.answers), np.nan)) for one in self.questions])

    def _by_draw(self, values: list[NDArray[Any]]) -> NDArray[Any]:
        """The values of each question's responses in the order in which they are drawn, at [row, draw]."""
        drawn = np.stack([given[order] for given, order in zip(values, self.orders, strict=True)], axis=1)
        return drawn.reshape(len(drawn), -1).T


def draw_episodes(pool: Pool, budget: int, repeats: int, seed: int) -> Iterator[Episodes]:
    """Draw `budget` of each question's responses, `repeats` times, without replacement and in random order.

    They come in batches of questions. A question's draws depend on the seed, its id, its number of answers and
    the repeats alone, so adding or reordering questions changes nothing for the others.
    """
    check_draws(pool, budget, repeats, seed)
    size = max(1, BATCH_CELLS // (repeats * budget * budget))
    batches = (pool.questions[start : start + size] for start in range(0, len(pool.questions), size))
    return (Episodes(some, repeats, seed, _orders(some, budget, repeats, seed)) for some in batches)


def check_draws(pool: Pool, budget: int, repeats: int, seed: int) -> None:
    for name, value, least in (("budget", budget, 1), ("repeats", repeats, 1), ("seed", seed, 0)):
        whole_number(name, value, least)
    if repeats * budget * budget > MOST_CELLS:
        raise OptionError(f"{repeats} repeats are too many for a budget of {budget}: lower either")
    pool.check_budget(budget)


def _orders(questions: tuple[Question, ...], budget: int, repeats: int, seed: int) -> IntArray:
    """For each question the positions of its first `budget` responses, a column a repeat: Fisher–Yates, cut short."""
    sizes = np.repeat([len(question.answers) for question in questions], repeats)
    # Each question has its own source of chance, so that its draws are the same in whatever company.
    names = [zlib.crc32(question.id.encode("utf-8", "surrogatepass")) for question in questions]
    chances = np.stack([np.random.default_rng([seed, name]).random((budget, repeats)) for name in names], axis=1)
    chances = chances.reshape(budget, -1)
    columns = np.arange(len(sizes))
    deck = np.tile(np.arange(sizes.max(), dtype=np.int32)[:, None], len(sizes))
    for draw in range(budget):
        chosen = draw + (chances[draw] * (sizes - draw)).astype(np.intp)
        there = chosen * len(sizes) + columns
        card = deck.reshape(-1)[there]
        deck.reshape(-1)[there] = deck[draw]
        deck[draw] = card
    return deck[:budget].reshape(budget, len(questions), repeats).swapaxes(0, 1)
