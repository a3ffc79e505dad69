"""One model on one OpenAI-compatible server: a request, its retries, and what the server makes of `n`."""

import asyncio
import random
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from email.utils import parsedate_to_datetime
from typing import Any

from suffice.errors import OptionError
from suffice.live.limiter import Limiter
from suffice.live.response import MalformedError, Response, read_responses
from suffice.live.streams import Meter, read_stream

LONGEST_WAIT = 120.0
"""A server that asks for a longer pause than this many seconds is taken to refuse."""

MOST_BYTES = 64 << 20
"""A body longer than this is no answer."""

BACK_OFF, LONGEST_BACK_OFF = 0.25, 8.0
"""Seconds to wait before the second try, and at most; they double from try to try."""

MOST_MODELS = 1000
"""So many servers and models are remembered."""

_OWNED = {"n": "the controller chooses it", "stream": "whole responses are voted on", "messages": "they come first"}

_most_at_once: dict[tuple[str, str], int] = {}
"""The most choices that a server and model gave for one request; asked once, remembered while the program runs."""

Post = Callable[[dict[str, Any], Callable[[bytes], None]], Awaitable[bytes]]
"""Sends a request and gives the body of the reply, pieces of which it shows as they arrive.

It raises StatusError, ConnectionError, TimeoutError and TooLongError.
"""


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


class Server:
    """Sends requests for one model, as many at a time as the limiter lets through."""

    def __init__(
        self,
        post: Post,
        name: str,
        model: str,
        request: dict[str, Any],
        *,
        limiter: Limiter,
        retries: int = 4,
        timeout: float = 600.0,
        single: bool = False,
        streamed: bool = False,
        secret: str = "",
    ) -> None:
        for field, reason in _OWNED.items():
            if field in request:
                raise OptionError(f'"{field}" can\'t be set here: {reason}')
        if retries < 0 or not timeout > 0:
            raise OptionError("retries must be 0 or more, and the timeout above 0")
        self.limiter = limiter
        self.retried = 0
        self._post = post
        # Some servers refuse several choices where there can be but one.
        self._key = (name, f"{model} greedy" if request.get("temperature") == 0 else model)
        self._request = {key: value for key, value in request.items() if key != "seed"}
        self._seed: int | None = request.get("seed")
        self._retries = retries
        self._timeout = timeout
        self._single = single or streamed
        self._streaming: dict[str, Any] = (
            {"stream": True, "stream_options": {"include_usage": True}} if streamed else {}
        )
        self._secret = secret

    @property
    def streamed(self) -> bool:
        """Whether responses are asked for as streams, which can be ended one by one."""
        return bool(self._streaming)

    @property
    def most_at_once(self) -> int:
        """How many draws one request may ask for."""
        return 1 if self._single else min(self.limiter.limit, _most_at_once.get(self._key, sys.maxsize))

    def learn(self, most: int) -> None:
        """Remember that the server gives no more choices than this for one request."""
        if len(_most_at_once) >= MOST_MODELS:
            _most_at_once.clear()
        _most_at_once[self._key] = max(1, min(most, _most_at_once.get(self._key, most)))

    async def ask(self, messages: list[dict[str, Any]], numbers: Sequence[int], meter: Meter) -> list[Response]:
        """One request for the question's draws of these numbers; the meter shows how far it is, where it streams."""
        draws = len(numbers)
        request = {**self._request, "messages": messages}
        if draws > 1:
            request["n"] = draws
        if self._seed is not None:
            request["seed"] = self._seed + numbers[0]
        for attempt in range(self._retries + 1):
            try:
                meter.restart()
                async with self.limiter.hold(draws), asyncio.timeout(self._timeout):
                    body = await self._post({**request, **self._streaming}, meter.feed)
                    return [read_stream(body)] if self._streaming else read_responses(body, draws)
            except (StatusError, TooLongError, MalformedError, ConnectionError, TimeoutError) as error:
                wait = _wait(error, attempt)
                if "stream_options" in self._streaming and "stream_options" in str(error):
                    del self._streaming["stream_options"]  # an older server: it then tells no tokens
                    wait = 0.0
                if wait is None or wait > LONGEST_WAIT or attempt == self._retries:
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
            message = f"no response within {self._timeout:g} seconds"
        return masked(message, self._secret)[:300]


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
