"""How many draws may be in flight at once, over all questions that share a server."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext

from suffice.errors import OptionError


class Limiter:
    """A semaphore that is taken for several draws at a time, first come first served, and can be told to pause.

    What it lets through must pass its parent too, if there is one.
    """

    def __init__(self, limit: int, parent: "Limiter | None" = None) -> None:
        if limit < 1:
            raise OptionError(f"must be at least 1, not {limit}", "concurrency")
        self.limit: int = min(limit, parent.limit) if parent else limit
        self._parent = parent
        self._free = self.limit
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._paused_until = 0.0

    @asynccontextmanager
    async def hold(self, draws: int) -> AsyncIterator[None]:
        """Wait until so many draws may start, and hold their places until they have ended."""
        draws = min(draws, self.limit)
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append((draws, turn))
        self._admit()
        try:
            await turn
            pause = self._paused_until - asyncio.get_running_loop().time()
            if pause > 0:
                await asyncio.sleep(pause)
            async with self._parent.hold(draws) if self._parent else nullcontext():
                yield
        finally:
            if turn.done() and not turn.cancelled():
                self._free += draws
            else:
                self._waiting.remove((draws, turn))
            self._admit()

    def pause(self, seconds: float) -> None:
        """Let nobody start for so long: the server asked for it."""
        if self._parent:
            self._parent.pause(seconds)
            return
        self._paused_until = max(self._paused_until, asyncio.get_running_loop().time() + seconds)

    def _admit(self) -> None:
        while self._waiting and self._waiting[0][0] <= self._free:
            draws, turn = self._waiting[0]
            if not turn.cancelled():
                self._free -= draws
                turn.set_result(None)
            self._waiting.popleft()
