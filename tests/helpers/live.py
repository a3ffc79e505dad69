"""Asking a scripted server, and waiting for what will come to hold."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import openai
import pytest

import suffice
from suffice.live import clients, gate
from suffice.testing import FakeServer

KEY = "sk-secret-0123456789"
QUESTION = [{"role": "user", "content": "What is 6 * 7?"}]

Ask = Callable[..., suffice.Outcome]


def boxed(answer: object) -> str:
    return rf"So it is \boxed{{{answer}}}."


def until(holds: Callable[[], bool], seconds: float = 60) -> bool:
    """Wait until it holds, but no longer than that; whether it does."""
    end = time.monotonic() + seconds
    while not holds() and time.monotonic() < end:
        time.sleep(0.01)
    return holds()


def ask_sync(server: FakeServer, **options: Any) -> suffice.Outcome:
    with openai.OpenAI(base_url=server.base_url, api_key=KEY) as client:
        return suffice.sample(client, QUESTION, model="fake", **options)


def ask_async(server: FakeServer, **options: Any) -> suffice.Outcome:
    async def main() -> suffice.Outcome:
        async with openai.AsyncOpenAI(base_url=server.base_url, api_key=KEY) as client:
            return await suffice.asample(client, QUESTION, model="fake", **options)

    return asyncio.run(main())


def be_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Back-off without the waiting, at any pace, and no memory of other servers."""
    monkeypatch.setattr(gate, "BACK_OFF", 0.01)
    monkeypatch.setattr(gate, "SLOWEST", 100.0)
    monkeypatch.setattr(clients, "KNOWN", {})
