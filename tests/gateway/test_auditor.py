"""Audits while the gateway serves: how many wait, which are dropped, and that all are told when they are over."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from suffice.gateway.votes.audits import AT_ONCE, MOST_PENDING, Auditor
from suffice.live.audits import Audit

AUDIT = Audit(True, 4, 32, 40, 320, True)


class EndedVote:
    """A vote that is drawn to its end when it may."""

    has_room = True

    def __init__(self, over: Callable[[], None], found: Audit | None = AUDIT) -> None:
        self.over = over
        self._found = found
        self.may_end = asyncio.Event()

    async def audit(self, room: Callable[[], Awaitable[None]]) -> Audit | None:
        await room()
        await self.may_end.wait()
        return self._found


def test_pending_are_those_under_way_and_those_that_wait() -> None:
    async def main() -> None:
        done: list[Audit] = []
        over: list[int] = []

        async def take(audit: Audit) -> None:
            done.append(audit)

        auditor = Auditor(take, lambda: False)
        votes: list[Any] = [EndedVote(partial(over.append, number)) for number in range(AT_ONCE + MOST_PENDING)]
        more: Any = EndedVote(lambda: over.append(-1))
        for number, held in enumerate(votes):
            auditor.audit(held)
            if number < AT_ONCE:
                await asyncio.sleep(0)
        assert (auditor.pending, auditor.dropped) == (AT_ONCE + MOST_PENDING, 0)
        auditor.audit(more)
        assert (auditor.dropped, over) == (1, [-1]), "there is no room for one more, and that is told"
        votes[0].may_end.set()
        while not done:
            await asyncio.sleep(0)
        assert (auditor.pending, over) == (AT_ONCE + MOST_PENDING - 1, [-1, 0])
        for held in votes:
            held.may_end.set()
        while auditor.pending:
            await asyncio.sleep(0)
        assert sorted(over) == list(range(-1, len(votes)))
        await auditor.close()

    asyncio.run(main())


def test_one_that_failed_is_dropped_and_one_waits_while_clients_do() -> None:
    async def main() -> None:
        over: list[bool] = []
        crowded = asyncio.Event()
        crowded.set()

        async def take(audit: Audit) -> None:
            raise AssertionError("there is none")

        auditor = Auditor(take, crowded.is_set)
        failed: Any = EndedVote(lambda: over.append(True), None)
        failed.may_end.set()
        auditor.audit(failed)
        for _ in range(5):
            await asyncio.sleep(0)
        assert (auditor.pending, auditor.dropped, over) == (1, 0, [])
        crowded.clear()
        while auditor.pending:
            await asyncio.sleep(0)
        assert (auditor.dropped, over) == (1, [True])
        await auditor.close()

    asyncio.run(main())
