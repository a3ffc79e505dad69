"""Flow: no waiting between rounds. Draws are kept in flight, and each arrival is followed by a decision."""

from dataclasses import dataclass

from suffice.controllers import Controller
from suffice.errors import ControllerError, OptionError, whole_number
from suffice.tally import Tally

MODES = ("rounds", "flow")
ORDERS = ("launch", "arrival")


@dataclass(frozen=True)
class Flow:
    """How draws flow: in what order votes count, and how many more than asked for are in flight.

    >>> from suffice import evaluate
    >>> (result,) = evaluate("smollm2-135m__arithmetic", "plan", repeats=2, flow=Flow("arrival", extra=2))
    >>> result.launched > result.samples
    True
    """

    order: str = "launch"
    extra: int = 0

    def __post_init__(self) -> None:
        if self.order not in ORDERS:
            raise OptionError(f'must be launch or arrival, not "{self.order}"', "order")
        whole_number("extra", self.extra, least=0)

    def check(self, controller: Controller) -> None:
        """Refuse a controller whose rounds are its meaning."""
        if controller.needs_rounds:
            raise ControllerError(f"{controller} means whole rounds, and flow has none: use plan, rl, asc or boinf")

    def wanted(self, asked: int, tally: Tally, pending: int) -> int:
        """How many draws to start now, where so many are asked for and so many are not counted yet."""
        return max(0, min(asked + self.extra, tally.left) - pending) if asked else 0


def get_flow(mode: str, order: str = Flow.order, extra: int = Flow.extra) -> Flow | None:
    """The flow that text describes, on the command line or in a request; None for rounds."""
    if mode not in MODES:
        raise OptionError(f'must be rounds or flow, not "{mode}"', "mode")
    flow = Flow(order, extra)
    return flow if mode == "flow" else None
