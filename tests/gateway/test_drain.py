"""The end of the gateway: it says so first, then nobody can connect, and every request has its reply and its line."""

import asyncio
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from helpers.gateways import ASK, free_port, refuses
from helpers.live import until

from suffice.gateway import Gateway, Settings
from suffice.gateway.operations import drain as module
from suffice.gateway.operations.drain import DrainingServer, listen
from suffice.testing import FakeServer, Reply, completion


class DrawRequest(threading.Thread):
    """A request under way."""

    def __init__(self, url: str, body: dict[str, Any], path: str = "/v1/chat/completions") -> None:
        super().__init__(daemon=True)
        self._sent = url + path, body
        self.start()

    def run(self) -> None:
        url, body = self._sent
        self._reply = httpx.post(url, json=body, timeout=60, trust_env=False)

    @property
    def reply(self) -> httpx.Response:
        self.join(60)
        return self._reply


def some_for_ever(request: dict[str, Any], number: int) -> Reply:
    said = json.dumps(request)
    delay = 60 if "for ever" in said else 1.5 if "slowly" in said else 0
    return Reply(completion(["42"] * request.get("n", 1)), delay=delay)


@contextmanager
def draining(upstream: FakeServer, **settings: Any) -> Iterator[tuple[str, DrainingServer, threading.Thread]]:
    """A gateway in a thread, whose end is up to the test."""
    chosen = Settings(upstream=upstream.base_url, port=free_port(), vote="always", **settings)
    server = DrainingServer(Gateway(chosen), chosen)
    thread = threading.Thread(target=server.run, args=([listen(chosen)],), daemon=True)
    thread.start()
    assert until(lambda: server.started)
    try:
        yield f"http://127.0.0.1:{chosen.port}", server, thread
    finally:
        server.end()
        thread.join(60)


FOR_EVER = [{"role": "user", "content": "What is 6 * 7, for ever?"}]


def test_it_says_that_it_is_not_ready_while_it_answers_and_then_lets_nobody_in(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = threading.Event()

    async def until_looked(moment: float) -> None:
        await asyncio.to_thread(looked.wait, 60)

    monkeypatch.setattr(module, "_sleep_until", until_looked)
    with (
        FakeServer(some_for_ever) as upstream,
        draining(upstream, unready_seconds=30, drain_seconds=60) as (url, server, thread),
        httpx.Client(trust_env=False, timeout=30) as kept,
    ):
        slow = DrawRequest(url, {**ASK, "messages": [{"role": "user", "content": "What is 6 * 7, slowly?"}]})
        assert kept.get(f"{url}/readyz").status_code == 200
        assert until(lambda: upstream.in_flight > 0)
        server.end()
        assert until(lambda: kept.get(f"{url}/readyz").status_code == 503)
        reply = kept.get(f"{url}/healthz")
        assert (reply.status_code, reply.headers["connection"]) == (200, "close")
        looked.set()
        assert until(lambda: refuses(url))
        assert slow.reply.status_code == 200
        thread.join(30)
        assert not thread.is_alive()


def test_what_can_not_end_in_time_has_an_error_in_its_shape_and_a_line(capfd: pytest.CaptureFixture[str]) -> None:
    with FakeServer(some_for_ever) as upstream:
        with draining(upstream, unready_seconds=0, drain_seconds=0.5) as (url, server, thread):
            whole = DrawRequest(url, {**ASK, "messages": FOR_EVER})
            messages = DrawRequest(url, {"model": "m", "max_tokens": 9, "messages": FOR_EVER}, "/v1/messages")
            stream = DrawRequest(url, {**ASK, "messages": FOR_EVER, "stream": True})
            relayed = DrawRequest(url, {"model": "m", "prompt": "for ever"}, "/v1/completions")
            assert until(lambda: upstream.in_flight >= 10)
            server.end()
            assert whole.reply.status_code == messages.reply.status_code == relayed.reply.status_code == 503
            assert whole.reply.json()["error"]["code"] == relayed.reply.json()["error"]["code"] == "shutting_down"
            assert messages.reply.json()["type"] == "error"
            assert stream.reply.status_code == 200
            assert '"shutting_down"' in stream.reply.text and stream.reply.text.endswith("data: [DONE]\n\n")
            assert refuses(url)
            thread.join(30)
            assert not thread.is_alive()
        assert until(lambda: upstream.connections == 0)
    lines = [json.loads(line) for line in capfd.readouterr().out.splitlines() if line.startswith("{")]
    ended = [(line["path"], line["status"]) for line in lines if line.get("error") == "shutting_down"]
    assert sorted(ended) == [
        ("/v1/chat/completions", 200),
        ("/v1/chat/completions", 503),
        ("/v1/completions", 503),
        ("/v1/messages", 503),
    ]


def test_the_head_of_a_request_has_a_deadline_too() -> None:
    with FakeServer(some_for_ever) as upstream, draining(upstream, upload_seconds=0.5, unready_seconds=0) as (url, *_):
        host, port = url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=30) as connection:
            connection.sendall(b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\nx-slow: ")
            assert connection.recv(1) == b""
