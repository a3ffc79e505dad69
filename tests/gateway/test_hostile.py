"""Hostile requests: whatever is sent, the reply is an error of the client's, and the gateway lives on."""

import json
import socket
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from helpers.examples import at_least
from helpers.gateways import ASK, MESSAGES, gateway
from hypothesis import given
from hypothesis import strategies as st

from suffice.testing import FakeServer

BODIES: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": ASK,
    "/v1/responses": {"model": "fake", "input": "What is 6 * 7?"},
    "/v1/messages": {"model": "fake", "max_tokens": 99, "messages": MESSAGES},
    "/v1/completions": {"model": "fake", "prompt": "What is 6 * 7?"},
}
MEMBERS = [
    "model", "messages", "input", "prompt", "n", "stream", "stream_options", "tools", "tool_choice", "functions",
    "response_format", "text", "output_config", "logprobs", "modalities", "seed", "temperature", "max_tokens", "system",
    "instructions", "max_completion_tokens", "suffice", "guided_choice", "stop", "extra_body", "metadata", "thinking",
]  # fmt: skip
WISHES = ["controller", "budget", "answer", "deadline_seconds", "flow", "ignore", "compare", "odd"]
WORDS = ["", "plan", "asc", "off", "json", "tool", "regex:(", "file:/etc/passwd", "json_schema", "user", "fake+vote",
         "\ud800", "\0", "/a", "loose", "extra=2", "1e9", "function", "image_url", "type", "x" * 600]  # fmt: skip

scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.sampled_from(WORDS), st.text(max_size=8),
    st.sampled_from([10**40, -1, 0, 1e308, 2**63]),
)  # fmt: skip
NAMES = [*MEMBERS, *WISHES, "role", "content", "type", "name", "json_schema", "schema", "function", "parameters"]
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=3),
    max_leaves=8,
)
wishes = st.dictionaries(st.sampled_from(WISHES), values, max_size=3) | values
changes = st.dictionaries(st.sampled_from(MEMBERS), values, max_size=3)
headers = st.dictionaries(
    st.sampled_from([f"x-suffice-{name.replace('_', '-')}" for name in WISHES] + ["content-type", "sec-fetch-site"]),
    st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=12).map(str.strip),
    max_size=2,
)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    upstream = FakeServer(lambda request, number: r"\boxed{42}", remember=False)
    options: Any = {"vote": "auto", "budget": 4, "retries": 0, "deadline_seconds": 20.0, "max_body_bytes": 1 << 20}
    with upstream, gateway(upstream, **options) as url:
        yield url


@pytest.fixture(autouse=True)
def nothing_is_unforeseen(capfd: pytest.CaptureFixture[str]) -> Iterator[None]:
    yield
    assert "Traceback" not in capfd.readouterr().err


@pytest.fixture(scope="module")
def client(url: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=url, timeout=60, trust_env=False) as client:
        yield client


def check(reply: httpx.Response, path: str) -> None:
    """A reply that nobody need be ashamed of."""
    assert reply.status_code < 500, reply.text
    assert "the gateway failed" not in reply.text
    if reply.status_code >= 400:
        error = reply.json()
        assert isinstance(error["error"]["message"], str) and error["error"]["type"]
        assert (error.get("type") == "error") == (path == "/v1/messages")


@pytest.mark.parametrize("path", BODIES)
def test_any_change_of_a_body_and_any_wish_is_answered_or_refused(client: httpx.Client, path: str) -> None:
    @at_least(100)
    @given(changes, wishes, headers)
    def ask(change: dict[str, Any], wish: Any, sent: dict[str, str]) -> None:
        body = BODIES[path] | change | ({"suffice": wish} if wish else {})
        check(client.post(path, content=json.dumps(body).encode(), headers=sent), path)

    ask()


def changed(whole: bytes, data: st.DataObject) -> bytes:
    """The same, but for a few bytes somewhere."""
    place = data.draw(st.integers(0, len(whole)))
    end = data.draw(st.integers(place, min(place + 6, len(whole))))
    return whole[:place] + data.draw(st.binary(max_size=6)) + whole[end:]


@pytest.mark.parametrize("path", BODIES)
def test_any_bytes_as_a_body_are_answered_or_refused(client: httpx.Client, path: str) -> None:
    whole = json.dumps(BODIES[path] | {"suffice": {"budget": 2}, "stream": False}).encode()

    @at_least(100)
    @given(st.data())
    def ask(data: st.DataObject) -> None:
        check(client.post(path, content=changed(whole, data)), path)

    ask()


def test_odd_json_is_refused_in_a_sentence_or_taken_for_what_it_is(client: httpx.Client) -> None:
    text = json.dumps(ASK)

    def said(raw: bytes) -> tuple[int, str]:
        reply = client.post("/v1/chat/completions", content=raw)
        check(reply, "/v1/chat/completions")
        return reply.status_code, reply.json().get("error", {}).get("message", "")

    for body in (b"nonsense", b"[]", b"\xff", b"[" * 10000):
        assert said(body)[0] == 400
    for body in (b"{}", b'{"messages": []}', b'{"messages": "x"}'):
        assert said(body)[0] == 200, "it names no answer, and the upstream judges it"
    for encoding in ("utf-16", "utf-16-le", "utf-32", "utf-8-sig", "utf-32-be"):
        assert said(text.encode(encoding)) == (400, "the body must be JSON in UTF-8, without a byte order mark")
    assert said(text.replace("{", '{"seed": NaN,', 1).encode())[0] == 400
    assert said(text.replace("{", '{"n": 500, "n": 1,', 1).encode()) == (400, '"n" is in the body twice')
    assert "deep" in said(text.replace("{", '{"metadata": ' + "[" * 300 + "]" * 300 + ",", 1).encode())[1]
    assert said(text.replace("{", '{"seed": ' + "1" * 5000 + ",", 1).encode())[0] == 400
    assert said(text.replace("{", '{"top_p": 1e999, "user": "\\ud800",', 1).encode())[0] == 200


HEAD = b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
BROKEN = {
    "no HTTP": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "no version": b"POST /v1/chat/completions\r\n\r\n",
    "half a head": HEAD,
    "half a body": HEAD + b'content-length: 100\r\n\r\n{"model"',
    "too long a body": HEAD + b'content-length: 2\r\n\r\n{}{"model": "fake"}',
    "no length": HEAD + b"content-length: x\r\n\r\n{}",
    "a length below 0": HEAD + b"content-length: -5\r\n\r\n{}",
    "two lengths": HEAD + b"content-length: 2\r\ncontent-length: 3\r\n\r\n{}",
    "a huge length": HEAD + b"content-length: 99999999999999999999999\r\n\r\n{}",
    "chunks and a length": HEAD + b"content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    "rubbish for chunks": HEAD + b"transfer-encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
    "a chunk that is cut": HEAD + b"transfer-encoding: chunked\r\n\r\nff\r\n{}",
    "a header of bytes": HEAD + b"x-odd: \xff\x00\x01\r\ncontent-length: 2\r\n\r\n{}",
    "an odd host": HEAD.replace(b"localhost", b"[::1@]:x") + b"content-length: 2\r\n\r\n{}",
    "an odd path": b"GET /v1/%ff%00/../\xff HTTP/1.1\r\nhost: localhost\r\n\r\n",
    "a whole address": b"GET http://[/v1/models HTTP/1.1\r\nhost: localhost\r\n\r\n",
    "an upgrade": b"GET /v1/models HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n",
}


def exchange(url: str, sent: bytes) -> bytes:
    """All that is said to these bytes until the connection is closed."""
    place = httpx.URL(url)
    with socket.create_connection((place.host, place.port), timeout=30) as connection:
        received = b""
        try:
            connection.sendall(sent)
            connection.shutdown(socket.SHUT_WR)
            while piece := connection.recv(65536):
                received += piece
        except ConnectionError:  # it may be closed before all was sent
            pass
        return received


def check_bytes(url: str, sent: bytes) -> None:
    received = exchange(url, sent)
    assert not received or (received.startswith(b"HTTP/1.1 ") and received[9:10] in b"24"), (sent, received)


@pytest.mark.parametrize("case", BROKEN)
def test_broken_http_is_refused_and_the_gateway_lives_on(url: str, case: str) -> None:
    check_bytes(url, BROKEN[case])
    assert httpx.get(f"{url}/healthz", trust_env=False).status_code == 200


def test_any_bytes_on_the_socket_are_refused_and_the_gateway_lives_on(url: str) -> None:
    body = json.dumps(ASK).encode()
    whole = HEAD + b"content-length: %d\r\n\r\n" % len(body) + body

    @at_least(100)
    @given(st.data())
    def send(data: st.DataObject) -> None:
        check_bytes(url, changed(whole, data))

    send()
    assert httpx.get(f"{url}/healthz", trust_env=False).status_code == 200
