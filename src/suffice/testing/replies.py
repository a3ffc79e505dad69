"""Replies of each dialect, whole and word by word, as a server sends them."""

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

Stream = tuple[bytes, list[bytes], bytes]
"""What a stream begins with, its pieces, and its end."""


def completion(
    texts: Sequence[str | None], *, tokens: int = 10, prompt_tokens: int = 5, finish_reason: str = "stop"
) -> dict[str, Any]:
    """A chat completion with a choice for each text.

    Args:
        texts: What the choices say.
        tokens: Those of each choice.
        prompt_tokens: Those of the request.
        finish_reason: Why all of them ended.

    >>> completion(["7", "9"])["usage"]["total_tokens"]
    25
    """
    choices = [
        {"index": index, "message": {"role": "assistant", "content": text}, "finish_reason": finish_reason}
        for index, text in enumerate(texts)
    ]
    spent = tokens * len(texts)
    usage = {"prompt_tokens": prompt_tokens, "completion_tokens": spent, "total_tokens": prompt_tokens + spent}
    return {"id": "chatcmpl-0", "object": "chat.completion", "created": 0, "choices": choices, "usage": usage}


def response(text: str | None, *items: dict[str, Any], tokens: int = 10, prompt_tokens: int = 5) -> dict[str, Any]:
    """A response of OpenAI's Responses.

    Args:
        text: That of its message; without one there is no message.
        items: What comes after the message.
        tokens: Those of the response.
        prompt_tokens: Those of the request.

    >>> response("7")["output"][0]["content"][0]["text"]
    '7'
    """
    part: dict[str, Any] = {"type": "output_text", "text": text, "annotations": []}
    message = {"id": "msg_0", "type": "message", "status": "completed", "role": "assistant", "content": [part]}
    usage = {
        "input_tokens": prompt_tokens,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": prompt_tokens + tokens,
    }
    about: dict[str, Any] = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
    return {
        "id": "resp_0", "object": "response", "created_at": 0, "status": "completed", "model": "fake", **about,
        "output": [*([message] if text is not None else []), *items], "usage": usage,
    }  # fmt: skip


def message(text: str | None, *blocks: dict[str, Any], tokens: int = 10, prompt_tokens: int = 5) -> dict[str, Any]:
    """A message of Anthropic's Messages.

    Args:
        text: That of its first block; without one there is none.
        blocks: What comes after it.
        tokens: Those of the message.
        prompt_tokens: Those of the request.

    >>> message("7")["content"]
    [{'type': 'text', 'text': '7'}]
    """
    stop = "tool_use" if any(block["type"] == "tool_use" for block in blocks) else "end_turn"
    return {
        "id": "msg_0", "type": "message", "role": "assistant", "model": "fake", "stop_reason": stop,
        "stop_sequence": None, "content": [*([{"type": "text", "text": text}] if text is not None else []), *blocks],
        "usage": {"input_tokens": prompt_tokens, "output_tokens": tokens},
    }  # fmt: skip


def reply_at(path: str, texts: Sequence[str | None]) -> dict[str, Any]:
    """What a server replies at a path, which says the texts."""
    if path.endswith("/responses"):
        return response(texts[0])
    return message(texts[0]) if path.endswith("/messages") else completion(texts)


def stream_at(path: str, reply: dict[str, Any]) -> Stream:
    """The same as a stream: of a chat completion, its first choice."""
    if path.endswith("/responses"):
        return _response_stream(reply)
    return _message_stream(reply) if path.endswith("/messages") else _chat_stream(reply)


def with_logprobs(
    reply: dict[str, Any], request: dict[str, Any], logprob: Callable[[str], float] | None
) -> dict[str, Any]:
    """A reply with log probabilities where they are asked for: each word is a token, and all have the text's."""
    wanted = request.get("top_logprobs") or 0

    def tokens(text: str | None) -> list[dict[str, Any]]:
        of_text = logprob(text or "") if logprob else 0.0
        top = [{"token": f"{place}", "logprob": of_text - place, "bytes": None} for place in range(wanted)]
        return [{"token": word, "logprob": of_text, "bytes": None, "top_logprobs": top} for word in _words(text)]

    if logprob is None:
        return reply
    for choice in reply.get("choices", ()) if request.get("logprobs") else ():
        choice["logprobs"] = {"content": tokens(choice["message"]["content"]), "refusal": None}
    for item in reply.get("output", ()) if "message.output_text.logprobs" in (request.get("include") or ()) else ():
        for part in item.get("content", ()):
            part["logprobs"] = tokens(part["text"])
    return reply


def _words(text: str | None) -> list[str]:
    return re.findall(r"\s*\S+", text or "")


def _chat_stream(reply: dict[str, Any]) -> Stream:
    choice = reply["choices"][0]
    said = choice["message"]
    deltas: list[dict[str, Any]] = [{"content": word} for word in _words(said.get("content"))]
    tokens = (choice.get("logprobs") or {}).get("content") or [None] * len(deltas)
    pieces = [_chunk(delta, token=token) for delta, token in zip(deltas, tokens, strict=True)]
    if said.get("tool_calls"):
        pieces.append(_chunk({"tool_calls": [{"index": n, **call} for n, call in enumerate(said["tool_calls"])]}))
    usage = _event({"choices": [], "usage": reply.get("usage")})
    end = _chunk({}, choice["finish_reason"]) + usage + b"data: [DONE]\n\n"
    return _chunk({"role": "assistant", "content": ""}), pieces, end


def _chunk(delta: dict[str, Any], finish_reason: str | None = None, token: dict[str, Any] | None = None) -> bytes:
    choice: dict[str, Any] = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    if token:
        choice["logprobs"] = {"content": [token]}
    return _event({"object": "chat.completion.chunk", "choices": [choice]})


def _response_stream(reply: dict[str, Any]) -> Stream:
    """The text word by word; its items whole."""
    begun = {"type": "response.created", "response": {**reply, "status": "in_progress", "output": [], "usage": None}}
    text = "".join(part["text"] for item in reply["output"] for part in item.get("content", ()))
    where = {"item_id": "msg_0", "output_index": 0, "content_index": 0}
    deltas = [{"type": "response.output_text.delta", **where, "delta": word} for word in _words(text)]
    items = [
        {"type": "response.output_item.done", "output_index": place, "item": item}
        for place, item in enumerate(reply["output"])
    ]
    end = [*items, {"type": "response.completed", "response": reply}]
    return _event(begun), [_event(delta) for delta in deltas], b"".join(map(_event, end))


def _message_stream(reply: dict[str, Any]) -> Stream:
    """The text word by word; other blocks in one piece."""
    usage = {**reply["usage"], "output_tokens": 0}
    begun = _event({"type": "message_start", "message": {**reply, "content": [], "stop_reason": None, "usage": usage}})
    pieces = []
    for place, block in enumerate(reply["content"]):
        kind = block["type"]
        empty: dict[str, Any] = {"text": ""} if kind == "text" else {"input": {}} if kind == "tool_use" else {}
        pieces.append(_event({"type": "content_block_start", "index": place, "content_block": {**block, **empty}}))
        deltas = [{"type": "text_delta", "text": word} for word in _words(block.get("text"))]
        if kind == "tool_use":
            deltas = [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
        pieces += [_event({"type": "content_block_delta", "index": place, "delta": delta}) for delta in deltas]
        pieces.append(_event({"type": "content_block_stop", "index": place}))
    delta = {"type": "message_delta", "delta": {"stop_reason": reply["stop_reason"]}, "usage": reply["usage"]}
    return begun, pieces, _event(delta) + _event({"type": "message_stop"})


def _event(payload: dict[str, Any]) -> bytes:
    name = f"event: {payload['type']}\n" if "type" in payload else ""
    return f"{name}data: {json.dumps(payload)}\n\n".encode()
