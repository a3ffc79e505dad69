"""OpenAI's Responses: a reply is a list of items, and a stream tells of each as it grows."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from suffice.live.dialects import base
from suffice.live.dialects.sse import Delta, Ended, Failed, Opened, Piece
from suffice.live.signals import Token, signals_of, tokens_in
from suffice.response import Response

_FINISH = {"max_output_tokens": "length", "content_filter": "content_filter"}
_AT_THE_SERVER = ("previous_response_id", "conversation", "prompt", "background", "store")
"""Fields by which the server keeps replies: it would keep all draws."""

_LAST = ("response.completed", "response.incomplete")
_PIECES: dict[str, Any] = {"output_text": "text", "refusal": "refusal"}
LOGPROBS = "message.output_text.logprobs"


class _ResponsesDialect(base.Dialect):
    name = "responses"
    routes = ("/responses",)
    limit = "max_output_tokens"

    def fields(self, messages: base.Messages, response_format: Mapping[str, Any] | None = None) -> dict[str, Any]:
        form = {"text": {"format": base.flat_form(response_format)}} if response_format is not None else {}
        return {"input": [dict(message) for message in messages], **form}

    def messages(self, fields: Mapping[str, Any]) -> base.Messages:
        told, given = fields.get("instructions"), fields.get("input")
        items = [{"role": "user", "content": given}] if isinstance(given, str) else given
        said = [item for item in base.objects(items) if "role" in item]
        return [{"role": "system", "content": told}, *said] if told else said

    def with_signals(self, request: Mapping[str, Any], top: int) -> dict[str, Any]:
        """By `include`; what the caller asked for stays."""
        include = request.get("include")
        wanted = [one for one in include if one != LOGPROBS] if isinstance(include, list) else []
        asked = {name: value for name, value in request.items() if value or name != "top_logprobs"}
        return {**({"top_logprobs": top} if top else {}), **asked, "include": [*wanted, LOGPROBS]}

    def responses(self, reply: dict[str, Any], draws: int) -> list[Response]:
        if not isinstance(reply["output"], list) or reply.get("status") in ("failed", "cancelled"):
            raise ValueError
        items = base.objects(reply["output"])
        text = "".join(_texts(items, "message", "content", "output_text"))
        thoughts = "\n".join([*_texts(items, "reasoning", "content"), *_texts(items, "reasoning", "summary")])
        calls = [_call(item) for item in items if item.get("type") in ("function_call", "custom_tool_call")]
        response = base.only_response(reply, text, thoughts, calls, _finish(reply, bool(calls)))
        return [replace(response, signals=signals_of(_take_tokens(reply)))]

    def deltas(self, event: dict[str, Any]) -> list[Delta]:
        kind = str(event.get("type"))
        if kind.endswith(".delta"):
            grows = kind.split(".")[1]
            return [Piece("reasoning" if grows.startswith("reasoning") else _PIECES.get(grows, "tool"), event["delta"])]
        if kind == "response.output_item.added":
            return [Opened()]
        if kind in ("error", "response.failed") or event.get("error"):
            return [Failed(str(event))]
        if kind in _LAST:
            usage = base.token_usage(event["response"])
            return [usage, Ended()] if usage else [Ended()]
        return []

    def join(self, reply: dict[str, Any], event: dict[str, Any]) -> None:
        """Take the last event, with the items from before it if it has none."""
        items = reply.setdefault("output", [])
        if event.get("type") == "response.output_item.done":
            items.append(event["item"])
        elif event.get("type") in _LAST:
            reply |= {**event["response"], "output": event["response"].get("output") or items}

    def client_request(self, body: Mapping[str, Any], path: Mapping[str, str]) -> base.ClientRequest:
        text = body.get("text")
        form = text.get("format") if isinstance(text, dict) else None
        has_input = isinstance(body.get("input"), str | list) and body["input"]
        mistake = None if has_input else base.FieldError("input", "must be a text, or a list with an item at least")
        return base.client_request(body, _obstacle(body), form, "text.format", mistake)

    def reply(self, chosen: Response, usage: dict[str, Any], prompt: int, completion: int) -> dict[str, Any]:
        total = {"input_tokens": prompt, "output_tokens": completion, "total_tokens": prompt + completion}
        return {**chosen.reply, "usage": {**usage, **total}}

    def rewritten(self, response: Response, value: Any) -> Response:
        if response.tool_calls is None or not isinstance(value, list):
            part = {"type": "output_text", "text": json.dumps(value, ensure_ascii=False), "annotations": []}
            new = {"id": "msg_0", "role": "assistant", "status": "completed", "type": "message", "content": [part]}
            return base.with_parts(response, "output", ["message"], [new])
        calls = [_function_call(place, call) for place, call in enumerate(value)]
        return base.with_parts(response, "output", ["function_call", "custom_tool_call"], calls)

    def events(self, reply: dict[str, Any], usage_wanted: bool, told: int = 0) -> list[bytes]:
        """The beginning, each item as it grows, and the whole; told are the beginning and reasoning."""
        begun = {**reply, "status": "in_progress", "output": [], "usage": None}
        begun.pop("suffice", None)
        start = [{"type": f"response.{name}", "response": begun} for name in ("created", "in_progress")]
        items = base.objects(reply["output"])
        if told:
            start, items = [], _without_thoughts(reply)
        grown = [
            {**event, "output_index": place}
            for place, item in enumerate(items, 1 if told else 0)
            for event in _item_events(item)
        ]
        end = {"type": _LAST[reply.get("status") == "incomplete"], "response": reply}
        numbered = enumerate([*start, *grown, end], told)
        return [base.event({**event, "sequence_number": number}, event["type"]) for number, event in numbered]

    def continued(self, reply: dict[str, Any], begun: Mapping[str, Any]) -> dict[str, Any]:
        """With the thoughts that the stream began with, and no others."""
        thoughts = [item for item in base.objects(begun["output"]) if item.get("type") == "reasoning"]
        return super().continued(reply, begun) | {"output": [*thoughts[:1], *_without_thoughts(reply)]}

    def error_event(self, error: dict[str, Any]) -> bytes:
        """The error by its own event, and as an object, which OpenAI's clients raise."""
        told = error["error"]
        told = told if isinstance(told, dict) else {}
        plain = {name: told.get(name) for name in ("code", "message", "param")}
        return base.event({"type": "error", **plain, "sequence_number": 0, "error": told}, "error")


RESPONSES = _ResponsesDialect()


def _obstacle(body: Mapping[str, Any]) -> str | None:
    kept = next((name for name in _AT_THE_SERVER if body.get(name)), None)
    if kept:
        return kept
    if any(tool.get("type") not in ("function", "custom") for tool in base.objects(body.get("tools"))):
        return "server tools"
    include = body.get("include")
    asks = body.get("top_logprobs") or (isinstance(include, list) and LOGPROBS in include)
    return "logprobs" if asks else None


def _finish(reply: dict[str, Any], calls: bool) -> str:
    if reply.get("status") == "incomplete":
        return _FINISH.get((reply.get("incomplete_details") or {}).get("reason") or "", "length")
    return "tool_calls" if calls else "stop"


def _take_tokens(reply: dict[str, Any]) -> list[Token]:
    """Take the tokens out of a reply."""
    contents = [item.get("content") for item in base.objects(reply["output"])]
    tokens: list[Token] = []
    for part in chain(*(content for content in contents if isinstance(content, list))):
        found = tokens_in(part.get("logprobs"))
        if found:
            tokens += found
            part["logprobs"] = []
    if tokens and "top_logprobs" in reply:
        reply["top_logprobs"] = 0
    return tokens


def _function_call(place: int, call: Mapping[str, Any]) -> dict[str, Any]:
    arguments = json.dumps(call["arguments"], ensure_ascii=False)
    names = {"id": f"fc_{place}", "call_id": f"call_{place}", "name": call["name"]}
    return {"type": "function_call", "status": "completed", **names, "arguments": arguments}


def _texts(items: Sequence[dict[str, Any]], kind: str, within: str, part_kind: str | None = None) -> Iterator[str]:
    for item in items:
        parts = (item.get(within) or []) if item.get("type") == kind else []
        for part in [{"type": part_kind, "text": parts}] if isinstance(parts, str) else parts:
            if part_kind in (None, part.get("type")):
                yield part.get("text") or ""


def _call(item: dict[str, Any]) -> dict[str, Any]:
    """Return a call as a chat completion has it; the text of a custom tool is its one argument."""
    arguments = item.get("arguments")
    if item["type"] == "custom_tool_call":
        arguments = json.dumps({"input": item.get("input")})
    function = {"name": item.get("name"), "arguments": arguments}
    return {"id": item.get("call_id"), "type": "function", "function": function}


def _without_thoughts(reply: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [item for item in base.objects(reply["output"]) if item.get("type") != "reasoning"]


def _item_events(item: dict[str, Any]) -> Iterator[dict[str, Any]]:
    begun: dict[str, Any] = {name: [] for name in ("summary", "content") if item.get(name)}
    grown = [*_part_events("summary", item.get("summary")), *_part_events("content", item.get("content"))]
    if (kind := str(item.get("type"))) in _CALLS:
        event, name = _CALLS[kind]
        begun, grown = {name: ""}, [*_growth(event, name, item)]
    status = {"status": "in_progress"} if "status" in item else {}
    yield {"type": "response.output_item.added", "item": {**item, **begun, **status}}
    yield from ({"item_id": item.get("id"), **event} for event in grown)
    yield {"type": "response.output_item.done", "item": item}


_CALLS = {
    "function_call": ("function_call_arguments", "arguments"),
    "custom_tool_call": ("custom_tool_call_input", "input"),
}
_PARTS = {"refusal": "refusal", "summary_text": "reasoning_summary_text", "reasoning_text": "reasoning_text"}
"""The events of parts that are no text of a message."""


def _growth(event: str, name: str, whole: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    logprobs: dict[str, Any] = {"logprobs": []} if event == "output_text" else {}
    yield {"type": f"response.{event}.delta", "delta": whole.get(name) or "", **logprobs}
    named = {"name": whole["name"]} if "name" in whole else {}
    yield {"type": f"response.{event}.done", name: whole.get(name) or "", **named, **logprobs}


def _part_events(within: str, parts: Any) -> Iterator[dict[str, Any]]:
    event = "response.reasoning_summary_part" if within == "summary" else "response.content_part"
    for place, part in enumerate(base.objects(parts)):
        name, at = "refusal" if part.get("type") == "refusal" else "text", {f"{within}_index": place}
        yield {"type": f"{event}.added", **at, "part": {**part, name: ""}}
        yield from ({**grown, **at} for grown in _growth(_PARTS.get(str(part.get("type")), "output_text"), name, part))
        yield {"type": f"{event}.done", **at, "part": part}
