"""What the gateway passes on as it is, and what it makes of the upstream's failures."""

import gzip
import json
import socket
from collections.abc import Iterator
from typing import Any

import httpx
import openai
import pytest
from helpers.gateways import ASK, MESSAGES, always, answered, behind, gateway, post, under_way
from helpers.live import boxed, until

from suffice.testing import FakeServer, Reply, completion

pytestmark = pytest.mark.usefixtures("quick")


PASSED_ON: dict[str, dict[str, Any]] = {
    "n": {"n": 3},
    "tools": {"tools": [{"type": "function", "function": {"name": "f"}}]},
    "functions": {"functions": [{"name": "f"}]},
    "logprobs": {"logprobs": True},
    "top_logprobs": {"top_logprobs": 3},
    "response_format": {"response_format": {"type": "grammar"}},
    "off": {"suffice": {"controller": "off"}},
    "audio": {"modalities": ["text", "audio"]},
}


NO_VOTE = {"functions": "tools", "top_logprobs": "logprobs", "audio": "modalities"}


@pytest.mark.parametrize("case", PASSED_ON)
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_what_is_no_vote_is_passed_on_byte_for_byte(case: str, streamed: bool) -> None:
    sse = b'data: {"choices": []}\n\ndata: [DONE]\n\n'
    plain = b'{"choices": [],   "odd spacing": 1.50}'
    reply = Reply(sse, headers={"content-type": "text/event-stream"}) if streamed else Reply(plain)
    body = ASK | PASSED_ON[case] | ({"stream": True} if streamed else {})
    raw = json.dumps(body, indent=3).encode()
    answer, upstream = answered(
        lambda request, number: reply,
        raw,
        headers={"content-type": "application/json", "x-suffice-budget": "5", "x-odd": "1"},
    )
    assert answer.content == reply.body
    assert answer.headers["x-suffice-no-vote"] == NO_VOTE.get(case, case)
    assert answer.headers["content-type"] == ("text/event-stream" if streamed else "application/json")
    if case == "off":
        assert upstream.requests == [ASK | ({"stream": True} if streamed else {})]
    else:
        assert upstream.bodies == [raw]
    assert "x-suffice-budget" not in upstream.headers[0] and upstream.headers[0]["x-odd"] == "1"


@pytest.mark.parametrize("status", [429, 503])
def test_the_upstream_s_errors_keep_their_status_and_words(status: int) -> None:
    fault = {"error": {"message": "as you say", "type": "odd", "param": "p", "code": "c"}}
    with FakeServer(lambda request, number: Reply(fault, status)) as upstream, gateway(upstream, retries=1) as url:
        reply = post(url, ASK)
        assert (reply.status_code, reply.json()) == (status, fault)
        with (
            openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as client,
            pytest.raises(openai.APIStatusError, match="as you say"),
        ):
            client.chat.completions.create(model="fake", messages=MESSAGES)


def test_errors_in_another_shape_get_ours() -> None:
    reply, _ = answered(lambda request, number: Reply(b"<html>", 503), ASK, retries=0)
    assert reply.status_code == 503 and "<html>" in reply.json()["error"]["message"]


def test_an_upstream_that_is_down_or_slow() -> None:
    with gateway("http://127.0.0.1:9/v1", retries=0) as url:
        assert (post(url, ASK).status_code, httpx.get(f"{url}/readyz").status_code) == (502, 503)
        assert post(url, ASK | {"n": 2}).json()["error"]["code"] == "unreachable"
        assert httpx.get(f"{url}/healthz").status_code == 200
    slow = lambda request, number: Reply(completion([boxed(1)]), delay=20)  # noqa: E731
    with FakeServer(slow) as upstream, gateway(upstream) as url:
        assert post(url, ASK | {"suffice": {"deadline_seconds": 0.2}}).status_code == 504


def test_other_endpoints_are_passed_on_and_the_rest_is_404() -> None:
    with FakeServer(lambda request, number: Reply({"object": "list"})) as upstream, gateway(upstream) as url:
        assert httpx.get(f"{url}/v1/models").json()["data"][0]["id"] == "fake"
        assert httpx.post(f"{url}/v1/embeddings?x=1", json={"input": "a"}).json() == {"object": "list"}
        for path in ("completions", "moderations", "batches", "images/generations", "responses/resp_1/cancel"):
            assert httpx.post(f"{url}/v1/{path}", json={"prompt": "a"}).status_code == 200
        asked = {"model": "m+vote", "suffice": {"budget": 8}, "input": "a"}
        assert httpx.post(f"{url}/v1/embeddings", json=asked).status_code == 200
        assert upstream.requests[-1] == {"model": "m", "input": "a"}
        upload = httpx.post(f"{url}/v1/audio/transcriptions", files={"file": b"RIFF\xff"}, data={"model": "whisper"})
        assert upload.status_code == 200 and b"RIFF\xff" in upstream.bodies[-1]
        assert upstream.headers[-1]["content-type"].startswith("multipart/form-data; boundary=")
        assert (upstream.paths[0], upstream.paths[-1]) == ("/v1/embeddings?x=1", "/v1/audio/transcriptions")
        for path in ("files", "chat/completions", "responses/resp_1"):
            assert httpx.get(f"{url}/v1/{path}").status_code == 200
        assert httpx.put(f"{url}/x").status_code == 404


def test_azure_s_paths_begin_above_the_base_url() -> None:
    path = "/openai/deployments/gpt/chat/completions?api-version=2024-10-21"
    with FakeServer(always) as upstream, gateway(upstream) as url:
        reply = httpx.post(f"{url}{path}", json=ASK, headers={"api-key": "sk-mine"})
        assert reply.json()["choices"][0]["message"]["content"] == boxed(42)
        assert httpx.get(f"{url}/v1/suffice/recent").json()["totals"]["requests"] == 1
    assert upstream.paths == [path] and upstream.headers[0]["api-key"] == "none"


def test_what_is_relayed_streams_as_it_flows() -> None:
    pieces = iter([b"RIFF", b"1234"])

    def script(request: dict[str, Any], number: int) -> Reply:
        return Reply(next(pieces), headers={"content-type": "audio/wav"}, endless=True)

    with FakeServer(script) as upstream, gateway(upstream) as url:
        with httpx.stream("POST", f"{url}/v1/audio/speech", json={"input": "a"}) as reply:
            assert next(reply.iter_bytes(4)) == b"RIFF", "the first bytes come before the last, which never do"
        assert until(lambda: upstream.hung_up == 1)


def test_hanging_up_on_a_relay_ends_it_and_relays_have_limits() -> None:
    slow = lambda request, number: Reply(completion([boxed(1)]), delay=200)  # noqa: E731
    with FakeServer(slow) as upstream, gateway(upstream, max_requests=1, max_queue=0) as url:
        with under_way(url, ASK | {"n": 2}, upstream):
            assert post(url, ASK | {"n": 2}).status_code == 429
        assert until(lambda: upstream.hung_up == 1 and upstream.in_flight == 0)
        reply = post(url, ASK | {"n": 2, "suffice": {"deadline_seconds": 0.3}})
        assert reply.status_code == 504


@pytest.mark.parametrize("path", ["/v1/models/../../admin", "/v1/models/%2e%2e/files", "/v1/models/%252e%252e/files"])
def test_no_path_leads_elsewhere(path: str) -> None:
    with FakeServer(always) as upstream, gateway(upstream) as url:
        host, port = url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as raw:
            raw.sendall(f"GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n".encode())
            assert b" 404 " in raw.recv(1000)


def test_less_the_suffice_object_not_a_byte_is_changed() -> None:
    raw = b'{"a": 1,"a":2, "suffice": {"controller": "off"}, "f": 1.50, "g": 1e400, "messages": [ ],\n "u": "\\ud800x"}'
    expected = raw.replace(b'"suffice": {"controller": "off"}, ', b"")
    with FakeServer(lambda request, number: Reply({})) as upstream, gateway(upstream) as url:
        assert post(url, raw).status_code == 200
    assert upstream.bodies == [expected]


def test_headers_queries_and_compressed_replies() -> None:
    packed = gzip.compress(json.dumps(completion([boxed(42)])).encode())
    reply = Reply(packed, headers={"content-encoding": "gzip", "set-cookie": "a=1"})
    with FakeServer(lambda request, number: reply) as upstream, gateway(upstream, controller="sc:draws=1") as url:
        assert httpx.post(f"{url}/v1/chat/completions?api-version=2", json=ASK).json()["suffice"]["answer"] == "42"
        passed = post(url, ASK | {"n": 2})
        assert passed.json()["choices"] and passed.headers["set-cookie"] == "a=1"
    assert upstream.paths == ["/v1/chat/completions?api-version=2", "/v1/chat/completions"]


def test_headers_of_an_error_come_back_in_the_bytes_in_which_they_were_sent() -> None:
    fault = Reply({"error": {"message": "none"}}, 404, {"x-reason": "größer ✓"})
    reply, _ = answered(lambda request, number: fault, ASK | {"n": 2})
    assert (reply.status_code, dict(reply.headers.raw)[b"x-reason"]) == (404, "größer ✓".encode())


def test_an_upstream_s_key_is_never_passed_on(monkeypatch: pytest.MonkeyPatch, capfd: Any) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-upstream\n")
    fault = Reply({"error": {"message": "bad key sk-upstream"}}, 401)
    reply, upstream = answered(lambda request, number: fault, ASK)
    assert reply.status_code == 401 and "sk-upstream" not in reply.text + capfd.readouterr().out
    assert upstream.headers[0]["authorization"] == "Bearer sk-upstream"


@pytest.mark.parametrize("body", [ASK, ASK | {"n": 2}], ids=["vote", "relay"])
def test_what_a_client_proves_itself_with_stays_here(body: dict[str, Any]) -> None:
    secrets = {"cookie": "session=1", "api-key": "sk-a", "x-api-key": "sk-b", "proxy-authorization": "Basic sk-c"}
    with FakeServer(always) as upstream, gateway(upstream) as url:
        assert post(url, body, headers={**secrets, "authorization": "Bearer sk-d", "x-odd": "1"}).status_code == 200
    (sent,) = upstream.headers
    assert not set(secrets.values()) & set(sent.values()) and sent["authorization"] == "Bearer none"
    assert (sent["x-api-key"], sent["api-key"], sent["x-odd"]) == ("none", "none", "1"), (
        "the upstream's, in their place"
    )


def test_the_upstream_s_wish_to_be_left_alone_is_passed_back() -> None:
    busy = Reply({"error": {"message": "busy"}}, 429, {"retry-after": "7", "x-internal": "1"})
    reply, _ = answered(lambda request, number: busy, ASK, retries=0)
    assert (reply.status_code, reply.headers["retry-after"]) == (429, "7") and "x-internal" not in reply.headers


@pytest.mark.parametrize("body", [b"{}", b"nonsense", b'{"choices": []}'])
def test_a_reply_that_is_none_is_the_upstream_s_fault(body: bytes) -> None:
    reply, _ = answered(lambda request, number: Reply(body), ASK, retries=0)
    assert (reply.status_code, reply.json()["error"]["code"]) == (502, "bad_reply")
    assert "nonsense" not in reply.text


def test_a_seed_is_one_draw_unless_a_vote_is_asked_for() -> None:
    with FakeServer(always) as upstream, gateway(upstream, vote="always") as url:
        once = post(url, ASK | {"seed": 7})
        assert once.headers["x-suffice-no-vote"] == "seed" and [one["seed"] for one in upstream.requests] == [7]
        asking: list[dict[str, Any]] = [{"suffice": {}}, {"model": "fake+vote"}]
        for more in asking:
            assert "x-suffice-no-vote" not in post(url, ASK | {"seed": 7} | more).headers


@pytest.fixture(scope="module")
def shared() -> Iterator[tuple[FakeServer, str]]:
    with behind(always, vote="auto") as both:
        yield both


ODD = ["0", "-1", '"3"', "1.5", "true", "[1]", "500.0", '"500"', '"5e2"', "1e400", "NaN", '1, "n": 500.0, "n": 1']
LARGE = ["500", "9" * 400, '1, "n": 500, "n": 1']


@pytest.mark.parametrize("number", ODD + LARGE)
@pytest.mark.parametrize("path", ["chat/completions", "completions", "engines/x/completions"])
def test_n_is_a_whole_number_from_1_on_and_under_the_limit(
    shared: tuple[FakeServer, str], path: str, number: str
) -> None:
    upstream, url = shared
    body = b'{"model": "fake", "prompt": "hi", "messages": [{"role": "user", "content": "hi"}], "n": %s}'
    reply = post(url, body % number.encode(), path)
    said = reply.json()["error"]
    assert reply.status_code == 400
    if "NaN" not in number and '"n"' not in number and number != "9" * 400:
        wanted = '"n" may be 64 at most' if number in LARGE else '"n" must be a whole number, at least 1, not '
        assert said["param"] == "n" and said["message"].startswith(wanted)
    assert post(url, (body % b"1").replace(b'"n"', b'"best_of": 500, "n"'), path).status_code == 400
    assert upstream.served == 0
