"""Streams of all routes: thoughts are passed on as they come, what is no vote is not held, and a vote is told of."""

import json
from pathlib import Path
from typing import Any

import anthropic
import httpx
import openai
import pytest
from helpers.gateways import behind, gateway, logged, official
from helpers.labels import easy_and_hard
from helpers.live import until

from suffice import calibrate
from suffice.testing import FakeServer, Reply, completion, message, response

OPEN: Any = [{"role": "user", "content": "Apples?"}]
SUM: Any = [{"role": "user", "content": "What is 17 * 23?"}]
NAMED: Any = [{"role": "user", "content": 'What is 17 * 23? Reply as "Answer: <number>".'}]
"""Of these one is passed on, one looked at, and one voted on."""
LIST = " ".join(f"{place}. **Apple cake** for {place + 4} people\n" for place in range(1, 60))
EVENTS = {"content-type": "text/event-stream"}


def ask(url: str, messages: Any, path: str = "chat/completions", **fields: Any) -> Any:
    body = {"model": "fake", "messages": messages, "stream": True, "max_tokens": 4000, **fields}
    return httpx.stream("POST", f"{url}/v1/{path}", json=body, timeout=60)


def test_what_is_passed_on_is_not_held() -> None:
    """Numbers, bold and lists are no reason to."""
    script = lambda request, number: Reply(completion([LIST]), delay=10)  # noqa: E731
    with FakeServer(script, streams=True) as upstream, gateway(upstream, vote="auto") as url:
        with ask(url, OPEN) as reply:
            assert next(piece for piece in reply.iter_bytes() if b"1." in piece)
            assert upstream.generated < 200, "the rest is still to come"
            assert reply.headers["x-suffice-no-vote"] == "no answer" and reply.headers["x-suffice-samples"] == "1"
        assert until(lambda: upstream.hung_up == 1)
    assert len(upstream.requests) == 1


def chunk(**delta: Any) -> bytes:
    ends = {"finish_reason": delta.pop("ends", None)}
    return b"data: " + json.dumps({"id": "c", "choices": [{"index": 0, "delta": delta, **ends}]}).encode() + b"\n\n"


THOUGHTS = ["First 17 * 20, ", "then 17 * 3, ", "so 391."]


def thinking(request: dict[str, Any], number: int) -> Reply:
    """A scout that thinks, and others that think otherwise."""
    if request.get("stream"):
        pieces = [chunk(reasoning_content=thought) for thought in THOUGHTS]
        digits = [chunk(content="39"), chunk(content="1")]
        said = [chunk(role="assistant", content=""), *pieces, *digits, chunk(ends="stop")]
        return Reply(b"".join(said) + b"data: [DONE]\n\n", headers=EVENTS)
    told = completion(["391"] * request.get("n", 1))
    for choice in told["choices"]:
        choice["message"]["reasoning_content"] = "17 * 23 is 391."
    return Reply(told)


@pytest.mark.parametrize("messages", [SUM, NAMED], ids=["look", "vote"])
@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_thoughts_of_the_first_draw_pass_as_they_come(field: str, messages: Any) -> None:
    def script(request: dict[str, Any], number: int) -> Reply:
        reply = thinking(request, number)
        body = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
        kind = EVENTS if isinstance(reply.body, bytes) else {"content-type": "application/json"}
        return Reply(body.replace(b"reasoning_content", field.encode()), headers=kind)

    with behind(script, vote="auto") as (_, url), openai.OpenAI(base_url=f"{url}/v1", api_key="none") as client:
        chunks = list(client.chat.completions.create(model="fake", messages=messages, stream=True))
        with ask(url, messages) as reply:
            raw = reply.read()
    deltas: list[Any] = [one.choices[0].delta for one in chunks]
    assert [getattr(delta, field) for delta in deltas if getattr(delta, field, None)] == THOUGHTS
    assert "".join(delta.content or "" for delta in deltas) == "391"
    assert sum(delta.role is not None for delta in deltas) == 1
    told: Any = next(one for one in chunks if getattr(one, "suffice", None))
    assert told.suffice["votes"] == {"391": 4} and told.suffice["draws"] == ([1, 3] if messages is SUM else [4])
    assert messages is NAMED or raw.index(THOUGHTS[2].encode()) < raw.index(b": suffice {"), "then it tells of the vote"


@pytest.mark.parametrize("messages", [SUM, NAMED], ids=["look", "vote"])
@pytest.mark.parametrize("thought", [chunk(reasoning_content="hm "), chunk(content="<think>hm ")], ids=["", "in text"])
def test_a_thought_is_passed_on_before_the_next_one_comes(thought: bytes, messages: Any) -> None:
    """They have no end."""

    def script(request: dict[str, Any], number: int) -> Reply:
        return Reply(thought, headers=EVENTS, endless=True) if request.get("stream") else thinking(request, number)

    with FakeServer(script) as upstream, gateway(upstream, vote="auto") as url:
        with ask(url, messages) as reply:
            assert next(piece for piece in reply.iter_bytes() if b"hm " in piece)
        assert until(lambda: upstream.hung_up >= 1)


@pytest.mark.parametrize("messages", [SUM, NAMED], ids=["look", "vote"])
def test_thoughts_in_the_text_pass_and_what_is_elected_follows_their_end(messages: Any) -> None:
    def script(request: dict[str, Any], number: int) -> Reply:
        if not request.get("stream"):
            return Reply(completion([f"<think>{number}</think>\nAnswer: 391"] * request.get("n", 1)))
        said = [chunk(content=piece) for piece in ("<th", "ink>", *THOUGHTS, "</think>", "\nAnswer: ", "390")]
        return Reply(b"".join([*said, chunk(ends="stop")]) + b"data: [DONE]\n\n", headers=EVENTS)

    with FakeServer(script) as upstream, gateway(upstream, vote="auto") as url, ask(url, messages) as reply:
        lines = [json.loads(line[5:]) for line in reply.iter_lines() if line.startswith("data: {")]
    text = "".join(one["choices"][0]["delta"].get("content") or "" for one in lines)
    assert text == f"<think>{''.join(THOUGHTS)}</think>\nAnswer: 391"


def test_thoughts_of_a_reply_without_a_vote_are_told_once() -> None:
    words = [f"{word} " for word in LIST.split()]
    thoughts = [chunk(reasoning_content=one) for one in THOUGHTS]
    said = [chunk(role="assistant"), *thoughts, *(chunk(content=word) for word in words)]
    whole = b"".join([*said, chunk(ends="stop")]) + b"data: [DONE]\n\n"
    script = lambda request, number: Reply(whole, headers=EVENTS)  # noqa: E731
    with FakeServer(script) as upstream, gateway(upstream, vote="auto") as url, ask(url, OPEN) as reply:
        assert reply.read() == whole
    assert len(upstream.requests) == 1


def event(kind: str, **fields: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()


def thinking_message(told: dict[str, Any], text: str = "391") -> bytes:
    """The stream of a message that begins with thoughts."""
    deltas = [{"type": "thinking_delta", "thinking": thought} for thought in THOUGHTS]
    block = {"type": "thinking", "thinking": "", "signature": ""}
    said = [
        event("message_start", message={**told, "content": [], "stop_reason": None}),
        event("content_block_start", index=0, content_block=block),
        *(event("content_block_delta", index=0, delta=delta) for delta in deltas),
        event("content_block_delta", index=0, delta={"type": "signature_delta", "signature": "x"}),
        event("content_block_stop", index=0),
        event("content_block_start", index=1, content_block={"type": "text", "text": ""}),
        event("content_block_delta", index=1, delta={"type": "text_delta", "text": text}),
        event("content_block_stop", index=1),
        event("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 9}),
        event("message_stop"),
    ]
    return b"".join(said)


def test_thinking_blocks_pass_as_they_come() -> None:
    def script(request: dict[str, Any], number: int) -> Reply:
        told = message("391")
        return Reply(thinking_message(told), headers=EVENTS) if request.get("stream") else Reply(told)

    with FakeServer(script) as upstream, gateway(upstream, vote="auto") as url, ask(url, SUM, "messages") as reply:
        lines = [json.loads(line[5:]) for line in reply.iter_lines() if line.startswith("data:")]
    assert [one["type"] for one in lines].count("message_start") == 1
    blocks = [(one["index"], one["content_block"]["type"]) for one in lines if one["type"] == "content_block_start"]
    assert blocks == [(0, "thinking"), (1, "text")]
    text = [one["delta"]["text"] for one in lines if one.get("delta", {}).get("type") == "text_delta"]
    assert "".join(text) == "391" and lines[-1]["type"] == "message_stop"


def reasoned(text: str, name: str = "0") -> dict[str, Any]:
    """A response that begins with thoughts."""
    summary = [{"type": "summary_text", "text": "".join(THOUGHTS)}]
    told = {**response(text), "id": f"resp_{name}"}
    told["output"].insert(0, {"id": f"rs_{name}", "type": "reasoning", "summary": summary})
    return told


def reasoning_stream(told: dict[str, Any]) -> bytes:
    """The same as a stream."""
    thought, said = told["output"]
    at = {"item_id": thought["id"], "output_index": 0, "summary_index": 0}
    text = said["content"][0]["text"]
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": {**told, "status": "in_progress", "output": [], "usage": None}},
        {"type": "response.output_item.added", "output_index": 0, "item": {**thought, "summary": []}},
        {"type": "response.reasoning_summary_part.added", **at, "part": {"type": "summary_text", "text": ""}},
        *({"type": "response.reasoning_summary_text.delta", **at, "delta": one} for one in THOUGHTS),
        {"type": "response.output_item.done", "output_index": 0, "item": thought},
        {"type": "response.output_text.delta", "item_id": "msg_0", "delta": text},
        {"type": "response.completed", "response": told},
    ]
    numbered = ({**one, "sequence_number": number} for number, one in enumerate(events))
    return b"".join(event(one.pop("type"), **one) for one in numbered)


def test_reasoning_items_pass_as_they_come() -> None:
    """OpenAI's own client puts the stream together: the thoughts of the scout, and what the vote elected."""

    def script(request: dict[str, Any], number: int) -> Reply:
        told = reasoned("391")
        return Reply(reasoning_stream(told), headers=EVENTS) if request.get("stream") else Reply(told)

    with (
        official(script, vote="auto") as (upstream, client),
        client.responses.stream(model="fake", input="What is 17 * 23?") as stream,
    ):
        events: list[Any] = list(stream)
    assert [one.delta for one in events if one.type == "response.reasoning_summary_text.delta"] == THOUGHTS
    assert "".join(one.delta for one in events if one.type == "response.output_text.delta") == "391"
    assert [one.sequence_number for one in events] == list(range(len(events))), "it is one stream"
    final = stream.get_final_response()
    assert final.output_text == "391" and len(upstream.requests) > 1


def test_a_scout_that_breaks_off_after_its_thoughts_is_an_error() -> None:
    begun = chunk(role="assistant") + b"".join(chunk(reasoning_content=one) for one in THOUGHTS)
    script = lambda request, number: Reply(begun * 2, headers=EVENTS, dropped=True)  # noqa: E731
    with FakeServer(script) as upstream, gateway(upstream, vote="auto") as url, ask(url, SUM) as reply:
        told = reply.read()
    assert told.startswith(begun[:20]) and b'"error"' in told and len(upstream.requests) == 1


CLIENTS = {"chat/completions": completion([LIST]), "responses": response(LIST), "messages": message(LIST)}
ENDS = (b"[DONE]", b"message_stop", b"response.completed")


@pytest.mark.parametrize("path", CLIENTS)
def test_clients_raise_where_a_stream_is_cut(path: str, capfd: pytest.CaptureFixture[str]) -> None:
    """The upstream dies in the middle: an error event is the last, and none that a client takes for the end."""
    script = lambda request, number: Reply(CLIENTS[path], dropped=True)  # noqa: E731
    asked: dict[str, Any] = {"model": "fake", "stream": True, "messages": OPEN}
    with FakeServer(script, streams=True) as upstream, gateway(upstream, vote="auto") as url:
        with ask(url, OPEN, path, input=OPEN) as reply:
            raw = reply.read()
        client: Any = openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)
        if path == "messages":
            client = anthropic.Anthropic(base_url=url, api_key="none", max_retries=0)
            with pytest.raises(anthropic.APIError), client:
                list(client.messages.create(**asked, max_tokens=99))
        else:
            create = client.responses.create if path == "responses" else client.chat.completions.create
            if path == "responses":
                asked["input"] = asked.pop("messages")
            with pytest.raises(openai.APIError), client:
                list(create(**asked))
    assert b"Apple" in raw and b'"unreachable"' in raw and not any(end in raw for end in ENDS)
    lines = logged(capfd)
    assert [line["error"] for line in lines] == ["unreachable"] * 2 and lines[0]["tokens"] > 20


@pytest.mark.parametrize("messages", [OPEN, SUM], ids=["relay", "look"])
@pytest.mark.parametrize("path", ["chat/completions", "messages"])
def test_a_stream_is_whole_with_comments_after_it_or_without_its_last_empty_line(path: str, messages: Any) -> None:
    text = [chunk(content=f"{word} ") for word in LIST.split()]
    chat = b"".join([*text, chunk(ends="stop"), b"data: [DONE]\n\n", *[b": ping\n\n"] * 9])
    body = chat if path == "chat/completions" else thinking_message(message(LIST), LIST).removesuffix(b"\n")
    script = lambda request, number: Reply(body, headers=EVENTS)  # noqa: E731
    with FakeServer(script) as upstream, gateway(upstream, vote="auto") as url, ask(url, messages, path) as reply:
        assert reply.read() == body


def test_a_scout_whose_stream_is_cut_is_sent_again() -> None:
    script = lambda request, number: Reply(completion(["Red fruit."]), dropped=number == 0)  # noqa: E731
    with FakeServer(script, streams=True) as upstream, gateway(upstream, vote="auto") as url, ask(url, SUM) as reply:
        assert reply.read().endswith(b"[DONE]\n\n")
    assert [request.get("stream") for request in upstream.requests[:2]] == [True, True]


def outvoted(path: str, request: dict[str, Any], number: int) -> Reply:
    """A scout that thinks and is wrong, and others that are right; each has ids of its own."""
    if path == "messages":
        told = {**message("391"), "id": f"msg_{number}"}
        return Reply(thinking_message(told, "390"), headers=EVENTS) if request.get("stream") else Reply(told)
    if path == "responses":
        told = reasoned("390" if request.get("stream") else "391", str(number))
        return Reply(reasoning_stream(told), headers=EVENTS) if request.get("stream") else Reply(told)
    reply = thinking(request, number)
    if isinstance(reply.body, bytes):
        body = reply.body.replace(b'"content": "1"', b'"content": "0"').replace(b'"id": "c"', b'"id": "chat_0"')
        return Reply(body, headers=EVENTS)
    return Reply({**reply.body, "id": f"chat_{number}"})


@pytest.mark.parametrize("path", ["chat/completions", "responses", "messages"])
def test_a_stream_that_began_with_thoughts_keeps_its_ids(path: str, tmp_path: Path) -> None:
    calibrate(easy_and_hard(easy=0.9)).save(tmp_path / "right.json")
    fields = {"input": SUM} if path == "responses" else {}
    script = lambda request, number: outvoted(path, request, number)  # noqa: E731
    right = {"right": str(tmp_path / "right.json"), "risk": 0.5}
    with FakeServer(script) as upstream, gateway(upstream, vote="auto", **right) as url:
        with ask(url, SUM, path, **fields) as reply:
            lines = [json.loads(line[5:]) for line in reply.iter_lines() if line.startswith("data: {")]
        around = [one.get("response") or one.get("message") or one for one in lines]
        (name,) = {one["id"] for one in around if "id" in one}
        taken = httpx.post(f"{url}/v1/suffice/feedback", json={"id": name, "right": True}, timeout=60)
    (told,) = [one["suffice"] for one in around if "suffice" in one]
    assert told["answer"] == "391" and name.endswith("_0") and taken.json()["taken"]
    if path == "responses":
        assert [item["id"] for item in around[-1]["output"]] == ["rs_0", "msg_0"]


def test_the_openai_client_takes_a_stream_whose_scout_was_outvoted() -> None:
    script = lambda request, number: outvoted("responses", request, number)  # noqa: E731
    with (
        official(script, vote="auto") as (_, client),
        client.responses.stream(model="fake", input="What is 17 * 23?") as stream,
    ):
        final = stream.get_final_response()
    assert final.output_text == "391" and final.id == "resp_0"


def test_who_watches_sees_tokens_arrive_whatever_encoding_is_named() -> None:
    said = Reply(completion([LIST + r"\boxed{391}"]), headers={"content-encoding": "identity"}, delay=4)
    with (
        FakeServer(lambda request, number: said, streams=True) as upstream,
        gateway(upstream, controller="sc:draws=2") as url,
        ask(url, SUM, suffice={"watch": True}) as reply,
    ):
        told = (json.loads(line.removeprefix(": suffice ")) for line in reply.iter_lines() if ": suffice {" in line)
        assert next(one for one in told if one.get("tokens"))["arrived"] == 0
