"""The conditioned controller: one small network for every budget and price within its range, and the one we ship.

All its arithmetic is exact: inputs and weights are multiples of 1/1024, so that no sum in double precision is ever
rounded, and a decision is the same on any machine.
"""

from collections.abc import Mapping
from dataclasses import asdict
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from suffice.controllers.files import file_kind, load_controller, register
from suffice.controllers.learned import Layers, NetworkController
from suffice.errors import ControllerError, SufficeError
from suffice.penalties import ROUND_IN_USE, Penalties
from suffice.tally import FloatArray

TOP = 5
LARGEST_BUDGET = 256
GRID = 1024
"""Inputs and weights are multiples of 1/GRID."""

LARGEST_INPUT = 2.1
OVER_LOG = float(1 / np.log(TOP))

_WHOLE = np.arange(2 * LARGEST_BUDGET + 1, dtype=float)
_POSITIVE = np.maximum(_WHOLE, 1)
# Functions of whole numbers, 0 where there is no value.
INVERSE: list[float] = ((_WHOLE > 0) / _POSITIVE).tolist()
ROOT: list[float] = np.sqrt(_WHOLE).tolist()
INVERSE_ROOT: list[float] = ((_WHOLE > 0) / np.sqrt(_POSITIVE)).tolist()
LOG: list[float] = np.log2(_WHOLE + 1).tolist()
TIMES_LOG: list[float] = (_WHOLE * np.log(_POSITIVE)).tolist()


def features(budget: int, draws: int, *top: int) -> tuple[float, ...]:
    """What the network sees of a tally, from the draws and the top 5 counts.

    These are the paper's state (counts, draws, entropy), and the same numbers on scales that suit every budget: shares
    of the draws, and leads in standard deviations.
    """
    first, second, third, fourth, fifth = top
    over_budget, over_draws, left = INVERSE[budget], INVERSE[draws], budget - draws
    votes = first + second + third + fourth + fifth
    spread = TIMES_LOG[first] + TIMES_LOG[second] + TIMES_LOG[third] + TIMES_LOG[fourth] + TIMES_LOG[fifth]
    entropy = (TIMES_LOG[votes] - spread) * INVERSE[votes] * OVER_LOG
    lead, further = first - second, first - third
    ahead = lead * INVERSE_ROOT[first + second]
    ahead_of_third = further * INVERSE_ROOT[first + third]
    to_come = ROOT[budget] * INVERSE_ROOT[left]
    return (
        first * over_budget,
        second * over_budget,
        third * over_budget,
        (fourth + fifth) * over_budget,
        draws * over_budget,
        entropy,
        first * over_draws,
        second * over_draws,
        third * over_draws,
        fourth * over_draws,
        fifth * over_draws,
        votes * over_draws,
        over_draws,
        LOG[draws] * 0.25,
        LOG[left] * 0.25,
        # In standard deviations, of the votes so far and of what may still come, on scales that end at 1.
        ahead / (ahead + 2),
        ahead_of_third / (ahead_of_third + 2),
        ahead * to_come / (ahead * to_come + 2),
        ahead_of_third * to_come / (ahead_of_third * to_come + 2),
        # Above ½ the vote is settled.
        lead * INVERSE[lead + left],
        further * INVERSE[further + left],
    )


FEATURES = 21
CONDITIONS = 6
DRAW_PENALTIES, ROUND_PENALTIES = (0.001, 0.03), (0.0, 0.05)
RANGES = {"budget": (2, LARGEST_BUDGET), "penalty_draw": DRAW_PENALTIES, "penalty_round": ROUND_PENALTIES}
"""What the inputs are scaled for: a network serves these, or less."""


def conditions(budget: int, draw: float, round_: float) -> FloatArray:
    """What the network sees of the budget and the penalties: each on two scales."""
    dear, waiting = np.log2(draw / DRAW_PENALTIES[0]) / 4, np.sqrt(round_ / ROUND_PENALTIES[1])
    return np.array([np.log2(budget) / 4, dear, waiting, draw / DRAW_PENALTIES[1], waiting**2, draw * budget / 4])


def on_grid(values: FloatArray) -> FloatArray:
    """The nearest multiples of 1/GRID."""
    return np.rint(values * GRID) / GRID


@file_kind("conditioned")
class ConditionedController(NetworkController):
    """Takes the network's best action at one pair of penalties and at whatever budget it is asked for.

    The first round is fixed where it is at most half of the budget; below that the network chooses it too. Without a
    vote it draws on, and where nobody can pass the leader any more it stops.
    `layers` are pairs of weights (outputs × inputs) and biases: inputs are the features and then the conditions.

    >>> from suffice import Tally, get_controller
    >>> rl = get_controller("rl:penalty_draw=0.01,penalty_round=0.002")
    >>> rl.first, rl.decide(Tally(16)), rl.decide(Tally(64))
    (4, 4, 4)
    """

    def __init__(self, layers: Layers, card: Mapping[str, Any], penalties: Penalties) -> None:
        self.ranges: Mapping[str, tuple[float, float]] = card["ranges"]
        for name, value in vars(penalties).items():
            low, high = self.ranges[f"penalty_{name}"]
            if not low <= value <= high:
                raise ControllerError(f"penalty_{name} must be between {low:g} and {high:g}, not {value:g}")
        super().__init__(layers, {**card, "penalties": asdict(penalties)}, TOP)
        self.penalties = penalties
        self._exact = [
            (on_grid(weights.astype(float)).T.copy(), on_grid(biases.astype(float))) for weights, biases in layers
        ]
        """The weights, inputs × outputs, and biases, on the grid."""
        self._conditioned: dict[int, FloatArray] = {}

    def at(self, penalties: Penalties) -> "ConditionedController":
        """The same network at other penalties."""
        return ConditionedController(self.layers, self.card, penalties)

    def __str__(self) -> str:
        return f"rl:penalty_draw={self.penalties.draw:g},penalty_round={self.penalties.round:g}"

    @classmethod
    def from_file(cls, tensors: dict[str, FloatArray], card: Mapping[str, Any]) -> "ConditionedController":
        numbers = [card["first"], *card["actions"]]
        layers = cls.layers_of(tensors, FEATURES + CONDITIONS, numbers)
        high, bound = np.full(FEATURES + CONDITIONS, LARGEST_INPUT), 0.0
        for weights, biases in layers:
            # Inputs and what is hidden are never below 0, so a sum lies between these two.
            most, least = (np.maximum(side, 0) @ high + np.abs(biases) for side in (weights, -weights))
            high, bound = most, float(np.maximum(most, least).max())
        # Three layers and an input on the grid make multiples of 2⁻⁴⁰: up to 2¹³ they are exact in 53 bits.
        if len(layers) != 3 or len(high) != len(numbers) or not bound < 2**13:
            raise ValueError
        for name, (lowest, highest) in RANGES.items():
            first, last = card["ranges"][name]
            if not lowest <= first <= last <= highest:
                raise ValueError
        try:
            return ConditionedController(layers, card, Penalties(**card["penalties"]))
        except SufficeError:
            raise ValueError from None

    def check_budget(self, budget: int) -> None:
        low, high = self.ranges["budget"]
        if not low <= budget <= high:
            raise ControllerError(f"rl serves budgets from {low} to {high}, not {budget}")

    def _condition(self, budget: int) -> FloatArray:
        """What budget and prices add to the first layer, its biases included."""
        if budget not in self._conditioned:
            weights, biases = self._exact[0]
            seen = on_grid(conditions(budget, self.penalties.draw, self.penalties.round))
            self._conditioned[budget] = seen @ weights[FEATURES:] + biases
        return self._conditioned[budget]

    def _pass_through(self, budget: int, draws: int, *top: int) -> int:
        first_round = self.first if 2 * self.first <= budget else 0
        if draws < first_round:
            return first_round - draws
        if top[0] and top[0] - top[1] >= budget - draws:  # nobody can pass the leader any more
            return 0
        (first, _), (second, bias), (last, last_bias) = self._exact
        seen = on_grid(np.array(features(budget, draws, *top)))
        hidden = np.maximum(np.dot(seen, first[:FEATURES]) + self._condition(budget), 0)
        hidden = np.maximum(np.dot(hidden, second) + bias, 0)
        scores = np.dot(hidden, last) + last_bias
        return self._asked[scores.argmax() if top[0] else 1 + scores[1:].argmax()]


@cache
def shipped_controllers() -> dict[tuple[float, float], ConditionedController]:
    """The shipped network at the paper's penalties for a draw and a few for a round; it serves all between them too.

    >>> shipped_controllers()[0.0075, 0.0].card["actions"]
    [1, 2, 4]
    """
    sweep = [(draw, 0.0) for draw in (0.001, 0.005, 0.0075, 0.015, 0.02, 0.03)]
    with_rounds = [(0.0075, 0.005), (0.0075, 0.01), (0.02, 0.01)]
    return {pair: _shipped().at(Penalties(*pair)) for pair in sorted(sweep + with_rounds)}


@cache
def _shipped() -> ConditionedController:
    return _conditioned(Path(str(files("suffice.controllers") / "shipped" / "rl.safetensors")))


def _conditioned(path: Path) -> ConditionedController:
    loaded = load_controller(path)
    if not isinstance(loaded, ConditionedController):
        raise ControllerError(f"{path} has its own budget and penalties: use it as file:{path}")
    return loaded


@register("rl")
class Shipped(ConditionedController):
    """RL-guided sampling (Dai et al., 2026): a network for any penalties of its range, the shipped one unless told."""

    def __init__(
        self,
        penalty_draw: float = Penalties.draw,
        penalty_round: float = ROUND_IN_USE,
        file: str | None = None,
    ) -> None:
        chosen = _shipped() if file is None else _conditioned(Path(file))
        super().__init__(chosen.layers, chosen.card, Penalties(penalty_draw, penalty_round))
