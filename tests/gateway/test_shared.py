"""Limits that hold for the machine: over gateways that share counters, and over the workers of one."""

import asyncio
import os
import subprocess
import sys
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from helpers.gateways import ASK, gateway
from helpers.live import boxed

from suffice.gateway.operations.shared import COUNTERS, DRAWS, REQUESTS, SharedCounters, SharedLimiter, share
from suffice.testing import FakeServer, Reply, completion

pytestmark = [pytest.mark.usefixtures("quick"), pytest.mark.skipif(os.name == "nt", reason="there is no such lock")]


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that gateways of this test share."""
    monkeypatch.setenv(COUNTERS, "")
    share(tmp_path)
    return tmp_path / "counters"


def slow(request: dict[str, Any], number: int) -> Reply:
    return Reply(completion([boxed(42)] * request.get("n", 1)), delay=0.15)


def all_at_once(urls: list[str], requests: int, headers: dict[str, str] | None = None) -> Counter[int]:
    """The statuses of so many requests, which go to all in turn."""

    async def main() -> Counter[int]:
        async with httpx.AsyncClient(timeout=60, headers=headers, trust_env=False) as client:
            asked = [
                client.post(f"{urls[number % len(urls)]}/v1/chat/completions", json=ASK) for number in range(requests)
            ]
            return Counter(reply.status_code for reply in await asyncio.gather(*asked))

    return asyncio.run(main())


@pytest.mark.parametrize(
    ("limits", "most", "statuses"),
    [
        ({"max_requests": 3}, 3, {200: 12}),
        ({"max_requests": 3, "max_queue": 2}, 3, {200: 5, 429: 7}),
        ({"max_draws": 4, "controller": "sc:draws=2"}, 4, {200: 12}),
    ],
    ids=["max_requests", "max_queue", "max_draws"],
)
def test_limits_hold_over_all_workers(
    shared: Path, limits: dict[str, Any], most: int, statuses: dict[int, int]
) -> None:
    settings = {"controller": "sc:draws=1", **limits}
    with FakeServer(slow) as upstream, ExitStack() as running:
        urls = [running.enter_context(gateway(upstream, **settings)) for _ in range(2)]
        assert all_at_once(urls, 12) == statuses
        assert upstream.most_in_flight == most


def test_what_a_dead_worker_held_is_forgotten(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    living = SharedCounters(shared)
    with subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE, text=True) as worker:
        with monkeypatch.context() as patch:
            patch.setattr(os, "getpid", lambda: worker.pid)
            dead = SharedCounters(shared)
        assert dead.take(REQUESTS, 5, 5)
        assert not living.take(REQUESTS, 1, 5)
        worker.communicate("die\n")
    assert living.take(REQUESTS, 5, 5) and living.total(REQUESTS) == 5
    dead.close()
    other = SharedCounters(shared)
    assert not other.take(REQUESTS, 1, 5)
    living.close()
    assert other.take(REQUESTS, 5, 5)
    other.close()


def test_a_limiter_that_is_shared_lets_go_of_what_is_cancelled(shared: Path) -> None:
    async def main() -> None:
        mine = SharedCounters(shared)
        limiter = SharedLimiter(3, mine, 0)
        async with limiter.hold(100):
            assert mine.total(DRAWS) == 3
            waiting = asyncio.create_task(limiter.hold(1).__aenter__())
            await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.wait({waiting})
        assert mine.total(DRAWS) == 0
        async with limiter.hold(2), limiter.hold(1):
            assert mine.total(DRAWS) == 3
        mine.close()

    asyncio.run(main())
