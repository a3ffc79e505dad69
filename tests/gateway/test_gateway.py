"""The gateway in front of a scripted server, as clients meet it."""

import asyncio
import gzip
import json
import shutil
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from langchain_openai import ChatOpenAI
from serving import gateway, quick  # noqa: F401

from suffice.testing import FakeServer, Reply, completion

MESSAGES: Any = [{"role": "user", "content": "What is 6 * 7?"}]
ASK: dict[str, Any] = {"model": "fake", "messages": MESSAGES}


def boxed(answer: object) -> str:
    return rf"So it is \boxed{{{answer}}}."


def always(request: dict[str, Any], number: int) -> str:
    return boxed(42)


def until(holds: Callable[[], bool], seconds: float = 10) -> bool:
    end = time.monotonic() + seconds
    while not holds() and time.monotonic() < end:
        time.sleep(0.01)
    return holds()


def post(url: str, body: Any, **options: Any) -> httpx.Response:
    content = {"content": body} if isinstance(body, bytes) else {"json": body}
    return httpx.post(f"{url}/v1/chat/completions", **content, timeout=60, trust_env=False, **options)


def test_the_official_client_gets_a_normal_completion() -> None:
    texts = [boxed(7), boxed(42), boxed(42), "none", boxed(42), boxed(42), boxed(42), boxed(42)]
    script = lambda request, number: [texts.pop(0) for _ in range(request.get("n", 1))]  # noqa: E731
    with FakeServer(script) as upstream, gateway(upstream, controller="esc:window=4") as url:
        client = openai.OpenAI(base_url=f"{url}/v1", api_key="whatever")
        raw = client.chat.completions.with_raw_response.create(
            model="fake", messages=MESSAGES, temperature=0.3, max_tokens=99, extra_body={"top_k": 5, "odd": [1]}
        )
        reply = raw.parse()
    assert reply.choices[0].message.content == boxed(42)
    assert (reply.choices[0].finish_reason, reply.choices[0].index, len(reply.choices)) == ("stop", 0, 1)
    assert reply.usage is not None
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens, reply.usage.total_tokens) == (10, 80, 90)
    told = reply.model_dump()["suffice"]
    assert (told["answer"], told["votes"], told["samples"], told["rounds"]) == ("42", {"42": 6, "7": 1}, 8, 2)
    assert (told["stop_reason"], told["samples_saved"]) == ("controller", 24)
    assert 0.9 < told["confidence"] < 1
    assert (raw.headers["x-suffice-samples"], raw.headers["x-suffice-rounds"]) == ("8", "2")
    assert raw.headers["x-suffice-stop-reason"] == "controller"
    assert float(raw.headers["x-suffice-confidence"]) == pytest.approx(told["confidence"], abs=1e-4)
    expected = ASK | {"temperature": 0.3, "max_tokens": 99, "top_k": 5, "odd": [1], "n": 4}
    assert upstream.requests == [expected, expected]
    assert upstream.headers[0]["authorization"] == "Bearer none", "the client's key stays here"


def test_a_seed_is_spread_and_the_winner_keeps_its_finish_reason() -> None:
    def script(request: dict[str, Any], number: int) -> Reply:
        return Reply(completion([boxed(42)], finish_reason="eos"))  # gives one, whatever n says

    with FakeServer(script) as upstream, gateway(upstream, controller="sc:draws=3") as url:
        reply = post(url, ASK | {"seed": 10}).json()
    assert sorted(request["seed"] for request in upstream.requests) == [10, 11, 12]
    assert reply["choices"][0]["finish_reason"] == "eos"


def test_the_async_client_streams() -> None:
    async def main(url: str) -> tuple[str, list[Any]]:
        async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none") as client:
            options: Any = {"include_usage": True}
            chunks = [
                chunk
                async for chunk in await client.chat.completions.create(
                    model="fake", messages=MESSAGES, stream=True, stream_options=options
                )
            ]
        return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices), chunks

    with FakeServer(always) as upstream, gateway(upstream) as url:
        text, chunks = asyncio.run(main(url))
    assert text == boxed(42)
    assert [chunk.choices[0].delta.role for chunk in chunks[:1]] == ["assistant"]
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices] == [None, None, "stop"]
    assert chunks[-1].usage.completion_tokens == 40 and not chunks[-1].choices
    assert "stream" not in upstream.requests[0] and "stream_options" not in upstream.requests[0]


def test_a_stream_has_heartbeats_and_standings_while_rounds_run() -> None:
    slow = lambda request, number: Reply(completion([boxed(42)] * request.get("n", 1)), delay=0.5)  # noqa: E731
    with FakeServer(slow) as upstream, gateway(upstream, heartbeat_seconds=0.1) as url:
        lines = post(url, ASK | {"stream": True}).text.split("\n\n")
    assert lines.count(": waiting") >= 2
    standings = [json.loads(line.removeprefix(": suffice ")) for line in lines if line.startswith(": suffice ")]
    assert standings[-1]["decision"] == 0 and standings[-1]["votes"] == {"42": 4}
    assert lines[-2:] == ["data: [DONE]", ""]
    final = json.loads(lines[-3].removeprefix("data: "))
    assert final["suffice"]["answer"] == "42" and "usage" not in final, "no usage unless it is asked for"


def test_an_error_before_a_stream_has_its_status_and_after_it_an_event() -> None:
    fault = {"error": {"message": "no such model", "type": "x", "param": None, "code": None}}
    for delay in (0.0, 0.4):
        reply = Reply(fault, 404, delay=delay)
        upstream = FakeServer(lambda request, number, reply=reply: reply)  # type: ignore[misc]
        with upstream, gateway(upstream, heartbeat_seconds=0.1) as url:
            answer = post(url, ASK | {"stream": True})
        if delay:
            assert answer.status_code == 200
            assert json.loads(answer.text.split("data: ")[1]) == fault
        else:
            assert (answer.status_code, answer.json()) == (404, fault)


def test_curl_and_langchain() -> None:
    with FakeServer(always) as upstream, gateway(upstream) as url:
        curl = shutil.which("curl")
        if curl:
            command = [curl, "-sS", f"{url}/v1/chat/completions", "-d", json.dumps(ASK)]
            done = subprocess.run(command, capture_output=True, check=True)
            assert json.loads(done.stdout)["choices"][0]["message"]["content"] == boxed(42)
        model = ChatOpenAI(model="fake", base_url=f"{url}/v1", api_key="none")  # type: ignore[arg-type]
        assert model.invoke("What is 6 * 7?").content == boxed(42)
        assert "".join(str(chunk.content) for chunk in model.stream("What is 6 * 7?")) == boxed(42)


PASSED_ON: dict[str, dict[str, Any]] = {
    "n": {"n": 3},
    "tools": {"tools": [{"type": "function", "function": {"name": "f"}}]},
    "functions": {"functions": [{"name": "f"}]},
    "logprobs": {"logprobs": True},
    "response_format": {"response_format": {"type": "json_object"}},
    "off": {"suffice": {"controller": "off"}},
    "audio": {"modalities": ["text", "audio"]},
}


@pytest.mark.parametrize("case", PASSED_ON)
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_what_is_no_vote_is_passed_on_byte_for_byte(case: str, streamed: bool) -> None:
    sse = b'data: {"choices": []}\n\ndata: [DONE]\n\n'
    plain = b'{"choices": [],   "odd spacing": 1.50}'
    reply = Reply(sse, headers={"content-type": "text/event-stream"}) if streamed else Reply(plain)
    body = ASK | PASSED_ON[case] | ({"stream": True} if streamed else {})
    raw = json.dumps(body, indent=3).encode()
    with FakeServer(lambda request, number: reply) as upstream, gateway(upstream) as url:
        answer = post(url, raw, headers={"content-type": "application/json", "x-suffice-budget": "5", "x-odd": "1"})
    assert answer.content == reply.body
    assert answer.headers["content-type"] == ("text/event-stream" if streamed else "application/json")
    if case == "off":
        assert upstream.requests == [ASK | ({"stream": True} if streamed else {})]
    else:
        assert upstream.bodies == [raw]
    assert "x-suffice-budget" not in upstream.headers[0] and upstream.headers[0]["x-odd"] == "1"


def test_a_named_extractor_makes_a_vote_of_json_answers() -> None:
    body = ASK | {"response_format": {"type": "json_object"}, "suffice": {"answer": "json:a"}}
    with FakeServer(lambda request, number: '{"a": 5}') as upstream, gateway(upstream) as url:
        reply = post(url, body).json()
    assert reply["suffice"]["answer"] == "5" and upstream.requests[0]["response_format"] == {"type": "json_object"}


def test_a_request_chooses_within_what_the_operator_allows() -> None:
    with FakeServer(always) as upstream, gateway(upstream, budget=16, max_budget=20) as url:
        wishes = [{"controller": "sc"}, {"controller": "sc", "budget": 3}, {"controller": "sc", "budget": 1000}]
        replies = [post(url, ASK | {"suffice": wish}) for wish in wishes]
        replies.append(post(url, ASK, headers={"x-suffice-controller": "sc", "x-suffice-budget": "5"}))
        told = [reply.json()["suffice"]["samples"] for reply in replies]
        assert told == [16, 3, 20, 5]
        assert all("suffice" not in request for request in upstream.requests)


@pytest.mark.parametrize(
    ("wish", "field"),
    [
        ({"budget": 0}, "suffice.budget"),
        ({"budget": "many"}, "suffice.budget"),
        ({"controller": "nonsense"}, "suffice.controller"),
        ({"controller": 3}, "suffice.controller"),
        ({"controller": "file:/etc/passwd"}, "suffice.controller"),
        ({"answer": "nonsense"}, "suffice.answer"),
        ({"answer": "regex:("}, "suffice.answer"),
        ({"answer": "tool"}, "suffice.answer"),
        ({"deadline_seconds": -1}, "suffice.deadline_seconds"),
        ({"ignore": "x"}, "suffice.ignore"),
        ({"speed": 3}, "suffice.speed"),
        ("fast", "suffice"),
    ],
)
def test_bad_settings_are_400_and_named(wish: Any, field: str) -> None:
    with FakeServer(always) as upstream, gateway(upstream) as url:
        reply = post(url, ASK | {"suffice": wish})
        assert (reply.status_code, reply.json()["error"]["param"]) == (400, field)
        assert field in reply.json()["error"]["message"] or '"suffice"' in reply.json()["error"]["message"]
        assert upstream.requests == []


@pytest.mark.parametrize(
    "body", [b"nonsense", b"[]", b"{}", b'{"messages": []}', b'{"messages": "x"}', b"\xff", b"[" * 10000]
)
def test_a_body_that_is_no_request_is_400(body: bytes) -> None:
    with FakeServer(always) as upstream, gateway(upstream) as url:
        reply = post(url, body)
        assert reply.status_code == 400 and reply.json()["error"]["type"] == "invalid_request_error"


def tool_reply(request: dict[str, Any], arguments: list[str | None]) -> Reply:
    body = completion(["x"] * len(arguments), finish_reason="tool_calls")
    for choice, given in zip(body["choices"], arguments, strict=True):
        if given is None:
            choice["message"] = {"role": "assistant", "content": "I would rather talk."}
        else:
            call = {
                "id": f"call_{choice['index']}",
                "type": "function",
                "function": {"name": "book", "arguments": given},
            }
            choice["message"] = {"role": "assistant", "content": None, "tool_calls": [call]}
    return Reply(body)


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_agents_vote_on_tool_calls(streamed: bool) -> None:
    arguments = ['{"to": "Rome", "why": "a"}', '{"to":"Oslo","why":"b"}', '{"why": "c", "to": "Oslo"}', None]
    tools: Any = [{"type": "function", "function": {"name": "book", "parameters": {}}}]
    upstream = FakeServer(lambda request, number: tool_reply(request, arguments))
    with upstream, gateway(upstream, controller="sc:draws=4") as url:
        client = openai.OpenAI(base_url=f"{url}/v1", api_key="none")
        asked: Any = {"model": "fake", "messages": MESSAGES, "tools": tools}
        wish = {"suffice": {"answer": "tool", "ignore": ["why"]}}
        if streamed:
            chunks = list(client.chat.completions.create(**asked, stream=True, extra_body=wish))
            (call,) = [call for chunk in chunks for call in chunk.choices[0].delta.tool_calls or ()]
            reason = chunks[-1].choices[0].finish_reason
        else:
            reply = client.chat.completions.create(**asked, extra_body=wish)
            (call,) = reply.choices[0].message.tool_calls
            reason = reply.choices[0].finish_reason
            assert reply.model_dump()["suffice"]["votes"] == {
                'book({"to": "Oslo"})': 2,
                'book({"to": "Rome"})': 1,
                "no tool call": 1,
            }
    assert (call.id, call.function.arguments, reason) == ("call_1", arguments[1], "tool_calls")
    assert upstream.requests[0]["tools"] == tools


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422, 429, 500, 503])
def test_the_upstream_s_errors_keep_their_status_and_words(status: int) -> None:
    fault = {"error": {"message": "as you say", "type": "odd", "param": "p", "code": "c"}}
    with FakeServer(lambda request, number: Reply(fault, status)) as upstream, gateway(upstream, retries=1) as url:
        reply = post(url, ASK)
        assert (reply.status_code, reply.json()) == (status, fault)
        client = openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)
        with pytest.raises(openai.APIStatusError, match="as you say"):
            client.chat.completions.create(model="fake", messages=MESSAGES)


def test_errors_in_another_shape_get_ours() -> None:
    with FakeServer(lambda request, number: Reply(b"<html>", 503)) as upstream, gateway(upstream, retries=0) as url:
        reply = post(url, ASK)
    assert reply.status_code == 503 and "<html>" in reply.json()["error"]["message"]


def test_an_upstream_that_is_down_or_slow() -> None:
    with gateway("http://127.0.0.1:9/v1", retries=0) as url:
        assert (post(url, ASK).status_code, httpx.get(f"{url}/readyz").status_code) == (502, 503)
        assert post(url, ASK | {"n": 2}).json()["error"]["code"] == "unreachable"
        assert httpx.get(f"{url}/healthz").status_code == 200
    slow = lambda request, number: Reply(completion([boxed(1)]), delay=20)  # noqa: E731
    with FakeServer(slow) as upstream, gateway(upstream, retries=0, timeout_seconds=0.2) as url:
        assert (post(url, ASK).status_code, post(url, ASK | {"n": 2}).status_code) == (504, 504)
    with FakeServer(slow) as upstream, gateway(upstream) as url:
        assert post(url, ASK | {"suffice": {"deadline_seconds": 0.2}}).status_code == 504


def test_a_vote_that_lost_draws_still_answers() -> None:
    def script(request: dict[str, Any], number: int) -> Any:
        return boxed(42) if number == 0 else Reply(b"", 403)

    with FakeServer(script) as upstream, gateway(upstream, controller="esc:window=2", answer="regex:(never)") as url:
        reply = post(url, ASK)
    assert reply.status_code == 200 and reply.json()["suffice"]["stop_reason"] == "failed"
    assert reply.json()["choices"][0]["message"]["content"] == boxed(42)


def test_a_deadline_answers_with_what_there_is() -> None:
    script = lambda request, number: Reply(completion([boxed(42)] * 2), delay=0 if number == 0 else 20)  # noqa: E731
    with FakeServer(script) as upstream, gateway(upstream, controller="esc:window=2", answer="regex:(never)") as url:
        reply = post(url, ASK | {"suffice": {"deadline_seconds": 1}})
    assert reply.json()["suffice"]["stop_reason"] == reply.headers["x-suffice-stop-reason"] == "deadline"


def test_limits_on_size_and_numbers() -> None:
    with FakeServer(always) as upstream, gateway(upstream, max_body_bytes=500) as url:
        assert post(url, ASK).status_code == 200
        assert post(url, ASK | {"pad": "x" * 500}).status_code == 413
    slow = lambda request, number: Reply(completion([boxed(1)] * request.get("n", 1)), delay=0.3)  # noqa: E731

    async def many(url: str) -> list[int]:
        async with httpx.AsyncClient(timeout=30) as client:
            posts = [client.post(f"{url}/v1/chat/completions", json=ASK) for _ in range(6)]
            return sorted(reply.status_code for reply in await asyncio.gather(*posts))

    with FakeServer(slow) as upstream, gateway(upstream, max_requests=2, max_queue=2) as url:
        assert asyncio.run(many(url)) == [200] * 4 + [429] * 2
    with FakeServer(slow) as upstream, gateway(upstream, controller="sc:draws=4", fan_out=3, max_draws=5) as url:
        assert asyncio.run(many(url)) == [200] * 6
        assert upstream.most_in_flight <= 5
        assert max(request.get("n", 1) for request in upstream.requests) <= 3


def test_keys_are_asked_for_and_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALICE", "sk-alice")
    monkeypatch.setenv("BOB", "sk-bob")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-upstream")
    with FakeServer(always) as upstream, gateway(upstream, api_key_env=("ALICE", "BOB")) as url:
        for wrong in ({}, {"authorization": "Bearer sk-eve"}, {"authorization": "Basic sk-bob"}, {"api-key": "sk-bob"}):
            for path in ("chat/completions", "completions", "embeddings"):
                reply = httpx.post(f"{url}/v1/{path}", json=ASK, headers=wrong)
                assert (reply.status_code, reply.json()["error"]["code"]) == (401, "invalid_api_key")
        for path in ("models", "suffice/recent"):
            assert httpx.get(f"{url}/v1/{path}").status_code == 401
        for path in ("", "page.js", "page.css", "healthz", "readyz", "metrics"):
            assert httpx.get(f"{url}/{path}").status_code == 200
        assert upstream.requests == []
        for key in ("sk-alice", "sk-bob"):
            assert post(url, ASK, headers={"authorization": f"Bearer {key}"}).status_code == 200
            assert post(url, ASK | {"n": 2}, headers={"authorization": f"Bearer {key}"}).status_code == 200
        assert {headers["authorization"] for headers in upstream.headers} == {"Bearer sk-upstream"}
    with FakeServer(always) as upstream, gateway(upstream, forward_auth=True) as url:
        assert post(url, ASK, headers={"authorization": "Bearer sk-mine"}).status_code == 200
        assert upstream.headers[0]["authorization"] == "Bearer sk-mine"


def test_keys_may_come_from_a_file(tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.write_text("sk-alice\n\n  sk-bob  \n")
    with FakeServer(always) as upstream, gateway(upstream, api_key_file=str(keys)) as url:
        statuses = [
            post(url, ASK, headers={"authorization": f"Bearer sk-{name}"}).status_code for name in ("bob", "eve")
        ]
    assert statuses == [200, 401]


def test_other_web_sites_are_refused() -> None:
    with FakeServer(always) as upstream, gateway(upstream) as url:
        assert post(url, ASK, headers={"sec-fetch-site": "cross-site"}).status_code == 403
        assert post(url, ASK, headers={"host": "evil.example"}).status_code == 403
        assert post(url, ASK, headers={"sec-fetch-site": "same-origin"}).status_code == 200


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_a_client_that_hangs_up_cancels_its_draws(streamed: bool) -> None:
    slow = lambda request, number: Reply(completion([boxed(1)]), delay=20)  # noqa: E731
    with FakeServer(slow) as upstream, gateway(upstream, controller="sc:draws=3", fan_out=1) as url:
        asked: Any = {"json": ASK | {"stream": streamed}, "timeout": 0.7}
        with (
            pytest.raises(httpx.ReadTimeout),
            httpx.stream("POST", f"{url}/v1/chat/completions", **asked) as reply,
        ):
            list(reply.iter_bytes())
        assert until(lambda: upstream.hung_up == 1 and upstream.in_flight == 0, 3)
        assert until(lambda: upstream.connections == 0, 3)
        assert "suffice_cancellations_total" in httpx.get(f"{url}/metrics").text
        assert until(lambda: httpx.get(f"{url}/v1/suffice/recent").json()["recent"][0]["kind"] == "cancelled")


def test_other_endpoints_are_passed_on_and_the_rest_is_404() -> None:
    with FakeServer(lambda request, number: Reply({"object": "list"})) as upstream, gateway(upstream) as url:
        assert httpx.get(f"{url}/v1/models").json()["data"][0]["id"] == "fake"
        assert httpx.post(f"{url}/v1/embeddings?x=1", json={"input": "a"}).json() == {"object": "list"}
        assert httpx.post(f"{url}/v1/completions", json={"prompt": "a"}).status_code == 200
        assert upstream.paths == ["/v1/embeddings?x=1", "/v1/completions"]
        for call in (httpx.get(f"{url}/v1/files"), httpx.get(f"{url}/v1/chat/completions"), httpx.put(f"{url}/x")):
            assert call.status_code in (404, 405) and "message" in call.json()["error"]


def test_metrics_and_recent_requests_count() -> None:
    def value(text: str, name: str) -> float:
        return sum(float(line.split()[-1]) for line in text.splitlines() if line.startswith(name))

    with FakeServer(always) as upstream, gateway(upstream) as url:
        before = httpx.get(f"{url}/metrics").text
        for _ in range(3):
            post(url, ASK)
        post(url, ASK | {"n": 2})
        after = httpx.get(f"{url}/metrics").text
        told = httpx.get(f"{url}/v1/suffice/recent").json()

    def grown(name: str) -> float:
        return value(after, name) - value(before, name)

    assert grown('suffice_requests_total{outcome="vote"}') == 3
    assert grown('suffice_requests_total{outcome="relay"}') == 1
    assert grown("suffice_samples_sum") == 12 and grown("suffice_rounds_sum") == 3
    assert grown("suffice_samples_saved_total") == 84
    assert grown('suffice_tokens_total{kind="completion"}') == 120 and grown("suffice_tokens_saved_total") == 840
    assert grown("suffice_confidence_count") == 3 and grown("suffice_upstream_seconds_count") == 3
    assert value(after, "suffice_draws_in_flight") == 0
    assert told["totals"] == {
        "requests": 4, "votes": 3, "samples": 12, "samples_saved": 84, "tokens": 120, "tokens_saved": 840
    }  # fmt: skip
    assert [entry["kind"] for entry in told["recent"]] == ["relay", "vote", "vote", "vote"]
    assert "6 * 7" not in json.dumps(told) and "42" not in json.dumps([entry.get("answer") for entry in told["recent"]])


@pytest.mark.parametrize("log_text", [False, True])
def test_the_access_log_has_a_json_line_a_request(log_text: bool, capfd: Any) -> None:
    with FakeServer(always) as upstream, gateway(upstream, log_text=log_text) as url:
        post(url, ASK, headers={"authorization": "Bearer sk-secret"})
        post(url, b"nonsense")
    lines = [json.loads(line) for line in capfd.readouterr().out.splitlines() if line.startswith("{")]
    assert [(line["status"], line["kind"]) for line in lines] == [(200, "vote"), (400, "error")]
    assert (lines[0]["samples"], lines[0]["rounds"], lines[0]["stop_reason"]) == (4, 1, "controller")
    text = json.dumps(lines)
    assert ("6 * 7" in text) == log_text and "sk-secret" not in text


def test_odd_usage_is_summed_as_far_as_it_goes() -> None:
    usages: list[Any] = [
        {"prompt_tokens": 5, "completion_tokens": 10, "prompt_tokens_details": None, "odd": "a"},
        {"prompt_tokens": 5, "completion_tokens": 10, "prompt_tokens_details": {"cached_tokens": 3}, "odd": 4},
        {"prompt_tokens": 5, "completion_tokens": 10, "prompt_tokens_details": {"cached_tokens": 4}},
    ]

    def script(request: dict[str, Any], number: int) -> Reply:
        return Reply(completion([boxed(42)]) | {"usage": usages[number % 3]})

    with FakeServer(script) as upstream, gateway(upstream, controller="sc:draws=3") as url:
        usage = post(url, ASK).json()["usage"]
    assert usage["prompt_tokens_details"] == {"cached_tokens": 7} and usage["total_tokens"] == 45


def test_odd_requests_are_400_and_odd_replies_still_replies() -> None:
    with FakeServer(always) as upstream, gateway(upstream) as url:
        for odd in (
            {"seed": "abc"}, {"seed": [1]}, {"suffice": {"budget": 10**400}}, {"suffice": {"extra": -1}},
            {"suffice": {"deadline_seconds": 10**400}},
            {"suffice": {"controller": "\ud800"}}, {"suffice": {"answer": "\ud800"}}, {"suffice": {"\ud800": 1}},
            {"suffice": {"controller": "plan:actions=" + "1+" * 1000}}, {"n": 1000},
        ):  # fmt: skip
            reply = post(url, json.dumps(ASK | odd).encode())
            assert reply.status_code == 400 and "message" in reply.json()["error"], odd
        for fine in ({"modalities": 5}, {"model": "\ud800"}, {"model": {"a": 1}}, {"stream": "false"}):
            assert post(url, json.dumps(ASK | fine).encode()).status_code == 200, fine
        assert httpx.get(f"{url}/v1/suffice/recent").status_code == 200
    with FakeServer(lambda request, number: "\ud800 " + boxed(42)) as upstream, gateway(upstream) as url:
        assert post(url, ASK).json()["suffice"]["answer"] == "42"
        client = openai.OpenAI(base_url=f"{url}/v1", api_key="none")
        assert list(client.chat.completions.create(model="fake", messages=MESSAGES, stream=True))


def test_an_unforeseen_failure_has_openai_s_shape_and_a_line(monkeypatch: pytest.MonkeyPatch, capfd: Any) -> None:
    def fail(outcome: Any) -> Any:
        raise RuntimeError("secret detail")

    monkeypatch.setattr("suffice.gateway.votes.summary", fail)
    with FakeServer(always) as upstream, gateway(upstream) as url:
        whole, streamed = post(url, ASK), post(url, ASK | {"stream": True})
    assert whole.status_code == 500 and whole.json()["error"]["type"] == "server_error"
    assert "secret detail" not in whole.text + streamed.text
    lines = [json.loads(line) for line in capfd.readouterr().out.splitlines() if line.startswith("{")]
    assert [line["kind"] for line in lines] == ["error", "error"]


def test_to_call_no_tool_can_win() -> None:
    arguments = [None] * 7 + ["{}"]
    tools = [{"type": "function", "function": {"name": "book"}}]
    upstream = FakeServer(lambda request, number: tool_reply(request, arguments))
    with upstream, gateway(upstream, controller="sc:draws=8") as url:
        reply = post(url, ASK | {"tools": tools, "suffice": {"answer": "tool"}}).json()
    assert reply["suffice"]["answer"] == "no tool call" and "tool_calls" not in reply["choices"][0]["message"]


def test_hanging_up_on_a_relay_ends_it_and_relays_have_limits() -> None:
    slow = lambda request, number: Reply(completion([boxed(1)]), delay=20)  # noqa: E731
    with FakeServer(slow) as upstream, gateway(upstream, max_requests=1, max_queue=0) as url:
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(f"{url}/v1/chat/completions", json=ASK | {"n": 2}, timeout=0.5)
        assert until(lambda: upstream.hung_up == 1 and upstream.in_flight == 0, 3)
        reply = post(url, ASK | {"n": 2, "suffice": {"deadline_seconds": 0.3}})
        assert reply.status_code == 504

        async def two() -> list[int]:
            async with httpx.AsyncClient(timeout=2) as client:
                body = ASK | {"n": 2, "suffice": {"deadline_seconds": 1}}
                posts = [client.post(f"{url}/v1/chat/completions", json=body) for _ in range(2)]
                return sorted(reply.status_code for reply in await asyncio.gather(*posts))

        assert asyncio.run(two()) == [429, 504]


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


def test_an_upstream_s_key_is_never_passed_on(monkeypatch: pytest.MonkeyPatch, capfd: Any) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-upstream\n")
    fault = Reply({"error": {"message": "bad key sk-upstream"}}, 401)
    with FakeServer(lambda request, number: fault) as upstream, gateway(upstream) as url:
        reply = post(url, ASK)
    assert reply.status_code == 401 and "sk-upstream" not in reply.text + capfd.readouterr().out
    assert upstream.headers[0]["authorization"] == "Bearer sk-upstream"


def test_a_malicious_regular_expression_holds_up_nobody_else() -> None:
    evil = ASK | {"suffice": {"answer": "regex:(a+)+$", "controller": "sc", "budget": 8}}

    def script(request: dict[str, Any], number: int) -> str:
        return "a" * 40 + "!" if request["messages"][0]["content"] == "evil" else r"\boxed{x+y^2}"

    async def main(url: str) -> float:
        async with httpx.AsyncClient(timeout=60) as client:
            bad = evil | {"messages": [{"role": "user", "content": "evil"}]}
            others = [asyncio.create_task(client.post(f"{url}/v1/chat/completions", json=bad)) for _ in range(10)]
            await asyncio.sleep(0.5)
            begun = time.monotonic()
            assert (await client.post(f"{url}/v1/chat/completions", json=ASK)).status_code == 200
            seconds = time.monotonic() - begun
            for other in others:
                other.cancel()
            return seconds

    with FakeServer(script) as upstream, gateway(upstream) as url:
        assert asyncio.run(main(url)) < 5


def test_flow_through_the_gateway() -> None:
    with FakeServer(always, streams=True) as upstream, gateway(upstream) as url:
        reply = post(url, ASK | {"suffice": {"mode": "flow", "extra": 2}}).json()
        assert reply["choices"][0]["message"]["content"] == boxed(42) and reply["suffice"]["answer"] == "42"
        assert reply["suffice"]["launched"] >= reply["suffice"]["samples"] and reply["usage"]["completion_tokens"] > 0
        assert all(request["stream"] for request in upstream.requests)
        refused = post(url, ASK | {"suffice": {"mode": "flow", "controller": "esc"}})
        assert (refused.status_code, refused.json()["error"]["param"]) == (400, "suffice.mode")
        assert post(url, ASK | {"suffice": {"mode": "stream"}}).status_code == 400
        streamed = post(url, ASK | {"stream": True, "suffice": {"mode": "flow", "order": "arrival"}})
        assert "[DONE]" in streamed.text
