"""Where one question is asked: at one server of a fleet, with retries, and at another where that one is lost."""

import asyncio
import math
import re
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar

from suffice.errors import OptionError
from suffice.live.dialects import CHAT, Dialect, MalformedError
from suffice.live.dialects.base import Meter
from suffice.live.facts import TOPS, Asking, Facts
from suffice.live.fleet import Fleet, Host
from suffice.live.gate import LONGEST_WAIT, PausedError, back_off
from suffice.live.limiter import Limiter
from suffice.response import Response

RETRIES = 4
TIMEOUT = 600.0
"""How often a request is tried again, and how many seconds it may take."""

MOST_BYTES = 64 << 20
"""A body longer than this is no answer."""

RETURNS = 3
"""So often one request may come to the same server."""

BUSY = (429, 503)
"""With these a server asks everybody for a pause."""

Post = Callable[[dict[str, Any], Callable[[bytes], None]], Awaitable[bytes]]
"""Sends a request and gives the body of the reply, pieces of which it shows as they arrive.

It raises StatusError, ConnectionError, TimeoutError and TooLongError.
"""


LONG = 1 << 20
"""A body of so many bytes, with log probabilities in it, is read in a thread, so that others go on meanwhile."""

WITH_SIGNALS = 4
"""So many draws are asked for at once where log probabilities come with them: some two kilobytes a token."""


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


@dataclass
class Server:
    """Sends one question's requests, as many at a time as the limiter lets through."""

    fleet: Fleet
    poster: Callable[[Host], Post]
    limiter: Limiter
    dialect: Dialect = CHAT
    retries: int = RETRIES
    timeout: float = TIMEOUT
    model: str | None = None
    """Which servers may be asked depends on it, where it is given."""
    key: str = ""
    """Those who present themselves by the same key share a server's limits; ours is none."""
    exact_usage: bool = False
    """Whether every draw's tokens must be counted by the server, even where that takes a request for each."""
    ends: float = math.inf
    """The moment by which there must be an answer: whoever would have to wait for longer is told at once."""
    retried: int = 0
    """How many requests were tried again."""
    begun: float = field(default_factory=time.monotonic)
    _host: Host | None = None

    def __post_init__(self) -> None:
        if self.retries < 0:
            raise OptionError(f"must be 0 or more, not {self.retries}", "retries")
        if not self.timeout > 0:
            raise OptionError(f"must be above 0, not {self.timeout}", "timeout")

    def for_question(self) -> "Server":
        """The same for another question, which may go to another server of the fleet."""
        return replace(self, retried=0, begun=time.monotonic(), _host=None)

    @property
    def host(self) -> Host:
        """Where the question is asked: chosen when it is first needed, so that its load is known by then."""
        if self._host is None:
            self._host = self.fleet.choose(self.model, self.key)
        return self._host

    @property
    def facts(self) -> Facts:
        """What has been learned of that server."""
        return self.host.facts

    @property
    def secret(self) -> str:
        """The key that is sent there, which nobody may see."""
        return self.host.secret

    def most_at_once(self, asking: Asking) -> int:
        """How many draws one request may ask for."""
        if asking.single or asking.streamed or not self.dialect.takes_n:
            return 1
        if self.exact_usage and self.facts.counts_first is not False:
            return 1
        most = min(self.limiter.limit, self.host.limiter.limit, self.facts.most_at_once(asking))
        return min(most, WITH_SIGNALS) if self._top(asking) else most

    async def ask(self, asking: Asking, numbers: Sequence[int], meter: Meter) -> list[Response]:
        """One request for the question's draws of these numbers; the meter shows how far it is, where it streams."""
        draws = len(numbers)
        fields = {name: value for name, value in asking.fields.items() if name != "seed"}
        seed = asking.fields.get("seed")
        request = self.dialect.request(fields, draws, None if seed is None else seed + numbers[0], asking.streamed)

        async def send(top: int | None) -> bytes:
            meter.restart()
            whole = request if top is None else self.dialect.with_signals(request, top)
            known = {name: value for name, value in whole.items() if name not in self.facts.refused}
            return await self.poster(self.host)(known, meter.feed)

        def read(body: bytes) -> list[Response]:
            if asking.streamed:
                return [self.dialect.read_stream(body, asking.signals)]
            return self.dialect.read(body, draws, asking.signals)

        async def attempt() -> list[Response]:
            try:
                body = await self.with_signals(asking, send)
            except StatusError as error:
                if "stream_options" not in request or "stream_options" not in str(error):
                    raise
                self.facts.refused.add("stream_options")  # an older server: it then tells no tokens
                body = await self.with_signals(asking, send)
            long = asking.signals and len(body) >= LONG
            return await asyncio.to_thread(read, body) if long else read(body)

        responses = await self.tried(attempt, draws)
        if responses and not asking.streamed:
            self.facts.counts_first = "timings" in responses[0].reply
        self._look_for_signals(asking, responses)
        return [_possible(response, asking) for response in responses]

    async def with_signals(self, asking: Asking, send: Callable[[int | None], Awaitable[T]]) -> T:
        """What a request comes to that asks for as many log probabilities as the server tells; None asks for none.

        What a server refuses is asked for again with fewer; where that helps, it is remembered.
        """
        first = top = self._top(asking)
        while True:
            try:
                result = await send(top)
            except (StatusError, TooLongError) as error:
                if top is None or not _may_refuse(error):
                    raise
                named = isinstance(error, TooLongError) or "logprob" in str(error).lower()
                top = next((fewer for fewer in TOPS if fewer < top), None) if named else None
                words = str(error)
            else:
                if top != first:
                    self.facts.took_top(asking, top)
                    if not top:
                        self._warn(asking, words)
                return result

    def _top(self, asking: Asking) -> int | None:
        return self.facts.top_logprobs(asking) if asking.signals and self.dialect.tells_signals else None

    def _look_for_signals(self, asking: Asking, responses: Sequence[Response]) -> None:
        """Notice a server that takes the wish for log probabilities and tells none."""
        told = any(response.signals for response in responses)
        if not told and self._top(asking) is not None and any(response.text for response in responses):
            self._warn(asking, "it leaves them out")

    def _warn(self, asking: Asking, words: str) -> None:
        told = masked(" ".join(words.split()), self.secret)[:200]
        rest = "tells only those of sampled tokens" if self._top(asking) == 0 else "tells none"
        self.facts.warn_once(asking.model, f"signals: asked for log probabilities, {asking.model} {rest}: {told}")

    async def tried(self, attempt: Callable[[], Awaitable[T]], draws: int = 1) -> T:
        """What an attempt comes to, which is made again where that may help; DrawError where it does not."""
        failed, left = 0, Counter[Host]()
        while True:
            host = self.host
            try:
                async with self._place(host, draws):
                    if host is not self.host:  # the question went on elsewhere while this waited
                        continue
                    async with asyncio.timeout(self.timeout):
                        result = await attempt()
            except (StatusError, TooLongError, MalformedError, ConnectionError, TimeoutError, PausedError) as error:
                self._tell(host, error, first=not failed)
                wait = self._wait(error, failed)
                lost = wait is None or failed == self.retries
                if host is not self.host or self._move(host, error, left, lost):
                    failed, wait = 0, 0.0
                elif wait is None or lost:
                    raise self._draw_error(error, host) from None
                else:
                    failed += 1
            else:
                host.gate(self.key).grant()
                host.answer()
                return result
            self.retried += 1
            await asyncio.sleep(wait)

    @asynccontextmanager
    async def _place(self, host: Host, draws: int) -> AsyncIterator[None]:
        """Wait until so many draws may start at a server, and be there until they have ended."""
        host.load += draws
        try:
            async with self.limiter.hold(draws), host.limiter.hold(draws):
                gate = host.gate(self.key)
                await gate.enter(self.begun, self.ends)
                try:
                    yield
                finally:
                    gate.leave()
        finally:
            host.load -= draws

    def _tell(self, host: Host, error: Exception, first: bool) -> None:
        """Let all who ask the server know of a failure; a request's first counts, for the fault may be its own."""
        status = error.status if isinstance(error, StatusError) else None
        gate = host.gate(self.key)
        if status in BUSY and isinstance(error, StatusError):
            if gate.refuse(_retry_after(error.headers)):
                host.fail()
        elif isinstance(error, ConnectionError):
            host.fail(dead=isinstance(error, ConnectionRefusedError))
        elif status in (401, 403) and not self.key:
            host.fail(dead=True)
        elif isinstance(error, TimeoutError | MalformedError) or (status or 0) >= 500:
            if first:
                host.fail()
        elif status is not None:
            gate.grant()
            host.answer()
            if status == 404 and self.model is not None:
                host.facts.lack(self.model)

    def _wait(self, error: Exception, failed: int) -> float | None:
        """How many seconds to wait before another try here; None where there is no point in one."""
        if isinstance(error, TooLongError | PausedError):
            return None
        if not isinstance(error, StatusError):
            return back_off(failed)
        if error.status in BUSY:  # the gate waits
            patience = min(LONGEST_WAIT, self.ends - time.monotonic())
            return None if _retry_after(error.headers) > patience else 0.0
        return back_off(failed) if error.status in (408, 409, 425) or error.status >= 500 else None

    def _move(self, host: Host, error: Exception, left: Counter[Host], lost: bool) -> bool:
        """Go on at another server, where this one is dead, or will not do what another one may; whether there is one.

        Elsewhere a question is asked only then: a server has the beginning of its prompt in its cache.
        """
        status = error.status if isinstance(error, StatusError) else None
        at_fault = status is None or status in (401, 403, 404, *BUSY) or status >= 500
        if not (host.is_aside or (lost and at_fault)) or isinstance(error, TooLongError):
            return False
        left[host] += 1 if host.is_aside else RETURNS  # the dead may return
        other = self.fleet.other(self.model, self.key, {host, *(one for one in left if left[one] >= RETURNS)})
        if other is None:
            return False
        self._host = other
        return True

    def _draw_error(self, error: Exception, host: Host) -> DrawError:
        """The failure in one sentence, with no key in it."""
        message = " ".join(str(error).split()) or type(error).__name__
        if isinstance(error, TimeoutError):
            message = f"no response within {self.timeout:g} seconds"
        message = masked(message, host.secret)[:300]
        if isinstance(error, PausedError):
            error = StatusError(429, message, {"retry-after": str(math.ceil(error.seconds))})
        return DrawError(message, error)


def _may_refuse(error: StatusError | TooLongError) -> bool:
    """Whether it may be for the log probabilities that a request failed."""
    return isinstance(error, TooLongError) or error.status in (400, 422, 501) or "logprob" in str(error).lower()


def _possible(response: Response, asking: Asking) -> Response:
    """A response whose tokens, where they are estimated, are no more than it can have had."""
    caps = [asking.fields.get(name) for name in ("max_tokens", "max_completion_tokens")]
    most = min((cap for cap in caps if isinstance(cap, int) and cap > 0), default=None)
    if not response.estimated or most is None or response.tokens is None:
        return response
    if response.finish_reason == "length":
        return replace(response, tokens=most, estimated=False)
    return replace(response, tokens=min(response.tokens, most))


NO_SECRETS = {
    "anything", "api-key", "api_key", "changeme", "no-api-key", "no-key", "no-key-required", "no-key-needed",
    "not-needed", "not-required", "lm-studio", "placeholder", "undefined", "your-api-key",
}  # fmt: skip
"""What stands for a key where none is needed, and is long enough to be one."""


def masked(message: str, secret: str) -> str:
    """A message with no key in it, as it is or as it may be quoted; what stands for a key is no secret."""
    if not _is_secret(secret.strip()):
        return message
    for written in sorted({secret, secret.strip(), repr(secret)[1:-1]}, key=len, reverse=True):
        # A short one is looked for as a word of its own: it may well be a part of others.
        around = ("", "") if len(written) >= 16 else (r"(?<![\w-])", r"(?![\w-])")
        message = re.sub(re.escape(written).join(around), "***", message)
    return message


def _is_secret(key: str) -> bool:
    """Whether a key is one: what is short, and a word or a number, is not, nor what is known to stand for none."""
    if len(key) < 4 or key.lower() in NO_SECRETS:
        return False
    return len(key) >= 8 or (any(map(str.isalpha, key)) and not key.isalpha())


def _retry_after(headers: Mapping[str, str]) -> float:
    """The pause that a server asks for, in seconds or as a date; 0 where it asks for none."""
    try:
        if "retry-after-ms" in headers:
            return max(0.0, float(headers["retry-after-ms"]) / 1000)
        return max(0.0, float(headers["retry-after"]))
    except KeyError:
        return 0.0
    except ValueError:
        try:
            return max(0.0, parsedate_to_datetime(headers["retry-after"]).timestamp() - time.time())
        except (ValueError, TypeError, KeyError):
            return 0.0
