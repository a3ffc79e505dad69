"""Draws at the lowest priority: how many tasks wait, which are dropped, and that all are told when they are over."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

from suffice.gateway.fleet.spare import AT_ONCE, MOST_PENDING, SpareDraws

Ready = Callable[[], Awaitable[None]]


IDLE = SimpleNamespace(is_aside=False, load=0, limiter=SimpleNamespace(limit=8))
SERVER: Any = SimpleNamespace(host=IDLE)


def test_pending_are_those_under_way_and_those_that_wait() -> None:
    async def main() -> None:
        over: list[int] = []
        may_end = [asyncio.Event() for _ in range(AT_ONCE + MOST_PENDING)]

        async def draw(number: int, ready: Ready) -> bool:
            await ready()
            return await may_end[number].wait()

        spare = SpareDraws(lambda: False)
        for number in range(AT_ONCE + MOST_PENDING):
            spare.begin(SERVER, partial(draw, number), partial(over.append, number))
        assert (spare.pending, spare.dropped) == (AT_ONCE + MOST_PENDING, 0)
        spare.begin(SERVER, partial(draw, -1), partial(over.append, -1))
        assert (spare.dropped, over) == (1, [-1]), "there is no room for one more, and that is told"
        may_end[0].set()
        while len(over) < 2:
            await asyncio.sleep(0)
        assert (spare.pending, over) == (AT_ONCE + MOST_PENDING - 1, [-1, 0])
        for event in may_end:
            event.set()
        while spare.pending:
            await asyncio.sleep(0)
        assert (sorted(over), spare.dropped) == (list(range(-1, AT_ONCE + MOST_PENDING)), 1)
        await spare.close()

    asyncio.run(main())


def test_one_that_failed_is_dropped_and_one_waits_while_clients_do() -> None:
    async def main() -> None:
        over: list[bool] = []
        crowded = asyncio.Event()
        crowded.set()

        async def fail(ready: Ready) -> bool:
            await ready()
            return False

        spare = SpareDraws(crowded.is_set)
        spare.begin(SERVER, fail, lambda: over.append(True))
        for _ in range(5):
            await asyncio.sleep(0)
        assert (spare.pending, spare.dropped, over) == (1, 0, [])
        crowded.clear()
        while spare.pending:
            await asyncio.sleep(0)
        assert (spare.dropped, over) == (1, [True])
        await spare.close()

    asyncio.run(main())
