"""One server: a request with its retries, and what has been learned of the server on the way."""

import asyncio
import random
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar

from suffice.errors import OptionError
from suffice.live.dialects import CHAT, Dialect, MalformedError
from suffice.live.dialects.base import Meter
from suffice.live.limiter import Limiter
from suffice.response import Response

RETRIES = 4
TIMEOUT = 600.0
"""How often a request is tried again, and how many seconds it may take."""

LONGEST_WAIT = 120.0
"""A server that asks for a longer pause than this many seconds is taken to refuse."""

MOST_BYTES = 64 << 20
"""A body longer than this is no answer."""

BACK_OFF, LONGEST_BACK_OFF = 0.25, 8.0
"""Seconds to wait before the second try, and at most; they double from try to try."""

MOST_MODELS = 1000
"""So many models of a server are remembered."""

Post = Callable[[dict[str, Any], Callable[[bytes], None]], Awaitable[bytes]]
"""Sends a request and gives the body of the reply, pieces of which it shows as they arrive.

It raises StatusError, ConnectionError, TimeoutError and TooLongError.
"""


T = TypeVar("T")


class StatusError(Exception):
    """A server replied with an error."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str], body: bytes = b"") -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers
        self.body = body


class TooLongError(Exception):
    """A reply has no end, or none in sight."""


class DrawError(Exception):
    """A request that failed for good, and what with."""

    def __init__(self, message: str, cause: Exception) -> None:
        super().__init__(message)
        self.cause = cause

    @property
    def refused(self) -> bool:
        """Whether the server found fault with the request itself."""
        return isinstance(self.cause, StatusError) and self.cause.status in (400, 422, 501)


class Facts:
    """What has been learned of a server; whoever asks it shares them."""

    def __init__(self) -> None:
        self.refused: set[str] = set()
        """Fields of a request that it does not know."""
        self._most: dict[str, int] = {}

    def most_at_once(self, model: str) -> int:
        """The most responses that it gives for one request."""
        return self._most.get(model, sys.maxsize)

    def learn(self, model: str, most: int) -> None:
        """Remember that it gives no more than this for one request."""
        if len(self._most) >= MOST_MODELS:
            self._most.clear()
        self._most[model] = max(1, min(most, self.most_at_once(model)))


@dataclass(frozen=True)
class Asking:
    """What is sent for every draw of one question: the messages, the model, and whatever else the caller gave."""

    fields: Mapping[str, Any]
    streamed: bool = False
    """Whether responses are asked for as streams, which can be ended one by one."""
    single: bool = False
    """Whether each draw is a request of its own."""

    @property
    def model(self) -> str:
        """What is learned, is learned of this; some servers refuse several choices where there can be but one."""
        return f"{self.fields.get('model')}{' greedy' * (self.fields.get('temperature') == 0)}"


@dataclass
class Server:
    """Sends requests, as many at a time as the limiter lets through."""

    post: Post
    limiter: Limiter
    facts: Facts = field(default_factory=Facts)
    dialect: Dialect = CHAT
    retries: int = RETRIES
    timeout: float = TIMEOUT
    secret: str = ""
    retried: int = 0
    """How many requests were tried again."""

    def __post_init__(self) -> None:
        if self.retries < 0:
            raise OptionError(f"must be 0 or more, not {self.retries}", "retries")
        if not self.timeout > 0:
            raise OptionError(f"must be above 0, not {self.timeout}", "timeout")

    def most_at_once(self, asking: Asking) -> int:
        """How many draws one request may ask for."""
        if asking.single or asking.streamed or not self.dialect.takes_n:
            return 1
        return min(self.limiter.limit, self.facts.most_at_once(asking.model))

    async def ask(self, asking: Asking, numbers: Sequence[int], meter: Meter) -> list[Response]:
        """One request for the question's draws of these numbers; the meter shows how far it is, where it streams."""
        draws = len(numbers)
        fields = {name: value for name, value in asking.fields.items() if name != "seed"}
        seed = asking.fields.get("seed")
        request = self.dialect.request(fields, draws, None if seed is None else seed + numbers[0], asking.streamed)

        async def send() -> bytes:
            meter.restart()
            for name in self.facts.refused:
                request.pop(name, None)
            return await self.post(request, meter.feed)

        async def attempt() -> list[Response]:
            try:
                body = await send()
            except StatusError as error:
                if "stream_options" not in request or "stream_options" not in str(error):
                    raise
                self.facts.refused.add("stream_options")  # an older server: it then tells no tokens
                body = await send()
            return [self.dialect.read_stream(body)] if asking.streamed else self.dialect.read(body, draws)

        return await self.tried(attempt, draws)

    async def tried(self, attempt: Callable[[], Awaitable[T]], draws: int = 1) -> T:
        """What an attempt comes to, which is made again where that may help; DrawError where it does not."""
        for number in range(self.retries + 1):
            try:
                async with self.limiter.hold(draws), asyncio.timeout(self.timeout):
                    return await attempt()
            except (StatusError, TooLongError, MalformedError, ConnectionError, TimeoutError) as error:
                wait = _wait(error, number)
                if wait is None or wait > LONGEST_WAIT or number == self.retries:
                    raise DrawError(self._describe(error), error) from None
                if isinstance(error, StatusError) and error.status == 429:
                    self.limiter.pause(wait)
            self.retried += 1
            await asyncio.sleep(wait)
        raise AssertionError

    def _describe(self, error: Exception) -> str:
        """One sentence, with no key in it."""
        message = " ".join(str(error).split()) or type(error).__name__
        if isinstance(error, TimeoutError):
            message = f"no response within {self.timeout:g} seconds"
        return masked(message, self.secret)[:300]


def masked(message: str, secret: str) -> str:
    """A message with no key in it, as it is or as it may be quoted."""
    for written in {secret, secret.strip(), repr(secret)[1:-1]} - {""}:
        message = message.replace(written, "***")
    return message


def _wait(error: Exception, attempt: int) -> float | None:
    """How many seconds to wait before another try; None where there is no point in one."""
    jittered = min(LONGEST_BACK_OFF, BACK_OFF * float(2**attempt)) * random.uniform(0.5, 1.0)  # noqa: S311
    if isinstance(error, TooLongError):
        return None
    if not isinstance(error, StatusError):
        return jittered
    if error.status not in (408, 409, 425, 429) and error.status < 500:
        return None
    return jittered + (_retry_after(error.headers) or 0.0)


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """The pause that a server asks for, in seconds or as a date."""
    try:
        if "retry-after-ms" in headers:
            return max(0.0, float(headers["retry-after-ms"]) / 1000)
        return max(0.0, float(headers["retry-after"]))
    except KeyError:
        return None
    except ValueError:
        try:
            return max(0.0, parsedate_to_datetime(headers["retry-after"]).timestamp() - time.time())
        except (ValueError, TypeError, KeyError):
            return None
