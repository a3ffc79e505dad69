"""Flow: no waiting between rounds. Draws are kept in flight, and each arrival is followed by a decision."""

from dataclasses import dataclass

from suffice.controllers import Controller
from suffice.errors import ControllerError, OptionError
from suffice.tally import Tally

ORDERS = ("launch", "arrival")


@dataclass(frozen=True)
class Flow:
    """How draws flow: in what order votes count, how many more than asked for are in flight, and on how many slots."""

    order: str = "launch"
    extra: int = 0
    slots: int | None = None

    def __post_init__(self) -> None:
        if self.order not in ORDERS:
            raise OptionError(f'--order must be launch or arrival, not "{self.order}"')
        if self.extra < 0:
            raise OptionError(f"--extra must be 0 or more, not {self.extra}")
        if self.slots is not None and self.slots < 1:
            raise OptionError(f"--slots must be at least 1, not {self.slots}")

    def check(self, controller: Controller) -> None:
        """Refuse a controller whose rounds are its meaning."""
        if controller.needs_rounds:
            raise ControllerError(f"{controller} means whole rounds, and flow has none: use plan, rl, asc or boinf")

    def wanted(self, asked: int, tally: Tally, pending: int) -> int:
        """How many draws to start now, where so many are asked for and so many are not counted yet."""
        return max(0, min(asked + self.extra, tally.left) - pending) if asked else 0


def get_flow(mode: str, order: str = "launch", extra: int = 0, slots: int | None = None) -> Flow | None:
    """The flow that options describe; None for rounds."""
    if mode not in ("rounds", "flow"):
        raise OptionError(f'--mode must be rounds or flow, not "{mode}"')
    flow = Flow(order, extra, slots)
    return flow if mode == "flow" else None
