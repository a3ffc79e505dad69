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
    """The root of all errors that are the caller's to mend.

    >>> import suffice
    >>> try:
    ...     suffice.evaluate("no-such-pool", "asc")
    ... except SufficeError as error:
    ...     type(error).__name__
    'PoolError'
    """


class PoolError(SufficeError):
    """A pool is missing, malformed or too small for what was asked.

    >>> import suffice
    >>> suffice.load_pool("my")
    Traceback (most recent call last):
    ...
    suffice.errors.PoolError: my: no such file, nor a bundled pool of that name; "suffice pools" lists the bundled ones
    """


class ControllerError(SufficeError):
    """A controller is unknown, wrongly set, or decided something that is no decision.

    >>> import suffice
    >>> suffice.get_controller("esc:window=0")
    Traceback (most recent call last):
    ...
    suffice.errors.ControllerError: controller "esc:window=0": window must be at least 1, not 0
    """


class OptionError(SufficeError):
    """An argument is out of range, or a file can't be written.

    Where one argument is at fault, `argument` names it and the message goes on from its name; the command line puts
    the option's name there instead.

    >>> import suffice
    >>> suffice.Flow("random")
    Traceback (most recent call last):
    ...
    suffice.errors.OptionError: order must be launch, arrival or auto, not "random"
    """

    def __init__(self, message: str, argument: str | None = None) -> None:
        super().__init__(f"{argument} {message}" if argument else message)
        self.argument = argument
        self.complaint = message


class SampleError(SufficeError):
    """All draws of a round failed; `outcome` is what there was before, `cause` what the last failed with.

    >>> import openai, suffice
    >>> from suffice.testing import FakeServer, Reply
    >>> with FakeServer(lambda request, number: Reply({"error": {"message": "no"}}, status=400)) as server:
    ...     with openai.OpenAI(base_url=server.base_url, api_key="none") as client:
    ...         try:
    ...             suffice.sample(client, [{"role": "user", "content": "What is 6 * 7?"}], model="fake")
    ...         except SampleError as error:
    ...             error.outcome.stop_reason, error.outcome.samples
    ('failed', 0)
    """

    def __init__(self, message: str, outcome: "Outcome", cause: Exception | None = None) -> None:
        super().__init__(message)
        self.outcome = outcome
        self.cause = cause


class GaveUpError(SufficeError):
    """The server fails every draw, of one question after another.

    >>> issubclass(GaveUpError, SufficeError)
    True
    """


class CapReachedError(SufficeError):
    """A limit on spending was reached before a round.

    >>> issubclass(CapReachedError, SufficeError)
    True
    """


def percentage(argument: str, value: float) -> float:
    """The value of an argument in percent; refused where it must be meant as a share."""
    if 0 < value < 1:
        raise OptionError(f"is in percent: give {100 * value:g} for {value:g}", argument)
    return value


def whole_number(argument: str, value: SupportsIndex, least: int = 1) -> int:
    """The value of an argument that counts something; refused where it is no whole number, or too small."""
    try:
        number = operator.index(value)
    except TypeError:
        number = least - 1
    if number < least or isinstance(value, bool):
        raise OptionError(f"must be a whole number, at least {least}, not {value}", argument)
    return number


def install(extra: str) -> str:
    """The line that installs an extra.

    It works from an index, and where a clone is installed: pip then takes the extra's packages alone.
    """
    return f"pip install 'suffice[{extra}]'"


def missing(package: str, extra: str) -> OptionError:
    """What is said where something needs a package that is not there."""
    return OptionError(f"this needs {package}, of the extra {extra}: {install(extra)}")
