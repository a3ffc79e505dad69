"""The usage of keys over all nodes: one actor owns the counters, and each replica's store is a link to it.

A file that several machines write to is not safe with SQLite, and this needs none: the actor alone has it open.
"""

import hashlib
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from suffice.gateway.store import Counts, Store
from suffice.gateway.windows import SECONDS

NAMESPACE = "suffice"

IDLE_SECONDS = 60.0
"""The owner ends where no replica has asked for so long: each does so every second."""

PATIENCE_SECONDS = 5.0
"""Whoever gets no answer for so long counts in memory, and tells it later."""

Minute = Iterable[tuple[str, int, int]]
"""Requests by name and second."""


class Counters:
    """The owner: it adds up what replicas tell, keeps it on disk, and tells each what all have counted."""

    def __init__(self, path: Path) -> None:
        self._store = Store(path)
        self._minutes: defaultdict[str, dict[str, dict[int, int]]] = defaultdict(dict)
        """The requests of the last minute by node, name and second; those before a restart are of no node."""
        for name, second, count in self._store.minute():
            self._minutes[""].setdefault(name, {})[second] = count

    def add(self, counts: Mapping[str, Mapping[int, Counts]], now: float) -> None:
        """Add to the counters of names, by day."""
        minute: defaultdict[tuple[str, int], int] = defaultdict(int)
        for node in self._minutes.values():
            for name in counts.keys() & node.keys():
                for second, count in node[name].items():
                    minute[name, second] += count
        self._store.add(counts, [(*key, count) for key, count in minute.items()], now)

    def spent(self, day: int, month: int) -> dict[str, tuple[int, float]]:
        """The tokens of the day, and the money since the first day of the month, by name."""
        return self._store.spent(day, month)

    def elsewhere(self, node: str, minute: Minute, now: float) -> dict[str, int]:
        """Learn of the requests on a node; those on all others of the last minute, by name."""
        news: defaultdict[str, dict[int, int]] = defaultdict(dict)
        for name, second, count in minute:
            news[name][second] = count
        self._minutes[node] |= news
        others: defaultdict[str, int] = defaultdict(int)
        for other, names in self._minutes.items():
            for name, seconds in names.items() if other != node else ():
                others[name] += sum(count for second, count in seconds.items() if second >= now - SECONDS)
        return dict(others)

    def totals(self) -> dict[str, Counts]:
        """All that each name has taken."""
        return self._store.totals()

    def since(self) -> float:
        """When the counting began."""
        return self._store.since()


class Owner(Counters):
    """The same as an actor, which ends itself when nobody needs it any more."""

    def __init__(self, path: Path, name: str) -> None:
        super().__init__(path)
        self._name = name
        self._asked = time.monotonic()
        threading.Thread(target=self._end_idle, daemon=True).start()

    def elsewhere(self, node: str, minute: Minute, now: float) -> dict[str, int]:
        """What every replica asks every second."""
        self._asked = time.monotonic()
        return super().elsewhere(node, minute, now)

    def _end_idle(self) -> None:
        while time.monotonic() - self._asked < IDLE_SECONDS:
            time.sleep(1)
        import ray

        ray.kill(ray.get_actor(self._name, namespace=NAMESPACE), no_restart=True)


class SharedStore(Store):
    """A replica's link to the owner, which is started where there is none."""

    def __init__(self, path: Path, node: str) -> None:
        super().__init__(path)
        self._node = node
        self._owner: Any = None

    def add(self, counts: Mapping[str, Mapping[int, Counts]], minute: Minute, now: float) -> None:
        """Add to the counters of names, by day; the owner knows the last minute by what each node tells."""
        self._ask("add", counts, now)

    def spent(self, day: int, month: int) -> dict[str, tuple[int, float]]:
        """The tokens of the day, and the money since the first day of the month, by name."""
        known: dict[str, tuple[int, float]] = self._ask("spent", day, month)
        return known

    def minute(self) -> list[tuple[str, int, int]]:
        """Nothing: what was before a restart is counted as if elsewhere."""
        return []

    def elsewhere(self, here: Callable[[], Minute], now: float) -> dict[str, int]:
        """The requests of the last minute on other nodes."""
        others: dict[str, int] = self._ask("elsewhere", self._node, list(here()), now)
        return others

    def totals(self) -> dict[str, Counts]:
        """All that each name has taken."""
        totals: dict[str, Counts] = self._ask("totals")
        return totals

    def since(self) -> float:
        """When the counting began."""
        return float(self._ask("since"))

    def _ask(self, method: str, *arguments: Any) -> Any:
        """Ask the owner; OSError where it does not answer, as where a disk is gone."""
        from ray.exceptions import RayError

        try:
            self._owner = self._owner or self._found()
            return getattr(self._owner, method).remote(*arguments).future().result(PATIENCE_SECONDS)
        except RayError as error:
            self._owner = None
            raise OSError(f"who counts does not answer: {type(error).__name__}") from None

    def _found(self) -> Any:
        import ray

        name = f"usage-{hashlib.sha256(str(self._path).encode()).hexdigest()[:12]}"
        options = {"namespace": NAMESPACE, "lifetime": "detached", "get_if_exists": True}
        owner: Any = ray.remote(Owner)
        return owner.options(name=name, num_cpus=0, max_restarts=-1, **options).remote(self._path, name)
