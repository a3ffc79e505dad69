"""The dialects: what each reads of whatever a server sends, whole and as a stream, and the clients that speak them."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import anthropic
import numpy as np
import openai
import pytest
from helpers.live import KEY, QUESTION, WEIGHTED, boxed
from hypothesis import example, given
from hypothesis import strategies as st

import suffice
from suffice import Calibration
from suffice.live.dialects import DIALECTS, Dialect, MalformedError
from suffice.live.dialects.base import StreamReader, usage_of_all
from suffice.planning.right import SignalScale
from suffice.testing import FakeServer, Reply, completion, message, response

pytestmark = pytest.mark.usefixtures("quick")

TOOL_USE = {"type": "tool_use", "id": "toolu_1", "name": "book", "input": {"to": "Oslo"}}
FUNCTION_CALL = {
    "type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "book", "arguments": '{"to": "Oslo"}',
    "status": "completed",
}  # fmt: skip
THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "6 * 7"}]}
THINKING = {"type": "thinking", "thinking": "6 * 7", "signature": "sig"}
REPLIES: dict[str, dict[str, Any]] = {
    "responses": response("It is 42.", THOUGHT, FUNCTION_CALL),
    "messages": message("It is 42.", THINKING, TOOL_USE),
}


@pytest.mark.parametrize("name", REPLIES)
def test_a_reply_is_read_and_its_stream_says_the_same(name: str) -> None:
    dialect = DIALECTS[name]
    (read,) = dialect.read(json.dumps(REPLIES[name]).encode(), 1)
    assert (read.text, read.reasoning, read.finish_reason) == ("It is 42.", "6 * 7", "tool_calls")
    assert (read.tokens, read.prompt_tokens) == (10, 5)
    assert read.tool_calls is not None
    assert read.tool_calls[0]["function"] == {"name": "book", "arguments": '{"to": "Oslo"}'}
    told = dialect.reply(read, usage_of_all([read, read]), 10, 20)
    reader = StreamReader(dialect)
    for event in (b": a comment\n\n", *dialect.events(told, False)):
        reader.feed(event)
    (joined,) = reader.responses()
    assert joined == suffice.Response(**{**vars(read), "tokens": 20, "prompt_tokens": 10})
    assert joined.reply == told
    assert reader.text == "It is 42." and reader.streamed and (reader.generated, reader.said) == (3, 2)


@pytest.mark.parametrize(
    ("name", "change", "finish_reason"),
    [
        ("responses", {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, "length"),
        ("responses", {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}, "content_filter"),
        ("responses", {"output": []}, "stop"),
        ("messages", {"stop_reason": "max_tokens"}, "length"),
        ("messages", {"stop_reason": "refusal"}, "content_filter"),
        ("messages", {"stop_reason": "stop_sequence"}, "stop"),
    ],
)
def test_what_was_cut_off_is_not_complete(name: str, change: dict[str, Any], finish_reason: str) -> None:
    (read,) = DIALECTS[name].read(json.dumps({**REPLIES[name], **change}).encode(), 1)
    assert read.finish_reason == finish_reason
    assert read.is_complete == (finish_reason == "stop")


def test_what_the_cache_gave_is_part_of_the_prompt() -> None:
    usage = {"input_tokens": 1, "cache_read_input_tokens": 30, "cache_creation_input_tokens": 6, "output_tokens": 10}
    (read,) = DIALECTS["messages"].read(json.dumps(message("a") | {"usage": usage}).encode(), 1)
    assert read.prompt_tokens == 37
    told = DIALECTS["messages"].reply(read, usage_of_all([read]), 37, 10)
    assert told["usage"] == usage


def streamed(*deltas: dict[str, Any]) -> StreamReader:
    """The reader of a chat completion's stream."""
    chunks = [{"choices": [{"delta": delta}]} for delta in deltas] + [{"choices": [{"finish_reason": "stop"}]}]
    reader = StreamReader(DIALECTS["chat"])
    for chunk in chunks:
        reader.feed(b"data: " + json.dumps(chunk).encode() + b"\n\n")
    return reader


PARTS = [{"type": "thinking", "thinking": [{"type": "text", "text": "6 * 7"}]}, {"type": "text", "text": "42"}]


def test_content_in_parts_is_read_like_text() -> None:
    body = completion([None])
    body["choices"][0]["message"]["content"] = PARTS
    (whole,) = DIALECTS["chat"].read(json.dumps(body).encode(), 1)
    reader = streamed(*({"content": [part]} for part in PARTS), {"content": "!"})
    (joined,) = reader.responses()
    assert (whole.text, whole.reasoning) == ("42", "6 * 7")
    assert (joined.text, joined.reasoning, reader.text) == ("42!", "6 * 7", "42!")


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content"])
def test_thoughts_are_read_by_either_name(field: str) -> None:
    body = completion(["42"])
    body["choices"][0]["message"][field] = "6 * 7"
    (read,) = DIALECTS["chat"].read(json.dumps(body).encode(), 1)
    assert read.reasoning == "6 * 7"
    assert streamed({field: "6 * 7"}).responses()[0].reasoning == "6 * 7"


# --- whatever a server sends

WORDS = """
output content choices type message text output_text reasoning summary function_call custom_tool_call name arguments
input status incomplete incomplete_details reason usage input_tokens output_tokens stop_reason tool_use thinking
message_start content_block_start content_block_delta content_block_stop message_delta message_stop index delta
content_block partial_json input_json_delta text_delta response response.completed response.output_item.done item error
finish_reason tool_calls function reasoning_content id call_id completed stop prompt_tokens completion_tokens
""".split()  # noqa: SIM905
LEAVES = st.none() | st.booleans() | st.integers(-2, 40) | st.sampled_from(WORDS) | st.text(max_size=3) | st.floats()
JSON: st.SearchStrategy[Any] = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=6),
    max_leaves=30,
)


def changed(value: Any, draw: Callable[[Any], Any]) -> Any:
    """The same with some of its parts replaced by anything."""
    if draw(st.integers(0, 9)) == 0:
        return draw(JSON)
    if isinstance(value, dict):
        return {name: changed(part, draw) for name, part in value.items()}
    return [changed(part, draw) for part in value] if isinstance(value, list) else value


@st.composite
def bodies(draw: Callable[[Any], Any]) -> bytes:
    """Nonsense, JSON of any kind, and replies or streams that are almost right."""
    if draw(st.booleans()):
        return bytes(draw(st.binary(max_size=60) | JSON.map(lambda value: json.dumps(value).encode())))
    good = draw(st.sampled_from([completion(["42"]), *REPLIES.values()]))
    if draw(st.booleans()):
        return json.dumps(changed(good, draw)).encode()
    name = "chat" if "choices" in good else "responses" if "output" in good else "messages"
    lines = b"".join(DIALECTS[name].events(good, True)).decode().split("\n")
    told = [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
    return b"".join(b"data: " + json.dumps(changed(event, draw)).encode() + b"\n\n" for event in told)


@given(body=bodies(), dialect=st.sampled_from([*DIALECTS.values()]))
@example(b'data: {"type": "response.output_text.delta", "item_id": "msg_0", "delta": null}\n\n', DIALECTS["responses"])
def test_no_body_makes_a_reader_raise_anything_else(body: bytes, dialect: Dialect) -> None:
    with suppress(MalformedError):
        assert 0 < len(dialect.read(body, 3)) <= 3
    reader = StreamReader(dialect)
    reader.feed(body)
    with suppress(MalformedError):
        reader.responses()


# --- the library


def ask(server: FakeServer, client: str, **options: Any) -> suffice.Outcome:
    """Ask with a client of a package, by its name."""
    url = server.base_url.removesuffix("/v1") if "nthropic" in client else server.base_url
    made = getattr(anthropic if "nthropic" in client else openai, client)(base_url=url, api_key=KEY)
    if "nthropic" in client:
        options = {"max_tokens": 99, **options}
    if not client.startswith("Async"):
        with made:
            return suffice.sample(made, QUESTION, model="fake", **options)

    async def main() -> suffice.Outcome:
        async with made:
            return await suffice.asample(made, QUESTION, model="fake", **options)

    return asyncio.run(main())


CLIENTS = [("OpenAI", "responses"), ("AsyncOpenAI", "responses"), ("Anthropic", None), ("AsyncAnthropic", None)]


@pytest.mark.parametrize(("client", "api"), CLIENTS)
@pytest.mark.parametrize("flow", [None, suffice.Flow()], ids=["rounds", "flow"])
def test_each_client_asks_just_enough_times(client: str, api: str | None, flow: suffice.Flow | None) -> None:
    with FakeServer(lambda request, number: boxed(42), streams=True) as server:
        outcome = ask(server, client, api=api, flow=flow, controller="asc", seed=5, top_k=3)
    assert (outcome.answer, outcome.samples, outcome.failures) == ("42", 4, ())
    assert outcome.response is not None and outcome.response.text == boxed(42)
    assert set(server.paths) == {"/v1/responses" if api else "/v1/messages"}
    assert server.requests[0]["top_k"] == 3 and sorted(one["seed"] for one in server.requests)[:2] == [5, 6]
    assert outcome.tokens == 40 and outcome.prompt_tokens == 20


@pytest.mark.parametrize(("client", "api"), CLIENTS[::2])
def test_each_client_parses(client: str, api: str | None) -> None:
    schema = {"type": "object", "properties": {"to": {"type": "string"}}}
    package: Any = anthropic if client == "Anthropic" else openai
    with FakeServer(lambda request, number: '{"to": "Oslo"}') as server:
        url = server.base_url if api else server.base_url.removesuffix("/v1")
        options: Any = {"api": api} if api else {"max_tokens": 9}
        with getattr(package, client)(base_url=url, api_key=KEY) as made:
            outcome = suffice.parse(made, QUESTION, model="fake", response_format=schema, **options)
    assert outcome.parsed == {"to": "Oslo"}
    asked = server.requests[0]["text" if api else "output_config"]["format"]
    assert (asked["type"], asked["schema"]) == ("json_schema", schema)


def test_a_system_s_message_goes_where_messages_has_it() -> None:
    with (
        FakeServer(lambda request, number: boxed(42)) as server,
        anthropic.Anthropic(base_url=server.base_url.removesuffix("/v1"), api_key=KEY) as client,
    ):
        said = [{"role": "system", "content": "Be brief."}, *QUESTION]
        suffice.sample(client, said, model="fake", max_tokens=9, controller="sc:draws=1")
    assert (server.requests[0]["system"], server.requests[0]["messages"]) == ("Be brief.", QUESTION)


@pytest.mark.parametrize(("client", "api"), CLIENTS[::2])
def test_votes_on_tools_and_faults_on_the_way(client: str, api: str | None) -> None:
    tools = [{"type": "function", "name": "book", "parameters": {}}] if api else [{"name": "book", "input_schema": {}}]

    def script(request: dict[str, Any], number: int) -> Reply:
        if number == 0:
            return Reply({"error": {"message": "busy"}}, 503)
        return Reply(response(None, FUNCTION_CALL) if api else message(None, TOOL_USE))

    with FakeServer(script) as server:
        outcome = ask(server, client, api=api, controller="sc:draws=3", answer="tool", tools=tools)
    assert outcome.votes == {'book({"to": "Oslo"})': 3} and len(server.requests) == 4
    fault = {"type": "error", "error": {"type": "authentication_error", "message": f"bad key {KEY}"}}
    with FakeServer(lambda request, number: Reply(fault, 401)) as server:
        with pytest.raises(suffice.SampleError) as failed:
            ask(server, client, api=api)
        assert "bad key ***" in str(failed.value) and KEY not in str(failed.value)


def test_what_a_client_does_not_speak_is_refused() -> None:
    with FakeServer(lambda request, number: boxed(42)) as server:
        for client, api in (("OpenAI", "messages"), ("Anthropic", "chat"), ("AsyncAnthropic", "responses")):
            with pytest.raises(suffice.OptionError, match=r"^api must be .* with this client"):
                ask(server, client, api=api)
        with pytest.raises(suffice.OptionError, match="an AsyncAnthropic is awaited: use asample"):
            suffice.sample(anthropic.AsyncAnthropic(api_key=KEY), QUESTION, model="fake", max_tokens=9)
        with pytest.raises(suffice.OptionError, match="max_tokens must be given"):
            suffice.sample(anthropic.Anthropic(api_key=KEY), QUESTION, model="fake")
        with pytest.raises(suffice.OptionError, match="the client must be one of"):
            suffice.sample("a client", QUESTION, model="fake")
    assert server.requests == []


def test_odd_usage_is_summed_as_far_as_it_goes() -> None:
    usages: list[Any] = [{"cached": None, "odd": "a"}, {"cached": {"tokens": 3}, "odd": 4}, {"cached": {"tokens": 4}}]
    assert usage_of_all([suffice.Response("", reply={"usage": one}) for one in usages])["cached"] == {"tokens": 7}


def test_whatever_a_client_wants_included_stays_beside_log_probabilities() -> None:
    assert DIALECTS["responses"].with_signals({"include": [{}]}, 1)["include"] == [{}, "message.output_text.logprobs"]


SIGNALLED = Calibration(0.0, 1.0, np.array([0.0, 1.0]), np.array([0, 1]), SignalScale("logprob", -1.0, 0.5))


@pytest.mark.parametrize(("name", "value"), [("signals", True), ("elect", WEIGHTED), ("right", SIGNALLED)])
def test_messages_has_no_log_probabilities_and_says_so(name: str, value: Any) -> None:
    assert [name for name, dialect in DIALECTS.items() if not dialect.tells_signals] == ["messages"]
    client = anthropic.Anthropic(base_url="http://127.0.0.1:9", api_key=KEY)
    with pytest.raises(suffice.OptionError, match=f"{name} can't be had: Messages tells no log probabilities"):
        suffice.sample(client, QUESTION, model="fake", max_tokens=9, **{name: value})


def test_anthropic_is_not_loaded_for_others() -> None:
    check = (
        "import sys, openai, suffice\nfrom suffice.live.servers.clients import dialect_of\n"
        "dialect_of([openai.OpenAI(api_key='x')])\nprint('anthropic' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", check], capture_output=True, text=True).stdout == "False\n"
