"""A gateway on a free port, in front of a scripted server, and what is posted to it."""

import asyncio
import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection
from itertools import cycle
from typing import Any, NamedTuple

import httpx
import openai
import pytest
import uvicorn

from helpers.live import until
from suffice.gateway import Gateway, Settings
from suffice.testing import FakeServer, Script

MESSAGES: Any = [{"role": "user", "content": "What is 6 * 7?"}]
ASK: dict[str, Any] = {"model": "fake", "messages": MESSAGES}
BODIES: dict[str, dict[str, Any]] = {
    "chat/completions": ASK,
    "responses": {"model": "fake", "input": "What is 6 * 7?"},
    "messages": {**ASK, "max_tokens": 99},
}
"""The same request in each dialect, by its path."""


AT_FIRST_SIGHT: dict[str, Any] = {"vote": "auto", "controller": Settings().controller, "learn_share": 0.0}
"""The settings of a gateway as it is by default, before its traffic has taught it anything."""


def always(request: dict[str, Any], number: int) -> str:
    return r"So it is \boxed{42}."


_ports = cycle(range(10_000 + os.getpid() * 100 % 20_000, 32_000))


def free_port() -> int:
    """A port that stays free until it is listened on: not one of those that are handed out to whoever asks for any."""
    for port in _ports:
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("the ports are in a cycle")


def refuses(url: str) -> bool:
    """Whether nobody can connect."""
    with suppress(httpx.ConnectError):
        httpx.get(f"{url}/healthz", trust_env=False)
        return False
    return True


class Prompt(uvicorn.Server):
    """Ends when it is told to, where uvicorn looks ten times a second whether it was: tests start hundreds of them."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._told = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)

    async def main_loop(self) -> None:
        await self.on_tick(0)
        await self._told.wait()

    def end(self) -> None:
        self._loop.call_soon_threadsafe(self._told.set)


@contextmanager
def gateway(upstream: FakeServer | str | list[Any], **settings: Any) -> Iterator[str]:
    """The base URL of a gateway in a thread; it votes always, by the plan, with all patience, unless told otherwise."""
    settings = {"vote": "always", "controller": "plan", "patience": 0.0, **settings}
    url = upstream.base_url if isinstance(upstream, FakeServer) else upstream
    port = free_port()
    with running(Gateway(Settings(upstream=url, port=port, **settings)).app, port) as running_at:
        yield running_at


@contextmanager
def running(app: Any, port: int) -> Iterator[str]:
    """The base URL of an application that runs in a thread."""
    server = Prompt(uvicorn.Config(app, port=port, log_level="warning", access_log=False))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive(), "it ended before it began"
        time.sleep(0.005)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.end()
        thread.join(20)


def post(url: str, body: Any, path: str = "chat/completions", **options: Any) -> httpx.Response:
    content = {"content": body} if isinstance(body, bytes) else {"json": body}
    return httpx.post(f"{url}/v1/{path}", **content, timeout=60, trust_env=False, **options)


@contextmanager
def behind(script: Script, *, streams: bool = False, **settings: Any) -> Iterator[tuple[FakeServer, str]]:
    """A scripted server, and the URL of a gateway before it."""
    with FakeServer(script, streams=streams) as upstream, gateway(upstream, **settings) as url:
        yield upstream, url


@contextmanager
def official(script: Script, *, streams: bool = False, **settings: Any) -> Iterator[tuple[FakeServer, openai.OpenAI]]:
    """A scripted server, and OpenAI's client of a gateway before it."""
    with (
        behind(script, streams=streams, **settings) as (upstream, url),
        openai.OpenAI(base_url=f"{url}/v1", api_key="whatever", max_retries=0) as client,
    ):
        yield upstream, client


class Answered(NamedTuple):
    reply: httpx.Response
    upstream: FakeServer


def answered(
    script: Script,
    body: Any = ASK,
    path: str = "chat/completions",
    *,
    streams: bool = False,
    headers: dict[str, str] | None = None,
    **settings: Any,
) -> Answered:
    """The reply to one request, and the scripted server behind the gateway that it went to."""
    with behind(script, streams=streams, **settings) as (upstream, url):
        return Answered(post(url, body, path, headers=headers), upstream)


def logged(capture: pytest.CaptureFixture[str], **facts: object) -> list[dict[str, Any]]:
    """The lines of the access log since the last look, those with these facts."""
    lines = [json.loads(line) for line in capture.readouterr().out.splitlines() if line.startswith("{")]
    return [line for line in lines if facts.items() <= line.items()]


def figures(url: str) -> dict[str, float]:
    """What `/metrics` tells, by series."""
    lines = httpx.get(f"{url}/metrics", trust_env=False).text.splitlines()
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if line[:1] != "#")}


@contextmanager
def under_way(url: str, body: Any, upstream: FakeServer, headers: dict[str, str] | None = None) -> Iterator[None]:
    """A request that the upstream has begun on; its client hangs up at the end."""
    host, port = url.removeprefix("http://").split(":")
    client = HTTPConnection(host, int(port), timeout=60)
    try:
        sent = {"content-type": "application/json", **(headers or {})}
        client.request("POST", "/v1/chat/completions", json.dumps(body), sent)
        assert until(lambda: upstream.in_flight), "it never came to the upstream"
        yield
    finally:
        client.close()
