"""The learned controllers that come with the package, trained on its own training pool."""

from functools import cache
from importlib.resources import files
from pathlib import Path

from suffice.controllers.files import load_controller
from suffice.controllers.learned import LearnedController
from suffice.controllers.registry import register
from suffice.errors import ControllerError
from suffice.penalties import Penalties


@cache
def shipped_controllers() -> dict[tuple[float, float], LearnedController]:
    """The shipped controllers by their penalties for a draw and a round.

    >>> shipped_controllers()[0.0075, 0.0].card["actions"]
    [1, 2, 4]
    """
    folder = Path(str(files("suffice.controllers") / "shipped"))
    loaded = (load_controller(path) for path in folder.glob("*.safetensors"))
    shipped = [one for one in loaded if isinstance(one, LearnedController)]
    return dict(sorted(((one.card["penalties"]["draw"], one.card["penalties"]["round"]), one) for one in shipped))


@register("rl")
class Shipped(LearnedController):
    """RL-guided sampling (Dai et al., 2026): a network trained by PPO for these penalties, and shipped."""

    def __init__(self, penalty_draw: float = Penalties.draw, penalty_round: float = Penalties.round) -> None:
        shipped = shipped_controllers()
        if (penalty_draw, penalty_round) not in shipped:
            there = ", ".join(f"{draw:g}/{round_:g}" for draw, round_ in shipped)
            raise ControllerError(
                f"none is shipped for these penalties; there are (draw/round) {there}; or use suffice train"
            )
        chosen = shipped[penalty_draw, penalty_round]
        super().__init__(chosen.layers, chosen.card)
