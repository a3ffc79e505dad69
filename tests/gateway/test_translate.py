"""Responses and Messages in front of a server that has chat completions only."""

import json
from typing import Any

import anthropic
import httpx
import openai
import pydantic
import pytest
from helpers.gateways import MESSAGES, always, gateway
from helpers.live import boxed
from hypothesis import given
from hypothesis import strategies as st

import suffice
from suffice.live.dialects import CHAT, DIALECTS, FieldError
from suffice.live.dialects.translate import request_to_chat, response_from_chat
from suffice.testing import FakeServer, Reply, completion

pytestmark = pytest.mark.usefixtures("quick")

SCHEMA = {"type": "object", "properties": {"to": {"type": "string"}}}
CALL = {"id": "call_1", "type": "function", "function": {"name": "book", "arguments": '{"to": "Oslo"}'}}
FUNCTION = {"type": "function", "function": {"name": "book", "description": "Books.", "parameters": SCHEMA}}

RESPONSES: dict[str, Any] = {
    "model": "fake",
    "instructions": "Be brief.",
    "input": [
        {"role": "developer", "content": "No jokes."},
        {"role": "user", "content": [{"type": "input_text", "text": "Hi"}, {"type": "input_image", "image_url": "u"}]},
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I book."}]},
        {"type": "function_call", "call_id": "call_1", "name": "book", "arguments": '{"to": "Oslo"}'},
        {"type": "function_call", "call_id": "call_1", "name": "book", "arguments": '{"to": "Oslo"}'},
        {"type": "function_call_output", "call_id": "call_1", "output": "done"},
    ],
    "tools": [{"type": "function", "name": "book", "description": "Books.", "parameters": SCHEMA}],
    "tool_choice": {"type": "function", "name": "book"},
    "text": {"format": {"type": "json_schema", "name": "trip", "schema": SCHEMA, "strict": True}},
    "reasoning": {"effort": "low"},
    "max_output_tokens": 9,
    "temperature": 0.5,
    "store": False,
    "top_k": 3,
}
TURNS: dict[str, Any] = {
    "model": "fake",
    "system": [{"type": "text", "text": "Be brief."}],
    "messages": [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "Hi"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}},
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "…", "signature": "s"},
                {"type": "text", "text": "I book."},
                {"type": "tool_use", "id": "call_1", "name": "book", "input": {"to": "Oslo"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "call_1", "content": [{"type": "text", "text": "done"}]},
                {"type": "text", "text": "And?"},
            ],
        },
    ],
    "tools": [{"name": "book", "description": "Books.", "input_schema": SCHEMA}],
    "tool_choice": {"type": "any", "disable_parallel_tool_use": True},
    "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}, "effort": "low"},
    "stop_sequences": ["END"],
    "max_tokens": 9,
    "temperature": 0.5,
    "thinking": {"type": "enabled", "budget_tokens": 1024},
    "top_k": 3,
}


def test_a_responses_request_in_the_words_of_a_chat() -> None:
    assert request_to_chat("responses", RESPONSES) == {
        "model": "fake",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "system", "content": "No jokes."},
            {
                "role": "user",
                "content": [{"type": "text", "text": "Hi"}, {"type": "image_url", "image_url": {"url": "u"}}],
            },
            {"role": "assistant", "content": "I book.", "tool_calls": [CALL, CALL]},
            {"role": "tool", "content": "done", "tool_call_id": "call_1"},
        ],
        "tools": [FUNCTION],
        "tool_choice": {"type": "function", "function": {"name": "book"}},
        "response_format": {"type": "json_schema", "json_schema": {"name": "trip", "schema": SCHEMA, "strict": True}},
        "reasoning_effort": "low",
        "max_tokens": 9,
        "temperature": 0.5,
        "top_k": 3,
    }


def test_a_messages_request_in_the_words_of_a_chat() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}
    assert request_to_chat("messages", TURNS) == {
        "model": "fake",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "Hi"}, image]},
            {"role": "assistant", "content": "I book.", "tool_calls": [CALL]},
            {"role": "tool", "content": "done", "tool_call_id": "call_1"},
            {"role": "user", "content": "And?"},
        ],
        "tools": [FUNCTION],
        "tool_choice": "required",
        "parallel_tool_calls": False,
        "response_format": {"type": "json_schema", "json_schema": {"name": "reply", "schema": SCHEMA}},
        "reasoning_effort": "low",
        "stop": ["END"],
        "max_tokens": 9,
        "temperature": 0.5,
        "top_k": 3,
    }


REFUSED: list[tuple[str, str, Any]] = [
    ("responses", "previous_response_id", "resp_1"),
    ("responses", "background", True),
    ("responses", "tools", [{"type": "web_search"}]),
    ("responses", "tool_choice", {"type": "mcp"}),
    ("responses", "text", {"format": {"type": "grammar"}}),
    ("responses", "input", [{"type": "item_reference", "id": "x"}]),
    ("responses", "input", [{"role": "user", "content": [{"type": "input_file", "file_id": "f"}]}]),
    ("responses", "input", 3),
    ("messages", "mcp_servers", [{}]),
    ("messages", "tools", [{"type": "web_search_20250305", "name": "web_search"}]),
    ("messages", "messages", [{"role": "user", "content": [{"type": "document"}]}]),
    ("messages", "messages", ["Hi"]),
]


@pytest.mark.parametrize(("name", "field", "value"), REFUSED)
def test_what_has_no_translation_is_refused_by_name(name: str, field: str, value: Any) -> None:
    body = (RESPONSES if name == "responses" else TURNS) | {field: value}
    with FakeServer(always) as upstream, gateway(upstream, translate=True) as url:
        reply = httpx.post(f"{url}/v1/{name}", json=body)
    assert reply.status_code == 400 and f'"{field}"' in reply.json()["error"]["message"]
    assert upstream.requests == []


ANYTHING: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["text", "function", "json_schema", "tool_use"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["type", "content", "name"]), inner),
    max_leaves=8,
)


@given(name=st.sampled_from(["responses", "messages"]), field=st.sampled_from([*RESPONSES, *TURNS]), value=ANYTHING)
def test_a_request_is_translated_or_refused_by_the_name_of_its_field(name: str, field: str, value: Any) -> None:
    try:
        translated = request_to_chat(name, (RESPONSES if name == "responses" else TURNS) | {field: value})
    except FieldError as refused:
        assert refused.field == field
    else:
        assert json.loads(json.dumps(translated))["model"] == (value if field == "model" else "fake")


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20).filter(
    lambda text: "think>" not in text
)
CALLS = st.lists(st.tuples(TEXTS, st.dictionaries(TEXTS, st.integers() | TEXTS, max_size=3)), max_size=3)


@given(
    name=st.sampled_from(["responses", "messages"]),
    text=st.none() | TEXTS,
    thoughts=st.none() | TEXTS,
    calls=CALLS,
    cut=st.booleans(),
    counts=st.tuples(st.integers(0, 999), st.integers(0, 999), st.integers(0, 999)),
)
def test_a_reply_says_the_same_when_it_is_back(
    name: str, text: str | None, thoughts: str | None, calls: Any, cut: bool, counts: tuple[int, int, int]
) -> None:
    prompt, cached, spent = counts[0] + counts[1], counts[1], counts[2]
    made = [
        {"id": f"call_{n}", "type": "function", "function": {"name": called, "arguments": json.dumps(arguments)}}
        for n, (called, arguments) in enumerate(calls)
    ]
    body = completion([text], finish_reason="length" if cut else "tool_calls" if calls else "stop")
    body["choices"][0]["message"] |= {"reasoning_content": thoughts, "tool_calls": made or None}
    body["usage"] = {"prompt_tokens": prompt, "completion_tokens": spent}
    body["usage"]["prompt_tokens_details"] = {"cached_tokens": cached}
    (read,) = CHAT.wire.read(json.dumps(body).encode(), 1)
    (back,) = DIALECTS[name].wire.read(json.dumps(response_from_chat(name, read, {}).reply).encode(), 1)
    assert (back.text, back.reasoning, back.finish_reason) == (text, thoughts, read.finish_reason)
    assert (back.tokens, back.prompt_tokens) == (spent, prompt)
    told = [(call["function"]["name"], json.loads(call["function"]["arguments"])) for call in back.tool_calls or ()]
    assert told == calls and [call["id"] for call in back.tool_calls or ()] == [call["id"] for call in made]


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_openai_s_client_votes_in_front_of_a_chat(streamed: bool) -> None:
    texts = [boxed(7), boxed(42), boxed(42), boxed(42)]
    upstream = FakeServer(lambda request, number: texts[: request.get("n", 1)])
    with (
        upstream,
        gateway(upstream, translate=True, controller="sc:draws=4") as url,
        openai.OpenAI(base_url=f"{url}/v1", api_key="none") as client,
    ):
        if streamed:
            with client.responses.stream(model="fake", input="What is 6 * 7?") as stream:
                reply: Any = stream.get_final_response()
        else:
            raw = client.responses.with_raw_response.create(model="fake", input="What is 6 * 7?", instructions="Think.")
            reply = raw.parse()
            assert (raw.headers["x-suffice-translated"], raw.headers["x-suffice-samples"]) == ("chat", "4")
            assert reply.instructions == "Think." and reply.object == "response"
    assert reply.output_text == boxed(42) and reply.status == "completed" and reply.id.startswith("resp_")
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (5, 40), "one request for all, as a chat takes n"
    assert reply.model_dump()["suffice"]["votes"] == {"42": 3, "7": 1}
    assert upstream.paths == ["/v1/chat/completions"] and upstream.requests[0]["n"] == 4


def test_a_parsed_response_in_front_of_a_chat() -> None:
    class Trip(pydantic.BaseModel):
        to: str

    with (
        FakeServer(lambda request, number: '{"to": "Oslo"}') as upstream,
        gateway(upstream, translate=True) as url,
        openai.OpenAI(base_url=f"{url}/v1", api_key="none") as client,
    ):
        reply = client.responses.parse(model="fake", input="Where?", text_format=Trip)
    assert reply.output_parsed == Trip(to="Oslo")
    assert upstream.requests[0]["response_format"]["json_schema"]["name"] == "Trip"


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("answer", ["auto", "tool"], ids=["once", "vote"])
def test_anthropic_s_client_uses_tools_in_front_of_a_chat(streamed: bool, answer: str) -> None:
    body = completion([None], finish_reason="tool_calls")
    body["choices"][0]["message"]["tool_calls"] = [CALL]
    upstream = FakeServer(lambda request, number: Reply(body), streams=True)
    with (
        upstream,
        gateway(upstream, translate=True, controller="sc:draws=3") as url,
        anthropic.Anthropic(base_url=url, api_key="none") as client,
    ):
        tools: Any = [{"name": "book", "input_schema": SCHEMA}]
        wish: Any = {"extra_body": {"suffice": {"answer": answer}}} if answer == "tool" else {}
        asked: Any = {"model": "fake", "max_tokens": 9, "messages": MESSAGES, "tools": tools, **wish}
        if streamed:
            with client.messages.stream(**asked) as stream:
                reply: Any = stream.get_final_message()
                headers = stream.response.headers
        else:
            raw = client.messages.with_raw_response.create(**asked)
            reply, headers = raw.parse(), raw.headers
    (used,) = reply.content
    assert (used.type, used.id, used.input, reply.stop_reason) == ("tool_use", "call_1", {"to": "Oslo"}, "tool_use")
    assert headers["x-suffice-translated"] == "chat"
    assert headers.get("x-suffice-no-vote") == ("tools" if answer == "auto" else None)
    assert len(upstream.requests) == (1 if answer == "auto" else 3)


def test_scouts_and_errors_are_translated_too() -> None:
    ask = {"model": "fake", "max_tokens": 9, "messages": MESSAGES}
    with FakeServer(always) as upstream, gateway(upstream, translate=True, vote="auto") as url:
        assert httpx.post(f"{url}/v1/messages", json=ask).json()["suffice"]["samples"] == 4
    story = "Once upon a time there was a fox who lived in a wood and slept. " * 12
    with FakeServer(lambda request, number: story) as upstream, gateway(upstream, translate=True, vote="auto") as url:
        for stream in (False, True):
            reply = httpx.post(f"{url}/v1/messages", json=ask | {"stream": stream})
            assert reply.headers["x-suffice-no-vote"] == "no answer" and story.strip() in reply.text
        assert len(upstream.requests) == 2
    fault = Reply({"error": {"message": "no such model", "type": "x", "code": "c"}}, 404)
    with FakeServer(lambda request, number: fault) as upstream, gateway(upstream, translate=True) as url:
        for body in (ask, ask | {"suffice": {"controller": "off"}}):
            reply = httpx.post(f"{url}/v1/messages", json=body)
            assert reply.status_code == 404 and reply.json()["type"] == "error"
            assert reply.json()["error"]["message"] == "no such model"


def test_chats_are_as_ever() -> None:
    with FakeServer(always) as upstream, gateway(upstream, translate=True) as url:
        reply = httpx.post(f"{url}/v1/chat/completions", json={"model": "fake", "messages": MESSAGES})
    assert reply.json()["suffice"]["answer"] == "42" and "x-suffice-translated" not in reply.headers


@pytest.mark.slow
def test_the_real_model_in_translation(local: suffice.LocalServer) -> None:
    with gateway(local.base_url, translate=True, controller="sc:draws=3") as url:
        asked: Any = {"model": local.model, "max_tokens": 24, "messages": [{"role": "user", "content": "Say hello."}]}
        with anthropic.Anthropic(base_url=url, api_key="none") as client:
            reply = client.messages.create(**asked)
    assert reply.content[0].type == "text" and reply.model_dump()["suffice"]["samples"] == 3
    assert 3 < reply.usage.output_tokens <= 3 * 24 * 3
