"""The usage of keys over all nodes: one actor owns the counters, and each replica's store is a link to it.

A file that several machines write to is not safe with SQLite, and this needs none: the actor alone has it open.
"""

import hashlib
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from suffice.gateway.accounts.store import Known, Minute, Store, Totals, UsageBatch
from suffice.gateway.accounts.windows import SECONDS

NAMESPACE = "suffice"

IDLE_SECONDS = 60.0
"""The owner ends where no replica has asked for so long: each does so every second."""

PATIENCE_SECONDS = 5.0
"""Whoever gets no answer for so long counts in memory, and tells it later."""


class Counters:
    """The owner: it adds up what replicas tell, keeps it on disk, and tells each what all have counted.

    As an actor, which has a name, it ends itself when nobody needs it any more.
    """

    def __init__(self, path: Path, actor: str | None = None) -> None:
        self._store = Store(path)
        self._asked = time.monotonic()
        self._minutes: dict[str, dict[str, Mapping[int, int]]] = {"": dict(self._store.minute())}
        """The requests of the last minute by node, name and second; those before a restart are of no node."""
        if actor:
            threading.Thread(target=self._end_idle, args=(actor,), daemon=True).start()

    def exchange(self, node: str, batch: UsageBatch | None, minute: Minute, now: float) -> Known:
        """Book a batch of a node's, and learn of its requests; what all have counted, as that node needs it."""
        self._asked = time.monotonic()  # every replica asks every second
        self._minutes.setdefault(node, {}).update(minute)
        elsewhere: Counter[str] = Counter()
        for other, names in self._minutes.items():
            for name, seconds in names.items() if other != node else ():
                elsewhere[name] += sum(count for second, count in seconds.items() if second >= now - SECONDS)
        everywhere: dict[str, Counter[int]] = {name: Counter() for name in (batch.counts if batch else ())}
        for name, seconds in everywhere.items():
            for names in self._minutes.values():
                seconds.update(names.get(name, {}))
        return Known(self._store.exchange(batch, everywhere, now).spent, elsewhere)

    def totals(self) -> Totals:
        """All that each name has taken."""
        return self._store.totals()

    def close(self) -> None:
        """Close the file."""
        self._store.close()

    def _end_idle(self, actor: str) -> None:
        while time.monotonic() - self._asked < IDLE_SECONDS:
            time.sleep(1)
        import ray

        ray.kill(ray.get_actor(actor, namespace=NAMESPACE), no_restart=True)


class SharedStore:
    """A replica's link to the owner: `ask` calls a method of it by its name, OSError where it does not answer."""

    def __init__(self, node: str, ask: Callable[..., Any]) -> None:
        self._node = node
        self._ask = ask

    def exchange(self, batch: UsageBatch | None, minute: Minute, now: float) -> Known:
        """Book a batch, once however often it comes, and hear what all have counted."""
        known: Known = self._ask("exchange", self._node, batch, minute, now)
        return known

    def minute(self) -> Minute:
        """Nothing: what was before a restart is counted as if elsewhere."""
        return {}

    def totals(self) -> Totals:
        """All that each name has taken."""
        totals: Totals = self._ask("totals")
        return totals

    def close(self) -> None:
        """Nothing: the owner ends itself."""


class ActorLink:
    """Calls the owner of a file, an actor, which is started where there is none."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._owner: Any = None

    def __call__(self, method: str, *arguments: Any) -> Any:
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
        owner: Any = ray.remote(Counters)
        return owner.options(name=name, num_cpus=0, max_restarts=-1, **options).remote(self._path, name)
