"""What happens to a request: facts, as they become known, and the log line that is built from them.

And what becomes of it, as a sequence of events: how its vote stands, again and again, and its end, which is what the
vote elected, what an upstream said, or a GatewayError.
"""

import asyncio
import math
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

from anyio import CancelScope
from starlette.requests import Request

from suffice.live import Outcome, Progress

T = TypeVar("T")


class Identified(NamedTuple):
    """The request came with the key of this name."""

    key: str


class AskedFor(NamedTuple):
    """The model and the number of responses that the client asks for."""

    model: str | None
    samples: int


class Routed(NamedTuple):
    """The request's route (vote, look or relay), and its topic."""

    route: str
    topic: str


class NotVoted(NamedTuple):
    """There is no vote, for this reason."""

    why: str


class DrawBegun(NamedTuple):
    """A single draw is under way."""

    progress: Callable[[], Progress]


class VoteBegun(NamedTuple):
    """A vote is under way."""

    controller: str
    budget: int
    progress: Callable[[], Progress]


class SentTo(NamedTuple):
    """An upstream was asked."""

    upstream: str


class Voted(NamedTuple):
    """A vote ended, or was interrupted."""

    outcome: Outcome
    question: Sequence[Mapping[str, Any]] | None
    """The messages, if texts are logged."""


class Counted(NamedTuple):
    """The tokens of a single reply."""

    prompt_tokens: int
    tokens: int
    estimated: bool


class Foretold(NamedTuple):
    """What `auto` would have done with a request in the shadow."""

    would_vote: bool
    evidence: str | None
    expected_samples: float
    expected_tokens: int


class NoReply(NamedTuple):
    """The request ended without its reply: cancelled, refused or in an error."""

    kind: str
    error: str | None = None


Fact = Identified | AskedFor | Routed | NotVoted | DrawBegun | VoteBegun | SentTo | Voted | Counted | Foretold
F = TypeVar("F", bound=Fact)


class Exchange:
    """A request under way, and the facts of it."""

    def __init__(self, request: Request, kind: str) -> None:
        self.request = request
        self._kind = kind
        self._begun = time.monotonic()
        self._facts: dict[type, Fact] = {}

    def add(self, fact: Fact) -> None:
        """Note a fact; it takes the place of an earlier one of its kind."""
        self._facts[type(fact)] = fact

    def last(self, kind: type[F]) -> F | None:
        return self._facts.get(kind)  # type: ignore[return-value]  # each is kept by its type

    @property
    def key(self) -> str | None:
        """The name of its key; None if no key is asked for."""
        identified = self.last(Identified)
        return identified.key if identified else None

    @property
    def progress(self) -> Progress | None:
        under_way = self.last(VoteBegun) or self.last(DrawBegun)
        return under_way.progress() if under_way else None

    def log(self, status: int | None = None, ended: NoReply | None = None) -> "RequestLog":
        """Build the log line; without a status while the request is under way."""
        voting = self.last(VoteBegun)
        return RequestLog(
            time=round(time.time(), 3),
            method=self.request.method,
            path=self.request.scope["path"][:200],
            status=status,
            seconds=round(time.monotonic() - self._begun, 4),
            kind=ended.kind if ended else "vote" if voting else self._kind,
            key=self.key,
            asked=self.last(AskedFor),
            sent=self.last(SentTo),
            routed=self.last(Routed),
            not_voted=self.last(NotVoted),
            voting=voting,
            voted=self.last(Voted),
            counted=self.last(Counted),
            foretold=self.last(Foretold),
            ended=ended,
        )


@dataclass(frozen=True)
class RequestLog:
    """One line of the access log."""

    time: float
    method: str
    path: str
    status: int | None
    seconds: float
    kind: str
    key: str | None
    asked: AskedFor | None
    sent: SentTo | None
    routed: Routed | None
    not_voted: NotVoted | None
    voting: VoteBegun | None
    voted: Voted | None
    counted: Counted | None
    foretold: Foretold | None
    ended: NoReply | None

    @property
    def is_of_a_model(self) -> bool:
        """Whether a model was asked; the gateway's own pages and figures are not."""
        is_own = self.path.startswith("/v1/suffice/")
        return self.method == "POST" and self.path.startswith(("/v1/", "/openai/")) and not is_own

    def to_json(self) -> dict[str, Any]:
        """Return the line as one flat object, without its `texts`."""
        plain = {"time": self.time, "method": self.method, "path": self.path, "status": self.status}
        line: dict[str, Any] = {**plain, "seconds": self.seconds, "kind": self.kind}
        if self.asked:
            line["model"] = self.asked.model and self.asked.model[:100]
        if self.key is not None:
            line["key"] = self.key
        if self.sent:
            line["upstream"] = self.sent.upstream
        if self.routed:
            line |= self.routed._asdict()
        if self.not_voted:
            line["no_vote"] = self.not_voted.why
        if self.voting:
            line |= {"controller": self.voting.controller, "budget": self.voting.budget}
        if counted := self.counted:
            if counted.prompt_tokens + counted.tokens:
                line["samples"] = self.asked.samples if self.asked else 1
            line |= {"prompt_tokens": counted.prompt_tokens, "tokens": counted.tokens}
            if counted.estimated:
                line["usage_estimated"] = True
        if self.voted:
            line |= _vote(self.voted.outcome)
        if self.foretold:
            line |= self.foretold._asdict()
        return line

    @property
    def texts(self) -> dict[str, Any]:
        """The question, the answer and the error."""
        told: dict[str, Any] = {}
        if self.voted and self.voted.question is not None:
            told = {"question": self.voted.question, "answer": self.voted.outcome.answer}
        if self.ended and self.ended.error is not None:
            told["error"] = self.ended.error
        return told


def _vote(outcome: Outcome) -> dict[str, Any]:
    over_one = {f"over_one_{name}": count for name, count in outcome.over_one._asdict().items()}
    return {
        "samples": outcome.samples,
        "rounds": outcome.rounds,
        "prompt_tokens": outcome.prompt_tokens,
        "tokens": outcome.tokens,
        **({"usage_estimated": True} if outcome.usage_estimated else {}),
        **over_one,
        "changed": outcome.changed and outcome.stop_reason != "cancelled",
        **outcome.savings(),
        "certainty": outcome.certainty,
        "same_as_full_vote": outcome.confidence,
        **outcome.assurance(),
        "stop_reason": outcome.stop_reason,
        "evidence": outcome.evidence,
        "failures": len(outcome.failures),
    }


@dataclass(frozen=True)
class Standing:
    """How a vote stands: a response arrived, or its controller decided."""

    facts: Mapping[str, Any]


@dataclass(frozen=True)
class Thought:
    """A piece of the model's reasoning, passed on as the upstream sent it."""

    piece: bytes
    events: int
    """The number of events in it."""


@dataclass(frozen=True)
class Elected:
    """The reply that a vote came to, and the headers that tell of it."""

    reply: dict[str, Any]
    told: Mapping[str, str]


@dataclass(frozen=True)
class Passed:
    """A reply that is passed back as the upstream sends it."""

    status: int
    headers: list[tuple[bytes, bytes]]
    pieces: AsyncGenerator[bytes, None]
    told: Mapping[str, str] = field(default_factory=dict)
    """Headers of ours."""


Event = Standing | Thought | Elected | Passed
Events = AsyncGenerator[Event, None]


class CutError(Exception):
    """A reply that has begun breaks off: the connection is closed, so that nobody takes it for whole.

    Its argument is the GatewayError that there is no place for.
    """


class Upcoming(Generic[T]):
    """Waits for the items of an async generator, for some time each, while the client is there."""

    def __init__(self, items: AsyncGenerator[T, None], request: Request | None = None) -> None:
        self.ended = False
        self._items = items
        self._next: asyncio.Task[T | None] | None = None
        self._leaving = asyncio.create_task(_left(request)) if request else None

    @property
    def left(self) -> bool:
        """Whether the client has hung up."""
        return self._leaving is not None and self._leaving.done()

    @property
    def _tasks(self) -> list[asyncio.Task[Any]]:
        return [task for task in (self._next, self._leaving) if task]

    async def next(self, seconds: float = math.inf) -> T | None:
        """Return the next item; None after the timeout, at the end, or when the client hangs up."""
        self._next = self._next or asyncio.ensure_future(anext(self._items, None))
        timeout = None if seconds == math.inf else max(0.0, seconds)
        await asyncio.wait(self._tasks, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        if not self._next.done():
            return None
        item, self._next = self._next.result(), None
        self.ended = item is None
        return item

    async def rest(self, begun: T) -> AsyncGenerator[T, None]:
        """Yield `begun` and the remaining items, without a task for each, then close."""
        try:
            yield begun
            if self._next and (item := await self.next()) is not None:
                yield item
            async for item in self._items:
                yield item
        finally:
            await self.close()

    def stay(self) -> None:
        """Stop watching the client: whoever sends the reply does."""
        if self._leaving:
            self._leaving.cancel()

    async def close(self) -> None:
        """Cancel what is under way, and close the generator."""
        await end(*self._tasks)
        with CancelScope(shield=True):
            await self._items.aclose()


async def _left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def end(*tasks: asyncio.Future[Any]) -> None:
    """Cancel tasks and wait for their end, which being cancelled meanwhile does not disturb."""
    for task in tasks:
        task.cancel()
    if ending := [task for task in tasks if not task.done()]:
        with CancelScope(shield=True):  # Starlette cancels again and again where a stream's client has left
            await asyncio.wait(ending)


async def until_done(queue: asyncio.Queue[T | None], task: asyncio.Task[Any]) -> AsyncGenerator[T, None]:
    """Yield the items of a queue until a task is done, and raise what it raised. Closing cancels it."""
    task.add_done_callback(lambda _: queue.put_nowait(None))
    try:
        while (item := await queue.get()) is not None:
            yield item
        await task
    finally:
        await end(task)
