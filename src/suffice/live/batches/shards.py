"""Questions on a Ray cluster: actors ask them, and what arrives goes into the one journal."""

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
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


class RayShards:
    """Actors on a Ray cluster for the questions of one batch, as shards of it."""

    def __init__(
        self, address: str, clients: Sequence[dict[str, Any]], weights: Sequence[float], config: BatchConfig
    ) -> None:
        concurrency = config.sampling.concurrency
        if concurrency < len(clients):
            raise OptionError(f"must be {len(clients)} or more, one for each server", "concurrency")
        self._ray = connect(address)
        cores = int(self._ray.cluster_resources().get("CPU", 1))
        each = max(1, min(cores, concurrency) // len(clients))
        share, more = divmod(concurrency, each * len(clients))
        sent = self._ray.put(config)
        self.shards: list[RayShard] = []
        for number in range(each * len(clients)):
            own, limit = number // each, share + (number < more)
            others = [place for place in range(len(clients)) if place != own]
            # The others are asked only where its own server is dead, which weighs more than all of them.
            shares = [math.inf, *(weights[place] for place in others)]
            asked = [clients[own], *(clients[place] for place in others)]
            self.shards.append(RayShard(self._ray, weights[own], limit, sent, asked, shares))

    @property
    def standing(self) -> str:
        return f"{len(self.shards)} actors, {sum(len(shard.open) for shard in self.shards)} questions in flight"

    async def close(self) -> None:
        for shard in self.shards:
            await shard.close()


class RayShard:
    """A shard as the driver sees it: an actor and its questions; where it dies, another takes its place.

    To take what the actor tells says that what was taken before is in the ledger.
    """

    def __init__(self, ray: Any, weight: float, limit: int, *settings: Any) -> None:
        self.at_once = limit
        self.weight = weight
        self.open: dict[str, tuple[Asked, Ledger]] = {}
        """The questions that the actor has, and where their responses go."""
        self._ray = ray
        # No core is kept for it: it waits nearly all of its time. Each question is a call that goes on.
        self._kind = ray.remote(num_cpus=0, scheduling_strategy="SPREAD", max_concurrency=limit + 2)(Actor)
        self._settings = limit, *settings
        self._actor: Any = None
        self._listener: asyncio.Task[None] | None = None
        self._losses = 0

    async def collect(self, question: Asked, missing: Sequence[int], ledger: Ledger) -> None:
        await self._ask("collect", question, missing, ledger)

    async def answer(
        self, question: Asked, there: Sequence[Response], ledger: Ledger, learned: Voting | None = None
    ) -> Answered | None:
        if ledger.exhausted and not there:
            return None
        return await self._ask("answer", question, there, ledger, learned)

    async def close(self) -> None:
        if self._listener:
            self._listener.cancel()
            await asyncio.wait([self._listener])
            self._ray.kill(self._actor)

    async def _ask(
        self, method: str, question: Asked, there: Sequence[Any], ledger: Ledger, *more: Any
    ) -> Answered | None:
        if self._listener is None or self._listener.done():
            self._actor = self._kind.remote(*self._settings)
            self._listener = asyncio.create_task(self._listen(self._actor))
        listener = self._listener
        self.open[question.id] = question, ledger
        try:
            asked = asyncio.wrap_future(self._actor.ask.remote(method, question, there, *more).future())
            await asyncio.wait([asked, listener], return_when=asyncio.FIRST_COMPLETED)
            if asked.done():
                answered: Answered | None = asked.result()
                return answered
        except self._ray.exceptions.RayActorError:
            pass
        except self._ray.exceptions.RayTaskError as error:
            raise error.cause from None
        finally:
            del self.open[question.id]
        await listener
        raise LostError

    async def _listen(self, actor: Any) -> None:
        """Take what an actor tells until it dies."""
        while True:
            try:
                told = await asyncio.wrap_future(actor.take.remote().future())
            except self._ray.exceptions.RayActorError:
                self._losses += 1
                if self._losses > LOSSES:
                    message = "one actor after the other died: is there enough memory on the nodes?"
                    raise SufficeError(message) from None
                return
            self._losses = 0
            # In order, and together: the journal writes what comes together at once.
            await asyncio.gather(*(self._hear(actor, *one) for one in told))

    async def _hear(self, actor: Any, method: str, identity: str, *content: Any) -> None:
        if identity in self.open:  # else whoever asked has gone
            question, ledger = self.open[identity]
            await getattr(ledger, method)(question, *content)
            if ledger.exhausted:
                actor.cap.remote()


@dataclass
class Told:
    """Calls of the ledger that an actor asks for, which are taken and kept together."""

    calls: list[tuple[Any, ...]] = field(default_factory=list)
    kept: asyncio.Event = field(default_factory=asyncio.Event)


class Actor:
    """Asks the questions of a shard, on some node; as their ledger it tells what arrives to the driver."""

    def __init__(
        self, limit: int, config: BatchConfig, clients: Sequence[dict[str, Any]], weights: Sequence[float]
    ) -> None:
        self.exhausted = False
        self._limit = limit
        self._config = config
        self._clients = clients
        self._weights = weights
        self._asker: Asker | None = None
        self._told, self._taken = Told(), Told()
        self._news = asyncio.Event()

    async def ask(self, method: str, question: Asked, there: Sequence[Any], *more: Any) -> Answered | None:
        """Collect responses to a question, or answer it."""
        if self._asker is None:
            import openai

            clients = [openai.AsyncOpenAI(**settings) for settings in self._clients]
            limiter = _Patient(self._limit, self._has_room)
            server = self._config.sampling.server(clients, weights=self._weights, limiter=limiter)
            self._asker = Asker(server, self._config)
        answered: Answered | None = await getattr(self._asker, method)(question, there, self, *more)
        # After a deadline nobody waited for what was told last: it is kept before the answer is.
        await (self._told if self._told.calls else self._taken).kept.wait()
        return answered

    async def take(self) -> list[tuple[Any, ...]]:
        """Wait for something to tell, and return it; what was taken before is kept by now."""
        self._taken.kept.set()
        await self._news.wait()
        self._news.clear()
        self._taken, self._told = self._told, Told()
        return self._taken.calls

    async def cap(self) -> None:
        """Start nothing more: a limit on spending is reached."""
        self.exhausted = True

    async def record(self, question: Asked, entry: Line) -> None:
        await self._tell("record", question.id, entry)

    async def fail(self, question: Asked, message: str, unreachable: bool) -> None:
        await self._tell("fail", question.id, message, unreachable)

    async def _tell(self, *call: Any) -> None:
        told = self._told
        told.calls.append(call)
        self._news.set()
        await told.kept.wait()

    async def _has_room(self) -> None:
        """Limit the calls that are not kept: at most so many are lost when a node dies."""
        while unkept := [told for told in (self._taken, self._told) if not told.kept.is_set()]:
            if sum(len(told.calls) for told in unkept) < self._limit:
                return
            await unkept[0].kept.wait()


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
