"""A journal: what must not be lost is on disk before it counts, and is there when the work goes on."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

from suffice.errors import OptionError

FORMAT = "suffice-journal-2"


class Journal:
    """An append-only file of JSON lines, the first of which says what the work is."""

    def __init__(self, path: Path, settings: dict[str, Any]) -> None:
        self.path = path
        self.entries: list[dict[str, Any]] = []
        self._pending: list[tuple[bytes, asyncio.Future[None]]] = []
        self._writer: asyncio.Task[None] | None = None
        self._broken: OptionError | None = None
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        except OSError as error:
            raise OptionError(f"{path}: it can't be written: {error.strerror}") from None
        try:
            self._lock()
            self._go_on(settings)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let the file go."""
        if self._file >= 0:
            os.close(self._file)
        self._file = -1

    async def add(self, entry: dict[str, Any]) -> None:
        """Append an entry; when this returns, it is on disk. Entries that come together are written together."""
        if self._broken:
            raise self._broken
        line = json.dumps(entry, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"
        written = asyncio.get_running_loop().create_future()
        self._pending.append((line, written))
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._write())
        await asyncio.shield(written)

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
            import fcntl
        except ImportError:  # not on this system
            return
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise OptionError(f"{self.path}: another process is at work on it; wait for it, or end it") from None

    def _go_on(self, settings: dict[str, Any]) -> None:
        """Read what is there, mend a torn last line, and refuse to go on with other settings."""
        data = self.path.read_bytes()
        whole = data[: data.rfind(b"\n") + 1]
        begun = b'{"format": "suffice-journal'
        if not (data.startswith(begun) or begun.startswith(data)):
            raise OptionError(f"{self.path}, line 1: not a journal's; move the file away")
        if len(whole) < len(data):
            os.ftruncate(self._file, len(whole))
        if not whole:
            self._append(json.dumps({"format": FORMAT, "settings": settings}, ensure_ascii=False).encode() + b"\n")
            return
        for number, line in enumerate(whole.split(b"\n")[:-1], 1):
            try:
                self.entries.append(json.loads(line))
            except ValueError:
                raise OptionError(f"{self.path}, line {number}: not a journal's; move the file away") from None
        first = self.entries.pop(0)
        if isinstance(first, dict) and first.get("format") == "suffice-journal-1":
            raise OptionError(f"{self.path} was begun by an earlier suffice: finish it with that, or move it away")
        if not isinstance(first, dict) or first.get("format") != FORMAT or not isinstance(first.get("settings"), dict):
            raise OptionError(f"{self.path}, line 1: not a journal's; move the file away")
        _check_same(self.path, first["settings"], json.loads(json.dumps(settings)))


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
