"""Controllers by `NAME`, `NAME:key=value,key=value` or `file:PATH`, the same string everywhere, and their files.

A controller file is one .safetensors file with a controller's numbers and a card that says what it is.
"""

import json
from abc import abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self, TypeVar

from suffice.controllers.base import ArrayController, Controller, import_planner
from suffice.errors import ControllerError, SufficeError
from suffice.paths import is_there, write_whole
from suffice.registry import Registry, classes_of
from suffice.tally import FloatArray

FORMAT = 1
CARD = "suffice"
"""The key of the file's metadata that holds the card, as JSON."""

BROKEN = (OSError, KeyError, ValueError, TypeError, AttributeError, RecursionError)
"""What reading a file that is not whole, or not ours, ends in."""

ROUNDING = 1e-9


class SavedController(ArrayController):
    """A controller that can be saved; its card names its kind and format.

    >>> from suffice import get_controller
    >>> get_controller("rl").card["kind"], get_controller("plan").card["kind"]
    ('conditioned', 'planned')
    """

    card: Mapping[str, Any]

    def no_better_than(self) -> list[str]:
        """The simple rules that did better on the training pools, or as well and as cheaply, by the card's figures."""
        own = self.card
        return [
            f"{rule} (reward {own['reward']:.3f} against its {known['reward']:.3f})"
            for rule, known in own.get("rules", {}).items()
            if known["reward"] > own["reward"] + ROUNDING
            or (
                known["reward"] > own["reward"] - ROUNDING
                and known["samples"] <= own["samples"]
                and known["rounds"] <= own["rounds"]
            )
        ]

    @abstractmethod
    def tensors(self) -> dict[str, FloatArray]:
        """The numbers that go into the file."""

    @classmethod
    @abstractmethod
    def from_file(cls, tensors: dict[str, FloatArray], card: Mapping[str, Any]) -> Self:
        """The controller of a file; KeyError, TypeError or ValueError where they don't make one."""


K = TypeVar("K", bound=type[SavedController])
C = TypeVar("C", bound=type[Controller])
T = TypeVar("T")

_kinds: dict[str, type[SavedController]] = {}


def file_kind(name: str) -> Callable[[K], K]:
    """Let files with this kind on their card be loaded as this class."""

    def add(controller: K) -> K:
        _kinds[name] = controller
        return controller

    return add


def save_controller(controller: SavedController, path: str | Path) -> None:
    """Write a controller and its card.

    Args:
        controller: One that can be saved.
        path: The file, by custom with the ending .safetensors; what was there is replaced.

    Raises:
        OptionError: Where it can't be written.

    >>> import tempfile
    >>> from suffice import Plan, get_controller
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_controller(Plan(penalty_draw=0.01, actions=(1, 4)), f"{folder}/mine.safetensors")
    ...     print(get_controller(f"file:{folder}/mine.safetensors"))
    plan:penalty_draw=0.01,penalty_round=0.005,actions=1+4
    """
    write_tensors(path, controller.tensors(), controller.card)


def load_controller(path: str | Path) -> SavedController:
    """Read a controller file.

    Args:
        path: What `save_controller`, `suffice train`, `plan` or `fit` wrote.

    Raises:
        ControllerError: Where there is no such file, or it is not whole, or of a newer format.

    >>> load_controller("no-such-file.safetensors")
    Traceback (most recent call last):
    ...
    suffice.errors.ControllerError: no-such-file.safetensors: there is no such controller file
    """

    def make(tensors: dict[str, FloatArray], card: dict[str, Any]) -> SavedController:
        if card["kind"] == "weights":
            raise ControllerError(f"{path}: these are weights, not a controller: give them as --elect file:{path}")
        if card["kind"] == "panel":
            raise ControllerError(f"{path}: this controller is for a panel: give it to suffice panel, or in its file")
        import_planner()
        return _kinds[card["kind"]].from_file(tensors, card)

    return load_tensors(path, "controller file", "suffice train", ControllerError, make)


def write_tensors(path: str | Path, tensors: dict[str, FloatArray], card: Mapping[str, Any]) -> None:
    """Write numbers and the card that says what they are."""
    from safetensors.numpy import save

    write_whole(Path(path), save(tensors, metadata={CARD: json.dumps(dict(card))}))


def load_tensors(
    path: str | Path,
    what: str,
    command: str,
    error: type[SufficeError],
    make: Callable[[dict[str, FloatArray], dict[str, Any]], T],
) -> T:
    """What `make` makes of a file's numbers and card; `what` it is called, and the command for it, are for errors."""
    from safetensors import SafetensorError, safe_open

    if not is_there(Path(path)):
        raise error(f"{path}: there is no such {what}")
    try:
        with safe_open(path, framework="numpy") as file:
            card: dict[str, Any] = json.loads((file.metadata() or {})[CARD])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        if type(card["format"]) is not int or card["format"] < 1:
            raise ValueError("the format must be a whole number")
        if card["format"] > FORMAT:
            raise error(f"{path}: this {what} has format {card['format']}, newer than this suffice knows")
        return make(tensors, card)
    except (SafetensorError, *BROKEN):
        raise error(f"{path}: this is not a whole {what}; make one with {command}") from None


_registry = Registry[Controller]("controller", "suffice.controllers", ControllerError, classes_of(Controller, "decide"))
_registry.register("file", rest="PATH")(load_controller)


def register(name: str) -> Callable[[C], C]:
    """Make a controller class usable by name; its parameters are the arguments of its constructor.

    Args:
        name: Lower-case letters, digits, "-" and "_".

    Returns:
        A decorator for the class, which it leaves as it is.

    Raises:
        ControllerError: Where the name can't be one or is taken, or the class is no controller.

    >>> @register("example-always")
    ... class Always(Controller):
    ...     def __init__(self, draws: int = 3):
    ...         self.draws = draws
    ...
    ...     def decide(self, tally):
    ...         return self.draws - tally.draws
    >>> get_controller("example-always:draws=5").draws
    5
    """
    return _registry.register(name)


def controller_names() -> list[str]:
    """The names that can be asked for, those of other packages among them, sorted.

    >>> {"asc", "plan", "rl"} <= set(controller_names())
    True
    """
    import_planner()
    return _registry.names()


def get_controller(spec: str | Controller) -> Controller:
    """The controller that a string describes; a controller is returned as it is.

    Args:
        spec: `NAME`, `NAME:key=value,key=value` or `file:PATH`, or a controller.

    Raises:
        ControllerError: Where there is no such controller, parameter or file.

    >>> get_controller("asc:threshold=0.9")
    AdaptiveSelfConsistency(threshold=0.9)
    """
    if isinstance(spec, Controller):
        return spec
    import_planner()
    return _registry.get(spec)
