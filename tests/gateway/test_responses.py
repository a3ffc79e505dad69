"""OpenAI's Responses through the gateway, as its clients meet them."""

import asyncio
import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import openai
import pydantic
import pytest
from helpers.gateways import always, gateway
from helpers.live import boxed

import suffice
from suffice.testing import FakeServer, Reply, response

pytestmark = pytest.mark.usefixtures("quick")

QUESTION = "What is 6 * 7?"
ASK: dict[str, Any] = {"model": "fake", "input": QUESTION}
TOOLS: Any = [{"type": "function", "name": "book", "parameters": {}}]


def call(to: str, number: int) -> dict[str, Any]:
    names = {"id": f"fc_{number}", "call_id": f"call_{number}", "name": "book"}
    return {"type": "function_call", **names, "arguments": json.dumps({"to": to}), "status": "completed"}


def post(url: str, body: dict[str, Any], **options: Any) -> httpx.Response:
    return httpx.post(f"{url}/v1/responses", json=body, timeout=60, trust_env=False, **options)


@contextmanager
def asking(script: Any, **settings: Any) -> Iterator[tuple[FakeServer, openai.OpenAI]]:
    """An upstream, and the official client before a gateway to it."""
    with (
        FakeServer(script) as upstream,
        gateway(upstream, **settings) as url,
        openai.OpenAI(base_url=f"{url}/v1", api_key="whatever", max_retries=0) as client,
    ):
        yield upstream, client


def test_the_official_client_gets_a_normal_response() -> None:
    thought = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "6 * 7"}]}

    def script(request: dict[str, Any], number: int) -> Reply:
        return Reply(response(boxed(7 if number == 0 else 42), thought) | {"id": f"resp_{number}"})

    with asking(script, controller="sc:draws=4") as (upstream, client):
        raw = client.responses.with_raw_response.create(
            model="fake", input=QUESTION, instructions="Think.", temperature=0.3, reasoning={"effort": "low"}
        )
        reply = raw.parse()
    assert reply.output_text == boxed(42) and reply.id != "resp_0" and reply.status == "completed"
    assert [item.type for item in reply.output] == ["message", "reasoning"], "as the winner's came"
    assert reply.usage is not None
    assert (reply.usage.input_tokens, reply.usage.output_tokens, reply.usage.total_tokens) == (20, 40, 60)
    told = reply.model_dump()["suffice"]
    assert (told["answer"], told["votes"], told["samples"]) == ("42", {"42": 3, "7": 1}, 4)
    assert raw.headers["x-suffice-samples"] == "4" and "x-suffice-no-vote" not in raw.headers
    asked = ASK | {"instructions": "Think.", "temperature": 0.3, "reasoning": {"effort": "low"}}
    assert upstream.requests == [asked] * 4 and set(upstream.paths) == {"/v1/responses"}


@pytest.mark.parametrize("streams", [False, True], ids=["rounds", "flow"])
def test_the_async_client_streams(streams: bool) -> None:
    wish = {"suffice": {"flow": streams, "controller": "asc"}}

    async def main(url: str) -> tuple[list[Any], Any]:
        async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none") as client:
            events = await client.responses.create(model="fake", input=QUESTION, stream=True, extra_body=wish)
            plain = [event async for event in events]
            async with client.responses.stream(model="fake", input=QUESTION, extra_body=wish) as stream:
                return plain, await stream.get_final_response()

    with FakeServer(always, streams=streams) as upstream, gateway(upstream) as url:
        events, final = asyncio.run(main(url))
    assert [event.type.removeprefix("response.") for event in events] == [
        "created", "in_progress", "output_item.added", "content_part.added", "output_text.delta", "output_text.done",
        "content_part.done", "output_item.done", "completed",
    ]  # fmt: skip
    assert [event.sequence_number for event in events] == list(range(9))
    assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == boxed(42)
    assert final.output_text == boxed(42) and final.model_dump()["suffice"]["answer"] == "42"
    assert events[-1].response.usage.output_tokens >= 40
    assert all(request.get("stream") is (True if streams else None) for request in upstream.requests)


def test_every_kind_of_item_streams() -> None:
    items = [
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "a"}]},
        {"type": "reasoning", "id": "rs_2", "summary": [], "content": [{"type": "reasoning_text", "text": "b"}]},
        call("Oslo", 1),
        {"type": "custom_tool_call", "id": "ctc_1", "call_id": "call_2", "name": "run", "input": "ls"},
        {"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": "aGk="},
    ]
    refused = [{"type": "refusal", "refusal": "No."}]
    body = response(boxed(42), *items, {"type": "message", "id": "msg_1", "role": "assistant", "content": refused})
    with (
        asking(lambda request, number: Reply(body), controller="sc:draws=1") as (_, client),
        client.responses.stream(model="fake", input=QUESTION) as stream,
    ):
        kinds = [event.type for event in stream]
        final = stream.get_final_response()
    assert [item.type for item in final.output] == [item["type"] for item in body["output"]]
    texts = ("reasoning_summary_text", "reasoning_text", "refusal")
    for kind in (*texts, "function_call_arguments", "custom_tool_call_input"):
        assert f"response.{kind}.delta" in kinds and f"response.{kind}.done" in kinds


def test_what_was_cut_off_ends_as_incomplete() -> None:
    cut = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    with asking(lambda request, number: Reply(response("So it is") | cut), controller="sc:draws=2") as (_, client):
        events = list(client.responses.create(model="fake", input=QUESTION, stream=True))
    assert events[-1].type == "response.incomplete" and events[-1].response.output_text == "So it is"


class Trip(pydantic.BaseModel):
    to: str
    day: int


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_a_parsed_response_is_elected_field_by_field(streamed: bool) -> None:
    trips = [("Oslo", 1), ("Rome", 2), ("Oslo", 3), ("Bern", 2)]
    texts = [json.dumps({"to": to, "day": day}) for to, day in trips]
    with asking(lambda request, number: texts[number], controller="sc:draws=4") as (upstream, client):
        if streamed:
            with client.responses.stream(model="fake", input="When?", text_format=Trip) as stream:
                reply: Any = stream.get_final_response()
        else:
            reply = client.responses.parse(model="fake", input="When?", text_format=Trip)
    assert reply.output_parsed == Trip(to="Oslo", day=1), "the first of those with most of the votes"
    assert upstream.requests[0]["text"]["format"]["type"] == "json_schema"


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_agents_vote_on_function_calls(streamed: bool) -> None:
    script = lambda request, number: Reply(response(None, call(["Rome", "Oslo", "Oslo"][number], number)))  # noqa: E731
    with asking(script, controller="sc:draws=3") as (_, client):
        asked: Any = {"model": "fake", "input": QUESTION, "tools": TOOLS, "extra_body": {"suffice": {"answer": "tool"}}}
        if streamed:
            with client.responses.stream(**asked) as stream:
                reply: Any = stream.get_final_response()
        else:
            reply = client.responses.create(**asked)
    (made,) = reply.output
    assert made.type == "function_call" and made.call_id in ("call_1", "call_2")
    assert json.loads(made.arguments) == {"to": "Oslo"}
    assert reply.model_dump()["suffice"]["votes"] == {'book({"to": "Oslo"})': 2, 'book({"to": "Rome"})': 1}


NO_VOTE: dict[str, dict[str, Any]] = {
    "previous_response_id": {"previous_response_id": "resp_1"},
    "conversation": {"conversation": "conv_1"},
    "prompt": {"prompt": {"id": "pmpt_1"}},
    "background": {"background": True},
    "store": {"store": True},
    "server tools": {"tools": [{"type": "web_search"}]},
    "tools": {"tools": TOOLS},
    "logprobs": {"include": ["message.output_text.logprobs"]},
    "text.format": {"text": {"format": {"type": "grammar"}}},
    "off": {"suffice": {"controller": "off"}},
}


@pytest.mark.parametrize("why", NO_VOTE)
def test_what_is_no_vote_is_passed_on_and_says_why(why: str) -> None:
    with FakeServer(always) as upstream, gateway(upstream) as url:
        reply = post(url, ASK | NO_VOTE[why])
    assert reply.headers["x-suffice-no-vote"] == why and "suffice" not in reply.json()
    assert upstream.requests == [{name: value for name, value in (ASK | NO_VOTE[why]).items() if name != "suffice"}]


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_a_scout_shows_whether_there_is_anything_to_vote_on(streamed: bool) -> None:
    ask = ASK | {"input": [{"role": "user", "content": [{"type": "input_text", "text": QUESTION}]}], "stream": streamed}
    with FakeServer(always, streams=True) as upstream, gateway(upstream, vote="auto") as url:
        assert '"samples": 4' in post(url, ask).text and len(upstream.requests) == 4
    story = "Once upon a time there was a fox who lived in a wood and slept. " * 12
    with FakeServer(lambda request, number: story, streams=True) as upstream, gateway(upstream, vote="auto") as url:
        reply = post(url, ask)
        assert reply.headers["x-suffice-no-vote"] == "no answer" and len(upstream.requests) == 1
        assert story.strip() in reply.text and "suffice" not in reply.text


@pytest.mark.parametrize("body", [{}, {"input": ""}, {"input": []}, {"input": 3}])
def test_a_body_that_is_no_request_is_400(body: dict[str, Any]) -> None:
    with FakeServer(always) as upstream, gateway(upstream) as url:
        reply = post(url, body)
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, "input")


def test_errors_in_a_stream_are_raised_by_the_client() -> None:
    fault = Reply({"error": {"message": "no such model", "type": "x", "param": None, "code": "c"}}, 404, delay=0.4)
    with asking(lambda request, number: fault, heartbeat_seconds=0.1) as (_, client):
        with pytest.raises(openai.APIError, match="no such model"):
            list(client.responses.create(model="fake", input=QUESTION, stream=True))
        with pytest.raises(openai.NotFoundError, match="no such model"):
            client.responses.create(model="fake", input=QUESTION)


@pytest.mark.slow
def test_langchain() -> None:
    from langchain_openai import ChatOpenAI

    with FakeServer(always) as upstream, gateway(upstream) as url, httpx.Client() as http:
        options: Any = {"base_url": f"{url}/v1", "api_key": "none", "http_client": http}
        model = ChatOpenAI(model="fake", use_responses_api=True, **options)
        assert model.invoke(QUESTION).text == boxed(42)
        assert "".join(str(chunk.text) for chunk in model.stream(QUESTION)) == boxed(42)
    assert set(upstream.paths) == {"/v1/responses"}


def test_curl() -> None:
    curl = shutil.which("curl")
    if not curl:
        pytest.skip("there is no curl here")
    with FakeServer(always) as upstream, gateway(upstream) as url:
        command = [curl, "-sSN", f"{url}/v1/responses", "-d", json.dumps(ASK | {"stream": True})]
        lines = subprocess.run(command, capture_output=True, check=True, text=True).stdout.splitlines()
    assert lines[lines.index("event: response.completed") + 1].startswith('data: {"type": "response.completed"')


@pytest.mark.slow
def test_the_real_model_speaks_it(local: suffice.LocalServer) -> None:
    with (
        gateway(local.base_url, controller="sc:draws=3") as url,
        openai.OpenAI(base_url=f"{url}/v1", api_key="none") as client,
    ):
        reply = client.responses.create(model=local.model, input="What is 3 + 5?", max_output_tokens=24)
        with client.responses.stream(model=local.model, input="What is 3 + 5?", max_output_tokens=24) as stream:
            final = stream.get_final_response()
    for one in (reply, final):
        assert one.output_text and one.usage is not None and one.usage.output_tokens > 3
        assert one.model_dump()["suffice"]["samples"] == 3
