"""The planned controller: the best policy under the model, with no training."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from suffice.controllers import (
    FORMAT,
    ConditionedController,
    Controller,
    LearnedController,
    SavedController,
    file_kind,
    get_controller,
    register,
)
from suffice.errors import ControllerError
from suffice.penalties import Penalties
from suffice.planning.approximate import plan_table
from suffice.planning.model import EXACT_BUDGET, LARGEST_BUDGET, UNIVERSAL, Prior, build_model
from suffice.planning.tables import Lookup, Table
from suffice.planning.values import plan
from suffice.tally import DEFAULT_BUDGET, FloatArray, IntArray, Tallies, Tally

LARGE_ACTIONS = (24, 32, 48, 64)
EXTENT = f"exact up to a budget of {EXACT_BUDGET}, approximate up to {LARGEST_BUDGET}"


@file_kind("planned")
@register("plan")
@dataclass(frozen=True)
class Plan(SavedController):
    """The policy with the largest expected reward: exact for budgets up to 48, and approximate up to 512.

    >>> tally = Tally()
    >>> tally.add_round(["7", "7", "7", "7"])
    >>> Plan().decide(Tally()), Plan().decide(tally)
    (4, 0)
    """

    penalty_draw: float = Penalties.draw
    penalty_round: float = 0.005
    actions: tuple[int, ...] = (1, 2, 3, 4, 6, 8, 12, 16)
    prior: Prior = UNIVERSAL
    fewest: int = 1
    """It doesn't stop with fewer draws than these."""
    tables: dict[int, Lookup] = field(default_factory=dict, init=False, repr=False, compare=False)
    """What it decides, by budget: gone when it is."""

    def __post_init__(self) -> None:
        Penalties(self.penalty_draw, self.penalty_round)
        self.require("actions", bool(self.actions) and min(self.actions) >= 1, "at least 1 each")
        self.require("fewest", self.fewest >= 1, "at least 1")

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "tables": {}}

    def __repr__(self) -> str:
        return f"<{self}, {EXTENT}>"

    def __str__(self) -> str:
        actions = "+".join(map(str, self.actions))
        fewest = f",fewest={self.fewest}" if self.fewest > 1 else ""
        return f"plan:penalty_draw={self.penalty_draw:g},penalty_round={self.penalty_round:g},actions={actions}{fewest}"

    def is_quick(self, budget: int) -> bool:
        """Once it is planned."""
        return budget in self.tables or (budget, self) in _tables

    def decide(self, tally: Tally) -> int:
        """A look-up by the partition."""
        column = "asked" if tally.leader is not None else "asked_without_stop"
        return int(planned(tally.budget, self).find(column, tally))

    def decide_many(self, tallies: Tallies) -> IntArray:
        """Look-ups by the partitions."""
        table = planned(tallies.budget, self)
        voted = tallies.top(1)[:, 0] > 0
        asked = table.find_many("asked", tallies)
        return asked if voted.all() else np.where(voted, asked, table.find_many("asked_without_stop", tallies))

    @property
    def card(self) -> Mapping[str, Any]:  # type: ignore[override]
        """What the file says of itself."""
        return {
            "kind": "planned",
            "format": FORMAT,
            "penalties": {"draw": self.penalty_draw, "round": self.penalty_round},
            "actions": list(self.actions),
            "fewest": self.fewest,
            "extent": EXTENT,
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
        penalties, fewest = card["penalties"], card.get("fewest", 1)
        return Plan(penalties["draw"], penalties["round"], tuple(card["actions"]), prior, fewest)

    def actions_at(self, budget: int) -> tuple[int, ...]:
        """The actions; where none were chosen, larger ones too for a budget that has the room."""
        chosen = budget <= EXACT_BUDGET or self.actions != Plan.actions
        return self.actions if chosen else self.actions + LARGE_ACTIONS


_tables: dict[tuple[int, Plan], Lookup] = {}
_MOST_TABLES = 16

K = TypeVar("K")


def planned(budget: int, chosen: Plan) -> Lookup:
    """The plan for a budget; the last few are kept, for others that are equal."""
    table = chosen.tables.get(budget)
    if table is None:
        table = _tables.get((budget, chosen)) or _plan(budget, chosen)
        _keep(chosen.tables, budget, table)
        if not chosen.prior.passing:
            _keep(_tables, (budget, chosen), table)
    return table


def _keep(tables: dict[K, Lookup], key: K, table: Lookup) -> None:
    while len(tables) >= _MOST_TABLES:
        tables.pop(next(iter(tables)), None)
    tables[key] = table


def _plan(budget: int, chosen: Plan) -> Lookup:
    if budget > LARGEST_BUDGET:
        raise ControllerError(f"there are plans up to a budget of {LARGEST_BUDGET}, not {budget}")
    penalties, actions = Penalties(chosen.penalty_draw, chosen.penalty_round), chosen.actions_at(budget)
    if budget > EXACT_BUDGET:
        return plan_table(budget, chosen.prior, penalties, actions, chosen.fewest)
    model = build_model(budget, chosen.prior)
    policy = plan(model, penalties, actions, chosen.fewest)
    return Table.of(model.levels, asked=policy.asked, asked_without_stop=policy.asked_without_stop)


def ceiling(controller: str | Controller, penalties: Penalties, budget: int = DEFAULT_BUDGET) -> Plan | None:
    """The planner that a learned controller is measured against: the same actions, these penalties."""
    learned = get_controller(controller)
    if not isinstance(learned, LearnedController | ConditionedController) or budget > EXACT_BUDGET:
        return None
    return Plan(penalties.draw, penalties.round, tuple(learned.card["actions"]))
