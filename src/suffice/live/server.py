"""One model on one OpenAI-compatible server: a request, its retries, and what the server makes of `n`."""

import asyncio
import random
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from email.utils import parsedate_to_datetime
from typing import Any

import openai

from suffice.errors import OptionError
from suffice.live.limiter import Limiter
from suffice.live.response import MalformedError, Response, read_responses

MOST_BYTES = 64 << 20
"""A body longer than this is no answer."""

LONGEST_WAIT = 120.0
"""A server that asks for a longer pause than this many seconds is taken to refuse."""

BACK_OFF, LONGEST_BACK_OFF = 0.25, 8.0
"""Seconds to wait before the second try, and at most; they double from try to try."""

_OWNED = {"n": "the controller chooses it", "stream": "whole responses are voted on", "messages": "they come first"}

_most_at_once: dict[tuple[str, str], int] = {}
"""The most choices that a server and model gave for one request; asked once, remembered while the program runs."""


class DrawError(Exception):
    """A request that failed for good; `refused` where the server found fault with the request itself."""

    def __init__(self, message: str, refused: bool = False) -> None:
        super().__init__(message)
        self.refused = refused


class Server:
    """Sends requests for one model, as many at a time as the limiter lets through."""

    def __init__(
        self,
        client: Any,
        model: str,
        request: dict[str, Any],
        *,
        limiter: Limiter,
        retries: int = 4,
        timeout: float = 600.0,
        single: bool = False,
    ) -> None:
        for name, reason in _OWNED.items():
            if name in request:
                raise OptionError(f'"{name}" can\'t be set here: {reason}')
        self.client = client
        self.model = model
        self.limiter = limiter
        self.retries = retries
        self.timeout = timeout
        self.retried = 0
        self._request = {key: value for key, value in request.items() if key != "seed"}
        self._seed: int | None = request.get("seed")
        self._key = (str(client.base_url), model)
        self._single = single
        self._post = _poster(client.with_options(max_retries=0, timeout=timeout), limiter.limit)

    @property
    def most_at_once(self) -> int:
        """How many draws one request may ask for."""
        return 1 if self._single else min(self.limiter.limit, _most_at_once.get(self._key, sys.maxsize))

    def learn(self, most: int) -> None:
        """Remember that the server gives no more choices than this for one request."""
        _most_at_once[self._key] = max(1, min(most, _most_at_once.get(self._key, most)))

    async def ask(self, messages: list[dict[str, Any]], numbers: Sequence[int]) -> list[Response]:
        """One request for the question's draws of these numbers."""
        draws = len(numbers)
        request = {**self._request, "model": self.model, "messages": messages}
        if draws > 1:
            request["n"] = draws
        if self._seed is not None:
            request["seed"] = self._seed + numbers[0]
        for attempt in range(self.retries + 1):
            try:
                async with self.limiter.hold(draws), asyncio.timeout(self.timeout):
                    return read_responses(await self._post(request), draws)
            except Exception as error:
                wait = _wait(error, attempt)
                if wait is None or wait > LONGEST_WAIT or attempt == self.retries:
                    raise DrawError(self._describe(error), _refused(error)) from None
                if isinstance(error, openai.RateLimitError):
                    self.limiter.pause(wait)
            self.retried += 1
            await asyncio.sleep(wait)
        raise AssertionError

    def _describe(self, error: Exception) -> str:
        """One sentence, with no key in it."""
        cause = error.__cause__ if isinstance(error, openai.APIConnectionError) and error.__cause__ else error
        if isinstance(error, (TimeoutError, openai.APITimeoutError)):
            message = f"no response within {self.timeout:g} seconds"
        else:
            message = " ".join(str(cause).split()) or type(cause).__name__
        key = str(getattr(self.client, "api_key", "") or "")
        return (message.replace(key, "***") if key else message)[:300]


def _wait(error: Exception, attempt: int) -> float | None:
    """How many seconds to wait before another try; None where there is no point in one."""
    jittered = min(LONGEST_BACK_OFF, BACK_OFF * float(2**attempt)) * random.uniform(0.5, 1.0)  # noqa: S311
    if isinstance(error, openai.APIStatusError):
        if error.status_code not in (408, 409, 425, 429) and error.status_code < 500:
            return None
        asked = _retry_after(error.response.headers)
        return jittered if asked is None else asked + jittered
    if isinstance(error, (openai.APIConnectionError, TimeoutError, MalformedError, *_transport_errors())):
        return jittered
    if isinstance(error, (openai.OpenAIError, _TooLongError)):
        return None
    raise error


def _retry_after(headers: Any) -> float | None:
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


def _refused(error: Exception) -> bool:
    return isinstance(error, openai.APIStatusError) and error.status_code in (400, 422, 501)


def _transport_errors() -> tuple[type[Exception], ...]:
    """What the HTTP library under the client raises while a body is read."""
    return tuple(sys.modules[name].HTTPError for name in ("httpx2", "httpx") if name in sys.modules)


class _TooLongError(Exception):
    def __init__(self) -> None:
        super().__init__(f"a response of more than {MOST_BYTES >> 20} MiB")


def _poster(client: Any, threads: int) -> Callable[[dict[str, Any]], Awaitable[bytes]]:
    """Post a request and read the body, within bounds: what an endless response needs."""
    if not hasattr(client, "chat"):
        raise OptionError("the client must be one of the openai package's: openai.OpenAI or openai.AsyncOpenAI")
    create = client.chat.completions.with_streaming_response.create

    async def post(request: dict[str, Any]) -> bytes:
        body = bytearray()
        async with create(**request) as reply:
            async for chunk in reply.iter_bytes():
                body += chunk
                _check_length(body)
        return bytes(body)

    def post_blocking(request: dict[str, Any]) -> bytes:
        body = bytearray()
        with create(**request) as reply:
            for chunk in reply.iter_bytes():
                body += chunk
                _check_length(body)
        return bytes(body)

    if isinstance(client, openai.AsyncOpenAI):
        return post
    # A client with an HTTP client of its own, which has no asynchronous twin: its requests run in threads, and can't
    # be interrupted.
    executor = ThreadPoolExecutor(threads, "suffice-draw")

    async def post_in_thread(request: dict[str, Any]) -> bytes:
        return await asyncio.get_running_loop().run_in_executor(executor, post_blocking, request)

    return post_in_thread


def _check_length(body: bytearray) -> None:
    if len(body) > MOST_BYTES:
        raise _TooLongError
