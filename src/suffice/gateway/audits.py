"""Audits while the gateway serves: votes are drawn to their end when nobody else needs the room, and written down."""

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

from suffice.gateway import metrics
from suffice.gateway.votes import Held
from suffice.live.audits import Audit

MOST_PENDING = 32
"""So many audits may wait; one more is dropped, and that is told."""

AT_ONCE = 2
"""So many are under way at a time."""

LOOK_SECONDS = 0.05
"""How often it is looked whether there is room."""

MOST_BYTES = 4 << 20
"""So much of the file of audits is read at the start: the last tens of thousands."""


class _Pending(NamedTuple):
    held: Held
    model: str
    topic: str
    over: Callable[[], None]


class Auditor:
    """Draws votes to the full budget after their stop, at the lowest priority: only while there is room to spare."""

    def __init__(self, done: Callable[[Audit], Awaitable[None]], is_crowded: Callable[[], bool]) -> None:
        self.dropped = 0
        """How many could not be had: there was no time for them, or draws failed."""
        self._done = done
        self._is_crowded = is_crowded
        self._waiting: asyncio.Queue[_Pending] = asyncio.Queue(MOST_PENDING)
        self._under_way = 0
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def pending(self) -> int:
        """How many are under way or wait."""
        return self._waiting.qsize() + self._under_way

    def audit(self, held: Held, model: str, topic: str, over: Callable[[], None]) -> None:
        """Audit a vote that has ended, when there is room; whatever becomes of it, it is said when it is over."""
        if self._waiting.full():
            self.dropped += 1
            over()
            return
        self._waiting.put_nowait(_Pending(held, model, topic, over))
        if len(self._tasks) < AT_ONCE:
            self._tasks.append(asyncio.create_task(self._work()))

    async def close(self) -> None:
        """End all that is under way."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _work(self) -> None:
        while True:
            await self._work_at(await self._waiting.get())

    async def _work_at(self, one: _Pending) -> None:
        self._under_way += 1
        try:
            audit = await one.held.audit(lambda: self._room(one.held), one.model, one.topic)
        finally:
            self._under_way -= 1
        one.over()
        if audit is None:
            self.dropped += 1
            return
        metrics.AUDIT_TOKENS.inc(audit.tokens_full - audit.tokens)
        await self._done(audit)

    async def _room(self, held: Held) -> None:
        """Wait until there is room to spare: clients come first."""
        while self._is_crowded() or not held.has_room:
            await asyncio.sleep(LOOK_SECONDS)


class AuditLog:
    """The audits of all workers in one file, a line each, in the one order that all of them see."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._read = 0
        self._rest = b""
        self._here: list[Audit] = []

    def append(self, audit: Audit) -> None:
        """Write one down: a line in one piece, so that nobody sees half of it."""
        if self._path is None:
            self._here.append(audit)
            return
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(file, json.dumps(audit.to_json()).encode() + b"\n")
        finally:
            os.close(file)

    def news(self) -> list[Audit]:
        """What was written since the last time, by whomever."""
        if self._path is None:
            news, self._here = self._here, []
            return news
        try:
            with self._path.open("rb") as file:
                start = max(self._read, file.seek(0, os.SEEK_END) - MOST_BYTES)
                file.seek(start)
                data = file.read()
        except FileNotFoundError:
            return []
        self._read = start + len(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [audit for line in lines if (audit := _audit(line))]


def _audit(line: bytes) -> Audit | None:
    """An audit as it was written; None for what a crash left of one."""
    try:
        return Audit.read(json.loads(line))
    except (ValueError, TypeError):
        return None
