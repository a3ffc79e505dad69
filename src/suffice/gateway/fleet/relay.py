"""Requests that are passed on as they are, and replies that are passed back as they come."""

import asyncio
import time
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import aiohttp

from suffice.gateway.door import Exchange
from suffice.gateway.errors import from_upstream
from suffice.gateway.events import CutError, Passed
from suffice.gateway.fleet.upstreams import Upstream, Upstreams, our_error, unpacked
from suffice.live.dialects import CHAT, Face
from suffice.live.servers.hosts import Host
from suffice.live.servers.server import MOST_BYTES, TooLongError
from suffice.live.tracing import TRACING

REDIRECTS = (301, 302, 303, 307, 308)
"""With these an upstream names another address, which is nobody's business."""

ELSEWHERE = (401, 403, 404, 408, 429)
"""With these, as with 5xx, an upstream leaves it open whether another one would answer."""

_GENERATING = ("/completions", "/responses", "/messages")
"""How paths end at which tokens are generated."""


async def relay(
    upstreams: Upstreams,
    exchange: Exchange,
    path: str,
    raw: bytes,
    model: str | None,
    *,
    ends: float,
    seconds: float,
    face: Face = CHAT.face,
) -> Passed:
    """Pass a request on as it is, and its reply back, until the deadline, which came after so many seconds."""
    generates = path.endswith(_GENERATING)
    span = TRACING.relay(path, model)
    try:
        with span.within():
            async with asyncio.timeout(ends - time.monotonic()):
                passed = await _relay_to_any(upstreams, exchange, path, raw, model, plain=generates)
    except TimeoutError:
        raise from_upstream(TimeoutError(), f"no reply within {seconds:g} seconds") from None
    span.replied(passed.status)
    if passed.status >= 400:
        return passed
    counted = exchange.usage.over(passed.pieces, generates=generates)
    pieces = in_time(counted, ends, seconds, exchange, face if passed.has_events else None)
    return replace(passed, pieces=span.over(pieces))


async def _relay_to_any(
    upstreams: Upstreams, exchange: Exchange, path: str, content: bytes, model: str | None, *, plain: bool
) -> Passed:
    """Pass a request on to one upstream; where that fails, another is asked.

    What names no model may be about something that only one of them keeps, so that it always goes to the first.
    """
    fleet = upstreams.fleet
    avoid: set[Host] = set()
    host: Host | None = fleet.hosts[0] if model is None else fleet.choose(model)
    while True:
        assert host  # noqa: S101
        avoid.add(host)
        exchange.line["upstream"] = host.name
        other = None if model is None else fleet.other(model, "", avoid)
        upstream = upstreams.at(host)
        try:
            reply = await upstream.open(exchange.request, path, content, plain=plain)
        except (ConnectionError, TimeoutError) as error:
            host.fail(dead=isinstance(error, ConnectionRefusedError))
            if other is None:
                raise from_upstream(error, str(error)) from None
        else:
            if other is None or not (reply.status in ELSEWHERE or reply.status >= 500):
                return await _passed_back(reply, upstream)
            reply.close()
        host = other


async def _passed_back(reply: aiohttp.ClientResponse, upstream: Upstream) -> Passed:
    if reply.status < 400:
        upstream.host.answer()
    if reply.status in REDIRECTS:
        reply.close()
        raise from_upstream(upstream.error_of(reply, b""), "")
    if reply.status >= 400:
        return await _error_passed_back(reply, upstream)
    return Passed(reply.status, back(reply.raw_headers), _pieces_of(reply))


async def _error_passed_back(reply: aiohttp.ClientResponse, upstream: Upstream) -> Passed:
    """An error as the upstream told it, byte for byte unless it has its key or its address in it."""
    try:
        body = b"".join([piece async for piece in bounded(reply)])
    except (ConnectionError, TimeoutError, TooLongError) as error:
        raise from_upstream(error, str(error)) from None
    plain = unpacked(body, reply.headers.get("content-encoding", ""))
    clean = upstream.clean(plain)
    same = clean == plain
    told = body if same else clean
    left_out = {b"content-length"} if same else {b"content-length", b"content-encoding"}
    headers = [one for one in back(reply.raw_headers) if one[0] not in left_out]
    return Passed(reply.status, [(b"content-length", str(len(told)).encode()), *headers], _whole(told))


async def _whole(body: bytes) -> AsyncGenerator[bytes, None]:
    yield body


async def _pieces_of(reply: aiohttp.ClientResponse) -> AsyncGenerator[bytes, None]:
    """The body as it arrives; whoever stops reading hangs up."""
    try:
        async for chunk in reply.content.iter_any():
            yield chunk
    except (aiohttp.ClientError, OSError) as error:
        raise our_error(error) from None
    finally:
        reply.close()


async def bounded(reply: aiohttp.ClientResponse) -> AsyncGenerator[bytes, None]:
    """The body as it arrives, if it is not too long."""
    size = 0
    async with aclosing(_pieces_of(reply)) as pieces:
        async for chunk in pieces:
            size += len(chunk)
            if size > MOST_BYTES:
                raise TooLongError(f"a response of more than {MOST_BYTES >> 20} MiB")
            yield chunk


def back(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """The headers of a reply that is passed back."""
    left_out = (b"connection", b"keep-alive", b"transfer-encoding", b"upgrade", b"date", b"server")
    return [(name.lower(), value) for name, value in headers if name.lower() not in left_out]


async def in_time(
    pieces: AsyncGenerator[bytes, None], ends: float, seconds: float, exchange: Exchange, face: Face | None
) -> AsyncGenerator[bytes, None]:
    """The pieces of a reply until the deadline; then, as where it breaks off, an error event in a dialect, or a cut."""
    between, reading = True, Reading(ends)
    try:
        async with aclosing(pieces):
            while (piece := await reading.next(pieces)) is not None:
                between = piece.endswith((b"\n\n", b"\r\n\r\n"))
                yield piece
    except (ConnectionError, TimeoutError, TooLongError) as cause:
        late = isinstance(cause, TimeoutError)
        error = from_upstream(cause, f"its reply took more than {seconds:g} seconds" if late else str(cause))
        exchange.line |= {"kind": "error", "error": error.brief}
        if face is None:
            raise CutError from None
        yield (b"" if between else b"\n\n") + face.error_event(error.payload(face))
    finally:
        reading.end()


class Reading:
    """Reads pieces until a deadline with one timer for all of them: asyncio's would take one for each token."""

    def __init__(self, ends: float) -> None:
        self._late = False
        self._task: asyncio.Task[Any] | None = None
        seconds = max(0.0, ends - time.monotonic())
        self._timer = asyncio.get_running_loop().call_later(seconds, self._expire)

    async def next(self, pieces: AsyncGenerator[bytes, None]) -> bytes | None:
        """The next piece, None where there is none; TimeoutError at the deadline."""
        if self._late:
            raise TimeoutError
        self._task = asyncio.current_task()
        try:
            return await anext(pieces, None)
        except asyncio.CancelledError:
            if not self._late or (self._task and self._task.uncancel() > 0):
                raise
            raise TimeoutError from None
        finally:
            self._task = None

    def end(self) -> None:
        """Forget the deadline."""
        self._timer.cancel()

    def _expire(self) -> None:
        self._late = True
        if self._task:
            self._task.cancel()
