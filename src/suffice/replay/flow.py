"""Flow, replayed with a clock: draws in flight, a decision on every arrival, and the rest cancelled at the stop.

The clock counts tokens: a response of 300 tokens arrives 300 after it was started.
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

from suffice.controllers import Controller
from suffice.flow import Flow
from suffice.tally import Tally


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


def rounds_one(
    controller: Controller, answers: Sequence[str | None], tokens: Sequence[int], slots: int | None = None
) -> Clocked:
    """One question in rounds, each of which waits for its last response."""
    tally = Tally(len(answers))
    clock = _Clock(tokens, slots)
    while asked := controller.next_round(tally):
        clock.launch(asked)
        while clock.under_way:
            clock.next_arrivals()
        tally.add_round(answers[tally.draws : tally.draws + asked])
    return Clocked(tally, clock.now, clock.launched, tally.rounds, clock.spent(), range(tally.draws))


def flow_one(
    controller: Controller,
    answers: Sequence[str | None],
    tokens: Sequence[int],
    flow: Flow,
    slots: int | None = None,
) -> Clocked:
    """One question, event by event: the truth that quicker ways must match.

    `answers` and `tokens` are those of the draws in the order in which they are started; the budget is their number.
    """
    flow.check(controller)
    tally = Tally(len(answers))
    clock = _Clock(tokens, slots)
    arrived: set[int] = set()
    counted: list[int] = []
    launches = 0
    while asked := controller.next_round(tally):
        wanted = flow.wanted(asked, tally, clock.launched - len(counted))
        clock.launch(wanted)
        launches += wanted > 0
        arrivals = clock.next_arrivals()
        if flow.order == "arrival":
            counting = arrivals
        else:
            arrived.update(arrivals)
            counting = []
            while len(counted) + len(counting) in arrived:
                counting.append(len(counted) + len(counting))
        for draw in counting:
            tally.add(answers[draw])
        counted += counting
    return Clocked(tally, clock.now, clock.launched, launches, clock.spent(), counted)


class _Clock:
    """Draws under way on a server with so many slots; the time is counted in tokens."""

    def __init__(self, tokens: Sequence[int], slots: int | None) -> None:
        self.now = 0
        self.launched = 0
        self._tokens = tokens
        self._free = [0] * min(slots or len(tokens), len(tokens))  # when each slot is free
        self._under_way: list[tuple[int, int]] = []  # when it arrives, and which
        self._started: list[int] = []

    @property
    def under_way(self) -> bool:
        return bool(self._under_way)

    def launch(self, draws: int) -> None:
        for draw in range(self.launched, self.launched + draws):
            start = max(self.now, heapq.heappop(self._free))
            heapq.heappush(self._free, start + self._tokens[draw])
            heapq.heappush(self._under_way, (start + self._tokens[draw], draw))
            self._started.append(start)
        self.launched += draws

    def next_arrivals(self) -> list[int]:
        """Let time pass until something arrives; all that arrives at that moment, in order of launch."""
        self.now = self._under_way[0][0]
        arrivals = []
        while self._under_way and self._under_way[0][0] == self.now:
            arrivals.append(heapq.heappop(self._under_way)[1])
        return arrivals

    def spent(self) -> int:
        """The tokens generated until now, those of draws that are cancelled now among them."""
        return sum(max(0, min(self._tokens[draw], self.now - start)) for draw, start in enumerate(self._started))
