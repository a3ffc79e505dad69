"""Planned controllers, with no training: the best policy under the model, and mixtures of several.

Where no single plan meets a budget on average, a few neighbouring ones together do.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from suffice.controllers import FORMAT, Controller, SavedController, file_kind, get_controller, register
from suffice.controllers.learned import NetworkController
from suffice.errors import ControllerError, whole_number
from suffice.penalties import ROUND_IN_USE, Penalties
from suffice.planning.approximate import plan_table
from suffice.planning.model import EXACT_BUDGET, LARGEST_BUDGET, UNIVERSAL, Prior, build_model
from suffice.planning.tables import Cache, Table
from suffice.planning.values import plan
from suffice.tally import DEFAULT_BUDGET, FloatArray, IntArray, Tallies, Tally

LARGE_ACTIONS = (24, 32, 48, 64)
"""Where no actions were chosen, these come in for large budgets."""

MOST_TABLES = 16
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
    penalty_round: float = ROUND_IN_USE
    actions: tuple[int, ...] = (1, 2, 3, 4, 6, 8, 12, 16)
    prior: Prior = UNIVERSAL
    fewest: int = 1
    """It doesn't stop with fewer draws than these."""
    pools: Sequence[Mapping[str, str]] = field(default=(), repr=False, compare=False)
    """Those that the prior was fitted to, each with its name and sha256."""
    tables: Cache[int, Table] = field(default_factory=lambda: Cache(MOST_TABLES), init=False, repr=False, compare=False)
    """What it decides, by budget: gone when it is."""

    def __post_init__(self) -> None:
        Penalties(self.penalty_draw, self.penalty_round)
        self.require("actions", bool(self.actions) and min(self.actions) >= 1, "at least 1 each")
        self.require("fewest", self.fewest >= 1, "at least 1")

    def __repr__(self) -> str:
        return f"<{self}, {EXTENT}>"

    def __str__(self) -> str:
        actions = "+".join(map(str, self.actions))
        fewest = f",fewest={self.fewest}" if self.fewest > 1 else ""
        return f"plan:penalty_draw={self.penalty_draw:g},penalty_round={self.penalty_round:g},actions={actions}{fewest}"

    def check_budget(self, budget: int) -> None:
        whole_number("budget", budget)
        if budget > LARGEST_BUDGET:
            raise ControllerError(f"there are plans up to a budget of {LARGEST_BUDGET}, not {budget}")

    def is_quick(self, budget: int) -> bool:
        return budget in self.tables or (budget, self) in _tables

    def decide(self, tally: Tally) -> int:
        column = "asked" if tally.leader is not None else "asked_without_stop"
        return int(planned(tally.budget, self).find(column, tally))

    def decide_many(self, tallies: Tallies) -> IntArray:
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
            "pools": list(self.pools),
        }

    def tensors(self) -> dict[str, FloatArray]:
        """The prior: the rest is worked out again from it."""
        return {"prior": self.prior.grid}

    @classmethod
    def from_file(cls, tensors: dict[str, FloatArray], card: Mapping[str, Any]) -> "Plan":
        prior = Prior(tuple(tensors["prior"].ravel().tolist()))
        if prior.grid.min() < 0 or not np.isclose(sum(prior.weights), 1):
            raise ValueError
        penalties, fewest = card["penalties"], card.get("fewest", 1)
        actions, pools = tuple(card["actions"]), card.get("pools", ())
        return Plan(penalties["draw"], penalties["round"], actions, prior, fewest, pools)


@file_kind("mixture")
@dataclass(frozen=True)
class Mixture(SavedController):
    """Serves each question with one of its plans, drawn once by their shares and held to the end."""

    plans: tuple[Plan, ...]
    shares: tuple[float, ...]

    def __repr__(self) -> str:
        return " | ".join(f"{share:.3f} × {plan}" for plan, share in zip(self.plans, self.shares, strict=True))

    def check_budget(self, budget: int) -> None:
        self.plans[0].check_budget(budget)

    def for_question(self, random: np.random.Generator) -> Controller:
        return self.plans[random.choice(len(self.plans), p=self.shares)]

    def decide_many(self, tallies: Tallies) -> IntArray:
        """What the plan with the largest share decides: for who doesn't ask `for_question` first."""
        return self.plans[int(np.argmax(self.shares))].decide_many(tallies)

    @property
    def card(self) -> Mapping[str, Any]:  # type: ignore[override]
        parts = [{"share": share, **plan.card} for plan, share in zip(self.plans, self.shares, strict=True)]
        return {"kind": "mixture", "format": FORMAT, "plans": parts}

    def tensors(self) -> dict[str, FloatArray]:
        return self.plans[0].tensors()

    @classmethod
    def from_file(cls, tensors: dict[str, FloatArray], card: Mapping[str, Any]) -> "Mixture":
        plans = tuple(Plan.from_file(tensors, part) for part in card["plans"])
        shares = tuple(float(part["share"]) for part in card["plans"])
        if not plans or min(shares) < 0 or not np.isclose(sum(shares), 1):
            raise ValueError
        return Mixture(plans, shares)


def prior_of(controller: Controller) -> Prior:
    """What a controller expects of answers: how sure its outcomes are goes by that."""
    if isinstance(controller, Mixture):
        return controller.plans[0].prior
    return controller.prior if isinstance(controller, Plan) else UNIVERSAL


_tables: Cache[tuple[int, Plan], Table] = Cache(MOST_TABLES)


def planned(budget: int, chosen: Plan) -> Table:
    """The plan for a budget; the last few are kept, for others that are equal."""

    def make() -> Table:
        chosen.check_budget(budget)
        penalties, actions = Penalties(chosen.penalty_draw, chosen.penalty_round), chosen.actions
        if budget > EXACT_BUDGET:
            actions = actions + LARGE_ACTIONS if actions == Plan.actions else actions
            return plan_table(budget, chosen.prior, penalties, actions, chosen.fewest)
        model = build_model(budget, chosen.prior)
        return Table(model.levels, plan(model, penalties, actions, chosen.fewest).columns)

    if chosen.prior.passing:
        return chosen.tables.get(budget, make)
    return chosen.tables.get(budget, lambda: _tables.get((budget, chosen), make))


def ceiling(controller: str | Controller, penalties: Penalties, budget: int = DEFAULT_BUDGET) -> Plan | None:
    """The planner that a learned controller is measured against: the same actions, these penalties."""
    learned = get_controller(controller)
    if not isinstance(learned, NetworkController) or budget > EXACT_BUDGET:
        return None
    return Plan(penalties.draw, penalties.round, tuple(learned.card["actions"]))
