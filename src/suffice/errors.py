"""What can go wrong, each with a message of one sentence that says what to do.

SufficeError
├── PoolError          a pool that is missing, malformed or too small for the budget
├── ControllerError    a controller that is unknown, wrongly set or decides nonsense
├── OptionError        any other argument or option out of range, or a file that can't be written
├── SampleError        all draws of a round failed; it carries the outcome so far
├── GaveUpError        all draws of one question after another failed, in a batch
└── CapReachedError    a limit on spending was reached, in a batch
"""

import operator
from typing import TYPE_CHECKING, SupportsIndex

if TYPE_CHECKING:
    from suffice.live import Outcome


class SufficeError(Exception):
    """The root of all errors that are the caller's to mend."""


class PoolError(SufficeError):
    """A pool is missing, malformed or too small for what was asked."""


class ControllerError(SufficeError):
    """A controller is unknown, wrongly set, or decided something that is no decision."""


class OptionError(SufficeError):
    """An argument is out of range, or a file can't be written.

    Where one argument is at fault, `argument` names it and the message goes on from its name; the command line puts
    the option's name there instead.
    """

    def __init__(self, message: str, argument: str | None = None) -> None:
        super().__init__(f"{argument} {message}" if argument else message)
        self.argument = argument
        self.complaint = message


class SampleError(SufficeError):
    """All draws of a round failed; `outcome` is what there was before, `cause` what the last failed with."""

    def __init__(self, message: str, outcome: "Outcome", cause: Exception | None = None) -> None:
        super().__init__(message)
        self.outcome = outcome
        self.cause = cause


class GaveUpError(SufficeError):
    """The server fails every draw, of one question after another."""


class CapReachedError(SufficeError):
    """A limit on spending was reached before a round."""


def whole_number(argument: str, value: SupportsIndex, least: int = 1) -> int:
    """The value of an argument that counts something; refused where it is no whole number, or too small.

    >>> whole_number("budget", 32)
    32
    >>> whole_number("budget", 2.5)
    Traceback (most recent call last):
    ...
    suffice.errors.OptionError: budget must be a whole number, at least 1, not 2.5
    """
    try:
        number = operator.index(value)
    except TypeError:
        number = least - 1
    if number < least or isinstance(value, bool):
        raise OptionError(f"must be a whole number, at least {least}, not {value}", argument)
    return number
