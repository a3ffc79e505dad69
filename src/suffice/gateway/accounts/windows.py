"""Requests of the last minute, by key: as many buckets as seconds, in memory that workers may share."""

from collections.abc import Iterator
from math import ceil

from suffice.gateway.operations.shared import Numbers

SECONDS = 60

_BUCKETS = SECONDS + 1
"""One more than seconds, for the oldest may be half gone: no 60 seconds ever hold more than is allowed."""

WIDTH = _BUCKETS + 1
"""The numbers of a window: the second that it was last used in, and the buckets."""


class Window:
    """One key's requests of the last minute, over numbers that begin as zeros.

    >>> window = Window(memoryview(bytearray(8 * WIDTH)).cast("q"))
    >>> [window.take(2, 1000.0), window.take(2, 1010.5), window.take(2, 1030.0)]
    [0, 0, 31]
    >>> window.count(1030.0), window.take(2, 1061.0)
    (2, 0)
    """

    def __init__(self, numbers: Numbers) -> None:
        self._numbers = numbers

    def take(self, most: int, now: float) -> int:
        """Count a request, if there is room for it; 0 then, or else in how many seconds there will be."""
        self._turn_to(int(now))
        held = sum(self._numbers[1:])
        if held < most:
            self._numbers[1 + int(self._last) % _BUCKETS] += 1
            return 0
        return self._wait(held - most + 1, now)

    def count(self, now: float) -> int:
        """The requests of the last minute."""
        return sum(count for second, count in self.buckets() if second >= int(now) - SECONDS)

    def buckets(self) -> Iterator[tuple[int, int]]:
        """The seconds that had any requests, and how many."""
        for second in range(self._last - SECONDS, self._last + 1):
            count = self._numbers[1 + second % _BUCKETS]
            if count:
                yield second, count

    def recall(self, second: int, count: int, now: float) -> None:
        """Know again what was known before a restart."""
        self._turn_to(int(now))
        if self._last - SECONDS <= second <= self._last:
            place = 1 + second % _BUCKETS
            self._numbers[place] = max(self._numbers[place], count)

    @property
    def _last(self) -> int:
        return self._numbers[0]

    def _turn_to(self, second: int) -> None:
        """Forget what is over a minute old; a clock that is set back stands still."""
        passed = second - self._last
        if passed <= 0:
            return
        if passed >= _BUCKETS:
            self._numbers[:] = _ZEROS
        else:
            for one in range(self._last + 1, second + 1):
                self._numbers[1 + one % _BUCKETS] = 0
        self._numbers[0] = second

    def _wait(self, too_many: int, now: float) -> int:
        """In how many seconds so many of the requests will be over a minute old."""
        for second, count in self.buckets():
            too_many -= count
            if too_many <= 0:
                return max(1, ceil(second + _BUCKETS - now))
        return _BUCKETS


_ZEROS = memoryview(bytes(8 * WIDTH)).cast("q")
