"""Audits while the gateway serves: votes are drawn to the full budget while there is room, and logged."""

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from functools import partial
from typing import NamedTuple

from suffice.errors import SufficeError
from suffice.gateway.exchange import end
from suffice.gateway.operations import metrics
from suffice.gateway.operations.state import FileState
from suffice.live import Outcome
from suffice.live.audits import Audit, draw_rest
from suffice.live.servers.server import Server
from suffice.live.vote import Vote

MOST_PENDING = 32
"""The most audits that wait; one more is dropped, and that is told."""

AT_ONCE = 2

LOOK_SECONDS = 0.05
"""Seconds between two looks for room."""

FILE = "audits.jsonl"

MOST_BYTES = 4 << 20
"""The most that is read of the file: its end."""


class AuditedVote(NamedTuple):
    """A vote that has ended; `over` is called when its audit is, whatever became of it."""

    vote: Vote
    server: Server
    outcome: Outcome
    model: str
    topic: str
    over: Callable[[], None]

    @property
    def has_room(self) -> bool:
        """Whether the upstream could take as much again as it has to do now."""
        host = self.server.host
        return not host.is_aside and 2 * host.load <= host.limiter.limit

    async def audit(self, ready: Callable[[], Awaitable[None]]) -> Audit | None:
        """Draw the rest of the budget, a few draws whenever it is `ready`; None if draws fail."""
        try:
            full = await draw_rest(self.vote, ready)
        except SufficeError:
            return None
        return Audit.of(self.outcome, full, self.model, self.topic) if full else None


class Auditor:
    """Draws votes to the full budget after their stop, at the lowest priority: while there is room."""

    def __init__(self, done: Callable[[Audit], Awaitable[None]], is_crowded: Callable[[], bool]) -> None:
        self.pending = 0
        """The number of audits that are under way or wait."""
        self.dropped = 0
        """The number of audits that were not made: too many waited, or draws failed."""
        self._done = done
        self._is_crowded = is_crowded
        self._places = asyncio.Semaphore(AT_ONCE)
        self._tasks: set[asyncio.Task[None]] = set()

    def audit(self, one: AuditedVote) -> None:
        """Audit a vote when there is room."""
        if self.pending == AT_ONCE + MOST_PENDING:
            self.dropped += 1
            one.over()
            return
        self.pending += 1
        task = asyncio.create_task(self._audit(one))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        await end(*self._tasks)

    async def _audit(self, one: AuditedVote) -> None:
        async with self._places:
            try:
                audit = await one.audit(partial(self._room, one))
            finally:
                self.pending -= 1
        one.over()
        if audit is None:
            self.dropped += 1
            return
        metrics.AUDIT_TOKENS.inc(audit.tokens_full - audit.tokens)
        await self._done(audit)

    async def _room(self, one: AuditedVote) -> None:
        """Wait until there is room to spare: clients come first."""
        while self._is_crowded() or not one.has_room:
            await asyncio.sleep(LOOK_SECONDS)


class AuditLog:
    """The audits of all workers, a line each: all see them in one order."""

    def __init__(self, state: FileState) -> None:
        self._state = state
        self._read = 0

    def append(self, audit: Audit) -> None:
        path = self._state.path(FILE)
        path.touch(0o600)
        with path.open("ab", buffering=0) as file:
            file.write(json.dumps(asdict(audit)).encode() + b"\n")

    def news(self) -> list[Audit]:
        """Return what any worker wrote since the last time."""
        try:
            with self._state.path(FILE).open("rb") as file:
                start = max(self._read, file.seek(0, os.SEEK_END) - MOST_BYTES)
                file.seek(start)
                whole, end, _ = file.read().rpartition(b"\n")  # what is after it is still being written
        except FileNotFoundError:
            return []
        self._read = start + len(whole + end)
        return [audit for line in whole.split(b"\n") if (audit := _audit(line))]


def _audit(line: bytes) -> Audit | None:
    """Read an audit; None if a crash left half of it."""
    try:
        return Audit.read(json.loads(line))
    except (ValueError, TypeError):
        return None
