"""Draws at the lowest priority: while the upstream has room to spare."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from suffice.gateway.exchange import end
from suffice.live.servers.server import Server

MOST_PENDING = 32
"""The most tasks that wait; one more is dropped, and that is told."""

AT_ONCE = 2

LOOK_SECONDS = 0.05
"""Seconds between two looks for room."""


Ready = Callable[[], Awaitable[None]]
"""Waits until there is room to spare."""


class SpareDraws:
    """Draws for requests that were answered, at the lowest priority: while there is room."""

    def __init__(self, is_crowded: Callable[[], bool]) -> None:
        self.pending = 0
        """The number of tasks that are under way or wait."""
        self.dropped = 0
        """The number of tasks that came to nothing: too many waited, or draws failed."""
        self._is_crowded = is_crowded
        self._places = asyncio.Semaphore(AT_ONCE)
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, server: Server, work: Callable[[Ready], Awaitable[bool]], over: Callable[[], None]) -> None:
        """Do work that draws, and tells whether that worked; then, or if it is not begun, call `over`."""
        if self.pending == AT_ONCE + MOST_PENDING:
            self.dropped += 1
            over()
            return
        self.pending += 1
        task = asyncio.create_task(self._run(server, work, over))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        await end(*self._tasks)

    async def _run(self, server: Server, work: Callable[[Ready], Awaitable[bool]], over: Callable[[], None]) -> None:
        async with self._places:
            try:
                self.dropped += not await work(partial(self._room, server))
            finally:
                self.pending -= 1
        over()

    async def _room(self, server: Server) -> None:
        """Wait until the upstream could take as much again as it has to do now: clients come first."""
        host = server.host
        while self._is_crowded() or host.is_aside or 2 * host.load > host.limiter.limit:
            await asyncio.sleep(LOOK_SECONDS)
