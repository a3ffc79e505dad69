"""Questions on a Ray cluster: actors ask them, each those of one server, and stream what arrives to the one journal."""

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from suffice.errors import OptionError, SufficeError
from suffice.executors.ray import connect
from suffice.live.batches.asker import Answered, Asker, BatchConfig, Ledger, Line, LostError
from suffice.live.batches.questions import Asked
from suffice.live.servers.gate import Limiter
from suffice.live.vote import Voting
from suffice.response import Response

LOSSES = 5
"""So many actors in a row may die in a shard with nothing told before all is given up."""


@dataclass(frozen=True)
class Site:
    """Where the questions of a shard are asked: settings of clients, its own server first, and how many at once."""

    clients: Sequence[dict[str, Any]]
    weights: Sequence[float]
    limit: int


class RayShards:
    """Actors on a Ray cluster for the questions of one batch, as shards of it."""

    def __init__(
        self, address: str, clients: Sequence[dict[str, Any]], weights: Sequence[float], config: BatchConfig
    ) -> None:
        concurrency = config.sampling.concurrency
        if concurrency < len(clients):
            raise OptionError(f"must be {len(clients)} or more, one for each server", "concurrency")
        self._ray = connect(address)
        weights = weights or [1.0] * len(clients)
        cores = int(self._ray.cluster_resources().get("CPU", 1))
        each = max(1, min(cores, concurrency) // len(clients))
        limits = [concurrency // (each * len(clients))] * each * len(clients)
        for place in range(concurrency - sum(limits)):
            limits[place] += 1
        sent = self._ray.put(config)
        self.shards = [
            RayShard(self._ray, sent, _site(clients, weights, number // each, limit), weights[number // each])
            for number, limit in enumerate(limits)
        ]

    @property
    def standing(self) -> str:
        """The actors, and the questions in flight."""
        return f"{len(self.shards)} actors, {sum(shard.in_flight for shard in self.shards)} questions in flight"

    async def close(self) -> None:
        """End all actors, and what they have in flight."""
        for shard in self.shards:
            await shard.close()


def _site(clients: Sequence[dict[str, Any]], weights: Sequence[float], own: int, limit: int) -> Site:
    """The others are asked only where a shard's own server is dead: it weighs more than all of them."""
    order = [own, *(place for place in range(len(clients)) if place != own)]
    return Site([clients[one] for one in order], [math.inf, *(weights[one] for one in order[1:])], limit)


class RayShard:
    """One shard as the driver sees it: an actor, and the questions that it has; where it dies, another takes its place.

    What the actor tells is in the ledger before the actor goes on: taking more says that what came before is kept.
    """

    def __init__(self, ray: Any, config: Any, site: Site, weight: float) -> None:
        self.at_once = site.limit
        self.weight = weight
        self._ray = ray
        # No core is kept for it: it waits for a server nearly all of its time.
        self._kind = ray.remote(num_cpus=0, scheduling_strategy="SPREAD")(Actor)
        self._arguments = config, site
        self._actor: Any = None
        self._open: dict[str, tuple[Asked, Ledger, asyncio.Future[Answered | None]]] = {}
        self._listener: asyncio.Task[None] | None = None
        self._losses = 0
        self._capped = False

    @property
    def in_flight(self) -> int:
        """How many questions it has."""
        return len(self._open)

    async def collect(self, question: Asked, missing: Sequence[int], ledger: Ledger) -> None:
        """Bring in the draws of these numbers."""
        await self._ask(question, ledger, "collect", missing)

    async def answer(
        self, question: Asked, there: Sequence[Response], ledger: Ledger, learned: Voting | None = None
    ) -> Answered | None:
        """Answer a question of which these responses are there already; None where a limit on spending cut it short."""
        if ledger.exhausted and not there:
            return None
        return await self._ask(question, ledger, "answer", there, learned)

    async def close(self) -> None:
        """End the actor, and what it has in flight."""
        if self._listener:
            self._listener.cancel()
            await asyncio.wait([self._listener])
        if self._actor is not None:
            self._ray.kill(self._actor)

    async def _ask(
        self, question: Asked, ledger: Ledger, method: str, there: Sequence[Any], *more: Any
    ) -> Answered | None:
        if self._actor is None:
            self._actor = self._kind.remote(*self._arguments)
            self._capped = False
        answered: asyncio.Future[Answered | None] = asyncio.get_running_loop().create_future()
        self._open[question.id] = question, ledger, answered
        self._actor.begin.remote(method, question, there, *more)
        if self._listener is None or self._listener.done():
            self._listener = asyncio.create_task(self._listen())
        try:
            return await answered
        finally:
            self._open.pop(question.id, None)

    async def _listen(self) -> None:
        """Take what the actor tells, as long as it has a question."""
        while self._open:
            try:
                told = await asyncio.wrap_future(self._actor.take.remote().future())
            except self._ray.exceptions.RayActorError:
                self._lose()
                return
            self._losses = 0
            # In order, and together: the journal writes what comes together at once.
            await asyncio.gather(*(self._hear(*one) for one in told))

    async def _hear(self, identity: str, kind: str, content: Any) -> None:
        if identity not in self._open:  # whoever asked has gone
            return
        question, ledger, answered = self._open[identity]
        try:
            if kind == "response":
                await ledger.record(question, content)
                if ledger.exhausted and not self._capped:
                    self._capped = True
                    self._actor.cap.remote()
            elif kind == "failure":
                ledger.fail(question, *content)
            elif kind == "error":
                raise content
            elif not answered.done():
                answered.set_result(content)
        except Exception as error:
            if not answered.done():
                answered.set_exception(error)

    def _lose(self) -> None:
        """Give the questions of an actor that died back, to be asked again from what the journal has."""
        self._actor = None
        self._losses += 1
        error: Exception = LostError()
        if self._losses > LOSSES:
            error = SufficeError("one actor after the other died: is there enough memory on the nodes?")
        for _, _, answered in self._open.values():
            if not answered.done():
                answered.set_exception(error)


class Actor:
    """Asks the questions of a shard, on some node, and is their ledger; what it has to tell waits until it is taken."""

    def __init__(self, config: BatchConfig, site: Site) -> None:
        self.exhausted = False
        self._config = config
        self._site = site
        self._asker: Asker | None = None
        self._told: list[tuple[str, str, Any]] = []
        self._kept: list[asyncio.Future[None]] = []
        self._taken: list[asyncio.Future[None]] = []
        self._news, self._room = asyncio.Event(), asyncio.Condition()
        self._tasks: set[asyncio.Task[None]] = set()

    async def begin(self, method: str, question: Asked, there: Sequence[Any], *more: Any) -> None:
        """Ask a question."""
        task = asyncio.create_task(self._work(method, question, there, *more))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def take(self) -> list[tuple[str, str, Any]]:
        """What there is to tell, once there is anything; what was taken before is kept by now."""
        for kept in self._taken:
            if not kept.done():
                kept.set_result(None)
        self._taken = []
        async with self._room:
            self._room.notify_all()
        await self._news.wait()
        self._news.clear()
        told, self._told = self._told, []
        self._taken, self._kept = self._kept, []
        return told

    async def cap(self) -> None:
        """Start nothing more: a limit on spending is reached."""
        self.exhausted = True

    async def record(self, question: Asked, entry: Line) -> None:
        """Have a response taken; when this returns, it is kept."""
        await self._tell(question, "response", entry)

    def fail(self, question: Asked, message: str, unreachable: bool) -> None:
        """Have a failure taken."""
        self._tell(question, "failure", (message, unreachable))

    async def _work(self, method: str, question: Asked, there: Sequence[Any], *more: Any) -> None:
        try:
            answered = await getattr(self._at_server(), method)(question, there, self, *more)
        except Exception as error:
            self._tell(question, "error", error if isinstance(error, SufficeError) else SufficeError(repr(error)))
        else:
            self._tell(question, "answered", answered)

    def _at_server(self) -> Asker:
        if self._asker is None:
            import openai

            clients = [openai.AsyncOpenAI(**settings) for settings in self._site.clients]
            limiter = _Patient(self._site.limit, self._has_room)
            server = self._config.sampling.server(clients, weights=self._site.weights, limiter=limiter)
            self._asker = Asker(server, self._config)
        return self._asker

    async def _has_room(self) -> None:
        """Wait until no more is told and not yet kept than may be in flight: so much is lost at most with a node."""
        async with self._room:
            await self._room.wait_for(lambda: len(self._kept) + len(self._taken) < self._site.limit)

    def _tell(self, question: Asked, kind: str, content: Any) -> "asyncio.Future[None]":
        """Have something taken; what is returned is done when it is kept."""
        kept: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._told.append((question.id, kind, content))
        self._kept.append(kept)
        self._news.set()
        return kept


class _Patient(Limiter):
    """A limit whose draws wait for something more before they start."""

    def __init__(self, limit: int, ready: Callable[[], Awaitable[None]]) -> None:
        super().__init__(limit)
        self._ready = ready

    @asynccontextmanager
    async def hold(self, draws: int) -> AsyncIterator[None]:
        async with super().hold(draws):
            await self._ready()
            yield
