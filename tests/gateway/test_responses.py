"""OpenAI's Responses through the gateway, as its clients meet them."""

import asyncio
import json
from typing import Any

import openai
import pydantic
import pytest
from helpers.gateways import always, answered, gateway, official
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


def test_the_official_client_gets_a_normal_response() -> None:
    thought = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "6 * 7"}]}

    def script(request: dict[str, Any], number: int) -> Reply:
        return Reply(response(boxed(7 if number == 0 else 42), thought) | {"id": f"resp_{number}"})

    with official(script, controller="sc:draws=4") as (upstream, client):
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
    sent = [request.get("stream") for request in upstream.requests]
    assert set(sent) == {True} if streams else sent.count(True) == 2, "one draw of each streams: it may think"


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
        official(lambda request, number: Reply(body), controller="sc:draws=1") as (_, client),
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
    with official(lambda request, number: Reply(response("So it is") | cut), controller="sc:draws=2") as (_, client):
        events = list(client.responses.create(model="fake", input=QUESTION, stream=True))
    assert events[-1].type == "response.incomplete" and events[-1].response.output_text == "So it is"


class Trip(pydantic.BaseModel):
    to: str
    day: int


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_a_parsed_response_is_elected_field_by_field(streamed: bool) -> None:
    trips = [("Oslo", 1), ("Rome", 2), ("Oslo", 3), ("Bern", 2)]
    texts = [json.dumps({"to": to, "day": day}) for to, day in trips]
    with official(lambda request, number: texts[number], controller="sc:draws=4") as (upstream, client):
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
    with official(script, controller="sc:draws=3") as (_, client):
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


@pytest.mark.parametrize("body", [{}, {"input": ""}, {"input": []}, {"input": 3}])
def test_a_body_that_is_no_request_is_400(body: dict[str, Any]) -> None:
    reply, _ = answered(always, body, "responses")
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, "input")


def test_errors_in_a_stream_are_raised_by_the_client() -> None:
    fault = Reply({"error": {"message": "no such model", "type": "x", "param": None, "code": "c"}}, 404, delay=0.4)
    with official(lambda request, number: fault, heartbeat_seconds=0.1) as (_, client):
        with pytest.raises(openai.APIError, match="no such model"):
            list(client.responses.create(model="fake", input=QUESTION, stream=True))
        with pytest.raises(openai.NotFoundError, match="no such model"):
            client.responses.create(model="fake", input=QUESTION)


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
