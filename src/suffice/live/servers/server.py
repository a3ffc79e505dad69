"""Requests to a server, with retries, at one host of a fleet, or at another if that is lost."""

import asyncio
import math
import re
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from suffice.live.dialects import CHAT, Dialect, MalformedError
from suffice.live.dialects.base import StreamReader
from suffice.live.servers.gate import Limiter
from suffice.live.servers.hosts import TOPS, DrawRequest, Fleet, Host, ServerCapabilities, most_tokens
from suffice.live.servers.retry import BUSY, PausedError, RetryPolicy, StatusError, TooLongError
from suffice.response import Response

TIMEOUT = 600.0  # seconds that a request may take
RETURNS = 3  # times that one request may come to the same server
LONG = 1 << 20  # bytes; a longer body with log probabilities is read in a thread
WITH_SIGNALS = 4  # draws of one request where log probabilities come with them: some two kilobytes a token
USUAL = RetryPolicy()

Post = Callable[[str, dict[str, Any], Callable[[bytes], object]], Awaitable[None]]
"""Sends a request to a path, and feeds a reader; raises StatusError, ConnectionError, TimeoutError or TooLongError."""


T = TypeVar("T")


class DrawError(Exception):
    """A request that failed for good."""

    def __init__(self, message: str, cause: Exception) -> None:
        super().__init__(message)
        self.cause = cause
        self.refused = _faults(cause)


@dataclass
class QuestionContext:
    """What belongs to one question: its deadline, its host and its retries."""

    deadline: float = math.inf
    """A request that would have to wait beyond it fails at once."""
    has_fallback: Callable[[], bool] = lambda: False
    """Whether another server answers in place of a dead one, to which requests then fail at once."""
    on_attempt: Callable[[Host, bool], object] = lambda host, again: None
    """Called before each request, with its server and whether it is a retry."""
    begun: float = field(default_factory=time.monotonic)
    host: Host | None = None

    @property
    def ends(self) -> float:
        """The deadline, or none once it is over: what is sent later belongs to an audit."""
        return self.deadline if time.monotonic() < self.deadline else math.inf


@dataclass(frozen=True, eq=False)
class Server:
    """Sends requests to a fleet, within a limiter; see `for_question`."""

    fleet: Fleet
    poster: Callable[[Host], Post]
    limiter: Limiter
    dialect: Dialect = CHAT
    retry: RetryPolicy = USUAL
    timeout: float = TIMEOUT
    model: str | None = None  # servers without it are not asked
    key: str = ""  # clients with the same key share a server's limits; ours is none
    exact_usage: bool = False  # the server must count the tokens of every draw, even with a request for each
    question: QuestionContext = field(default_factory=QuestionContext)

    def for_question(self, has_fallback: Callable[[], bool] = lambda: False) -> "Server":
        """Return the server for another question, which may go to another host."""
        question = QuestionContext(self.question.deadline, has_fallback, self.question.on_attempt)
        return replace(self, question=question)

    @property
    def host(self) -> Host:
        """The question's host, chosen when it is first needed, by the load at that time."""
        if self.question.host is None:
            self.question.host = self.fleet.choose(self.model, self.key)
        return self.question.host

    @property
    def capabilities(self) -> ServerCapabilities:
        return self.host.capabilities

    def most_at_once(self, request: DrawRequest) -> int:
        if request.single or request.streamed or not self.dialect.takes_n:
            return 1
        if self.exact_usage and self.capabilities.counts_first is not False:
            return 1
        most = min(self.limiter.limit, self.host.limiter.limit, self.capabilities.most_at_once(request))
        return min(most, WITH_SIGNALS) if self._top(request) else most

    async def ask(self, request: DrawRequest, numbers: Sequence[int], reader: StreamReader) -> list[Response]:
        """Send one request for the draws of these numbers; the reader shows how far a stream is."""
        draws = len(numbers)
        fields = {name: value for name, value in request.fields.items() if name != "seed"}
        if (seed := request.fields.get("seed")) is not None:
            fields["seed"] = seed + numbers[0]
        path = self.dialect.path(fields, request.streamed)
        plain = self.dialect.request(fields, draws, request.streamed)

        async def send_once(top: int | None) -> None:
            reader.restart()
            body = dict(plain) if top is None else self.dialect.with_signals(plain, top)
            if not self.capabilities.takes_stream_options:
                body.pop("stream_options", None)
            reader.sent = True
            try:
                return await self.poster(self.host)(path, body, reader.feed)
            except Exception as error:
                reader.sent = False
                named = isinstance(error, StatusError) and "stream_options" in str(error)
                if not named or "stream_options" not in body:
                    raise
            self.capabilities.takes_stream_options = False  # an older server: it then tells no tokens
            return await send_once(top)

        async def send_and_read() -> list[Response]:
            begun, before = time.monotonic(), self.host.demand
            await self.handling_refused_signals(request, send_once)
            seconds, demand = time.monotonic() - begun, (before + self.host.demand) // 2
            long = request.signals and len(reader.body) >= LONG
            responses = await asyncio.to_thread(reader.responses, draws) if long else reader.responses(draws)
            self.capabilities.pace.saw(seconds, max((one.tokens or 0 for one in responses), default=0), demand)
            numbered = zip(responses, numbers, strict=False)  # there may be fewer
            return [replace(one, seconds=round(seconds, 3), draw=number) for one, number in numbered]

        responses = await self.handling_retries(send_and_read, draws)
        if responses and not request.streamed:
            self.capabilities.counts_first = "timings" in responses[0].reply
        told = any(response.signals for response in responses)
        if not told and self._top(request) is not None and any(response.text for response in responses):
            self._warn(request, "it leaves them out")
        return [_possible(response, request) for response in responses]

    async def handling_refused_signals(
        self, request: DrawRequest, send_once: Callable[[int | None], Awaitable[T]]
    ) -> T:
        """Send a request with as many log probabilities as the server takes, None for none, and remember them."""
        first = top = self._top(request)
        while True:
            try:
                result = await send_once(top)
            except (StatusError, TooLongError) as error:
                named = isinstance(error, TooLongError) or "logprob" in str(error).lower()
                if top is None or not (named or _faults(error)):
                    raise
                top = next((fewer for fewer in TOPS if fewer < top), None) if named else None
                words = str(error)
            else:
                if top != first:
                    self.capabilities.learn_top(request, top)
                    if not top:
                        self._warn(request, words)
                return result

    def _top(self, request: DrawRequest) -> int | None:
        return self.capabilities.top_logprobs(request) if request.signals and self.dialect.tells_signals else None

    def _warn(self, request: DrawRequest, words: str) -> None:
        told = masked(" ".join(words.split()), self.host.secret)[:200]
        rest = "tells only those of sampled tokens" if self._top(request) == 0 else "tells none"
        self.capabilities.warn_once(
            request.model, f"signals: asked for log probabilities, {request.model} {rest}: {told}"
        )

    async def handling_retries(self, attempt: Callable[[], Awaitable[T]], draws: int = 1) -> T:
        """Return the result of an attempt, which is made again as the policy says; DrawError if it fails for good.

        `draws` is 0 for what is passed on for a client.
        """
        retry, failures, left = self.retry, 0, Counter[Host]()
        longest = min(retry.max_wait_seconds, self.timeout if retry.interactive else math.inf)
        turn_by, times_out, again = time.monotonic() + longest, math.inf, False
        refusal: StatusError | None = None
        while True:
            host, started = self.host, math.inf
            try:
                if host.is_aside and self.question.has_fallback():
                    raise ConnectionRefusedError("nobody answered there a moment ago")
                async with self._place(host, draws, turn_by) as started:
                    if host is not self.host:  # the question went on elsewhere while this waited
                        continue
                    times_out = min(times_out if retry.interactive else math.inf, started + self.timeout)
                    self.question.on_attempt(host, again)
                    async with asyncio.timeout(times_out - time.monotonic()):
                        result = await attempt()
            except (StatusError, TooLongError, MalformedError, ConnectionError, TimeoutError) as error:
                self._tell(host, error, started, first=not failures, relayed=not draws)
                wait = self._wait(host, error, failures, min(self.question.ends, turn_by, times_out))
                if host is not self.host or self._move(host, error, left, lost=wait is None):
                    failures, wait = 0, 0.0
                elif wait is None:
                    told = refusal if refusal and isinstance(error, PausedError) else error
                    raise self._draw_error(told, host) from None
                else:
                    failures += 1
                refusal = error if isinstance(error, StatusError) else None
            else:
                host.gate(self.key).grant()
                host.answer()
                return result
            again = True
            await asyncio.sleep(wait)

    @asynccontextmanager
    async def _place(self, host: Host, draws: int, turn_by: float) -> AsyncIterator[float]:
        """Wait until so many draws may start at a server, and hold their places; yield when they started."""
        host.load += draws
        try:
            async with self.limiter.hold(draws), host.limiter.hold(draws):
                gate = host.gate(self.key)
                try:
                    async with asyncio.timeout(None if turn_by == math.inf else turn_by - time.monotonic()):
                        ends = min(self.question.ends, turn_by)
                        started = await gate.enter(self.question.begun, ends, self.retry.max_pause_seconds)
                except TimeoutError:
                    raise PausedError(max(1.0, gate.pause)) from None
                try:
                    yield started
                finally:
                    gate.leave()
        finally:
            host.load -= draws

    def _tell(self, host: Host, error: Exception, started: float, *, first: bool, relayed: bool) -> None:
        """Count a failure of the server; of a request the first alone, for the fault may be its own.

        Other errors in reply to what is passed on say nothing of the server: a client chose the path.
        """
        status = error.status if isinstance(error, StatusError) else None
        gate = host.gate(self.key)
        if isinstance(error, PausedError):
            return
        if status in BUSY and isinstance(error, StatusError):
            if gate.refuse(started, error.retry_after):
                host.fail()
        elif isinstance(error, ConnectionError):
            host.fail(dead=isinstance(error, ConnectionRefusedError))
        elif status is not None and relayed:
            gate.grant()
        elif status in (401, 403) and not self.key:
            host.fail(dead=True)
        elif isinstance(error, TimeoutError | MalformedError) or (status or 0) >= 500:
            if first:
                host.fail()
        elif status is not None:
            gate.grant()
            host.answer()
            if status == 404 and self.model is not None:
                host.capabilities.lack(self.model)

    def _wait(self, host: Host, error: Exception, failures: int, ends: float) -> float | None:
        """Return the seconds to wait before another try here; None if there is none, or no time for it."""
        if isinstance(error, ConnectionRefusedError) and self.question.has_fallback():
            return None
        wait = self.retry.wait(error, failures)
        if wait is None or not (isinstance(error, StatusError) and error.status in BUSY):
            return wait
        # At the gate, where all wait; else for itself.
        return None if error.retry_after > ends - time.monotonic() else max(0.0, wait - host.gate(self.key).pause)

    def _move(self, host: Host, error: Exception, left: Counter[Host], *, lost: bool) -> bool:
        """Move the question to another server if this one is dead or refuses; return whether there is one.

        It stays otherwise: a server has the beginning of its prompt in its cache.
        """
        if not self.retry.moves(error) or not (host.is_aside or lost):
            return False
        left[host] += 1 if host.is_aside else RETURNS  # the dead may return
        other = self.fleet.other(self.model, self.key, {host, *(one for one in left if left[one] >= RETURNS)})
        if other is None:
            return False
        self.question.host = other
        return True

    def _draw_error(self, error: Exception, host: Host) -> DrawError:
        """Return the failure in one sentence without a key."""
        message = " ".join(str(error).split()) or type(error).__name__
        if isinstance(error, TimeoutError):
            message = f"no response within {self.timeout:g} seconds"
        message = masked(message, host.secret)[:300]
        if isinstance(error, StatusError) and not isinstance(error, PausedError) and (asked := error.retry_after):
            whole = {**error.headers, "retry-after": str(math.ceil(asked))}  # not all who read it know of parts
            error = StatusError(error.status, str(error), whole, error.body)
        return DrawError(message, error)


def _faults(error: Exception) -> bool:
    """Return whether the server found fault with the request itself."""
    return isinstance(error, StatusError) and error.status in (400, 422, 501)


def _possible(response: Response, request: DrawRequest) -> Response:
    """Limit estimated tokens to what the request allows."""
    most = most_tokens(request.fields)
    if not response.estimated or most is None or response.tokens is None:
        return response
    if response.finish_reason == "length":
        return replace(response, tokens=most, estimated=False)
    return replace(response, tokens=min(response.tokens, most))


NO_SECRETS = {
    "anything", "api-key", "api_key", "changeme", "no-api-key", "no-key", "no-key-required", "no-key-needed",
    "not-needed", "not-required", "lm-studio", "placeholder", "undefined", "your-api-key",
}  # fmt: skip
"""Placeholders that are as long as keys."""


def masked(message: str, secret: str) -> str:
    """Return a message without a key, plain or quoted; placeholders are no secret."""
    if not _is_secret(secret.strip()):
        return message
    for written in sorted({secret, secret.strip(), repr(secret)[1:-1]}, key=len, reverse=True):
        # A short one is looked for as a word of its own: it may well be a part of others.
        around = ("", "") if len(written) >= 16 else (r"(?<![\w-])", r"(?![\w-])")
        message = re.sub(re.escape(written).join(around), "***", message)
    return message


def _is_secret(key: str) -> bool:
    """Return whether a key is no placeholder: what is short, and a word or a number, is one."""
    if len(key) < 4 or key.lower() in NO_SECRETS:
        return False
    return len(key) >= 8 or (any(map(str.isalpha, key)) and not key.isalpha())
