"""How many draws may be in flight at once, over all questions that share a limit."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from suffice.errors import OptionError


class Limiter:
    """A semaphore that is taken for several draws at a time, first come first served."""

    def __init__(self, limit: int) -> None:
        if limit < 1:
            raise OptionError(f"must be at least 1, not {limit}", "concurrency")
        self.limit = limit
        self._free = limit
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    @asynccontextmanager
    async def hold(self, draws: int) -> AsyncIterator[None]:
        """Wait until so many draws may start, and hold their places until they have ended."""
        draws = min(draws, self.limit)
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append((draws, turn))
        self._admit()
        try:
            await turn
            yield
        finally:
            if turn.done() and not turn.cancelled():
                self._free += draws
            else:
                self._waiting.remove((draws, turn))
            self._admit()

    def _admit(self) -> None:
        while self._waiting and self._waiting[0][0] <= self._free:
            draws, turn = self._waiting[0]
            if not turn.cancelled():
                self._free -= draws
                turn.set_result(None)
            self._waiting.popleft()
