"""Votes, leader, tie rule and state: the only place that knows them.

`Tally` is one question, `Tallies` are many at one moment, `Standings` are many after each of their draws.
"""

from collections.abc import Iterable

import numpy as np
import scipy
from numpy.typing import NDArray

from suffice.errors import OptionError
from suffice.notebook import bars, many, short

IntArray = NDArray[np.integer]
FloatArray = NDArray[np.floating]

DEFAULT_BUDGET = 32
"""The most draws for a question, where nothing else is said."""

NONE = -1
"""The code of *none* where answers are numbered: a draw that gave no answer."""


class Tally:
    """What has been seen of one question: its answers in order of arrival and where each round ended.

    >>> tally = Tally(budget=8)
    >>> tally.add_round(["7", "9", None, "9"])
    >>> tally.votes, tally.leader, tally.draws, tally.left
    ({'9': 2, '7': 1}, '9', 4, 4)
    """

    def __init__(self, budget: int = DEFAULT_BUDGET) -> None:
        self.budget = budget
        self.answers: list[str | None] = []
        self.voters: list[str | None] = []
        """Who gave each answer; None where there is one voter, who needs no name."""
        self.absent: set[str] = set()
        """Voters who failed, and are not asked again."""
        self.round_ends: list[int] = []
        self.leader: str | None = None
        """The answer that a majority vote elects now; None while there are no votes."""
        self._counts: dict[str, int] = {}
        self._ranked: list[int] = []
        self._at_least: dict[int, int] = {}

    def __repr__(self) -> str:
        return f"Tally({short(repr(self.votes))}, {self.draws} of {self.budget} draws in {many(self.rounds, 'round')})"

    def _repr_html_(self) -> str:
        title = f"{self.draws} of {self.budget} draws in {many(self.rounds, 'round')}"
        return bars(title, self.votes, self.draws)

    def add(self, answer: str | None, voter: str | None = None) -> None:
        """Take in one answer, or None for a response without one."""
        self.answers.append(answer)
        self.voters.append(voter)
        if answer is None:
            return
        count = self._counts[answer] = self._counts.get(answer, 0) + 1
        # The answer now stands behind those that had as many votes before it; if there are none it leads,
        # so in a tie the first to get there does.
        rank = self._at_least.get(count, 0)
        self._at_least[count] = rank + 1
        self._ranked[rank : rank + 1] = [count]
        if rank == 0:
            self.leader = answer

    def end_round(self) -> None:
        """Mark that all draws of the present round are in."""
        self.round_ends.append(self.draws)

    def add_round(self, answers: Iterable[str | None]) -> None:
        """Take in all answers of one round."""
        for answer in answers:
            self.add(answer)
        self.end_round()

    @property
    def draws(self) -> int:
        """How many draws were made."""
        return len(self.answers)

    @property
    def left(self) -> int:
        """How many draws the budget still allows."""
        return self.budget - self.draws

    @property
    def rounds(self) -> int:
        """How many rounds have ended."""
        return len(self.round_ends)

    @property
    def votes(self) -> dict[str, int]:
        """Votes by answer, most first; among equals, first whoever reached that count first."""
        last_vote = {answer: position for position, answer in enumerate(self.answers)}
        return dict(sorted(self._counts.items(), key=lambda item: (-item[1], last_vote[item[0]])))

    def top(self, k: int) -> tuple[int, ...]:
        """The k largest vote counts, most first, with zeros where there are fewer answers."""
        return (*self._ranked[:k], *(0,) * (k - len(self._ranked)))

    def state(self, k: int = 5) -> FloatArray:
        """What a learned controller sees: the top k counts, the draws and the entropy, each at most 1."""
        return state(np.array(self.top(k)), np.array(self.draws), self.budget)


def state(top: IntArray, draws: IntArray, budget: int) -> FloatArray:
    """The state for top vote counts of shape (…, K) and draws of shape (…); all zeros at the start."""
    if top.shape[-1] < 2:
        raise OptionError("a state needs the top 2 vote counts at least")
    shares = top / np.maximum(top.sum(axis=-1, keepdims=True), 1)
    entropy = scipy.special.entr(shares).sum(axis=-1) / np.log(top.shape[-1])
    return np.concatenate([top / budget, (draws / budget)[..., None], entropy[..., None]], axis=-1)


class Tallies:
    """Many tallies at one moment, as arrays: row i is one question after `draws[i]` draws.

    >>> tally = Tally()
    >>> tally.add_round(["7", "9", None, "9"])
    >>> Tallies.of(tally).top(3).tolist()
    [[2, 1, 0]]
    """

    def __init__(self, standings: "Standings", rows: IntArray, draws: IntArray) -> None:
        # The standings know the future too, which no controller may see: nothing past `draws` is read from them.
        self._standings = standings
        self._rows = rows
        self.draws = draws

    @staticmethod
    def of(tally: Tally) -> "Tallies":
        """One tally as arrays of one row."""
        return _OneTally(tally)

    def __len__(self) -> int:
        return len(self.draws)

    @property
    def budget(self) -> int:
        """The most draws allowed."""
        return self._standings.budget

    @property
    def votes(self) -> IntArray:
        """The vote counts of each row, most first, then zeros."""
        return self.top(self.budget)

    def top(self, k: int) -> IntArray:
        """The k largest vote counts of each row, most first, with zeros where there are fewer answers."""
        top = self._standings.votes[self.draws, self._rows, :k].astype(np.intp)
        return top if k <= self.budget else np.pad(top, [(0, 0), (0, k - self.budget)])

    def last(self, k: int) -> IntArray:
        """The codes of the last k answers of each row, NONE for none and for what lies before the first."""
        positions = self.draws + np.arange(-k, 0)[:, None]
        known: IntArray = self._standings.answers[self._rows, np.maximum(positions, 0)]
        known[positions < 0] = NONE
        return known.T

    def state(self, k: int = 5) -> FloatArray:
        """The state of each row, as in `Tally.state`."""
        return state(self.top(k), self.draws, self.budget)


class _OneTally(Tallies):
    """A single tally as arrays, without the standings: live, there is no future to know."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        self.draws = np.array([tally.draws])

    @property
    def budget(self) -> int:
        return self._tally.budget

    def top(self, k: int) -> IntArray:
        return np.array([self._tally.top(k)])

    def last(self, k: int) -> IntArray:
        given = self._tally.answers[-k:]
        codes = {answer: code for code, answer in enumerate(dict.fromkeys(given))}
        known = [NONE if answer is None else codes[answer] for answer in given]
        return np.array([[NONE] * (k - len(known)) + known])


def elected(answers: IntArray) -> IntArray:
    """The code that all draws of each row elect, NONE without a vote; rows are answers in order of arrival.

    >>> elected(np.array([[1, 0, 0, 1], [NONE, NONE, NONE, NONE]])).tolist()
    [0, -1]
    """
    rows = np.arange(len(answers))
    counts = np.zeros((len(rows), int(answers.max(initial=0)) + 2), np.intp)
    votes = np.zeros_like(answers)
    for draw, codes in enumerate(answers.T):
        counts[rows, codes] += 1  # the last column takes NONE
        votes[:, draw] = np.where(codes == NONE, 0, counts[rows, codes])
    # Whoever is the first to get as many votes as anybody gets at all leads to the end.
    return answers[rows, votes.argmax(axis=1)]


class Standings:
    """Votes and leader of many questions after each of their draws, for answers that are known beforehand.

    `answers` holds a row of codes a question, in order of arrival; `votes[n, i]` and `leader[n, i]` are row i's
    after n draws.
    """

    def __init__(self, answers: IntArray) -> None:
        rows, budget = answers.shape
        kinds = int(answers.max(initial=0)) + 1
        self.budget: int = budget
        self.answers = answers
        self.votes: IntArray = np.zeros((budget + 1, rows, budget), np.min_scalar_type(-budget - 1))
        self.leader: IntArray = np.full((budget + 1, rows), NONE)
        # Flat arrays, since one index is quicker than two. at_least[i, v]: how many answers of row i have v votes or
        # more. An answer that rises to v votes stands behind exactly those; if there are none it leads, so in a tie
        # the first to get there does.
        counts = np.zeros(rows * kinds, np.intp)
        at_least = np.zeros(rows * (budget + 1), np.intp)
        for draw, column in enumerate(answers.T):
            votes, leader = self.votes[draw + 1], self.leader[draw + 1]
            votes[:], leader[:] = self.votes[draw], self.leader[draw]
            voters = np.flatnonzero(column != NONE)
            code = column[voters]
            count = counts[voters * kinds + code] + 1
            counts[voters * kinds + code] = count
            level = voters * (budget + 1) + count
            rank = at_least[level]
            at_least[level] = rank + 1
            votes.reshape(-1)[voters * budget + rank] = count
            leader[voters[rank == 0]] = code[rank == 0]

    @property
    def reference(self) -> IntArray:
        """The answer of each row that the full budget elects."""
        return self.leader[-1]

    def at(self, rows: IntArray, draws: IntArray) -> Tallies:
        """The tallies of these rows after so many draws each."""
        return Tallies(self, rows, draws)
