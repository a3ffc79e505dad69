"""Asking a scripted server, and waiting for what will come to hold."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager, AsyncExitStack, nullcontext
from functools import wraps
from itertools import count, cycle, islice
from typing import Any, TypeVar

import openai
import pytest

import suffice
from suffice.live.servers import clients, gate, retry
from suffice.testing import FakeServer, Reply, Script, completion

KEY = "sk-secret-0123456789"
QUESTION = [{"role": "user", "content": "What is 6 * 7?"}]

WEIGHTED = "weighted:signal=logprob,strength=0.4"
"""An election that elects 42 where a model is `surely_42`."""

T = TypeVar("T")

Ask = Callable[..., suffice.Outcome]


def boxed(answer: object) -> str:
    return rf"So it is \boxed{{{answer}}}."


_spelling = count()


def said(answer: object, draws: int = 1, **options: Any) -> Reply:
    """So many choices, none of them the same to the letter."""
    texts = [rf"w{next(_spelling)} so \boxed{{{answer}}}" for _ in range(draws)]
    return Reply(completion(texts, tokens=40 * draws), **options)


def surely_42(text: str) -> float:
    """The log probability of each token of a model that is surer of 42 than of anything else."""
    return -0.1 if "42" in text else -3.0


def seven_then_42() -> Script:
    """Of every five votes three are for 7, and two for 42."""
    left = cycle(boxed(answer) for answer in (7, 42, 7, 42, 7))
    return lambda request, number: list(islice(left, request.get("n", 1)))


def until(holds: Callable[[], T], seconds: float = 60) -> T:
    """Wait until it holds, but no longer than that; what held, which is asked no more: it need not hold for long."""
    end = time.monotonic() + seconds
    while not (held := holds()) and time.monotonic() < end:
        time.sleep(0.01)
    return held


def serving(server: FakeServer | Script) -> AbstractContextManager[FakeServer]:
    """A server that runs, or one of its own for a script."""
    return nullcontext(server) if isinstance(server, FakeServer) else FakeServer(server)


def ask_sync(server: FakeServer | Script, *, call: Ask = suffice.sample, **options: Any) -> suffice.Outcome:
    with serving(server) as one, openai.OpenAI(base_url=one.base_url, api_key=KEY) as client:
        return call(client, QUESTION, model="fake", **options)


def ask_async(
    *servers: FakeServer | Script, call: Callable[..., Any] = suffice.asample, **options: Any
) -> suffice.Outcome:
    async def main() -> suffice.Outcome:
        async with AsyncExitStack() as stack:
            running = [stack.enter_context(serving(server)) for server in servers]
            made = [openai.AsyncOpenAI(base_url=server.base_url, api_key=KEY) for server in running]
            own = [await stack.enter_async_context(client) for client in made]
            outcome: suffice.Outcome = await call(own if len(own) > 1 else own[0], QUESTION, model="fake", **options)
            return outcome

    return asyncio.run(main())


def awaited(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Let a test be a coroutine function."""

    @wraps(test)
    def run(*arguments: Any, **options: Any) -> None:
        asyncio.run(test(*arguments, **options))

    return run


def be_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Back-off without the waiting, at any pace, and no memory of other servers."""
    monkeypatch.setattr(retry, "BACKOFF_SECONDS", 0.01)
    monkeypatch.setattr(gate, "SLOWEST", 100.0)
    monkeypatch.setattr(clients, "KNOWN", {})
