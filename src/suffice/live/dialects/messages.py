"""Anthropic's Messages: a reply is a list of blocks, and a stream tells of each as it grows."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from suffice.live.dialects import base
from suffice.live.dialects.sse import Delta, Ended, Failed, Opened, Piece
from suffice.response import Response

_FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "pause_turn": "length",
    "refusal": "content_filter",
}

_CLIENT_TOOLS = ("custom", "bash_", "text_editor_", "memory_")  # prefixes of the types that the client runs

_KINDS = {
    "invalid_api_key": "authentication_error",
    "not_found": "not_found_error",
    "upstream_error": "api_error",
    "server_error": "api_error",
}
"""Anthropic's words for errors."""


class _MessagesDialect(base.Dialect):
    name = "messages"
    routes = ("/messages",)
    tells_signals = False
    provider = "anthropic"

    def fields(self, messages: base.Messages, response_format: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The messages, with the system's apart, and the schema of the output."""
        system = [one for one in messages if one.get("role") in ("system", "developer")]
        told = "\n\n".join(str(one.get("content")) for one in system)
        said = [dict(one) for one in messages if one.get("role") not in ("system", "developer")]
        form: dict[str, Any] = {}
        if response_format is not None:
            schema = base.schema_of(base.flat_form(response_format)) or {"type": "object"}
            form = {"output_config": {"format": {"type": "json_schema", "schema": schema}}}
        return {"messages": said, **({"system": told} if told else {}), **form}

    def messages(self, fields: Mapping[str, Any]) -> base.Messages:
        """The system's text and the messages; results of tools are no words of the user's."""
        system, given = fields.get("system"), base.objects(fields.get("messages"))
        said = [{**one, "role": "tool"} if _is_result(one.get("content")) else one for one in given]
        return [{"role": "system", "content": system}, *said] if system else said

    def responses(self, reply: dict[str, Any], draws: int) -> list[Response]:
        if not isinstance(reply["content"], list) or reply.get("type") == "error":
            raise ValueError
        blocks = base.objects(reply["content"])
        text = "".join(block.get("text") or "" for block in blocks if block.get("type") == "text")
        thoughts = "\n".join(block.get("thinking") or "" for block in blocks if block.get("type") == "thinking")
        calls = [_call(block) for block in blocks if block.get("type") == "tool_use"]
        stop: Any = reply.get("stop_reason")
        return [base.only_response(reply, text, thoughts, calls, _FINISH.get(stop, stop))]

    def deltas(self, event: dict[str, Any]) -> list[Delta]:
        """Those of blocks, and the usage, which comes with the beginning and the end."""
        kind = event.get("type")
        if kind == "content_block_delta":
            name, piece = _DELTAS.get(event["delta"]["type"], ("", None))
            return [Piece(piece, event["delta"][name])] if piece else []
        if kind == "content_block_start":
            return [Opened()]
        if kind == "error":
            return [Failed(str(event.get("error")))]
        if kind == "message_stop":
            return [Ended()]
        usage = base.token_usage(event["message"] if kind == "message_start" else event)
        return [usage] if usage else []

    def join(self, reply: dict[str, Any], event: dict[str, Any]) -> None:
        kind = event.get("type")
        if kind == "message_start":
            reply |= {**event["message"], "content": []}
        elif kind == "content_block_start":
            if len(reply["content"]) >= base.MOST_PARTS:
                raise ValueError
            reply["content"].append(dict(event["content_block"]))
        elif kind == "content_block_delta":
            _add_delta(reply["content"][event["index"]], event["delta"])
        elif kind == "content_block_stop":
            block = reply["content"][event["index"]]
            if "partial_json" in block:
                block["input"] = json.loads(block.pop("partial_json") or "{}")
        elif kind == "message_delta":
            told = {name: value for name, value in base.usage_of(event).items() if value is not None}
            reply |= {**event["delta"], "usage": {**base.usage_of(reply), **told}}

    def client_request(self, body: Mapping[str, Any], path: Mapping[str, str]) -> base.ClientRequest:
        config = body.get("output_config")
        form = config.get("format") if isinstance(config, dict) else body.get("output_format")
        return base.client_request(body, _obstacle(body), form, "output_config.format", base.no_messages(body))

    def reply(self, chosen: Response, usage: dict[str, Any], prompt: int, completion: int) -> dict[str, Any]:
        cached = sum(base.count(usage.get(name)) or 0 for name in base.CACHED)
        tokens = {"input_tokens": max(0, prompt - cached), "output_tokens": completion}
        return {**chosen.reply, "usage": {**usage, **tokens}}

    def rewritten(self, response: Response, value: Any) -> Response:
        if response.tool_calls is None or not isinstance(value, list):
            text = json.dumps(value, ensure_ascii=False)
            return base.with_parts(response, "content", ["text"], [{"type": "text", "text": text}])
        uses = [
            {"type": "tool_use", "id": f"toolu_{place}", "name": call["name"], "input": call["arguments"]}
            for place, call in enumerate(value)
        ]
        return base.with_parts(response, "content", ["tool_use"], uses)

    def events(self, reply: dict[str, Any], usage_wanted: bool, told: int = 0) -> list[bytes]:
        """The beginning, each block as it grows, and the end; told are the beginning and thinking."""
        usage = {**reply["usage"], "output_tokens": 0}
        begun = {**reply, "content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
        stop = {"stop_reason": reply.get("stop_reason"), "stop_sequence": reply.get("stop_sequence")}
        end = {"type": "message_delta", "delta": stop, "usage": reply["usage"]}
        blocks, start = base.objects(reply["content"]), [{"type": "message_start", "message": begun}]
        if told:
            blocks, start = [block for block in blocks if "thinking" not in str(block.get("type"))], []
            end |= {"suffice": reply["suffice"]} if "suffice" in reply else {}  # the message has begun without it
        grown = [
            {**event, "index": place}
            for place, block in enumerate(blocks, 1 if told else 0)
            for event in _block_events(block)
        ]
        return [base.event(event, event["type"]) for event in [*start, *grown, end, {"type": "message_stop"}]]

    def error(self, message: str, kind: str, param: str | None, code: str | None) -> dict[str, Any]:
        kind = _KINDS.get(code or "") or _KINDS.get(kind, kind)
        return {"type": "error", "error": {"type": kind, "message": message, **({"code": code} if code else {})}}


MESSAGES = _MessagesDialect()


def _obstacle(body: Mapping[str, Any]) -> str | None:
    kinds = [tool.get("type") for tool in base.objects(body.get("tools"))]
    if body.get("mcp_servers") or any(kind and not str(kind).startswith(_CLIENT_TOOLS) for kind in kinds):
        return "server tools"
    return "container" if body.get("container") else None


def _is_result(content: Any) -> bool:
    """Whether a content is results of tools alone."""
    kinds = {block.get("type") for block in base.objects(content)}
    return "tool_result" in kinds and "text" not in kinds


def _call(block: dict[str, Any]) -> dict[str, Any]:
    function = {"name": block.get("name"), "arguments": json.dumps(block.get("input") or {}, ensure_ascii=False)}
    return {"id": block.get("id"), "type": "function", "function": function}


_DELTAS: dict[str, tuple[str, Any]] = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "reasoning"),
    "input_json_delta": ("partial_json", "tool"),
    "signature_delta": ("signature", None),
}
"""The field and the kind of piece of each delta."""

_GROWING = {"text": ("text_delta",), "thinking": ("thinking_delta", "signature_delta")}  # blocks, and their deltas


def _add_delta(block: dict[str, Any], delta: dict[str, Any]) -> None:
    kind = delta.get("type")
    if kind in _DELTAS:
        name, _ = _DELTAS[kind]
        block[name] = (block.get(name) or "") + delta[name]
    elif kind == "citations_delta":
        block["citations"] = [*(block.get("citations") or ()), delta["citation"]]


def _block_events(block: dict[str, Any]) -> Iterator[dict[str, Any]]:
    begun: dict[str, Any] = {"citations": []} if block.get("citations") else {}
    deltas = [{"type": "citations_delta", "citation": one} for one in block.get("citations") or ()]
    for kind in _GROWING.get(str(block.get("type")), ()):
        name, _ = _DELTAS[kind]
        begun[name] = ""
        deltas.append({"type": kind, name: block.get(name) or ""})
    if block.get("type") == "tool_use":
        begun = {"input": {}}
        deltas = [{"type": "input_json_delta", "partial_json": json.dumps(block.get("input") or {})}]
    yield {"type": "content_block_start", "content_block": {**block, **begun}}
    yield from ({"type": "content_block_delta", "delta": delta} for delta in deltas)
    yield {"type": "content_block_stop"}
