"""Mixtures of plans: where no single plan meets a budget on average, a few neighbouring ones together do."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from suffice.controllers import FORMAT, Controller, SavedController, file_kind
from suffice.planning.controller import Plan
from suffice.planning.model import UNIVERSAL, Prior
from suffice.tally import FloatArray, IntArray, Tallies


def prior_of(controller: Controller) -> Prior:
    """What a controller expects of answers: how sure its outcomes are goes by that."""
    if isinstance(controller, Mixture):
        return controller.plans[0].prior
    return controller.prior if isinstance(controller, Plan) else UNIVERSAL


@file_kind("mixture")
@dataclass(frozen=True)
class Mixture(SavedController):
    """Serves each question with one of its plans, drawn once by their shares and held to the end."""

    plans: tuple[Plan, ...]
    shares: tuple[float, ...]

    def __repr__(self) -> str:
        return " | ".join(f"{share:.3f} × {plan}" for plan, share in zip(self.plans, self.shares, strict=True))

    def for_question(self, random: np.random.Generator) -> Controller:
        """The plan that serves one question."""
        return self.plans[random.choice(len(self.plans), p=self.shares)]

    def decide_many(self, tallies: Tallies) -> IntArray:
        """What the plan with the largest share decides: for who doesn't ask `for_question` first."""
        return self.plans[int(np.argmax(self.shares))].decide_many(tallies)

    @property
    def card(self) -> Mapping[str, Any]:  # type: ignore[override]
        """What the file says of itself."""
        parts = [{"share": share, **plan.card} for plan, share in zip(self.plans, self.shares, strict=True)]
        return {"kind": "mixture", "format": FORMAT, "plans": parts}

    def tensors(self) -> dict[str, FloatArray]:
        """The prior, which the plans share."""
        return self.plans[0].tensors()

    @classmethod
    def from_file(cls, tensors: dict[str, FloatArray], card: Mapping[str, Any]) -> "Mixture":
        """The mixture of a file; ValueError where its shares are none."""
        plans = tuple(Plan.from_file(tensors, part) for part in card["plans"])
        shares = tuple(float(part["share"]) for part in card["plans"])
        if not plans or min(shares) < 0 or not np.isclose(sum(shares), 1):
            raise ValueError
        return Mixture(plans, shares)
