"""The interface: a controller looks at a tally and says how many more to draw; 0 stops."""

import importlib
import zlib
from abc import ABC, abstractmethod
from dataclasses import fields, is_dataclass
from typing import ClassVar

import numpy as np

from suffice.errors import ControllerError
from suffice.notebook import short, table
from suffice.tally import IntArray, Tallies, Tally


class Controller(ABC):
    """Decides from the tally alone, the same way live, in a replay and in training.

    >>> class Pairs(Controller):
    ...     def decide(self, tally: Tally) -> int:
    ...         return 0 if max(tally.top(1)) >= 3 else 2
    >>> Pairs().next_round(Tally(budget=8))
    2
    """

    needs_rounds: ClassVar[bool] = False
    """Whether its decisions mean whole rounds; then there is no flow for it."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def _repr_html_(self) -> str:
        names: list[str] = [one.name for one in fields(self)] if is_dataclass(self) else []
        known = {name: getattr(self, name) for name in names} | dict(getattr(self, "card", {}))
        rows = [(name, value) for name, value in known.items() if isinstance(value, str | int | float | tuple)]
        return table(short(str(self)), ["setting", "value"], rows)

    @abstractmethod
    def decide(self, tally: Tally) -> int:
        """How many more to draw; 0 stops."""

    def for_question(self, random: np.random.Generator) -> "Controller":
        """The controller that serves one question from its first round to its last: itself, unless it is a mixture.

        It is asked once for every question, with the question's own source of chance: see `question_random`.
        """
        return self

    def check_budget(self, budget: int) -> None:  # noqa: B027
        """Refuse a budget that it can't decide for, before anything is asked; ControllerError says why."""

    def is_quick(self, budget: int) -> bool:
        """Whether a decision takes no time to speak of; live, one that may is left to a thread."""
        return False

    def next_round(self, tally: Tally) -> int:
        """The decision, cut to what the budget has left."""
        asked = self.decide(tally)
        if not isinstance(asked, (int, np.integer)) or asked < 0:
            raise ControllerError(f"{self} asked for {asked} draws: it must be a whole number, 0 or more")
        return max(0, min(int(asked), tally.left))

    def require(self, parameter: str, holds: bool, wanted: str) -> None:
        """Refuse a parameter that is out of range, naming it."""
        if not holds:
            raise ControllerError(f"{parameter} must be {wanted}, not {getattr(self, parameter)}")


class ArrayController(Controller):
    """A controller that decides for many tallies at once, which makes replays far quicker.

    >>> class Six(ArrayController):
    ...     def decide_many(self, tallies: Tallies) -> IntArray:
    ...         return np.where(tallies.draws < 6, 2, 0)
    >>> Six().next_round(Tally(budget=8))
    2
    """

    @abstractmethod
    def decide_many(self, tallies: Tallies) -> IntArray:
        """How many more to draw for each row; 0 stops."""

    def is_quick(self, budget: int) -> bool:
        return True

    def decide(self, tally: Tally) -> int:
        return int(self.decide_many(Tallies.of(tally))[0])

    def next_rounds(self, tallies: Tallies) -> IntArray:
        """The decisions, each cut to what the budget has left."""
        asked = np.asarray(self.decide_many(tallies))
        if asked.dtype.kind not in "iu" or asked.shape != tallies.draws.shape or (asked < 0).any():
            raise ControllerError(f"{self} must ask for a whole number of draws, 0 or more, for each of the tallies")
        return np.minimum(asked.astype(np.int64), tallies.budget - tallies.draws)


def question_random(seed: int, question: str, repeat: int = 0) -> np.random.Generator:
    """The source of chance for one question, by its id: the same in whatever company, live and in any replay."""
    name = zlib.crc32(question.encode("utf-8", "surrogatepass"))
    # A last word of 0 would change nothing, and then this would be the chance by which its responses are drawn.
    return np.random.default_rng([seed, name, repeat + 1])


def import_planner() -> None:
    """Register the controllers of the planner, which stands on this room, before one is looked for by name or kind."""
    importlib.import_module("suffice.planning")
