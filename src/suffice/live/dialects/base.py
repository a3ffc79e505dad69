"""The interface: how draws are asked for in a dialect, how they are read, and how an outcome is told in it."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Protocol

from suffice.answers import Extractor
from suffice.response import Response


class MalformedError(Exception):
    """What a server sent is no reply of this dialect."""


class Meter(Protocol):
    """Reads a stream as it arrives: how much was generated, also where it is cut off."""

    generated: int
    """Tokens so far: one for each piece of text."""
    streamed: bool
    """Whether the server streams at all; where it does not, a draw that is cancelled may run on there."""

    def restart(self) -> None:
        """Begin again, with another request."""

    def feed(self, data: bytes) -> None:
        """Take in what has arrived."""


class Hearing(Protocol):
    """Listens to a stream: what it has said so far."""

    text: str

    def feed(self, data: bytes) -> None:
        """Take in what has arrived."""


class Dialect(ABC):
    """The shape of requests and replies: what the rest of the program need not know of it."""

    name: ClassVar[str]
    path: ClassVar[str]
    """Where it is spoken, below the base URL."""
    owned: ClassVar[frozenset[str]]
    """Fields of a request that are not the caller's in a vote."""
    takes_n: ClassVar[bool]
    """Whether one request may ask for several responses."""
    tells_signals: ClassVar[bool] = True
    """Whether it knows of log probabilities."""

    @abstractmethod
    def asking(
        self, messages: Sequence[Mapping[str, Any]], response_format: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """The fields of a request that say these messages, and in which form, as a chat completion has them."""

    @abstractmethod
    def messages(self, fields: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
        """What was said before, as messages with role and content."""

    @abstractmethod
    def no_vote(self, body: Mapping[str, Any], extractor: Extractor, answer_named: bool) -> str | None:
        """Why a client's request is passed on as it is, in a word; None where it may be a vote."""

    def names_options(self, body: Mapping[str, Any]) -> bool:
        """Whether the server is told to choose between given responses."""
        return False

    @abstractmethod
    def json_wanted(self, body: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """The schema of the object that the server is told to give, empty where any will do; None for text."""

    @abstractmethod
    def check(self, body: Mapping[str, Any], extractor: Extractor) -> None:
        """Refuse, by a ValueError that begins with the field's name in quotes, what can't be voted on."""

    @abstractmethod
    def request(self, fields: Mapping[str, Any], draws: int, seed: int | None, streamed: bool) -> dict[str, Any]:
        """The body of a request for so many draws."""

    @abstractmethod
    def with_signals(self, request: Mapping[str, Any], top: int) -> dict[str, Any]:
        """The body of a request that asks for log probabilities too, and for those of so many likeliest tokens."""

    @abstractmethod
    def read(self, body: bytes, draws: int, signals: bool = False) -> list[Response]:
        """The responses in a reply, at most as many as were asked for; MalformedError where it is none.

        With `signals`, the log probabilities in it become signals, and are taken out of it.
        """

    @abstractmethod
    def read_stream(self, body: bytes, signals: bool = False) -> Response:
        """The response that the events of a stream make up; of a server that does not stream, that of its reply."""

    @abstractmethod
    def meter(self) -> Meter:
        """What reads a stream while it arrives."""

    @abstractmethod
    def hearing(self) -> Hearing:
        """What listens to a stream while it arrives."""

    @abstractmethod
    def reply(
        self, chosen: Response, responses: Sequence[Response], prompt_tokens: int, completion_tokens: int
    ) -> dict[str, Any]:
        """A normal reply that says what the chosen response says, with the usage of all."""

    @abstractmethod
    def rewritten(self, response: Response, value: Any) -> Response:
        """The response, with this object as what it says, or with these calls as what it calls."""

    @abstractmethod
    def events(self, reply: dict[str, Any], usage_wanted: bool) -> list[bytes]:
        """A stream that says the same as a reply, to its end."""

    @abstractmethod
    def error(self, message: str, kind: str, param: str | None, code: str | None) -> dict[str, Any]:
        """An error as this dialect has it."""

    def is_error(self, body: Mapping[str, Any]) -> bool:
        """Whether what a server sent as an error, with a message in it, can be passed on in this dialect."""
        return True

    @abstractmethod
    def error_event(self, error: dict[str, Any]) -> bytes:
        """An error as the end of a stream that has begun."""
