"""The planned controller: the exact best policy under the model, with no training."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from suffice.controllers import (
    FORMAT,
    Controller,
    LearnedController,
    SavedController,
    file_kind,
    get_controller,
    register,
)
from suffice.errors import ControllerError
from suffice.penalties import Penalties
from suffice.planning.model import LARGEST_BUDGET, UNIVERSAL, Prior, build_model
from suffice.planning.tables import Table
from suffice.planning.values import plan
from suffice.tally import FloatArray, IntArray, Tallies, Tally


@file_kind("planned")
@register("plan")
@dataclass(frozen=True)
class Plan(SavedController):
    """The policy with the largest expected reward, by backward recursion over all partitions of the draws.

    >>> tally = Tally()
    >>> tally.add_round(["7", "7", "7", "7"])
    >>> Plan().decide(Tally()), Plan().decide(tally)
    (4, 0)
    """

    penalty_draw: float = Penalties.draw
    penalty_round: float = 0.005
    actions: tuple[int, ...] = (1, 2, 3, 4, 6, 8, 12, 16)
    prior: Prior = UNIVERSAL

    def __post_init__(self) -> None:
        Penalties(self.penalty_draw, self.penalty_round)
        self.require("actions", bool(self.actions) and min(self.actions) >= 1, "at least 1 each")

    def __repr__(self) -> str:
        actions = "+".join(map(str, self.actions))
        return f"plan:penalty_draw={self.penalty_draw:g},penalty_round={self.penalty_round:g},actions={actions}"

    def is_quick(self, budget: int) -> bool:
        """Once it is planned."""
        return (budget, self) in _tables

    def decide(self, tally: Tally) -> int:
        """A look-up by the partition."""
        table = self._table(tally.budget)
        return int(table.columns["asked" if tally.leader is not None else "asked_without_stop"][table.row(tally)])

    def decide_many(self, tallies: Tallies) -> IntArray:
        """Look-ups by the partitions."""
        table = self._table(tallies.budget)
        rows = table.rows(tallies)
        voted = tallies.top(1)[:, 0] > 0
        return np.where(voted, table.columns["asked"][rows], table.columns["asked_without_stop"][rows])

    @property
    def card(self) -> Mapping[str, Any]:  # type: ignore[override]
        """What the file says of itself."""
        return {
            "kind": "planned",
            "format": FORMAT,
            "penalties": {"draw": self.penalty_draw, "round": self.penalty_round},
            "actions": list(self.actions),
            "prior": "universal" if self.prior == UNIVERSAL else "fitted",
        }

    def tensors(self) -> dict[str, FloatArray]:
        """The prior: the rest is worked out again from it."""
        return {"prior": self.prior.grid}

    @classmethod
    def from_file(cls, tensors: dict[str, FloatArray], card: Mapping[str, Any]) -> "Plan":
        """The plan of a file; ValueError where its prior is none."""
        prior = Prior(tuple(tensors["prior"].ravel().tolist()))
        if prior.grid.min() < 0 or not np.isclose(sum(prior.weights), 1):
            raise ValueError
        return Plan(card["penalties"]["draw"], card["penalties"]["round"], tuple(card["actions"]), prior)

    def _table(self, budget: int) -> Table:
        return _planned(budget, self)


_tables: dict[tuple[int, Plan], Table] = {}
_MOST_TABLES = 16


def _planned(budget: int, chosen: Plan) -> Table:
    """The plan for a budget; the last few are kept."""
    table = _tables.get((budget, chosen))
    if table is None:
        table = _plan(budget, chosen)
        while len(_tables) >= _MOST_TABLES:
            _tables.pop(next(iter(_tables)), None)
        _tables[budget, chosen] = table
    return table


def _plan(budget: int, chosen: Plan) -> Table:
    if budget > LARGEST_BUDGET:
        raise ControllerError(
            f"plans are exact up to a budget of {LARGEST_BUDGET}, not {budget}; rl can be trained for it"
        )

    model = build_model(budget, chosen.prior)
    policy = plan(model, Penalties(chosen.penalty_draw, chosen.penalty_round), chosen.actions)
    return Table.of(model.levels, asked=policy.asked, asked_without_stop=policy.asked_without_stop)


def ceiling(controller: str | Controller, penalties: Penalties) -> Plan | None:
    """The planner that a learned controller is measured against: the same actions, these penalties."""
    learned = get_controller(controller)
    if not isinstance(learned, LearnedController) or learned.budget > LARGEST_BUDGET:
        return None
    return Plan(penalties.draw, penalties.round, tuple(learned.card["actions"]))
