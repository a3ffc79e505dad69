"""A gateway on a free port, in front of a scripted server."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import uvicorn

from suffice.gateway import Gateway, Settings
from suffice.live import server as live_server
from suffice.testing import FakeServer


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Back-off without the waiting."""
    monkeypatch.setattr(live_server, "BACK_OFF", 0.01)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def gateway(upstream: FakeServer | str, **settings: Any) -> Iterator[str]:
    """The base URL of a gateway that runs in a thread."""
    url = upstream if isinstance(upstream, str) else upstream.base_url
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
