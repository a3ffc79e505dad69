"""From Responses and Messages to chat completions and back, for servers that speak nothing else.

Text, images, tools and JSON go over; what chat completions have no words for is refused by a FieldError, and what only
tunes how a server works is left out.
"""

import json
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from suffice.live.dialects.base import UNREADABLE, FieldError, MalformedError
from suffice.response import Response

Fields = dict[str, Any]

_LEFT_OUT = {
    "responses": (
        "include", "input", "instructions", "max_output_tokens", "max_tool_calls", "metadata", "prompt_cache_key",
        "prompt_cache_retention", "reasoning", "safety_identifier", "service_tier", "store", "stream",
        "stream_options", "text", "tool_choice", "tools", "truncation",
    ),
    "messages": (
        "cache_control", "context_management", "diagnostics", "inference_geo", "messages", "metadata", "output_config",
        "output_format", "service_tier", "speed", "stop_sequences", "stream", "system", "thinking", "tool_choice",
        "tools",
    ),
}  # fmt: skip
"""Fields that are translated by name, or that a server may do without; all others are passed on as they are."""

_REFUSED = {
    "responses": ("previous_response_id", "conversation", "background", "prompt", "context_management"),
    "messages": ("mcp_servers", "container"),
}
_ECHOED = (
    "instructions", "max_output_tokens", "metadata", "parallel_tool_calls", "temperature", "text", "tool_choice",
    "tools", "top_p",
)  # fmt: skip
_STOPS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use", "content_filter": "refusal"}
TRANSLATED = tuple(_REFUSED)
"""The dialects that can be translated."""

_CHOICES = {"auto": "auto", "any": "required", "none": "none"}


def request_to_chat(dialect: str, body: Mapping[str, Any]) -> Fields:
    """A request of that dialect as one for a chat completion."""
    refused = next((name for name in _REFUSED[dialect] if body.get(name)), None)
    if refused:
        raise FieldError(refused, "has no translation into chat completions")
    kept = {name: value for name, value in body.items() if name not in (*_LEFT_OUT[dialect], *_REFUSED[dialect])}
    translated = _responses_request(body) if dialect == "responses" else _messages_request(body)
    return {**kept, **{name: value for name, value in translated.items() if value not in (None, [], {})}}


def response_from_chat(dialect: str, response: Response, asked: Mapping[str, Any]) -> Response:
    """A response of a chat completion, with the reply of that dialect that it would have been to what was asked."""
    told = response.reply.get("usage")
    usage = told if isinstance(told, dict) and response.prompt_tokens else {}
    to_reply = _responses_reply if dialect == "responses" else _messages_reply
    try:
        reply = to_reply(response, usage, asked)
    except UNREADABLE:
        raise MalformedError(f"no chat completion: {json.dumps(response.choice)[:80]}") from None
    return replace(response, choice={}, reply=reply)


# --- Responses


def _responses_request(body: Mapping[str, Any]) -> Fields:
    told, given = body.get("instructions"), body.get("input")
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given
    text, reasoning = _object(body, "text"), _object(body, "reasoning")
    return {
        "messages": _joined([*_system(told, "instructions"), *map(_from_item, _list(items, "input"))]),
        "tools": [_function_of(tool, "parameters") for tool in _list(body.get("tools") or [], "tools")],
        "tool_choice": _responses_choice(body.get("tool_choice")),
        "response_format": _response_format(text.get("format"), "text"),
        "verbosity": text.get("verbosity"),
        "max_tokens": body.get("max_output_tokens"),
        "reasoning_effort": reasoning.get("effort"),
    }


def _from_item(item: Mapping[str, Any]) -> Fields:
    """An item of the input as a message; none for thoughts, which a chat does not take back."""
    kind = item.get("type", "message")
    if kind == "message":
        role = "system" if item.get("role") == "developer" else item.get("role")
        return {"role": role, "content": _content(item.get("content"), "input")}
    if kind == "function_call":
        call = _call(item.get("call_id"), item, item.get("arguments"))
        return {"role": "assistant", "content": None, "tool_calls": [call]}
    if kind == "function_call_output":
        return {"role": "tool", "content": _plain(item.get("output"), "input"), "tool_call_id": item.get("call_id")}
    if kind == "reasoning":
        return {}
    raise FieldError("input", f"has an item {kind!r}, which has no translation into chat completions")


def _responses_choice(choice: Any) -> Any:
    if not isinstance(choice, dict):
        return choice
    if choice.get("type") != "function":
        raise FieldError("tool_choice", f"of the type {choice.get('type')!r} has no translation into chat completions")
    return {"type": "function", "function": {"name": choice.get("name")}}


def _responses_reply(response: Response, usage: Mapping[str, Any], asked: Mapping[str, Any]) -> Fields:
    reply, prompt_tokens, tokens = response.reply, response.prompt_tokens, response.tokens or 0
    cut = {"length": "max_output_tokens", "content_filter": "content_filter"}.get(str(response.finish_reason))
    status = "incomplete" if cut else "completed"
    output: list[Fields] = []
    if response.reasoning:
        part: Fields = {"type": "reasoning_text", "text": response.reasoning}
        output.append({"type": "reasoning", "id": _new("rs"), "summary": [], "content": [part]})
    if response.text:
        part = {"type": "output_text", "text": response.text, "annotations": []}
        output.append({"type": "message", "id": _new("msg"), "status": status, "role": "assistant", "content": [part]})
    for call in response.tool_calls or ():
        names = {"call_id": call.get("id") or _new("call"), **_named(call)}
        output.append({"type": "function_call", "id": _new("fc"), "status": status, **names})
    return {
        "id": _new("resp"),
        "object": "response",
        "created_at": reply.get("created") or int(time.time()),
        "model": reply.get("model") or asked.get("model"),
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        **{name: asked[name] for name in _ECHOED if asked.get(name) is not None},
        "status": status,
        "error": None,
        "incomplete_details": {"reason": cut} if cut else None,
        "output": output,
        "usage": {
            "input_tokens": prompt_tokens,
            "input_tokens_details": {"cached_tokens": _detail(usage, "prompt_tokens_details", "cached_tokens")},
            "output_tokens": tokens,
            "output_tokens_details": {
                "reasoning_tokens": _detail(usage, "completion_tokens_details", "reasoning_tokens")
            },
            "total_tokens": prompt_tokens + tokens,
        },
    }


# --- Messages


def _messages_request(body: Mapping[str, Any]) -> Fields:
    said = [one for message in _list(body.get("messages"), "messages") for one in _from_turn(message)]
    tools = _list(body.get("tools") or [], "tools")
    choice, config = _object(body, "tool_choice"), _object(body, "output_config")
    return {
        "messages": _joined([*_system(body.get("system"), "system"), *said]),
        "tools": [_function_of({"type": "function", **_untyped(tool)}, "input_schema") for tool in tools],
        "tool_choice": _messages_choice(choice),
        "parallel_tool_calls": False if choice.get("disable_parallel_tool_use") else None,
        "response_format": _response_format(config.get("format") or body.get("output_format"), "output_config"),
        "reasoning_effort": config.get("effort"),
        "stop": body.get("stop_sequences"),
        "user": _object(body, "metadata").get("user_id"),
    }


def _from_turn(message: Mapping[str, Any]) -> Iterator[Fields]:
    """A message; results of tools are messages of their own, before the rest."""
    content = message.get("content")
    blocks = _list(content, "messages") if isinstance(content, list) else []
    results = [block for block in blocks if block.get("type") == "tool_result"]
    calls = [block for block in blocks if block.get("type") == "tool_use"]
    for block in results:
        text = _plain(block.get("content"), "messages") or ""
        yield {"role": "tool", "content": text, "tool_call_id": block.get("tool_use_id")}
    thoughts = ("thinking", "redacted_thinking")
    rest = [
        block for block in blocks if block not in results and block not in calls and block.get("type") not in thoughts
    ]
    said = content if isinstance(content, str) else _content(rest, "messages") if rest else None
    if said is not None or calls:
        told = [_call(block.get("id"), block, json.dumps(block.get("input") or {})) for block in calls]
        yield {"role": message.get("role"), "content": said, **({"tool_calls": told} if told else {})}


def _untyped(tool: Mapping[str, Any]) -> Fields:
    """A tool of the client's own, less its type, which chats have another word for."""
    return {name: value for name, value in tool.items() if name != "type" or value not in (None, "custom")}


def _messages_choice(choice: Mapping[str, Any]) -> Any:
    if choice.get("type") == "tool":
        return {"type": "function", "function": {"name": choice.get("name")}}
    return _CHOICES.get(str(choice.get("type")))


def _messages_reply(response: Response, usage: Mapping[str, Any], asked: Mapping[str, Any]) -> Fields:
    cached = _detail(usage, "prompt_tokens_details", "cached_tokens")
    content: list[Fields] = []
    if response.reasoning:
        content.append({"type": "thinking", "thinking": response.reasoning, "signature": ""})
    if response.text:
        content.append({"type": "text", "text": response.text})
    for call in response.tool_calls or ():
        named = _named(call)
        named = {"name": named["name"], "input": _read_arguments(named["arguments"])}
        content.append({"type": "tool_use", "id": call.get("id") or _new("toolu"), **named})
    return {
        "id": _new("msg"),
        "type": "message",
        "role": "assistant",
        "model": response.reply.get("model") or asked.get("model"),
        "content": content,
        "stop_reason": _STOPS.get(str(response.finish_reason), "end_turn"),
        "stop_sequence": None,
        "usage": {
            "input_tokens": max(0, response.prompt_tokens - cached),
            "cache_read_input_tokens": cached,
            "output_tokens": response.tokens or 0,
        },
    }


def _read_arguments(text: Any) -> Fields:
    """A call's arguments; a text that is no JSON object, as the one argument that it is."""
    try:
        read = json.loads(text or "{}")
    except (ValueError, TypeError, RecursionError):
        read = None
    return read if isinstance(read, dict) else {"arguments": text}


# --- both


def _system(told: Any, field: str) -> list[Fields]:
    """The message that says what the system is told, where it is anything."""
    text = _plain(told, field)
    return [{"role": "system", "content": text}] if text else []


def _joined(messages: Iterable[Fields]) -> list[Fields]:
    """The messages, with calls in the same message as what was said, and as each other."""
    joined: list[Fields] = []
    for message in messages:
        last = joined[-1] if joined else {}
        if "tool_calls" in message and last.get("role") == "assistant" and message["content"] is None:
            last["tool_calls"] = [*last.get("tool_calls", ()), *message["tool_calls"]]
        elif message:
            joined.append(message)
    return joined


def _content(content: Any, field: str) -> Any:
    """Content in parts, as a chat has them; a text where it is just that."""
    if content is None or isinstance(content, str):
        return content
    parts = [_from_part(part, field) for part in _list(content, field)]
    return parts[0]["text"] if len(parts) == 1 and parts[0]["type"] == "text" else parts


def _from_part(part: Mapping[str, Any], field: str) -> Fields:
    kind = part.get("type")
    if kind in ("text", "input_text", "output_text"):
        return {"type": "text", "text": part.get("text") or ""}
    if kind == "refusal":
        return {"type": "text", "text": part.get("refusal") or ""}
    source = part.get("source") if kind == "image" else None
    url = part.get("image_url") if kind == "input_image" else _source_url(source) if isinstance(source, dict) else None
    if not isinstance(url, str):
        raise FieldError(field, f"has a part {kind!r}, which has no translation into chat completions")
    detail = {"detail": part["detail"]} if part.get("detail") else {}
    return {"type": "image_url", "image_url": {"url": url, **detail}}


def _source_url(source: Mapping[str, Any]) -> str | None:
    if source.get("type") == "base64":
        return f"data:{source.get('media_type')};base64,{source.get('data')}"
    return source.get("url")


def _plain(content: Any, field: str) -> str | None:
    """Content that can be text only."""
    if content is None or isinstance(content, str):
        return content
    texts = [
        part.get("text") for part in _list(content, field) if part.get("type") in ("text", "input_text", "output_text")
    ]
    if len(texts) < len(content):
        raise FieldError(field, "has parts other than text where a chat completion takes no others")
    return "".join(str(text or "") for text in texts)


def _function_of(tool: Mapping[str, Any], schema: str) -> Fields:
    if tool.get("type") != "function":
        raise FieldError("tools", f"has one of the type {tool.get('type')!r}, which chat completions do not have")
    named = {"name": tool.get("name"), "description": tool.get("description"), "parameters": tool.get(schema)}
    named["strict"] = tool.get("strict")
    return {"type": "function", "function": {name: value for name, value in named.items() if value is not None}}


def _response_format(form: Any, field: str) -> Fields | None:
    if form is None:
        return None
    kind = form.get("type") if isinstance(form, dict) else None
    if kind == "json_schema":
        schema = {"name": "reply", **{name: value for name, value in form.items() if name != "type"}}
        return {"type": kind, "json_schema": schema}
    if kind not in ("json_object", "text"):
        raise FieldError(field, f"has a format {kind!r}, which has no translation into chat completions")
    return None if kind == "text" else {"type": kind}


def _call(identity: Any, named: Mapping[str, Any], arguments: Any) -> Fields:
    return {"id": identity, "type": "function", "function": {"name": named.get("name"), "arguments": arguments}}


def _named(call: Mapping[str, Any]) -> Fields:
    function = call.get("function") or {}
    return {"name": function.get("name") or "", "arguments": function.get("arguments") or ""}


def _object(body: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = body.get(name)
    return value if isinstance(value, dict) else {}


def _list(value: Any, field: str) -> list[Any]:
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise FieldError(field, "must be a list of objects")
    return value


def _detail(usage: Mapping[str, Any], details: str, name: str) -> int:
    told = usage.get(details)
    value = told.get(name) if isinstance(told, dict) else None
    return value if isinstance(value, int) else 0


def _new(kind: str) -> str:
    return f"{kind}_{uuid.uuid4().hex}"
