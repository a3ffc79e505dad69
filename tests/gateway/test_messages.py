"""Anthropic's Messages through the gateway, as its clients meet them."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anthropic
import httpx
import pytest
from helpers.gateways import MESSAGES, always, answered, behind, gateway, post
from helpers.keys import key_file
from helpers.live import boxed

import suffice
from suffice.testing import FakeServer, Reply, message

pytestmark = pytest.mark.usefixtures("quick")

ASK: dict[str, Any] = {"model": "fake", "max_tokens": 99, "messages": MESSAGES}
FOUR: Any = {"controller": "sc:draws=4"}
TOOLS: Any = [{"name": "book", "input_schema": {"type": "object"}}]


def use(to: str, number: int) -> dict[str, Any]:
    return {"type": "tool_use", "id": f"toolu_{number}", "name": "book", "input": {"to": to}}


ask = partial(post, path="messages")


@contextmanager
def asking(script: Any, streams: bool = False, **settings: Any) -> Iterator[tuple[FakeServer, anthropic.Anthropic]]:
    """An upstream, and the official client before a gateway to it."""
    with (
        behind(script, streams=streams, **settings) as (upstream, url),
        anthropic.Anthropic(base_url=url, api_key="whatever", max_retries=0) as client,
    ):
        yield upstream, client


def test_the_official_client_gets_a_normal_message() -> None:
    thought = {"type": "thinking", "thinking": "6 * 7", "signature": "sig"}
    usage = {"input_tokens": 5, "cache_read_input_tokens": 20, "output_tokens": 10, "service_tier": "standard"}

    def script(request: dict[str, Any], number: int) -> Reply:
        return Reply(message(boxed(7 if number == 0 else 42), thought) | {"id": f"msg_{number}", "usage": usage})

    with asking(script, controller="sc:draws=4") as (upstream, client):
        raw = client.messages.with_raw_response.create(
            **ASK, system="Think.", thinking={"type": "enabled", "budget_tokens": 1024}
        )
        reply = raw.parse()
    assert [block.type for block in reply.content] == ["text", "thinking"], "as the winner's came"
    assert reply.content[0].text == boxed(42) and reply.id != "msg_0" and reply.stop_reason == "end_turn"
    assert (reply.usage.input_tokens, reply.usage.cache_read_input_tokens, reply.usage.output_tokens) == (20, 80, 40)
    told = reply.model_dump()["suffice"]
    assert (told["answer"], told["votes"], told["samples"]) == ("42", {"42": 3, "7": 1}, 4)
    assert raw.headers["x-suffice-samples"] == "4" and raw.headers["x-suffice-stop-reason"] == "controller"
    asked = ASK | {"system": "Think.", "thinking": {"type": "enabled", "budget_tokens": 1024}}
    assert upstream.requests == [asked] * 4 and set(upstream.paths) == {"/v1/messages"}
    assert upstream.headers[0]["x-api-key"] == "none" and "whatever" not in str(upstream.headers)
    assert upstream.headers[0]["anthropic-version"] == client.default_headers["anthropic-version"]


@pytest.mark.parametrize("streams", [False, True], ids=["rounds", "flow"])
def test_the_client_streams(streams: bool) -> None:
    wish = {"suffice": {"flow": streams, "controller": "asc"}}
    with asking(always, streams) as (upstream, client):
        events = list(client.messages.create(**ASK, stream=True, extra_body=wish))
        with client.messages.stream(**ASK, extra_body=wish) as stream:
            text, final = "".join(stream.text_stream), stream.get_final_message()
    assert [event.type for event in events] == [
        "message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta",
        "message_stop",
    ]  # fmt: skip
    assert text == boxed(42) and final.stop_reason == "end_turn"
    assert final.usage.output_tokens >= 40 and final.usage.input_tokens >= 20
    assert final.model_dump()["suffice"]["answer"] == "42"
    sent = [request.get("stream") for request in upstream.requests]
    assert set(sent) == {True} if streams else sent.count(True) == 2, "one draw of each streams: it may think"


def test_the_async_client_and_its_heartbeats() -> None:
    slow = lambda request, number: Reply(message(boxed(42)), delay=0.5)  # noqa: E731

    async def main(url: str) -> Any:
        client = anthropic.AsyncAnthropic(base_url=url, api_key="none")
        async with client, client.messages.stream(**ASK) as stream:
            return await stream.get_final_message()

    with FakeServer(slow) as upstream, gateway(upstream, heartbeat_seconds=0.1) as url:
        assert asyncio.run(main(url)).content[0].text == boxed(42)
        assert ask(url, ASK | {"stream": True}).text.count(": waiting") >= 2


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_agents_vote_on_tools(streamed: bool) -> None:
    script = lambda request, number: Reply(message("Well.", use(["Rome", "Oslo", "Oslo"][number], number)))  # noqa: E731
    with asking(script, controller="sc:draws=3") as (_, client):
        asked: Any = {**ASK, "tools": TOOLS, "extra_body": {"suffice": {"answer": "tool"}}}
        if streamed:
            with client.messages.stream(**asked) as stream:
                reply: Any = stream.get_final_message()
        else:
            reply = client.messages.create(**asked)
    said, used = reply.content
    assert (said.text, used.type, used.input) == ("Well.", "tool_use", {"to": "Oslo"})
    assert used.id in ("toolu_1", "toolu_2") and reply.stop_reason == "tool_use"
    assert reply.model_dump()["suffice"]["votes"] == {'book({"to": "Oslo"})': 2, 'book({"to": "Rome"})': 1}


def test_an_object_and_a_tool_s_input_are_elected_field_by_field() -> None:
    trips = [{"to": "Oslo", "day": 1}, {"to": "Rome", "day": 2}, {"to": "Oslo", "day": 3}, {"to": "Bern", "day": 2}]
    form = {"output_config": {"format": {"type": "json_schema", "schema": {"type": "object"}}}}
    reply = answered(lambda request, number: json.dumps(trips[number]), ASK | form, "messages", **FOUR).reply.json()
    assert json.loads(reply["content"][0]["text"]) in trips
    script = lambda request, number: Reply(message("Well.", use("", number) | {"input": trips[number]}))  # noqa: E731
    asked = ASK | {"tools": TOOLS, "suffice": {"answer": "tool:fields"}}
    reply = answered(script, asked, "messages", **FOUR).reply.json()
    assert [block["type"] for block in reply["content"]] == ["text", "tool_use"]
    assert reply["content"][1]["input"] in trips


def test_a_client_s_own_tool_of_anthropic_s_is_voted_on() -> None:
    tools = [{"type": "bash_20250124", "name": "bash"}]
    script = lambda request, number: Reply(message(None, use("Oslo", 1)))  # noqa: E731
    asked = ASK | {"tools": tools, "suffice": {"answer": "tool:name"}}
    reply = answered(script, asked, "messages", controller="sc:draws=2").reply.json()
    assert reply["suffice"]["answer"] == "book"


def test_results_of_tools_are_no_question() -> None:
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "7"}]}
    turns = [*MESSAGES, {"role": "assistant", "content": [use("Oslo", 1)]}, result]
    with FakeServer(always) as upstream, gateway(upstream, vote="auto") as url:
        assert ask(url, ASK | {"messages": turns}).json()["suffice"]["answer"] == "42"
        assert upstream.requests[0]["messages"] == turns


def test_errors_have_anthropic_s_shape(tmp_path: Path) -> None:
    settings: Any = {"keys": key_file(tmp_path, alice="sk-alice"), "retries": 0, "max_body_bytes": 500}
    fault = {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}, "request_id": "req_1"}
    with FakeServer(lambda request, number: Reply(fault, 529)) as upstream, gateway(upstream, **settings) as url:
        key = {"x-api-key": "sk-alice"}
        assert (ask(url, ASK, headers=key).status_code, ask(url, ASK, headers=key).json()) == (529, fault)
        told = [
            (reply.status_code, reply.json()["type"], reply.json()["error"]["type"])
            for reply in (
                ask(url, ASK),
                ask(url, {"model": "fake"}, headers=key),
                ask(url, ASK | {"pad": "x" * 500}, headers=key),
                ask(url, ASK, headers={**key, "sec-fetch-site": "cross-site"}),
                httpx.post(f"{url}/v1/messages/count_tokens", json=ASK),
            )
        ]
        assert told == [
            (401, "error", "authentication_error"),
            (400, "error", "invalid_request_error"),
            (413, "error", "invalid_request_error"),
            (403, "error", "permission_error"),
            (401, "error", "authentication_error"),
        ]
        with (
            anthropic.Anthropic(base_url=url, api_key="sk-eve", max_retries=0) as client,
            pytest.raises(anthropic.AuthenticationError, match="the key is missing or wrong"),
        ):
            client.messages.create(**ASK)
    with gateway("http://127.0.0.1:9/v1", retries=0) as url:
        assert ask(url, ASK).json()["error"]["type"] == "api_error"


def test_an_upstream_s_error_in_openai_s_shape_gets_anthropic_s() -> None:
    fault = Reply({"error": {"code": 400, "message": "no such model", "type": "x"}}, 400)
    reply, _ = answered(lambda request, number: fault, ASK, "messages")
    assert reply.json() == {"type": "error", "error": {"type": "api_error", "message": "no such model"}}


def test_errors_in_a_stream_are_raised_by_the_client() -> None:
    fault = {"type": "error", "error": {"type": "not_found_error", "message": "no such model"}}
    slow = Reply(fault, 404, delay=0.4)
    with (
        asking(lambda request, number: slow, heartbeat_seconds=0.1) as (_, client),
        pytest.raises(anthropic.APIStatusError, match="no such model"),
    ):
        list(client.messages.create(**ASK, stream=True))


def test_tokens_are_counted_by_the_upstream() -> None:
    with asking(always) as (upstream, client):
        client.messages.count_tokens(model="fake", messages=MESSAGES)
        assert upstream.paths[-1] == "/v1/messages/count_tokens"


@pytest.mark.slow
def test_the_real_model_speaks_it(local: suffice.LocalServer) -> None:
    asked: Any = {"model": local.model, "max_tokens": 24, "messages": [{"role": "user", "content": "What is 3 + 5?"}]}
    with (
        gateway(local.base_url, controller="sc:draws=3") as url,
        anthropic.Anthropic(base_url=url, api_key="none") as client,
    ):
        reply = client.messages.create(**asked)
        with client.messages.stream(**asked) as stream:
            final: anthropic.types.Message = stream.get_final_message()
    for one in (reply, final):
        assert one.content[0].type == "text" and one.usage.output_tokens > 3
        assert one.model_dump()["suffice"]["samples"] == 3
