"""What clients are not told, where a relayed reply ends, and whom a gateway without keys answers."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from helpers.gateways import ASK, always, free_port, gateway, logged, post
from helpers.keys import key_file
from helpers.live import KEY

from suffice.gateway import Settings
from suffice.gateway.fleet.upstreams import _address
from suffice.live.servers.server import masked
from suffice.testing import FakeServer, Reply

pytestmark = pytest.mark.usefixtures("quick")

PATHS: dict[str, dict[str, Any]] = {
    "vote": ASK,
    "relay": ASK | {"n": 2},
    "stream": ASK | {"stream": True},
    "relayed stream": ASK | {"n": 2, "stream": True},
    "scout": ASK | {"messages": [{"role": "user", "content": "Why is the sky blue?"}]},
}


@contextmanager
def saying(pieces: list[bytes], close: bool = True) -> Iterator[str]:
    """The base URL of a server that says this to anything, and then nothing more, open or closed."""
    held = []

    def serve(listening: socket.socket) -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            held.append(connection)
            connection.recv(65536)
            for piece in pieces:
                connection.sendall(piece)
            if close:
                connection.close()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=serve, args=(listening,), daemon=True).start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
        listening.shutdown(socket.SHUT_RDWR)
    for connection in held:
        connection.close()


@pytest.mark.parametrize("kind", ["refused", "no such name", "no TLS", "redirect", "error"])
def test_no_error_names_the_upstream_s_address_or_its_key(
    kind: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    port = free_port()
    told = {"error": {"message": f"http://127.0.0.1:{port}/v1 refuses {KEY}", "type": "odd"}}
    replies = {
        "redirect": Reply(b"moved to http://10.1.2.3:4321/", 307, {"location": "http://10.1.2.3:4321/v1/x"}),
        "error": Reply(told, 500),
    }
    with FakeServer(lambda request, number: replies[kind], port=port) as server, saying([b"no"]) as rude:
        addresses = {
            "refused": f"http://127.0.0.1:{free_port()}/v1",
            "no such name": "http://internal.invalid:4321/v1",
            "no TLS": rude.replace("http:", "https:"),
        }
        url_behind = addresses.get(kind, server.base_url)
        with gateway(url_behind, retries=0, vote="auto") as url:
            replied = [post(url, body) for body in PATHS.values()]
            page = "".join(httpx.get(f"{url}/{where}").text for where in ("v1/suffice/recent", "metrics"))
    behind = url_behind.split("//")[1].removesuffix("/v1")
    for name, reply in zip(PATHS, replied, strict=True):
        assert reply.status_code in (500, 502), (name, reply.status_code)
        for hidden in (behind, ":4321", "internal.invalid", KEY, f":{port}"):  # a time may have the port's digits
            assert hidden not in reply.text + str(reply.headers) + page, name
    lines = logged(capfd)
    assert {line["upstream"] for line in lines if line["path"].endswith("completions")} == {"upstream-1"}
    assert behind not in json.dumps(lines)


@pytest.mark.parametrize(
    ("url", "text", "shown"),
    [
        ("http://10.0.0.7:8000/v1", "at http://10.0.0.7:8000/v1/x, 10.0.0.7 or 110.0.0.7", "at U/v1/x, U or 110.0.0.7"),
        ("http://vllm:8000/v1", "vllm said: vllm:8000 is full", "vllm said: U is full"),
        ("https://llm.corp.example", "LLM.corp.example. is down", "U. is down"),
        ("http://localhost:8000", "localhost, port 8000", "localhost, port 8000"),
    ],
)
def test_an_address_is_known_by_its_port_or_its_dots(url: str, text: str, shown: str) -> None:
    assert _address(url).sub("U", text) == shown


@pytest.mark.parametrize("key", ["none", "EMPTY", "x", "sk-", "1234", "not-needed", "ollama", ""])
def test_what_stands_for_a_key_is_left_in_other_people_s_words(key: str) -> None:
    text = f"none of the EMPTY x sk- 1234 boxes: not-needed by ollama {key}"
    assert masked(text, key) == text


@pytest.mark.parametrize(
    ("key", "text", "shown"),
    [
        ("sk-bad", "bad key sk-bad, not sk-badly", "bad key ***, not sk-badly"),
        ("sk-secret", '{"message": "sk-secret"}', '{"message": "***"}'),
        (KEY, rf"\n{KEY}\n", r"\n***\n"),
        ("correct horse", "it is correct horse!", "it is ***!"),
    ],
)
def test_a_key_is_masked_where_it_stands_by_itself_and_a_long_one_anywhere(key: str, text: str, shown: str) -> None:
    assert masked(text, key) == shown


EVENT = b'data: {"choices": [{"index": 0, "delta": {"content": "Once"}}]}\n\n'
SSE = b"HTTP/1.1 200 -\r\ncontent-type: text/event-stream\r\n\r\n"
SAID = {
    "chat/completions": (ASK | {"n": 2, "stream": True}, b'"code": "timeout"'),
    "messages": ({"model": "m", "max_tokens": 9, "stream": True, "messages": [], "suffice": {"controller": "off"}},
                 b"event: error"),
    "completions": ({"model": "m", "prompt": "x", "stream": True}, b'"code": "timeout"'),
}  # fmt: skip


@pytest.mark.parametrize("path", SAID)
@pytest.mark.parametrize("tail", [b"", b'data: {"cho'], ids=["between events", "within one"])
def test_a_relayed_stream_ends_at_the_deadline_with_an_error_event(
    path: str, tail: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    body, told = SAID[path]
    with saying([SSE, EVENT + tail], close=False) as upstream, gateway(upstream, deadline_seconds=0.5) as url:
        reply = httpx.post(f"{url}/v1/{path}", json=body, timeout=60, trust_env=False)
    assert reply.status_code == 200 and reply.content.startswith(EVENT + tail)
    last = reply.content.removeprefix(EVENT + tail)
    assert told in last and (not tail or last.startswith(b"\n\n")) and last.endswith(b"\n\n")
    (line,) = logged(capfd)
    assert (line["kind"], line["error"], line["upstream"]) == ("error", "timeout", "upstream-1")


def test_a_relayed_stream_that_breaks_off_ends_with_an_error_event() -> None:
    chunked = SSE.replace(b"\r\n\r\n", b"\r\ntransfer-encoding: chunked\r\n\r\n")
    with saying([chunked, b"%x\r\n%s\r\n" % (len(EVENT), EVENT)]) as upstream, gateway(upstream) as url:
        reply = post(url, ASK | {"n": 2, "stream": True})
    assert reply.status_code == 200 and b'"code": "unreachable"' in reply.content


def test_a_relayed_reply_that_is_no_stream_of_events_is_cut_at_the_deadline(capfd: pytest.CaptureFixture[str]) -> None:
    head = b"HTTP/1.1 200 -\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n"
    with saying([head, b'{"half": '], close=False) as upstream, gateway(upstream, deadline_seconds=0.5) as url:
        with pytest.raises(httpx.RemoteProtocolError):
            post(url, ASK | {"n": 2})
        assert httpx.get(f"{url}/healthz", trust_env=False).status_code == 200
    out = capfd.readouterr()
    assert '"error": "timeout"' in out.out and "Traceback" not in out.err


def test_the_scout_s_stream_ends_at_the_deadline() -> None:
    story = EVENT.replace(b"Once", b"Once upon a time there was. " * 99)
    with saying([SSE, story], close=False) as upstream, gateway(upstream, deadline_seconds=0.5, vote="auto") as url:
        reply = post(url, ASK | {"stream": True, "messages": [{"role": "user", "content": "Why is the sky blue?"}]})
    assert reply.status_code in (200, 504) and b'"timeout"' in reply.content


def test_behind_a_proxy_the_host_check_says_what_to_do(tmp_path: Path) -> None:
    proxied = {"host": "llm.example:8443"}
    with FakeServer(always) as upstream:
        with gateway(upstream) as url:
            reply = post(url, ASK, headers=proxied)
            message = reply.json()["error"]["message"]
            assert (reply.status_code, reply.json()["error"]["code"]) == (403, "unknown_host")
            assert all(word in message for word in ('"llm.example"', "allow_hosts", "key"))
            for host in ("localhost", "LOCALHOST:1", "127.0.0.1:80", "[::1]:80"):
                assert post(url, ASK, headers={"host": host}).status_code == 200
            for host in ("evil.example@localhost", "[::1", "localhost/x", "x:y:z"):
                assert post(url, ASK, headers={"host": host}).status_code == 403
        with gateway(upstream, allow_hosts=("LLM.example",)) as url:
            assert post(url, ASK, headers=proxied).status_code == 200
            assert post(url, ASK, headers={"host": "evil.example"}).status_code == 403
        with gateway(upstream, keys=key_file(tmp_path, mine="sk-mine")) as url:
            assert post(url, ASK, headers=proxied | {"authorization": "Bearer sk-mine"}).status_code == 200
    assert Settings().allow_hosts == ()
