"""A vote told as a stream: how it stands while it is under way, so that nobody hangs up, and then the reply."""

import asyncio
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, suppress
from itertools import islice
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from suffice.gateway.errors import GatewayError, from_upstream
from suffice.live import Moment, Progress
from suffice.live.dialects import Dialect
from suffice.live.server import TooLongError

T = TypeVar("T")

MOST_FIELDS = 100
"""So many fields of an object are told of while its vote is under way."""


WAITING = b": waiting\n\n"


async def stream(
    dialect: Dialect,
    vote: asyncio.Task[dict[str, Any]],
    moments: "asyncio.Queue[bytes]",
    left: Awaitable[None],
    heartbeat: float,
    usage_wanted: bool,
    said: Callable[[], bytes | None] = lambda: None,
    waiting: Callable[[], bytes] = lambda: WAITING,
) -> AsyncIterator[bytes]:
    """Comments while the vote is under way; then what was `said` already, the reply, or an error event."""
    leaving = asyncio.ensure_future(left)
    news = asyncio.ensure_future(moments.get())
    try:
        while not vote.done():
            await asyncio.wait({vote, leaving, news}, timeout=heartbeat, return_when=asyncio.FIRST_COMPLETED)
            if leaving.done():
                return
            if news.done():
                yield news.result()
                news = asyncio.ensure_future(moments.get())
            elif not vote.done():
                yield waiting()
        while not moments.empty():
            yield moments.get_nowait()
        try:
            reply = vote.result()
            alone = said()
            for event in [alone] if alone else dialect.events(reply, usage_wanted):
                yield event
        except GatewayError as error:
            yield dialect.error_event(error.payload(dialect))
        except Exception:  # the stream has begun: this is the only way left to say it
            failed = GatewayError(500, "the gateway failed", kind="server_error")
            yield dialect.error_event(failed.payload(dialect))
    finally:
        await end(vote, leaving, news)


def comment(moment: Moment, tokens: int) -> bytes:
    """How the vote stands, for whoever reads comments: our own page does."""
    tally = moment.tally
    standing: dict[str, Any] = {
        "votes": tally.votes,
        "draws": tally.draws,
        "rounds": tally.rounds,
        "in_flight": moment.in_flight,
        "decision": moment.decision,
        "confidence": moment.confidence,
        "certainty": moment.certainty,
        "budget": tally.budget,
        "tokens": tokens,
    }
    if moment.fields:
        told = islice(moment.fields.items(), MOST_FIELDS)
        standing |= {"votes": {}, "fields": {pointer: one.votes for pointer, one in told}}
    return b": suffice " + json.dumps(standing).encode() + b"\n\n"


def arriving(progress: Progress) -> bytes:
    """How far a vote is while nothing is decided."""
    return b": suffice " + json.dumps(progress._asdict()).encode() + b"\n\n"


class CutError(Exception):
    """A reply that has begun and can't be ended: the connection is closed, and nobody takes it for whole."""


class Relayed(StreamingResponse):
    """A reply that is passed back as it arrives; where it is cut, the connection is."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass it back."""
        with suppress(CutError):
            await super().__call__(scope, receive, send)

    @property
    def takes_events(self) -> bool:
        """Whether an event may be added to it."""
        return self.headers.get("content-type", "").startswith("text/event-stream") and not (
            {"content-encoding", "content-length"} & set(self.headers)
        )


async def in_time(
    pieces: AsyncGenerator[bytes, None], ends: float, seconds: float, line: dict[str, Any], dialect: Dialect | None
) -> AsyncGenerator[bytes, None]:
    """The pieces of a reply until the deadline; then, as where it breaks off, an error event in a dialect, or a cut."""
    between = True
    try:
        async with aclosing(pieces):
            while True:
                async with asyncio.timeout(ends - time.monotonic()):
                    piece = await anext(pieces, None)
                if piece is None:
                    return
                between = piece.endswith((b"\n\n", b"\r\n\r\n"))
                yield piece
    except (ConnectionError, TimeoutError, TooLongError) as cause:
        late = isinstance(cause, TimeoutError)
        error = from_upstream(cause, f"its reply took more than {seconds:g} seconds" if late else str(cause))
        line |= {"kind": "error", "error": error.brief}
        if dialect is None:
            raise CutError from None
        yield (b"" if between else b"\n\n") + dialect.error_event(error.payload(dialect))


def until(response: Response, ends: float, seconds: float, line: dict[str, Any], dialect: Dialect) -> Response:
    """A reply that is passed back until the deadline at most."""
    if isinstance(response, Relayed):
        spoken = dialect if response.takes_events else None
        response.body_iterator = in_time(response.body_iterator, ends, seconds, line, spoken)  # type: ignore[arg-type]
    return response


async def left(request: Request) -> None:
    """Wait until the client has hung up."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def unless_left(request: Request, task: asyncio.Task[T]) -> T:
    """The result of a task, which ends at once where the client hangs up."""
    leaving = asyncio.create_task(left(request))
    try:
        await asyncio.wait({task, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ClientDisconnect
        return task.result()
    finally:
        await end(task, leaving)


async def end(*tasks: asyncio.Future[Any]) -> None:
    """Cancel tasks and wait for their end; whoever is cancelled meanwhile does not disturb them."""
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
