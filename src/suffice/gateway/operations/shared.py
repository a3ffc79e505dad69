"""Numbers that the workers of one machine share, so that a limit holds for all of them together.

They are in a mapped file that ends with the gateway: a row for each worker, and a window for each key.
"""

import asyncio
import mmap
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from hashlib import sha256
from pathlib import Path

from suffice.live.servers.gate import Limiter

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

Numbers = memoryview
"""Whole numbers of 64 bits."""

COUNTERS = "SUFFICE_COUNTERS"
"""The variable that says where the file is."""

REQUESTS, WAITING, DRAWS = 1, 2, 3
"""The columns of a worker's row: after its process number, its requests, those that wait, and draws by upstream."""

_ROWS, _COLUMNS = 256, 64
_KEYS, _KEY_WIDTH = 4096, 64

_NOBODY = memoryview(bytes(8 * _COLUMNS)).cast("q")

POLL_SECONDS = 0.02
"""How long it takes at most to notice that another worker has made room."""


class SharedCounters:
    """The numbers of all workers, and which row is ours."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("r+b")
        self._map = mmap.mmap(self._file.fileno(), 0)
        self._all = memoryview(self._map).cast("q")
        with self.lock():
            row = next(row for row in range(_ROWS) if not self._is_alive(row))
            self._own = self._at(row)
            self._own[:] = _NOBODY
            self._own[0] = os.getpid()

    @staticmethod
    def make(path: Path) -> None:
        """Make the file, with zeros."""
        with path.open("wb") as file:
            file.truncate(8 * (_ROWS * _COLUMNS + _KEYS * _KEY_WIDTH))

    @staticmethod
    def of_machine() -> "SharedCounters | None":
        """The counters that this process's workers share; None where one worker is all."""
        path = os.environ.get(COUNTERS)
        return SharedCounters(Path(path)) if path and fcntl else None

    def close(self) -> None:
        """Leave: what was ours is nobody's."""
        self._own[:] = _NOBODY
        self._own.release()
        with suppress(BufferError):  # somebody still holds a window
            self._all.release()
            self._map.close()
        self._file.close()

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Be alone with the numbers, for a few microseconds; whoever dies meanwhile lets go."""
        fcntl.flock(self._file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)

    def take(self, column: int, amount: int, most: int) -> bool:
        """Take so many, if that leaves no more than the most over all workers; whether it does."""
        with self.lock():
            if self.total(column) + amount > most:
                self._forget_the_dead()
                if self.total(column) + amount > most:
                    return False
            self._own[column] += amount
            return True

    def give(self, column: int, amount: int) -> None:
        """Give so many back."""
        self._own[column] -= amount

    def total(self, column: int) -> int:
        """How many all workers have."""
        return sum(self._all[column : _ROWS * _COLUMNS : _COLUMNS])

    def window(self, name: str, width: int) -> Numbers | None:
        """The numbers of a key's window, with the lock held; None where there is no room for more."""
        mark = int.from_bytes(sha256(name.encode()).digest()[:7], "big") + 1
        start = mark % _KEYS
        for step in range(_KEYS):
            begin = _ROWS * _COLUMNS + (start + step) % _KEYS * _KEY_WIDTH
            if self._all[begin] in (0, mark):
                self._all[begin] = mark
                return self._all[begin + 1 : begin + 1 + width]
        return None

    def _at(self, row: int) -> Numbers:
        return self._all[row * _COLUMNS : (row + 1) * _COLUMNS]

    def _is_alive(self, row: int) -> bool:
        process = self._all[row * _COLUMNS]
        if not process:
            return False
        with suppress(PermissionError):
            try:
                os.kill(process, 0)
            except ProcessLookupError:
                return False
        return True

    def _forget_the_dead(self) -> None:
        """Empty the rows of workers that are gone."""
        for row in range(_ROWS):
            if self._all[row * _COLUMNS] and not self._is_alive(row):
                self._at(row)[:] = _NOBODY


def share(folder: Path) -> None:
    """Let the workers that are started from here share their numbers, in a file there."""
    path = folder / "counters"
    SharedCounters.make(path)
    os.environ[COUNTERS] = str(path)


def shared_folder(named: str | None) -> Path | None:
    """Where workers keep what they all should know: in the folder that is named, or else only while they run."""
    counters = os.environ.get(COUNTERS)
    return Path(named) if named else Path(counters).parent if counters else None


class SharedSemaphore:
    """As asyncio's, under a limit of the machine: first come first served within a worker."""

    def __init__(self, counters: SharedCounters, column: int, most: int) -> None:
        self._counters = counters
        self._column = column
        self._most = most
        self._turn = asyncio.Lock()
        self._freed = asyncio.Event()

    def locked(self) -> bool:
        """Whether whoever comes now has to wait."""
        return self._turn.locked() or self._counters.total(self._column) >= self._most

    async def acquire(self, amount: int = 1) -> None:
        """Wait until there is room for so many."""
        async with self._turn:
            while not self._counters.take(self._column, amount, self._most):
                self._freed.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(POLL_SECONDS):
                        await self._freed.wait()

    def release(self, amount: int = 1) -> None:
        """Make room again."""
        self._counters.give(self._column, amount)
        self._freed.set()


class SharedLimiter(Limiter):
    """A limiter of draws over all workers."""

    def __init__(self, limit: int, counters: SharedCounters, number: int) -> None:
        super().__init__(limit)
        self._semaphore = SharedSemaphore(counters, DRAWS + number % (_COLUMNS - DRAWS), limit)

    @asynccontextmanager
    async def hold(self, draws: int) -> AsyncIterator[None]:
        """Wait until so many draws may start, and hold their places until they have ended."""
        draws = min(draws, self.limit)
        await self._semaphore.acquire(draws)
        try:
            yield
        finally:
            self._semaphore.release(draws)
