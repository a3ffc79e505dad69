"""What clients send: long bodies arrive as they are and are held once, and what never ends has a deadline."""

import socket
import tracemalloc
from typing import Any

from helpers.gateways import ASK, always, gateway, post

from suffice.gateway.fleet.upstreams import Known, encoded
from suffice.testing import FakeServer, Reply

IMAGE = "data:image/png;base64," + "QUJD" * 100_000


def vision(image: str = IMAGE) -> dict[str, Any]:
    parts = [{"type": "text", "text": "How many cats?"}, {"type": "image_url", "image_url": {"url": image}}]
    return {"model": "fake", "messages": [{"role": "user", "content": parts}]}


def one_by_one(request: dict[str, Any], number: int) -> Reply | str:
    """A server without `n`."""
    return Reply({"error": {"message": "n is not supported"}}, 400) if "n" in request else rf"\boxed{{{number % 3}}}"


def test_a_long_body_reaches_the_upstream_whole_by_every_course() -> None:
    with FakeServer(one_by_one) as upstream, gateway(upstream, controller="sc:draws=5") as url:
        for wish in ({}, {"model": "fake+once"}, {"seed": 7, "suffice": {}}):
            reply = post(url, {**vision(), **wish})
            assert reply.status_code == 200, reply.text
        assert all(request["messages"] == vision()["messages"] for request in upstream.requests)
        assert {request.get("seed") for request in upstream.requests} == {None, 7, 8, 9, 10, 11}
        assert all(int(headers["content-length"]) > len(IMAGE) for headers in upstream.headers)


def test_draws_share_what_is_long_in_them() -> None:
    known: Known = {}
    body = vision("QUJD" * 1_000_000)
    encoded(body, known)
    tracemalloc.start()
    try:
        draws = [encoded({**body, "seed": number}, known) for number in range(32)]
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(draws) == 32
    assert held < 100_000


def told(url: str, sent: bytes) -> bytes:
    """All that the gateway says to so much of a request, until it hangs up."""
    host, port = url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        connection.sendall(sent)
        said = b""
        while piece := connection.recv(65536):
            said += piece
        return said


def test_a_body_that_does_not_arrive_is_a_408_in_the_dialects_shape() -> None:
    head = b"POST /v1/%s HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 1000\r\n\r\n{"
    with FakeServer(always) as upstream, gateway(upstream, upload_seconds=0.2) as url:
        chat, messages = (told(url, head % path) for path in (b"chat/completions", b"messages"))
        assert chat.startswith(b"HTTP/1.1 408 ") and b'"code": "timeout"' in chat
        assert messages.startswith(b"HTTP/1.1 408 ") and b'"type": "error"' in messages
        assert post(url, ASK).status_code == 200
        assert upstream.requests
