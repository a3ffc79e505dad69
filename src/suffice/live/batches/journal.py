"""A journal: what must not be lost is on disk before it counts."""

import asyncio
import fcntl
import json
import os
from collections.abc import Iterator
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any

from suffice.errors import OptionError

FORMAT = "suffice-journal-2"
BEGUN = b'{"format": "suffice-journal'
"""What a journal begins with; a file that begins otherwise is left alone."""


class Journal:
    """An append-only file of JSON lines, the first of which says what the work is.

    Entries are read one by one, and again by their place in the file: none is kept.
    """

    def __init__(self, path: Path, settings: dict[str, Any]) -> None:
        self.path = path
        self._pending: list[tuple[bytes, asyncio.Future[None]]] = []
        self._writer: asyncio.Task[None] | None = None
        self._broken: OptionError | None = None
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        except OSError as error:
            raise OptionError(f"{path}: it can't be written: {error.strerror}") from None
        try:
            self._lock()
            self._end = self._begin(settings)
            self._reader = path.open("rb")
        except BaseException:
            os.close(self._file)
            raise

    def close(self) -> None:
        os.close(self._file)
        self._reader.close()

    def entries(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """All entries so far, each with its place."""
        self._reader.seek(0)
        place = len(self._reader.readline())
        for number, line in enumerate(self._reader, 2):
            yield place, self._read(line, number)
            place += len(line)

    def at(self, place: int) -> dict[str, Any]:
        self._reader.seek(place)
        entry: dict[str, Any] = json.loads(self._reader.readline())
        return entry

    async def add(self, entry: dict[str, Any]) -> int:
        """Append an entry; return its place once it is on disk. Those that come together go together."""
        if self._broken:
            raise self._broken
        line = json.dumps(entry, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"
        written = asyncio.get_running_loop().create_future()
        self._pending.append((line, written))
        place = self._end
        self._end += len(line)
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._write())
        await asyncio.shield(written)
        return place

    async def _write(self) -> None:
        while self._pending:
            batch, self._pending = self._pending, []
            try:
                await asyncio.to_thread(self._append, b"".join(line for line, _ in batch))
            except OSError as error:
                # Half a line may be there: nothing must follow it.
                self._broken = OptionError(f"{self.path}: it can't be written: {error.strerror}")
                for _, written in batch + self._pending:
                    written.set_exception(self._broken)
                return
            for _, written in batch:
                if not written.done():
                    written.set_result(None)

    def _append(self, data: bytes) -> None:
        done = 0
        while done < len(data):
            done += os.write(self._file, data[done:])
        os.fsync(self._file)

    def _lock(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise OptionError(f"{self.path}: another process is at work on it; wait for it, or end it") from None

    def _begin(self, settings: dict[str, Any]) -> int:
        """Write the first line, or cut off what is not whole after the last; return where it ends."""
        first, end = b"", 0
        if os.fstat(self._file).st_size:
            with mmap(self._file, 0, access=ACCESS_READ) as data:
                begins = data[: len(BEGUN)]
                first, end = data[: data.find(b"\n") + 1], data.rfind(b"\n") + 1
            if not BEGUN.startswith(begins):
                raise self._foreign(1)
        before = self._settings(first) if first else {}
        if end > len(first):
            _check_same(self.path, before, json.loads(json.dumps(settings)))
            os.ftruncate(self._file, end)
            return end
        line = json.dumps({"format": FORMAT, "settings": settings}, ensure_ascii=False).encode() + b"\n"
        os.ftruncate(self._file, 0)  # no entry has come yet
        self._append(line)
        return len(line)

    def _settings(self, line: bytes) -> dict[str, Any]:
        match self._read(line, 1):
            case {"format": kind, "settings": dict(settings)} if kind == FORMAT:
                return settings
        raise self._foreign(1)

    def _read(self, line: bytes, number: int) -> Any:
        try:
            return json.loads(line)
        except ValueError:
            raise self._foreign(number) from None

    def _foreign(self, number: int) -> OptionError:
        return OptionError(f"{self.path}, line {number}: not a journal's; move the file away")


def _check_same(path: Path, before: dict[str, Any], now: dict[str, Any]) -> None:
    differing = [
        f"{name} was {_brief(before.get(name))} and is now {_brief(now.get(name))}"
        for name in dict.fromkeys([*before, *now])
        if before.get(name) != now.get(name)
    ]
    if differing:
        raise OptionError(
            f"{path} was begun with other settings: {'; '.join(differing)}; go on with those, or use another output"
        )


def _brief(value: Any) -> str:
    shown = json.dumps(value, ensure_ascii=False)
    return shown if len(shown) <= 200 else shown[:197] + "..."
