"""Requests that are passed on as they are, and replies that are passed back as they come."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import aclosing
from dataclasses import replace

import aiohttp

from suffice.gateway.errors import from_upstream
from suffice.gateway.exchange import Counted, CutError, Exchange, Passed
from suffice.gateway.fleet.upstreams import REDIRECTS, Upstreams, pieces_of
from suffice.gateway.operations.replies import ReplyReader
from suffice.live.dialects import CHAT, Dialect, MalformedError
from suffice.live.dialects.base import StreamReader
from suffice.live.servers.hosts import Fleet
from suffice.live.servers.retry import PausedError, StatusError, TooLongError
from suffice.live.servers.server import DrawError
from suffice.live.tracing import TRACING, UNTRACED, Span
from suffice.response import Response

MAX_READ_BYTES = 1 << 20
"""A longer reply is no answer: of those that pass by, no more is read."""


async def relay(
    upstreams: Upstreams,
    exchange: Exchange,
    path: str,
    raw: bytes,
    model: str | None,
    *,
    ends: float,
    seconds: float,
    dialect: Dialect | None = None,
) -> Passed:
    """Pass a request on as it is, and its reply back, until the deadline, which came after so many seconds.

    Without a model it goes to the first upstream: it may be about something that only that one keeps.
    """
    dialect = CHAT if dialect is None and path.endswith("/completions") else dialect
    fleet = Fleet(upstreams.fleet.hosts[:1]) if model is None else None
    server = upstreams.server(exchange, CHAT, model, ends, fleet=fleet)
    span = TRACING.begin("relay", {"model": model and model[:200]}, role="relay")
    span.set({"url.path": path[:200]})

    async def send() -> aiohttp.ClientResponse:
        return await upstreams.by_host[server.host].open(exchange.request, path, raw, ends, plain=dialect is not None)

    try:
        with span.within(lasts=True):
            async with asyncio.timeout(ends - time.monotonic()):
                reply = await server.handling_retries(send, draws=0)
    except TimeoutError:
        raise from_upstream(TimeoutError(), f"no reply within {seconds:g} seconds") from None
    except DrawError as error:
        cause = error.cause
        if not isinstance(cause, StatusError) or isinstance(cause, PausedError) or cause.status in REDIRECTS:
            raise from_upstream(cause, str(error)) from None
        # It goes back as the upstream told it, less its key and its address.
        left_out = ("content-length", "content-encoding")
        told = [
            (name.encode(), text.encode("utf-8", "surrogateescape"))  # as aiohttp decoded them
            for name, text in cause.headers.items()
            if name not in left_out
        ]
        length = (b"content-length", b"%d" % len(cause.body))
        return Passed(cause.status, [length, *back(told)], whole(cause.body))
    span.replied(reply.status)
    passed = Passed(reply.status, back(reply.raw_headers), pieces_of(reply, bounded=False))
    return replace(passed, pieces=in_time(passed, seconds, exchange, dialect, span))


async def whole(body: bytes) -> AsyncGenerator[bytes, None]:
    """A body that is here, as its only piece."""
    yield body


def back(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """The headers of a reply that is passed back."""
    left_out = (b"connection", b"keep-alive", b"transfer-encoding", b"upgrade", b"date", b"server")
    return [(name.lower(), value) for name, value in headers if name.lower() not in left_out]


async def in_time(
    passed: Passed, seconds: float, exchange: Exchange, dialect: Dialect | None, span: Span = UNTRACED
) -> AsyncGenerator[bytes, None]:
    """The pieces of a reply until its deadline, which came after so many seconds.

    At its end its tokens are counted, and its span ends.
    A stream that is late, breaks off or ends before its response does raises a GatewayError, for an event at its end;
    where there can't be one, it raises a CutError.
    """
    headers = dict(passed.headers)
    has_events = headers.get(b"content-type", b"").startswith(b"text/event-stream")
    streamed = dialect if has_events and b"content-encoding" not in headers else None
    telling = streamed if b"content-length" not in headers else None
    reader = ReplyReader(streamed)
    try:
        async with aclosing(passed.pieces):
            async for piece in passed.pieces:
                reader.feed(piece)
                yield piece
        if telling and reader.is_cut:
            raise ConnectionError("its stream ended before its response did")
    except (ConnectionError, TimeoutError, TooLongError) as cause:
        error = from_upstream(cause, str(cause) or f"its reply took more than {seconds:g} seconds")
        if telling is None:
            raise CutError(error) from None
        if reader.decoder.rest:
            yield b"\n\n"
        raise error from None
    finally:
        usage, estimated = reader.usage(estimate=dialect is not None)
        exchange.add(Counted(usage.prompt or 0, usage.completion or 0, estimated))
        span.end()


async def overheard(
    pieces: AsyncGenerator[bytes, None], dialect: Dialect, heard: Callable[[Response], None]
) -> AsyncGenerator[bytes, None]:
    """Pass on the pieces of a reply, and call `heard` with what it said once it has gone."""
    reader, size = StreamReader(dialect), 0
    async with aclosing(pieces):
        async for piece in pieces:
            size += len(piece)
            if size <= MAX_READ_BYTES:
                reader.feed(piece)
            yield piece
    try:
        if 0 < size <= MAX_READ_BYTES:
            heard(reader.responses()[0])
    except MalformedError:
        pass
