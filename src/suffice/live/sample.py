"""From messages to an outcome, asking just enough times: `sample` for an answer, `parse` for an object."""

import asyncio
import contextvars
import json
import re
import time
import warnings
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from itertools import count, islice
from typing import Any, TypeVar

import numpy as np
from pydantic import TypeAdapter
from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError

from suffice.answers import Structure
from suffice.errors import OptionError
from suffice.live.draws import Draws, Failure
from suffice.live.outcome import Outcome, Watch
from suffice.live.sampling import Sampling, split_settings, takes_sampling
from suffice.live.servers.clients import async_client, dialect_of, is_async, several
from suffice.live.vote import Vote
from suffice.response import Response
from suffice.schemas import Schema
from suffice.tally import Tally

Ask = Callable[[int], Awaitable[Response]]  # by the number of a draw
T = TypeVar("T")


@takes_sampling
async def asample(
    client: Any,
    messages: Iterable[Mapping[str, Any]],
    *,
    model: str,
    api: str | None = None,
    watch: Watch | None = None,
    sampling: Sampling | None = None,
    **settings: Any,
) -> Outcome:
    r"""Ask a model just enough times.

    Args:
        client: An `openai.AsyncOpenAI` or an `anthropic.AsyncAnthropic`. Where a list of them is given, the question
            goes to one of their servers, and on to another if that one dies.
        messages: The conversation, as the client takes it.
        model: The model's name.
        api: `"responses"` lets an OpenAI client ask for Responses instead of chat completions.
        watch: Is called with a `Moment` after each arrival and each decision, and at the end, also of a vote that was
            cancelled, with its `outcome`.
        sampling: How to ask. Its fields can be given by name instead, or besides, and count more then: `controller`
            (who decides when it is enough), `budget` (the most draws), `answer` (how it is found in a response),
            `ignore`, `compare` and `compose` (for fields of JSON), `elect` and `signals` (votes that weigh), `right`
            and `risk` (whether to act on the answer), `flow` (no waiting between rounds), `deadline_seconds`,
            `patience`, `concurrency`, `retries`, `timeout_seconds`.
        settings: These, by name; all else goes into every request, as `temperature` does.

    Returns:
        The outcome: the answer, the response that stands for it, the votes, and what it took.

    Raises:
        OptionError: where an argument is wrong; ControllerError, where the controller is.
        SampleError: where all draws of a round failed; it has the outcome of those before.

    >>> import openai
    >>> from suffice.testing import FakeServer
    >>> async def main(base_url):
    ...     async with openai.AsyncOpenAI(base_url=base_url, api_key="none") as client:
    ...         return await asample(client, [{"role": "user", "content": "What is 6 * 7?"}], model="fake")
    >>> with FakeServer(lambda request, number: r"\boxed{42}") as server:
    ...     asyncio.run(main(server.base_url)).answer
    '42'
    """
    clients = several(client)
    dialect = dialect_of(clients, api)
    sampling, request = split_settings(sampling, settings)
    if dialect.name == "messages" and "max_tokens" not in request:
        raise OptionError("must be given: Messages asks for it", "max_tokens")
    if sampling.voting.wants_signals and not dialect.tells_signals:
        which = "signals" if sampling.signals else "elect" if sampling.voting.election else "right"
        raise OptionError("can't be had: Messages tells no log probabilities", which)
    if request.get("temperature") == 0:
        warnings.warn("temperature 0: all samples will agree, and voting on them is a waste", stacklevel=2)
    # A mixture of plans must choose the same one again where a seed is given; servers take negative ones too.
    random = np.random.default_rng(None if request.get("seed") is None else abs(request["seed"]))
    form = request.pop("response_format", None)
    fields = {**request, "model": model, **dialect.fields(list(messages), form)}
    vote = sampling.voting.begin(sampling.server(clients, dialect), fields, random, watch)
    return await vote.outcome(sampling.deadline_seconds)


@takes_sampling
def sample(
    client: Any,
    messages: Iterable[Mapping[str, Any]],
    *,
    model: str,
    api: str | None = None,
    watch: Watch | None = None,
    sampling: Sampling | None = None,
    **settings: Any,
) -> Outcome:
    r"""Ask a model just enough times, with an `openai.OpenAI` or an `anthropic.Anthropic`, or a list of them.

    The arguments, the outcome and the errors are those of `asample`. `watch` is called in another thread.

    >>> import openai
    >>> from suffice.testing import FakeServer
    >>> with FakeServer(lambda request, number: r"\boxed{42}") as server:
    ...     with openai.OpenAI(base_url=server.base_url, api_key="none") as client:
    ...         sample(client, [{"role": "user", "content": "What is 6 * 7?"}], model="fake", budget=16).answer
    '42'
    """
    own = {"model": model, "api": api, "watch": watch, "sampling": sampling, **settings}
    return with_async_client(client, lambda other: asample(other, messages, **own))


@takes_sampling
async def aparse(
    client: Any, messages: Iterable[Mapping[str, Any]], *, model: str, response_format: Any, **settings: Any
) -> Outcome:
    """Ask for an object just enough times.

    Args:
        client: The client, or clients, as for `asample`.
        messages: The conversation.
        model: The model's name.
        response_format: A Pydantic model or a JSON schema; a response that does not fit it is a draw without an answer.
        settings: What else `asample` takes, but for `answer`, which the object is. By JSON pointer, `ignore` leaves
            fields out of the vote (`["/note"]`), and `compare` compares them loosely (`{"/city": "loose"}`). With
            `compose`, where no object that was drawn has all the elected fields, one is put together.

    Returns:
        The outcome: `parsed` is the object that was drawn with most of the elected fields, and `fields` tells how sure
        each leaf is.

    Raises:
        OptionError: where an argument is wrong; ControllerError, where the controller is.
        SampleError: where all draws of a round failed; it has the outcome of those before.

    >>> import asyncio, openai
    >>> from suffice.testing import FakeServer
    >>> async def main(base_url):
    ...     async with openai.AsyncOpenAI(base_url=base_url, api_key="none") as client:
    ...         messages = [{"role": "user", "content": "Who wrote Emma, and when?"}]
    ...         return await aparse(client, messages, model="fake", response_format={"type": "object"})
    >>> with FakeServer(lambda request, number: '{"author": "Austen", "year": 1815}') as server:
    ...     asyncio.run(main(server.base_url)).parsed
    {'author': 'Austen', 'year': 1815}
    """
    if "answer" in settings:
        raise OptionError("can't be given here: the object is the answer", "answer")
    adapter, schema = None, response_format
    if not isinstance(response_format, Mapping):
        try:
            adapter = TypeAdapter(response_format)
            schema = adapter.json_schema()
        except (PydanticUserError, PydanticUndefinedAnnotation):
            raise OptionError("must be a Pydantic model or a JSON schema", "response_format") from None

    def as_model(value: Any) -> Any:
        return adapter.validate_json(json.dumps(value)) if adapter else value

    def fits(value: Any) -> bool:
        try:
            as_model(value)
        except ValueError:
            return False
        return True

    structure = Structure(allows=fits if adapter else Schema(schema).allows)
    form = json_schema_format(schema, getattr(response_format, "__name__", ""))
    outcome = await asample(client, messages, model=model, answer=structure, response_format=form, **settings)
    return outcome if outcome.composed is None else replace(outcome, parsed=as_model(outcome.value))


@takes_sampling
def parse(
    client: Any, messages: Iterable[Mapping[str, Any]], *, model: str, response_format: Any, **settings: Any
) -> Outcome:
    """Ask for an object just enough times, with a synchronous client; all else is as with `aparse`.

    >>> import openai
    >>> from suffice.testing import FakeServer
    >>> with FakeServer(lambda request, number: '{"author": "Austen", "year": 1815}') as server:
    ...     with openai.OpenAI(base_url=server.base_url, api_key="none") as client:
    ...         messages = [{"role": "user", "content": "Who wrote Emma, and when?"}]
    ...         outcome = parse(client, messages, model="fake", response_format={"type": "object"})
    >>> outcome.parsed["year"], outcome.fields["/year"].votes, outcome.composed
    (1815, 4, False)
    """
    return with_async_client(
        client, lambda other: aparse(other, messages, model=model, response_format=response_format, **settings)
    )


async def vote_on(ask: Ask, question: str, sampling: Sampling) -> Outcome:
    """Vote on what a coroutine function says to a question; it retries by itself, and has no log probabilities."""
    if sampling.voting.wants_signals:
        raise OptionError("can't be had: the model tells no log probabilities", "signals")
    extractor = sampling.extractor.for_request([{"role": "user", "content": question}])
    voting = replace(sampling.voting, extractor=extractor)
    vote = Vote(voting, CalledDraws(ask, sampling.concurrency), np.random.default_rng())
    return await vote.outcome(sampling.deadline_seconds)


class CalledDraws(Draws):
    """Draws that are calls, so many at once; one that raises is a failure."""

    def __init__(self, ask: Ask, concurrency: int) -> None:
        super().__init__()
        self._ask = ask
        self._concurrency = concurrency
        self._slots = asyncio.Semaphore(concurrency)
        self._numbers = count()

    @property
    def room(self) -> int:
        return self._concurrency - self.in_flight

    def launch(self, draws: int, tally: Tally, *, single: bool = True, streamed: bool = False) -> list[int]:
        numbers = list(islice(self._numbers, draws))
        for number in numbers:
            self._begin(1, self._draw, number)
        return numbers

    async def _draw(self, number: int) -> None:
        async with self._slots:
            begun = time.monotonic()
            try:
                response = await self._ask(number)
            except Exception as error:  # whatever a model of somebody else's raises
                self._arrived.put_nowait(Failure(str(error) or type(error).__name__, number, error))
            else:
                self._arrived.put_nowait(replace(response, draw=number, seconds=time.monotonic() - begun))


def with_async_client(client: Any, ask: Callable[[Any], Awaitable[Outcome]]) -> Outcome:
    """Ask with the asynchronous twin of a synchronous client, or of several, in a thread of its own."""
    clients = several(client)
    for one in clients:
        if is_async(one):
            raise OptionError(
                f"an {type(one).__name__} is awaited: use asample or aparse, or give a client that is not async"
            )

    async def run() -> Outcome:
        others = [async_client(one) for one in clients]
        try:
            return await ask(others)
        finally:
            for other in others:
                if other not in clients:
                    await other.close()

    return run_in_thread(run)


def run_in_thread(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine function to its end, in a thread of its own: the caller may have an event loop running.

    Ctrl-C cancels it, and is raised again once it has ended.
    """
    started: Future[Any] = Future()

    async def supervised() -> T:
        started.set_result(asyncio.current_task())
        return await main()

    with ThreadPoolExecutor(1, "suffice") as pool:  # its end waits for the thread
        # What is current for the caller, as the span of a trace, is so in there.
        result = pool.submit(contextvars.copy_context().run, asyncio.run, supervised())
        try:
            return result.result()
        except KeyboardInterrupt:
            task = started.result()
            task.get_loop().call_soon_threadsafe(task.cancel)
            raise


def json_schema_format(schema: Mapping[str, Any], name: str = "") -> dict[str, Any]:
    """A request's `response_format` that asks for an object of this schema, under a name that servers take."""
    named = re.sub(r"[^A-Za-z0-9_-]+", "_", name or str(schema.get("title") or "object"))[:64]
    return {"type": "json_schema", "json_schema": {"name": named, "schema": schema}}
