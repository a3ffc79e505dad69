"""What becomes of a request, as one sequence of events: how its vote stands, again and again, and then its end.

The end is what the vote elected, or what an upstream said, passed back as it is; a GatewayError where there is neither.
"""

import asyncio
import math
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from starlette.requests import Request

T = TypeVar("T")


@dataclass(frozen=True)
class Standing:
    """How a vote stands: a response arrived, or its controller decided."""

    facts: Mapping[str, Any]


@dataclass(frozen=True)
class Thought:
    """A piece of what the model thinks before it says anything: it goes on as the upstream sent it."""

    piece: bytes
    events: int
    """The number of events in it."""


@dataclass(frozen=True)
class Elected:
    """The reply that a vote came to, and the headers that tell of it."""

    reply: dict[str, Any]
    told: Mapping[str, str]


@dataclass(frozen=True)
class Passed:
    """A reply that is passed back as the upstream sends it."""

    status: int
    headers: list[tuple[bytes, bytes]]
    pieces: AsyncGenerator[bytes, None]
    told: Mapping[str, str] = field(default_factory=dict)
    """Headers of ours."""

    @property
    def is_stream(self) -> bool:
        """Whether it is a stream of events that can be read."""
        headers = dict(self.headers)
        return headers.get(b"content-type", b"").startswith(b"text/event-stream") and b"content-encoding" not in headers

    @property
    def has_open_end(self) -> bool:
        """Whether its length is not told, so that an event may be added."""
        return b"content-length" not in dict(self.headers)


Event = Standing | Thought | Elected | Passed
Events = AsyncGenerator[Event, None]


class CutError(Exception):
    """A reply that has begun and can't be ended: the connection is closed, and nobody takes it for whole."""


class Upcoming(Generic[T]):
    """The items of an async generator, each of which may be waited for a while, as long as the client is there."""

    def __init__(self, items: AsyncGenerator[T, None], request: Request | None = None) -> None:
        self.ended = False
        self._items = items
        self._next: asyncio.Task[T | None] | None = None
        self._leaving = asyncio.create_task(_left(request)) if request else None

    @property
    def left(self) -> bool:
        """Whether the client has hung up."""
        return self._leaving is not None and self._leaving.done()

    @property
    def _tasks(self) -> list[asyncio.Task[Any]]:
        return [task for task in (self._next, self._leaving) if task]

    async def next(self, seconds: float = math.inf) -> T | None:
        """Return the next item; None if it has not come in time, there is none, or the client hangs up meanwhile."""
        self._next = self._next or asyncio.ensure_future(anext(self._items, None))
        timeout = None if seconds == math.inf else max(0.0, seconds)
        await asyncio.wait(self._tasks, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        if not self._next.done():
            return None
        item, self._next = self._next.result(), None
        self.ended = item is None
        return item

    async def rest(self, begun: T) -> AsyncGenerator[T, None]:
        """Yield `begun` and all that is still to come, without a task for each item, then close."""
        try:
            yield begun
            if self._next and (item := await self.next()) is not None:
                yield item
            async for item in self._items:
                yield item
        finally:
            await self.close()

    def stay(self) -> None:
        """Stop watching the client: whoever sends the reply does."""
        if self._leaving:
            self._leaving.cancel()

    async def close(self) -> None:
        """Cancel what is under way, and close the generator."""
        await end(*self._tasks)
        await self._items.aclose()


async def _left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def end(*tasks: asyncio.Future[Any]) -> None:
    """Cancel tasks and wait for their end; whoever is cancelled meanwhile does not disturb them."""
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)
