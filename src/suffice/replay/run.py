"""The replay itself: one controller over episodes, as arrays where it can and one question at a time where not."""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from suffice.controllers import ArrayController, Controller, question_random
from suffice.elections import Election, Majority
from suffice.flow import Flow
from suffice.pools import Episodes
from suffice.tally import NONE, FloatArray, IntArray, Tallies, Tally

CERTAINTY_REPEATS = 10
"""Certainties are worked out for so many repeats of a question: each takes as long as a thousand decisions."""

COSTS = ("rounds", "samples", "total_tokens", "sequential_tokens", "launched")
SHARES = ("accuracy", "field_accuracy", "agreement", "agreement_independent", "confidence", "certainty", "share")
"""What is measured of each episode: what it took, and shares of 1, NaN where they are not known."""

Measures = dict[str, FloatArray]


@dataclass(frozen=True)
class Outcomes:
    """How each episode ended: the code of its answer, and what it took."""

    episodes: Episodes
    """Their draws in the order in which they count."""
    answer: IntArray
    rounds: IntArray
    samples: IntArray
    total_tokens: IntArray
    sequential_tokens: IntArray
    launched: IntArray
    """How many draws were started."""

    @property
    def right(self) -> FloatArray:
        """Whether each answer is the gold one; NaN where that is not known."""
        return np.where(self.episodes.gold == NONE, np.nan, self.answer == self.episodes.gold)

    @property
    def counted(self) -> np.ndarray:
        """Whether a draw counts, at [row, draw]."""
        return np.arange(self.episodes.answers.shape[1]) < self.samples[:, None]

    def elected(self, election: Election) -> "Outcomes":
        """The same outcomes, with the answers that an election by weight gives."""
        if isinstance(election, Majority):
            return self
        codes = np.where(self.counted, self.episodes.answers, NONE)
        signals = {name: self.episodes.signal(name) for name in election.signals}
        return replace(self, answer=election.elect(codes, signals, self.episodes.lengths))

    def tallies(self, rows: IntArray | None = None) -> Tallies:
        """The tallies of these rows, or of all, at their stops."""
        rows = np.arange(len(self.samples)) if rows is None else rows
        return self.episodes.standings.at(rows, self.samples[rows])


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
        ended[:, rows] = [getattr(found, name) for name in ("answer", *COSTS)]
    return Outcomes(episodes, *ended)


def replay_clocked(
    episodes: Episodes, serving: Sequence[Controller], flow: Flow | None = None, slots: int | None = None
) -> Outcomes:
    found, orders = [], episodes.orders.copy()
    for row, chosen in enumerate(serving):
        one = Clocked(episodes.row(row), episodes.tokens[row].tolist(), slots).run(chosen, flow)
        leader = episodes.question(row).code(one.tally.leader)
        found.append((leader, one.launches, one.tally.draws, one.spent, one.latency, one.launched))
        question, repeat = divmod(row, episodes.repeats)
        others = np.delete(np.arange(orders.shape[1]), one.counted)
        orders[question, :, repeat] = episodes.orders[question, [*one.counted, *others], repeat]
    counted = replace(episodes, orders=orders) if flow and flow.order == "arrival" else episodes
    return Outcomes(counted, *np.array(found, np.int64).T)


def replay_arrays(episodes: Episodes, controller: ArrayController, rows: IntArray) -> Outcomes:
    """These episodes in step: each turn decides, and draws, for all that have not stopped."""
    standings, tokens = episodes.standings, episodes.tokens
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
    return Outcomes(episodes, standings.leader[samples, rows], rounds, samples, spent, sequential, samples)


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


class Clocked:
    """One question on a clock that counts tokens: a response of 300 arrives 300 after a free slot has begun it.

    `answers` and `tokens` are those of the draws in the order in which they are started; the budget is their number.
    """

    def __init__(self, answers: Sequence[str | None], tokens: Sequence[int], slots: int | None = None) -> None:
        self.tally = Tally(len(answers))
        self.counted: list[int] = []
        """The draws in the tally, in its order."""
        self.latency = 0
        self.launches = 0
        self._answers = answers
        self._tokens = tokens
        self._free = [0] * min(slots or len(tokens), len(tokens))  # when each slot is free
        self._started: list[int] = []
        self._under_way: list[tuple[int, int]] = []  # when it arrives, and which
        self._arrived: set[int] = set()

    @property
    def launched(self) -> int:
        return len(self._started)

    @property
    def spent(self) -> int:
        """The tokens generated until now, those of draws that are cancelled now among them."""
        return sum(max(0, min(self._tokens[draw], self.latency - start)) for draw, start in enumerate(self._started))

    def run(self, controller: Controller, flow: Flow | None = None) -> "Clocked":
        """Replay it event by event: in flow, or in rounds, each of which waits for its last response."""
        if flow:
            flow.check(controller)
        while asked := controller.next_round(self.tally):
            self._launch(flow.wanted(asked, self.tally, self.launched - len(self.counted)) if flow else asked)
            arrivals = self._next_arrivals()
            while not flow and self._under_way:
                arrivals += self._next_arrivals()
            counting = arrivals if flow and flow.order == "arrival" else self._in_order_of_launch(arrivals)
            for draw in counting:
                self.tally.add(self._answers[draw])
            self.counted += counting
            if not flow:
                self.tally.end_round()
        return self

    def _launch(self, draws: int) -> None:
        self.launches += draws > 0
        for draw in range(self.launched, self.launched + draws):
            start = max(self.latency, heapq.heappop(self._free))
            heapq.heappush(self._free, start + self._tokens[draw])
            heapq.heappush(self._under_way, (start + self._tokens[draw], draw))
            self._started.append(start)

    def _next_arrivals(self) -> list[int]:
        """Let time pass until something arrives; all that arrives at that moment, in order of launch."""
        self.latency = self._under_way[0][0]
        arrivals = []
        while self._under_way and self._under_way[0][0] == self.latency:
            arrivals.append(heapq.heappop(self._under_way)[1])
        return arrivals

    def _in_order_of_launch(self, arrivals: list[int]) -> list[int]:
        """The draws of which all that were started before have arrived too."""
        self._arrived.update(arrivals)
        first = last = len(self.counted)
        while last in self._arrived:
            last += 1
        return list(range(first, last))
