"""A gateway on a free port, in front of a scripted server, and what is posted to it."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import uvicorn

from suffice.gateway import Gateway, Settings
from suffice.testing import FakeServer

MESSAGES: Any = [{"role": "user", "content": "What is 6 * 7?"}]
ASK: dict[str, Any] = {"model": "fake", "messages": MESSAGES}


def always(request: dict[str, Any], number: int) -> str:
    return r"So it is \boxed{42}."


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


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
        time.sleep(0.005)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(20)


def post(url: str, body: Any, **options: Any) -> httpx.Response:
    content = {"content": body} if isinstance(body, bytes) else {"json": body}
    return httpx.post(f"{url}/v1/chat/completions", **content, timeout=60, trust_env=False, **options)
