"""Files of what the gateway learns and what audits prove, in a folder that workers share."""

import asyncio
import hashlib
import json
import os
import sys
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Generic, TypeVar

from suffice.gateway.exchange import end
from suffice.paths import alone_in, write_whole

T = TypeVar("T")
Row = TypeVar("Row")  # a dataclass

SYNC_SECONDS = 2.0
"""Seconds until other workers, and the disk, have what was learned here."""

MAX_LOG_BYTES = 4 << 20
"""The most that is read of a shared log: its end."""

Change = Callable[[bytes | None], bytes | None]
"""From the content, or None, to the new content; None leaves it. ValueError if it is broken."""


class FileState:
    """Values by name, replaced whole under a lock, a file for each; OSError if that fails."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def version(self, name: str) -> int:
        """When the file was written; 0 where there is none."""
        try:
            return (self._folder / name).stat().st_mtime_ns
        except OSError:
            return 0

    def update(self, name: str, change: Change) -> None:
        """Change a file, which is there whole at any moment, before or after."""
        path = self.path(name)
        with alone_in(path.parent):
            try:
                changed = change(path.read_bytes() if path.exists() else None)
            except ValueError as error:
                aside = path.with_name(f"{path.name}.corrupt")
                path.replace(aside)
                warnings.warn(f"{path}: {error}; it is put aside as {aside.name}, and begun anew", stacklevel=2)
                changed = change(None)
            if changed is not None:
                write_whole(path, changed)

    def path(self, name: str) -> Path:
        path = self._folder / name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return path


class SharedLog(Generic[Row]):
    """Rows of all workers, a line each: all see them in one order."""

    def __init__(self, state: FileState, file: str, read: Callable[[Mapping[str, Any]], Row]) -> None:
        self._state = state
        self._file = file
        self._decode = read
        self._read = 0

    def append(self, row: Row) -> None:
        path = self._state.path(self._file)
        path.touch(0o600)
        with path.open("ab", buffering=0) as file:
            file.write(json.dumps(asdict(row)).encode() + b"\n")  # type: ignore[call-overload]

    def news(self) -> list[Row]:
        """Return what any worker wrote since the last time."""
        try:
            with self._state.path(self._file).open("rb") as file:
                start = max(self._read, file.seek(0, os.SEEK_END) - MAX_LOG_BYTES)
                file.seek(start)
                whole, end, _ = file.read().rpartition(b"\n")  # what is after it is still being written
        except FileNotFoundError:
            return []
        self._read = start + len(whole + end)
        return [row for line in whole.split(b"\n") if (row := self._row(line)) is not None]

    def _row(self, line: bytes) -> Row | None:
        """Read a row; None if a crash left half of it."""
        try:
            return self._decode(json.loads(line))
        except (ValueError, TypeError):
            return None


class Keeper:
    """A thread for slow work, and the sharing with the disk and other workers, now and then."""

    def __init__(self, thread: str, share: Callable[[], Awaitable[None]], trouble: str) -> None:
        self._thread = ThreadPoolExecutor(1, thread)
        self._share = share
        self._trouble = trouble
        self._complained = False

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Share in here: at once, every `SYNC_SECONDS`, and a last time."""
        await self.share()
        keeping = asyncio.create_task(self._keep())
        try:
            yield
        finally:
            await end(keeping)
            await self.share()
            self._thread.shutdown(wait=False, cancel_futures=True)

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(SYNC_SECONDS)
            await self.share()

    async def share(self) -> None:
        """Share what there is; after a failure it is tried again the next time."""
        try:
            await self._share()
        except Exception as error:
            self.complain(f"{self._trouble}: {error}")

    def submit(self, work: Callable[..., None], *arguments: Any) -> None:
        self._thread.submit(work, *arguments)

    async def aside(self, work: Callable[..., T], *arguments: Any) -> T:
        """Wait for what is done in the thread."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, *arguments)

    def complain(self, sentence: str) -> None:
        """Print a complaint, the first of all threads only."""
        complained, self._complained = self._complained, True
        if not complained:
            print(f"suffice: {sentence}", file=sys.stderr, flush=True)


def kept_in(folder: str, model: str, topic: str) -> str:
    """The name of what is kept of a kind: any text may be a model's name."""
    return f"{folder}/{hashlib.sha256(json.dumps([model, topic]).encode()).hexdigest()[:32]}.json"
