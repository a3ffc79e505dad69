"""What can go wrong, each with a message of one sentence that says what to do.

SufficeError
├── PoolError          a pool that is missing, malformed or too small for the budget
├── ControllerError    a controller that is unknown, wrongly set or decides nonsense
└── OptionError        any other argument or option out of range, or a file that can't be written
"""


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
