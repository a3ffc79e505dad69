"""Votes held by the gateway, as clients meet them: whole, streamed, on tool calls and in flow."""

import asyncio
import json
from collections.abc import Iterator
from itertools import cycle, islice
from typing import Any

import httpx
import openai
import pytest
from helpers.gateways import ASK, MESSAGES, always, answered, behind, figures, gateway, official, post, under_way
from helpers.live import boxed, until

from suffice.testing import FakeServer, Reply, completion

pytestmark = pytest.mark.usefixtures("quick")


def test_the_official_client_gets_a_normal_completion() -> None:
    texts = [boxed(7), boxed(42), boxed(42), "Could you say more?", boxed(42), boxed(42), boxed(42), boxed(42)]
    script = lambda request, number: [texts.pop(0) for _ in range(request.get("n", 1))]  # noqa: E731
    with official(script, controller="esc:window=4") as (upstream, client):
        raw = client.chat.completions.with_raw_response.create(
            model="fake",
            messages=MESSAGES,
            temperature=0.3,
            max_tokens=99,
            extra_body={"top_k": 5, "odd": [1], "suffice": {}},
        )
        reply = raw.parse()
    assert reply.choices[0].message.content == boxed(42)
    assert (reply.choices[0].finish_reason, reply.choices[0].index, len(reply.choices)) == ("stop", 0, 1)
    assert reply.usage is not None
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens, reply.usage.total_tokens) == (10, 80, 90)
    told = reply.model_dump()["suffice"]
    assert (told["answer"], told["votes"], told["samples"], told["rounds"]) == ("42", {"42": 6, "7": 1}, 8, 2)
    assert (told["stop_reason"], told["samples_saved"]) == ("controller", 24)
    assert 0.9 < told["same_as_full_vote"] < 1 and "confidence" not in told
    assert (raw.headers["x-suffice-samples"], raw.headers["x-suffice-rounds"]) == ("8", "2")
    assert raw.headers["x-suffice-stop-reason"] == "controller"
    assert float(raw.headers["x-suffice-same-as-full-vote"]) == pytest.approx(told["same_as_full_vote"], abs=1e-4)
    expected = ASK | {"temperature": 0.3, "max_tokens": 99, "top_k": 5, "odd": [1], "n": 4}
    assert upstream.requests == [expected, expected]
    assert upstream.headers[0]["authorization"] == "Bearer none", "the client's key stays here"


def test_where_a_vote_is_asked_for_a_seed_is_spread_and_the_winner_keeps_its_finish_reason() -> None:
    def script(request: dict[str, Any], number: int) -> Reply:
        return Reply(completion([boxed(42)], finish_reason="eos"))  # gives one, whatever n says

    with FakeServer(script) as upstream, gateway(upstream, controller="sc:draws=3") as url:
        reply = post(url, ASK | {"seed": 10, "suffice": {}}).json()
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
    first, rest = sorted(upstream.requests, key=lambda request: request.get("n", 1))
    assert (first["stream"], first["stream_options"]) == (True, {"include_usage": True}), "it may think"
    assert rest["n"] == 3 and "stream" not in rest and "stream_options" not in rest


def test_a_stream_has_heartbeats_and_standings_while_rounds_run() -> None:
    slow = lambda request, number: Reply(completion([boxed(42)] * request.get("n", 1)), delay=0.5)  # noqa: E731
    lines = answered(slow, ASK | {"stream": True}, heartbeat_seconds=0.1).reply.text.split("\n\n")
    assert lines.count(": waiting") >= 2
    standings = [json.loads(line.removeprefix(": suffice ")) for line in lines if line.startswith(": suffice ")]
    assert standings[-1]["decision"] == 0 and standings[-1]["votes"] == {"42": 4}
    assert lines[-2:] == ["data: [DONE]", ""]
    final = json.loads(lines[-3].removeprefix("data: "))
    assert final["suffice"]["answer"] == "42" and "usage" not in final, "no usage unless it is asked for"


@pytest.mark.parametrize(("heartbeat", "status"), [(60, 404), (0.1, 200)])
def test_an_error_before_a_stream_has_its_status_and_after_it_an_event(heartbeat: float, status: int) -> None:
    fault = {"error": {"message": "no such model", "type": "x", "param": None, "code": None}}
    answer, _ = answered(
        lambda request, number: Reply(fault, 404, delay=0.5), ASK | {"stream": True}, heartbeat_seconds=heartbeat
    )
    assert answer.status_code == status
    assert json.loads(answer.text.split("data: ")[-1]) == fault


@pytest.mark.slow
@pytest.mark.parametrize("path", ["chat/completions", "responses"])
def test_langchain(path: str) -> None:
    from langchain_openai import ChatOpenAI

    with behind(always) as (upstream, url), httpx.Client() as http:
        options: Any = {"base_url": f"{url}/v1", "api_key": "none", "http_client": http}
        model = ChatOpenAI(model="fake", use_responses_api=path == "responses", **options)
        assert model.invoke("What is 6 * 7?").text == boxed(42)
        assert "".join(str(chunk.text) for chunk in model.stream("What is 6 * 7?")) == boxed(42)
    assert set(upstream.paths) == {f"/v1/{path}"}


def test_a_named_extractor_makes_a_vote_of_json_answers() -> None:
    body = ASK | {"response_format": {"type": "json_object"}, "suffice": {"answer": "json:a"}}
    with FakeServer(lambda request, number: '{"a": 5}') as upstream, gateway(upstream) as url:
        reply = post(url, body).json()
    assert reply["suffice"]["answer"] == "5" and upstream.requests[0]["response_format"] == {"type": "json_object"}


def tool_reply(request: dict[str, Any], arguments: Iterator[tuple[int, str | None]]) -> Reply:
    drawn = list(islice(arguments, request.get("n", 1)))
    body = completion(["x"] * len(drawn), finish_reason="tool_calls")
    for choice, (number, given) in zip(body["choices"], drawn, strict=True):
        function = {"name": "book", "arguments": given}
        call = {"id": f"call_{number}", "type": "function", "function": function}
        said = {"content": None, "tool_calls": [call]} if given else {"content": "I would rather talk."}
        choice["message"] = {"role": "assistant", **said}
    return Reply(body)


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_agents_vote_on_tool_calls(streamed: bool) -> None:
    arguments = ['{"to": "Rome", "why": "a"}', '{"to":"Oslo","why":"b"}', '{"why": "c", "to": "Oslo"}', None]
    tools: Any = [{"type": "function", "function": {"name": "book", "parameters": {}}}]
    waiting = cycle(enumerate(arguments))
    upstream = FakeServer(lambda request, number: tool_reply(request, waiting))
    with (
        upstream,
        gateway(upstream, controller="sc:draws=4") as url,
        openai.OpenAI(base_url=f"{url}/v1", api_key="none") as client,
    ):
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


def test_a_vote_that_lost_draws_still_answers() -> None:
    def script(request: dict[str, Any], number: int) -> Any:
        return boxed(42) if number == 0 else Reply(b"", 403)

    reply, _ = answered(script, ASK, controller="esc:window=2", answer="regex:(never)")
    assert reply.status_code == 200 and reply.json()["suffice"]["stop_reason"] == "failed"
    assert reply.json()["choices"][0]["message"]["content"] == boxed(42)


def test_a_deadline_answers_with_what_there_is() -> None:
    script = lambda request, number: Reply(completion([boxed(42)] * 2), delay=0 if number == 0 else 200)  # noqa: E731
    reply, _ = answered(
        script, ASK | {"suffice": {"deadline_seconds": 2}}, controller="esc:window=2", answer="regex:(never)"
    )
    assert reply.json()["suffice"]["stop_reason"] == reply.headers["x-suffice-stop-reason"] == "deadline"


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_a_client_that_hangs_up_cancels_its_draws(streamed: bool) -> None:
    slow = lambda request, number: Reply(completion([boxed(1)]), delay=200)  # noqa: E731
    with FakeServer(slow) as upstream, gateway(upstream, controller="sc:draws=3", fan_out=1) as url:
        before = figures(url)["suffice_cancellations_total"]
        with under_way(url, ASK | {"stream": streamed}, upstream):
            pass
        assert until(lambda: upstream.hung_up == 1 and upstream.in_flight == 0)
        assert until(lambda: upstream.connections == 0)
        assert until(lambda: figures(url)["suffice_cancellations_total"] == before + 1)
        assert until(lambda: httpx.get(f"{url}/v1/suffice/recent").json()["recent"][0]["kind"] == "cancelled")


def test_to_call_no_tool_can_win() -> None:
    arguments = [None] * 7 + ["{}"]
    tools = [{"type": "function", "function": {"name": "book"}}]
    waiting = cycle(enumerate(arguments))
    upstream = FakeServer(lambda request, number: tool_reply(request, waiting))
    with upstream, gateway(upstream, controller="sc:draws=8") as url:
        reply = post(url, ASK | {"tools": tools, "suffice": {"answer": "tool"}}).json()
    assert reply["suffice"]["answer"] == "no tool call" and "tool_calls" not in reply["choices"][0]["message"]


def test_flow_through_the_gateway() -> None:
    with FakeServer(always, streams=True) as upstream, gateway(upstream) as url:
        wish = {"flow": "order=arrival,extra=2", "controller": "asc"}
        reply = post(url, ASK | {"suffice": wish}).json()
        assert reply["choices"][0]["message"]["content"] == boxed(42) and reply["suffice"]["answer"] == "42"
        # asc stops at four that agree; when three were in, three more were on their way.
        assert (reply["suffice"]["samples"], reply["suffice"]["launched"]) == (4, 6)
        assert reply["usage"]["completion_tokens"] == 40 + reply["suffice"]["cancelled_tokens"]
        assert all(request["stream"] for request in upstream.requests)
        refused = post(url, ASK | {"suffice": {"flow": True, "controller": "esc"}})
        assert (refused.status_code, refused.json()["error"]["param"]) == (400, "suffice.flow")
        for odd in ("order=size", "extra=-1", "arrival", 2, ["order=arrival"]):
            assert post(url, ASK | {"suffice": {"flow": odd}}).json()["error"]["param"] == "suffice.flow"
        told = post(url, ASK, headers={"x-suffice-flow": "true", "x-suffice-controller": "asc"}).json()["suffice"]
        assert told["samples"] == 4 and "launched" in told
        streamed = post(url, ASK | {"stream": True, "suffice": {"flow": "order=arrival"}})
        assert "[DONE]" in streamed.text
