"""The controller of a panel: chooses the next voter and the number of draws from what each voter has said."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from suffice.controllers import Controller
from suffice.errors import ControllerError
from suffice.panel.tallies import PanelTallies
from suffice.settings import read_arguments
from suffice.tally import DEFAULT_BUDGET, IntArray, Tally


@dataclass(frozen=True, repr=False)
class Cascade(Controller):
    """The first voter is asked `first` times; while the answers differ, the next is asked, up to `then` times.

    It decides from the tally alone, which knows who voted; live it is a controller like others.

    >>> cascade = Cascade(("small", "large"), first=2, then=3, weight=2)
    >>> tally = Tally()
    >>> cascade.choose(tally)
    ['small', 'small']
    >>> tally.add("7", "small"); tally.add("9", "small"); tally.end_round()
    >>> cascade.choose(tally)
    ['large']
    """

    needs_rounds: ClassVar[bool] = True

    voters: tuple[str, ...] = ()
    """Their names; arrays have them in this order."""
    first: int = 4
    """How often the first voter is asked."""
    agree: float = 1.0
    """It is enough where the leader has this share of the first voter's draws."""
    then: int = 5
    """How often each other voter is asked at most: no more than could change the answer."""
    weight: float = 3.0
    """How much more the next voter's votes weigh than those of the one before."""
    budget: int = DEFAULT_BUDGET
    """The most draws of each voter."""

    def __post_init__(self) -> None:
        self.require("first", self.first >= 1, "at least 1")
        self.require("then", self.then >= 0, "at least 0")
        self.require("agree", 0 < self.agree <= 1, "above 0 and at most 1")
        self.require("weight", self.weight > 0, "above 0")

    def __str__(self) -> str:
        return f"cascade:first={self.first},agree={self.agree:g},then={self.then},weight={self.weight:g}"

    @property
    def weights(self) -> tuple[float, ...]:
        """What a vote of each voter weighs: as many times that of the one before."""
        return tuple(self.weight**place for place in range(len(self.voters)))

    def decide(self, tally: Tally) -> int:
        """How many more to draw, whoever is asked."""
        return len(self.choose(tally))

    def choose(self, tally: Tally) -> list[str]:
        """Whom to ask next, a name for each draw; of those who are absent, nobody."""
        if tally.absent:
            return self._choose_present(tally, [voter for voter in self.voters if voter not in tally.absent])
        (draws,) = self.choose_many(PanelTallies.of(tally, self.voters, self.budget))
        return [voter for voter, number in zip(self.voters, draws, strict=True) for _ in range(number)]

    def choose_many(self, tallies: PanelTallies) -> IntArray:
        """How many more of each voter to draw for each row, at [row, voter]; none at all stops.

        The first voter, then one draw at a time of the others, in their order, within each voter's budget.
        """
        asked = np.zeros(tallies.draws.shape, np.intp)
        asked[:, 0] = np.maximum(self.first - tallies.draws[:, 0], 0)
        share = np.rint(tallies.votes[:, 0].max(axis=1)) / np.maximum(tallies.draws[:, 0], 1)
        differ = (asked[:, 0] == 0) & (share < self.agree)
        ranked = np.sort(tallies.sums(self.weights), axis=1)
        ahead = ranked[:, -1] - (ranked[:, -2] if ranked.shape[1] > 1 else 0)
        for place in range(1, len(self.voters)):
            left = np.maximum(min(self.then, tallies.budget) - tallies.draws[:, place], 0)
            begun = tallies.draws[:, place] > 0
            open_yet = differ & (left > 0) & (~begun | (left * self.weights[place] >= ahead))
            asked[:, place] = open_yet
            differ &= ~open_yet
        return np.minimum(asked, tallies.budget - tallies.draws)

    def _choose_present(self, tally: Tally, present: list[str]) -> list[str]:
        """These in their order, and the last of them in the place of whoever is missing."""
        beyond = tally.draws - self.first
        if beyond < 0:
            return present[:1] * -beyond
        left = self.then * (len(self.voters) - 1) - beyond
        if left <= 0 or tally.top(1)[0] >= self.agree * tally.draws:
            return []
        voter = present[min(1 + beyond // self.then, len(present) - 1)]
        weighed = PanelTallies.of(tally, self.voters, self.budget).sums(self.weights)[0]
        *_, second, first = sorted([0.0, 0.0, *weighed])
        return [voter] if left * self.weights[self.voters.index(voter)] >= first - second else []


def panel_controller(spec: str | Cascade, voters: Sequence[str], budget: int) -> Cascade:
    """The controller that `cascade` or `cascade:key=value,…` describes, for these voters.

    Args:
        spec: The text, or a controller.
        voters: Their names, the first to be asked first.
        budget: The most draws of each.

    >>> panel_controller("cascade:first=2", ["small", "large"], 32).first
    2
    """
    if isinstance(spec, Cascade):
        found = replace(spec, budget=budget)
    else:
        name, _, rest = spec.partition(":")
        if name != "cascade":
            raise ControllerError(f'unknown controller of a panel "{spec}": there is cascade')
        try:
            found = Cascade(tuple(voters), budget=budget, **read_arguments(Cascade, rest))
        except (TypeError, ValueError) as error:
            raise ControllerError(f'controller "{spec}": {error}') from None
    if sorted(found.voters) != sorted(voters):
        raise ControllerError(f'"{spec}" is for the voters {", ".join(found.voters)}, not {", ".join(voters)}')
    return found
