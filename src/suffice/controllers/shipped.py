"""The learned controller that comes with the package: one network for all budgets and penalties of its range."""

from functools import cache
from importlib.resources import files
from pathlib import Path

from suffice.controllers.conditioned import ConditionedController
from suffice.controllers.files import load_controller
from suffice.controllers.registry import register
from suffice.errors import ControllerError
from suffice.penalties import Penalties

SWEEP = [(draw, 0.0) for draw in (0.001, 0.005, 0.0075, 0.015, 0.02, 0.03)]
WITH_ROUNDS = [(0.0075, 0.005), (0.0075, 0.01), (0.02, 0.01)]


@cache
def shipped_controllers() -> dict[tuple[float, float], ConditionedController]:
    """The shipped network at the paper's penalties for a draw and a few for a round; it serves all between them too.

    >>> shipped_controllers()[0.0075, 0.0].card["actions"]
    [1, 2, 4]
    """
    return {pair: _shipped().at(Penalties(*pair)) for pair in sorted(SWEEP + WITH_ROUNDS)}


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
        penalty_round: float = Penalties.round,
        file: str | None = None,
    ) -> None:
        chosen = _shipped() if file is None else _conditioned(Path(file))
        super().__init__(chosen.layers, chosen.card, Penalties(penalty_draw, penalty_round))
