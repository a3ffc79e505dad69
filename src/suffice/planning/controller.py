"""The planned controller: the exact best policy under the model, with no training."""

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from suffice.controllers import ArrayController, Controller, LearnedController, get_controller, register
from suffice.penalties import Penalties
from suffice.planning.confidence import LARGEST_BUDGET, locate, universal_model
from suffice.planning.model import Model
from suffice.planning.values import Policy, plan
from suffice.tally import IntArray, Tallies, Tally


@register("plan")
@dataclass(frozen=True)
class Plan(ArrayController):
    """The policy with the largest expected reward, by backward recursion over all partitions of the draws."""

    penalty_draw: float = 0.0075
    penalty_round: float = 0.005
    actions: tuple[int, ...] = (1, 2, 3, 4, 6, 8, 12, 16)

    def __post_init__(self) -> None:
        Penalties(self.penalty_draw, self.penalty_round)
        self.require("actions", bool(self.actions) and min(self.actions) >= 1, "at least 1 each")

    def decide(self, tally: Tally) -> int:
        """A look-up by the partition."""
        by_partition = self._table(tally.budget).by_partition
        given = sum(tally.top(tally.budget))
        parts = bytes(filter(None, tally.top(tally.budget))) + b"\1" * (tally.draws - given)
        stopping, going_on = by_partition[parts]
        return stopping if given else going_on

    def decide_many(self, tallies: Tallies) -> IntArray:
        """Look-ups by the partitions, level by level."""
        table = self._table(tallies.budget)
        voted = tallies.top(1)[:, 0] > 0
        asked = np.empty(len(tallies), int)
        for draws, rows, places in locate(tallies, table.model):
            stopping, going_on = table.policy.asked[draws][places], table.policy.asked_without_stop[draws][places]
            asked[rows] = np.where(voted[rows], stopping, going_on)
        return asked

    def _table(self, budget: int) -> "Table":
        return _planned(budget, Penalties(self.penalty_draw, self.penalty_round), self.actions)


@dataclass(frozen=True)
class Table:
    """A model and its best policy."""

    model: Model
    policy: Policy

    @cached_property
    def by_partition(self) -> dict[bytes, tuple[int, int]]:
        """Decisions by the parts of the partition, as bytes: with stopping, and with stopping barred."""
        return {
            key: decisions
            for level, asked, without in zip(
                self.model.levels, self.policy.asked, self.policy.asked_without_stop, strict=True
            )
            for key, decisions in zip(
                level.keys.tolist(), zip(asked.tolist(), without.tolist(), strict=True), strict=True
            )
        }


@lru_cache(maxsize=16)
def _planned(budget: int, penalties: Penalties, actions: tuple[int, ...]) -> Table:
    model = universal_model(budget)
    return Table(model, plan(model, penalties, actions))


def ceiling(controller: str | Controller, penalties: Penalties) -> Plan | None:
    """The planner that a learned controller is measured against: the same actions, these penalties."""
    learned = get_controller(controller)
    if not isinstance(learned, LearnedController) or learned.budget > LARGEST_BUDGET:
        return None
    return Plan(penalties.draw, penalties.round, tuple(learned.card["actions"]))
