"""Flow: no waiting between rounds. Draws are kept in flight, and each arrival is followed by a decision."""

from dataclasses import dataclass
from sys import maxsize

from suffice.controllers import Controller
from suffice.errors import ControllerError, OptionError, whole_number
from suffice.penalties import Penalties
from suffice.settings import read_arguments
from suffice.tally import Tally

ORDERS = ("launch", "arrival", "auto")
ABOUT = "Decide on every arrival, not in rounds: auto follows the server's load; order=arrival,extra=2 says how."
METAVAR = "[auto|order=O,extra=N]"
"""Flow as an option, in a sentence, and what stands for its value."""

IDLE_EXTRA = 12
"""So many more draws than asked for are in flight at an idle server by `auto`.

Replayed on the bundled pool of GSM8K, 12 take 1.21 times the latency of 32 draws at once, and 69 % of their tokens;
8 take 1.32 times and 62 %, 16 take 1.14 times and 76 %.
"""


PAYING = {4: 4.6, 8: 10.0, 12: 22.0, 16: 34.0}
"""So many extra draws pay where a round costs so many times what a draw does.

Replayed on the same pool, each of the first four extra draws saves 0.13 rounds and costs 0.6 draws, each of the next
four 0.06 rounds, then 0.03, then 0.02.
"""


def paying_extra(penalties: Penalties) -> int:
    """How many extra draws at an idle server are worth the time that they save.

    >>> paying_extra(Penalties(draw=0.001, round=0.01)), paying_extra(Penalties(draw=0.01, round=0.01))
    (8, 0)
    """
    return max((extra for extra, times in PAYING.items() if penalties.round >= times * penalties.draw), default=0)


@dataclass(frozen=True)
class Flow:
    """How draws flow: in what order votes count, and how many more than asked for are in flight.

    By `launch` a vote counts once all that were started before it have arrived, by `arrival` at once. `auto` is by
    launch, and so many are extra only where the server has little to do; one that is busy is asked as in rounds.

    >>> from suffice import evaluate
    >>> (result,) = evaluate("smollm2-135m__arithmetic", "plan", repeats=2, flow=Flow("arrival", extra=2))
    >>> result.launched > result.samples
    True
    >>> str(Flow(extra=2))
    'order=launch,extra=2'
    """

    order: str = "launch"
    extra: int | None = None

    def __post_init__(self) -> None:
        if self.order not in ORDERS:
            raise OptionError(f'must be launch, arrival or auto, not "{self.order}"', "order")
        if self.extra is None:
            object.__setattr__(self, "extra", IDLE_EXTRA if self.is_auto else 0)
        whole_number("extra", self.extra or 0, least=0)

    @property
    def is_auto(self) -> bool:
        """Whether the load of the server decides."""
        return self.order == "auto"

    def __str__(self) -> str:
        return f"order={self.order},extra={self.extra}"

    def check(self, controller: Controller) -> None:
        """Refuse a controller whose rounds are its meaning."""
        if controller.needs_rounds:
            raise ControllerError(f"{controller} means whole rounds, and flow has none: use plan, rl, asc or boinf")

    def wanted(self, asked: int, tally: Tally, pending: int, spare: int = maxsize) -> int:
        """How many draws to start now.

        Args:
            asked: How many the controller asks for.
            tally: The votes so far.
            pending: How many were started and are not counted yet.
            spare: How many more than asked for there is room for.
        """
        return max(0, min(asked + min(self.extra or 0, spare), tally.left) - pending) if asked else 0


def get_flow(flow: Flow | str | bool | None) -> Flow | None:
    """The flow that is asked for; None for whole rounds.

    Args:
        flow: True for a plain flow, a text like `auto` or `order=arrival,extra=2` (or `true`, or `false`), or a flow,
            which is returned as it is; False or None for rounds.

    Raises:
        OptionError: where a text says something else.

    >>> get_flow("order=arrival"), get_flow(False)
    (Flow(order='arrival', extra=0), None)
    """
    if flow is None or isinstance(flow, Flow):
        return flow
    if flow in (True, "true"):
        return Flow()
    if flow == "auto":
        return Flow("auto")
    if flow in (False, "false"):
        return None
    try:
        return Flow(**read_arguments(Flow, str(flow)))
    except (OptionError, ValueError) as error:
        raise OptionError(f'can\'t be "{flow}": {error}', "flow") from None
