"""The replay itself: one controller over episodes, as arrays where it can and one question at a time where not."""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.controllers import ArrayController, Controller, question_random
from suffice.elections import LENGTH, Election, Majority
from suffice.flow import Flow
from suffice.planning import Prior, certainties, confidences
from suffice.pools import Episodes
from suffice.tally import NONE, FloatArray, IntArray, Standings, Tally

CERTAINTY_REPEATS = 10
"""Certainties are worked out for so many repeats of a question: each takes as long as a thousand decisions."""

SHARES = (
    *("accuracy", "field_accuracy", "agreement", "agreement_independent"),
    *("confidence", "certainty", "share"),
)
MEASURED = ("rounds", "samples", "launched", "total_tokens", "sequential_tokens", *SHARES)
"""What is measured of each episode, NaN where it is not known; these are shares of 1."""

Measures = dict[str, FloatArray]


@dataclass(frozen=True)
class Outcomes:
    """How each episode ended: the code of its answer, and what it took."""

    answer: IntArray
    rounds: IntArray
    samples: IntArray
    total_tokens: IntArray
    sequential_tokens: IntArray
    launched: IntArray
    """How many draws were started."""
    order: IntArray | None = None
    """The draws of each episode in the order in which they count, then NONE; as started where it is None."""

    def right(self, episodes: Episodes) -> FloatArray:
        """Whether each answer is the gold one; NaN where that is not known."""
        golds = [question.gold for question in episodes.questions]
        known = np.repeat([gold is not None for gold in golds], episodes.repeats)
        return np.where(known, self.answer == episodes.codes(golds), np.nan)

    def counted(self, episodes: Episodes) -> IntArray:
        """The draws that each outcome rests on, in the order in which they count, and NONE for what was not drawn."""
        if self.order is not None:
            return self.order
        draws = np.arange(episodes.answers.shape[1])
        return np.where(draws < self.samples[:, None], draws, NONE)

    def elected(self, episodes: Episodes, election: Election) -> "Outcomes":
        """The same outcomes, with the answers that an election by weight gives."""
        if isinstance(election, Majority):
            return self
        counted = self.counted(episodes)

        def of(values: NDArray[Any]) -> NDArray[Any]:
            return np.take_along_axis(values, np.maximum(counted, 0), axis=1)

        signals = {name: of(episodes.signal(name)) for name in election.signals if name != LENGTH}
        codes = _in_order(episodes.answers, counted)
        return replace(self, answer=election.elect(codes, signals, of(episodes.lengths)))

    def standings(self, episodes: Episodes) -> Standings:
        """The votes after each draw, in the order in which draws count."""
        return episodes.standings if self.order is None else Standings(_in_order(episodes.answers, self.order))

    def leader_votes(self, episodes: Episodes) -> IntArray:
        """The votes of each answer."""
        return self.standings(episodes).votes[self.samples, np.arange(len(self.samples)), 0]

    def confidences(self, episodes: Episodes, prior: Prior) -> FloatArray:
        """How sure each outcome is that the full budget would elect its answer."""
        return confidences(self.standings(episodes).at(np.arange(len(self.samples)), self.samples), prior)

    def certainties(self, episodes: Episodes, prior: Prior) -> FloatArray:
        """How sure each outcome is that unlimited sampling would; NaN where there is no answer, or it is not told."""
        rows = np.flatnonzero(np.arange(len(episodes.answers)) % episodes.repeats < CERTAINTY_REPEATS)
        found = np.full(len(self.samples), np.nan)
        found[rows] = certainties(self.standings(episodes).at(rows, self.samples[rows]), prior)
        return found


def _in_order(answers: IntArray, counted: IntArray) -> IntArray:
    """The codes of the draws that are counted, in their order; NONE for what was not drawn."""
    return np.where(counted == NONE, NONE, np.take_along_axis(answers, np.maximum(counted, 0), axis=1))


def controllers_of(episodes: Episodes, controller: Controller) -> Sequence[Controller]:
    """The controller that serves each episode: `Controller.for_question`, asked for each question and repeat."""
    if type(controller).for_question is Controller.for_question:
        return [controller] * len(episodes.answers)
    return [
        controller.for_question(question_random(episodes.seed, question.id, repeat))
        for question in episodes.questions
        for repeat in range(episodes.repeats)
    ]


def replay(episodes: Episodes, controller: Controller, flow: Flow | None = None, slots: int | None = None) -> Outcomes:
    """Run a controller over all episodes: as arrays where it can, and else on a clock, as in flow or with few slots."""
    serving = controllers_of(episodes, controller)
    groups: dict[int, list[int]] = {}
    for row, chosen in enumerate(serving):
        groups.setdefault(id(chosen), []).append(row)
    ended = np.zeros((6, len(serving)), np.int64)
    for rows in groups.values():
        chosen = serving[rows[0]]
        if flow or slots or not isinstance(chosen, ArrayController):
            return replay_clocked(episodes, serving, flow, slots)
        found = replay_arrays(episodes, chosen, np.array(rows))
        ended[:, rows] = (
            *(found.answer, found.rounds, found.samples),
            *(found.total_tokens, found.sequential_tokens, found.launched),
        )
    return Outcomes(*ended)


def replay_clocked(
    episodes: Episodes, serving: Sequence[Controller], flow: Flow | None = None, slots: int | None = None
) -> Outcomes:
    """Run the controller of each episode on a clock of tokens: in flow, or in rounds."""
    found = []
    order = np.full(episodes.answers.shape, NONE)
    for row, chosen in enumerate(serving):
        one = clocked(chosen, episodes.row(row), episodes.tokens[row].tolist(), flow, slots)
        leader = episodes.question(row).code(one.tally.leader)
        found.append((leader, one.launches, one.tally.draws, one.spent, one.latency, one.launched))
        order[row, : one.tally.draws] = one.counted
    outcomes = Outcomes(*np.array(found, np.int64).T)
    return replace(outcomes, order=order) if flow and flow.order == "arrival" else outcomes


def replay_arrays(episodes: Episodes, controller: ArrayController, rows: IntArray | None = None) -> Outcomes:
    """These episodes, or all, in step: each turn decides, and draws, for all that have not stopped."""
    standings, tokens = episodes.standings, episodes.tokens
    rows = np.arange(len(tokens)) if rows is None else rows
    rounds, samples, sequential = np.zeros((3, len(rows)), np.int64)
    running, drawn, waited, turn = np.arange(len(rows)), samples, sequential, 0
    while running.size:
        asked = controller.next_rounds(standings.at(rows[running], drawn))
        stops = asked == 0
        ended = running[stops]
        rounds[ended], samples[ended], sequential[ended] = turn, drawn[stops], waited[stops]
        running, drawn, waited, asked = (array[~stops] for array in (running, drawn, waited, asked))
        waited += _longest(tokens, rows[running], drawn, asked)
        drawn += asked
        turn += 1
    spent = episodes.spent[samples, rows]
    return Outcomes(standings.leader[samples, rows], rounds, samples, spent, sequential, samples)


def _longest(tokens: IntArray, rows: IntArray, drawn: IntArray, asked: IntArray) -> IntArray:
    """The longest of the next responses of each row, as many as are asked for."""
    longest = tokens[rows, drawn]
    for ahead in range(1, asked.max(initial=0)):
        more = np.flatnonzero(asked > ahead)
        longest[more] = np.maximum(longest[more], tokens[rows[more], drawn[more] + ahead])
    return longest


def run(controller: Controller, answers: Sequence[str | None]) -> Tally:
    """Draw from answers known beforehand, the budget being their number, until the controller stops."""
    tally = Tally(budget=len(answers))
    while tally.left and (asked := controller.next_round(tally)):
        tally.add_round(answers[tally.draws : tally.draws + asked])
    return tally


@dataclass(frozen=True)
class Clocked:
    """How one question ended: its tally, when that was, how many draws were started, how often, and what they took.

    `counted` are the draws in the tally, in its order.
    """

    tally: Tally
    latency: int
    launched: int
    launches: int
    spent: int
    counted: Sequence[int]


def clocked(
    controller: Controller,
    answers: Sequence[str | None],
    tokens: Sequence[int],
    flow: Flow | None = None,
    slots: int | None = None,
) -> Clocked:
    """Replay one question event by event: in flow, or in rounds, each of which waits for its last response.

    The clock counts tokens: a response of 300 tokens arrives 300 after it was started. `answers` and `tokens` are those
    of the draws in the order in which they are started; the budget is their number.
    """
    if flow:
        flow.check(controller)
    tally = Tally(len(answers))
    clock = _Clock(tokens, slots)
    arrived: set[int] = set()
    counted: list[int] = []
    launches = 0
    while asked := controller.next_round(tally):
        wanted = flow.wanted(asked, tally, clock.launched - len(counted)) if flow else asked
        clock.launch(wanted)
        launches += wanted > 0
        counting = clock.next_arrivals()
        while not flow and clock.under_way:
            counting += clock.next_arrivals()
        if not flow or flow.order != "arrival":
            arrived.update(counting)
            counting = []
            while len(counted) + len(counting) in arrived:
                counting.append(len(counted) + len(counting))
        for draw in counting:
            tally.add(answers[draw])
        counted += counting
        if not flow:
            tally.end_round()
    return Clocked(tally, clock.now, clock.launched, launches, clock.spent(), counted)


class _Clock:
    """Draws under way on a server with so many slots; the time is counted in tokens."""

    def __init__(self, tokens: Sequence[int], slots: int | None) -> None:
        self.now = 0
        self.under_way: list[tuple[int, int]] = []  # when it arrives, and which
        self._tokens = tokens
        self._free = [0] * min(slots or len(tokens), len(tokens))  # when each slot is free
        self._started: list[int] = []

    @property
    def launched(self) -> int:
        return len(self._started)

    def launch(self, draws: int) -> None:
        for draw in range(self.launched, self.launched + draws):
            start = max(self.now, heapq.heappop(self._free))
            heapq.heappush(self._free, start + self._tokens[draw])
            heapq.heappush(self.under_way, (start + self._tokens[draw], draw))
            self._started.append(start)

    def next_arrivals(self) -> list[int]:
        """Let time pass until something arrives; all that arrives at that moment, in order of launch."""
        self.now = self.under_way[0][0]
        arrivals = []
        while self.under_way and self.under_way[0][0] == self.now:
            arrivals.append(heapq.heappop(self.under_way)[1])
        return arrivals

    def spent(self) -> int:
        """The tokens generated until now, those of draws that are cancelled now among them."""
        return sum(max(0, min(self._tokens[draw], self.now - start)) for draw, start in enumerate(self._started))
