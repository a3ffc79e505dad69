"""A gateway on a free port, in front of a scripted server, and what is posted to it."""

import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection
from itertools import cycle
from typing import Any

import httpx
import uvicorn

from suffice.gateway import Gateway, Settings
from suffice.testing import FakeServer

MESSAGES: Any = [{"role": "user", "content": "What is 6 * 7?"}]
ASK: dict[str, Any] = {"model": "fake", "messages": MESSAGES}


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


@contextmanager
def gateway(upstream: FakeServer | str | list[Any], **settings: Any) -> Iterator[str]:
    """The base URL of a gateway that runs in a thread; it votes on every chat request unless told otherwise."""
    settings = {"vote": "always", **settings}
    url = upstream.base_url if isinstance(upstream, FakeServer) else upstream
    port = free_port()
    app = Gateway(Settings(upstream=url, port=port, **settings)).app
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_level="warning", access_log=False))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive(), "it ended before it began"
        time.sleep(0.005)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(20)


def post(url: str, body: Any, **options: Any) -> httpx.Response:
    content = {"content": body} if isinstance(body, bytes) else {"json": body}
    return httpx.post(f"{url}/v1/chat/completions", **content, timeout=60, trust_env=False, **options)


@contextmanager
def under_way(url: str, body: Any, upstream: FakeServer, headers: dict[str, str] | None = None) -> Iterator[None]:
    """A request that the upstream has begun on; its client hangs up at the end."""
    host, port = url.removeprefix("http://").split(":")
    client = HTTPConnection(host, int(port), timeout=60)
    try:
        sent = {"content-type": "application/json", **(headers or {})}
        client.request("POST", "/v1/chat/completions", json.dumps(body), sent)
        end = time.monotonic() + 60
        while not upstream.in_flight:
            assert time.monotonic() < end, "it never came to the upstream"
            time.sleep(0.005)
        yield
    finally:
        client.close()
