"""`sample` and `asample`: from messages to an outcome, asking just enough times."""

import asyncio
import contextvars
import threading
import warnings
from collections.abc import Awaitable, Callable, Iterable, Mapping
from concurrent.futures import Future
from typing import Any

import numpy as np

from suffice.answers import Extractor, Read, get_extractor
from suffice.controllers import Controller, get_controller
from suffice.elections import Election
from suffice.errors import OptionError
from suffice.flow import Flow
from suffice.live.clients import dialect_of, is_async, server_of, several, twin
from suffice.live.limiter import Limiter
from suffice.live.outcome import Outcome
from suffice.live.server import RETRIES, TIMEOUT
from suffice.live.vote import Voting, Watch, election_of
from suffice.tally import DEFAULT_BUDGET

CONCURRENCY = 64

_NOT_IN_REQUESTS = {
    "n": "can't be set here: the controller chooses it",
    "stream": "can't be set here: whole responses are voted on",
    **dict.fromkeys(("mode", "order", "extra"), "is given as flow=suffice.Flow(order, extra)"),
}


async def asample(
    client: Any,
    messages: Iterable[Mapping[str, Any]],
    *,
    model: str,
    controller: str | Controller = "plan",
    budget: int = DEFAULT_BUDGET,
    answer: str | Extractor | Read = "auto",
    deadline_seconds: float | None = None,
    concurrency: int = CONCURRENCY,
    retries: int = RETRIES,
    timeout: float = TIMEOUT,
    watch: Watch | None = None,
    flow: Flow | None = None,
    api: str | None = None,
    signals: bool = False,
    elect: str | Election = "majority",
    **request: Any,
) -> Outcome:
    r"""Ask a model just enough times, with an `openai.AsyncOpenAI` or an `anthropic.AsyncAnthropic`.

    What else is given goes into every request. Where a list of clients is given, the question goes to one of their
    servers, and on to another if that one dies. With a `flow` there is no waiting between rounds: see docs/flow.md.
    With `api="responses"` an OpenAI client asks for Responses instead of chat completions. With `signals` each response
    comes with what its log probabilities tell, and `elect` lets votes weigh by that: see docs/live.md.

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
    check_request(request)
    if dialect.name == "messages" and "max_tokens" not in request:
        raise OptionError("must be given: Messages asks for it", "max_tokens")
    extractor = get_extractor(answer)
    election = election_of(elect, extractor)
    voting = Voting(get_controller(controller), extractor, budget, flow, signals=signals, election=election)
    if voting.wants_signals and not dialect.tells_signals:
        raise OptionError("can't be had: Messages tells no log probabilities", "signals" if signals else "elect")
    if request.get("temperature") == 0:
        warnings.warn("temperature 0: all samples will agree, and voting on them is a waste", stacklevel=2)
    # A mixture of plans must choose the same one again where a seed is given; servers take negative ones too.
    random = np.random.default_rng(None if request.get("seed") is None else abs(request["seed"]))
    form = request.pop("response_format", None)
    fields = {**request, "model": model, **dialect.asking(list(messages), form)}
    vote = voting.begin(server_of(clients, Limiter(concurrency), retries, timeout, dialect), fields, random, watch)
    return await vote.outcome(deadline_seconds)


def check_request(request: Mapping[str, Any]) -> None:
    """Refuse fields of a request that are not the caller's to set."""
    for name, reason in _NOT_IN_REQUESTS.items():
        if name in request:
            raise OptionError(reason, name)


def sample(
    client: Any,
    messages: Iterable[Mapping[str, Any]],
    *,
    model: str,
    controller: str | Controller = "plan",
    budget: int = DEFAULT_BUDGET,
    answer: str | Extractor | Read = "auto",
    deadline_seconds: float | None = None,
    concurrency: int = CONCURRENCY,
    retries: int = RETRIES,
    timeout: float = TIMEOUT,
    watch: Watch | None = None,
    flow: Flow | None = None,
    api: str | None = None,
    signals: bool = False,
    elect: str | Election = "majority",
    **request: Any,
) -> Outcome:
    r"""Ask a model just enough times, with an `openai.OpenAI` or an `anthropic.Anthropic`.

    It takes what `asample` takes.

    >>> import openai
    >>> from suffice.testing import FakeServer
    >>> with FakeServer(lambda request, number: r"\boxed{42}") as server:
    ...     with openai.OpenAI(base_url=server.base_url, api_key="none") as client:
    ...         sample(client, [{"role": "user", "content": "What is 6 * 7?"}], model="fake", budget=16).answer
    '42'
    """
    return with_twin(
        client,
        lambda other: asample(
            other,
            messages,
            model=model,
            controller=controller,
            budget=budget,
            answer=answer,
            deadline_seconds=deadline_seconds,
            concurrency=concurrency,
            retries=retries,
            timeout=timeout,
            watch=watch,
            flow=flow,
            api=api,
            signals=signals,
            elect=elect,
            **request,
        ),
    )


def with_twin(client: Any, ask: Callable[[Any], Awaitable[Outcome]]) -> Outcome:
    """Ask with the asynchronous twin of a synchronous client, or of several, in a thread of its own."""
    clients = several(client)
    for one in clients:
        if is_async(one):
            raise OptionError(
                f"an {type(one).__name__} is awaited: use asample or aparse, or give a client that is not async"
            )

    async def run() -> Outcome:
        others = [twin(one) for one in clients]
        try:
            return await ask(others)
        finally:
            for other in others:
                if other not in clients:
                    await other.close()

    outcome: Outcome = run_in_thread(run)
    return outcome


def run_in_thread(main: Any) -> Any:
    """Run a coroutine function to its end, in a thread of its own: the caller may have an event loop running.

    Ctrl-C cancels it and waits for what it leaves; the KeyboardInterrupt carries its outcome.
    """
    result: Future[Any] = Future()
    started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = Future()

    async def supervised() -> Any:
        task = asyncio.current_task()
        assert task  # noqa: S101
        started.set_result((asyncio.get_running_loop(), task))
        return await main()

    def work() -> None:
        try:
            result.set_result(asyncio.run(supervised()))
        except BaseException as error:
            result.set_exception(error)

    # What is current for the caller, as the span of a trace, is so in there.
    thread = threading.Thread(target=contextvars.copy_context().run, args=(work,), name="suffice", daemon=True)
    thread.start()
    try:
        return result.result()
    except KeyboardInterrupt as interrupt:
        loop, task = started.result()
        loop.call_soon_threadsafe(task.cancel)
        thread.join()
        interrupt.outcome = getattr(result.exception(), "outcome", None)  # type: ignore[attr-defined]
        raise
    finally:
        thread.join()
