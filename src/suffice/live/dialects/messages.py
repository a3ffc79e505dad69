"""Anthropic's Messages: a reply is a list of blocks, and a stream tells of each as it grows."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from suffice.live.dialects import base
from suffice.live.signals import Token
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
_CACHED = ("cache_read_input_tokens", "cache_creation_input_tokens")
"""Tokens of the prompt that `input_tokens` leaves out."""

_CLIENT_TOOLS = ("custom", "bash_", "text_editor_", "memory_")
"""How the types of tools begin that the client runs; all others the server runs, or nobody knows."""

_KINDS = {
    "invalid_api_key": "authentication_error",
    "not_found": "not_found_error",
    "upstream_error": "api_error",
    "server_error": "api_error",
}
"""Anthropic's words for errors that it calls otherwise than OpenAI."""

MOST_BLOCKS = 1000
"""No message has more."""


class MessagesWire(base.Wire):
    """`POST /messages` at a server."""

    route = "/messages"
    tells_signals = False
    provider = "anthropic"

    def fields(
        self, messages: Sequence[Mapping[str, Any]], response_format: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """The messages, with the system's apart, and the schema as that of the output."""
        system = [one for one in messages if one.get("role") in ("system", "developer")]
        told = "\n\n".join(str(one.get("content")) for one in system)
        said = [dict(one) for one in messages if one.get("role") not in ("system", "developer")]
        form: dict[str, Any] = {}
        if response_format is not None:
            schema = base.schema_of(base.flat_form(response_format)) or {"type": "object"}
            form = {"output_config": {"format": {"type": "json_schema", "schema": schema}}}
        return {"messages": said, **({"system": told} if told else {}), **form}

    def messages(self, fields: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
        """The system's text and the messages; results of tools are no words of the user's."""
        system, given = fields.get("system"), base.objects(fields.get("messages"))
        said = [{**one, "role": "tool"} if _is_result(one.get("content")) else one for one in given]
        return [{"role": "system", "content": system}, *said] if system else said

    def read(self, body: bytes, draws: int, signals: bool = False) -> list[Response]:
        """One response, whatever the number of its blocks."""
        try:
            reply = json.loads(body)
            if not isinstance(reply["content"], list) or reply.get("type") == "error":
                raise ValueError
            blocks = base.objects(reply["content"])
            text = "".join(block.get("text") or "" for block in blocks if block.get("type") == "text")
            thoughts = "\n".join(block.get("thinking") or "" for block in blocks if block.get("type") == "thinking")
            calls = [_call(block) for block in blocks if block.get("type") == "tool_use"]
            finish = _FINISH.get(reply.get("stop_reason"), reply.get("stop_reason"))
        except base.UNREADABLE:
            raise base.malformed("no message", body) from None
        usage = base.usage_of(reply)
        prompt_tokens = sum(base.count(usage.get(name)) or 0 for name in ("input_tokens", *_CACHED))
        return [base.only_response(reply, text, thoughts, calls, finish, prompt_tokens)]

    def joined(self, events: Iterable[dict[str, Any]]) -> tuple[dict[str, Any] | None, list[Token]]:
        """The message that begins, with its blocks joined from their deltas."""
        message: dict[str, Any] = {}
        ended = False
        for event in events:
            kind = event.get("type")
            if kind == "error":
                raise base.MalformedError(f"an error in the stream: {str(event.get('error'))[:200]}")
            ended |= kind == "message_stop"
            if kind == "message_start":
                message = {**event["message"], "content": []}
            else:
                _add_event(message, kind, event)
        return message if ended else None, []

    def is_piece(self, line: bytes) -> bool:
        """A delta of a block."""
        return b"content_block_delta" in line and b"signature_delta" not in line

    def heard(self, event: dict[str, Any]) -> str:
        """The text of a delta."""
        return (event["delta"].get("text") or "") if event.get("type") == "content_block_delta" else ""

    def is_thought(self, event: bytes, begun: bool) -> bool:
        """A piece of thinking, or how its block ends."""
        ends = b'"signature_delta"' in event or b'"content_block_stop"' in event or b'"ping"' in event
        return b'"thinking_delta"' in event or (begun and ends)


class MessagesFace(base.Face):
    """`POST /v1/messages` for a client."""

    routes = ("/messages",)

    def read(self, body: Mapping[str, Any], path: Mapping[str, str]) -> base.ClientRequest:
        """The form is in `output_config.format`."""
        form = _form(body)
        schema = base.schema_of(form)
        return base.ClientRequest(
            model=base.model_in(body),
            streamed=body.get("stream") is True,
            fields=base.without(body, "stream"),
            schema=schema,
            has_tools=bool(body.get("tools")),
            obstacle=_obstacle(body),
            odd_form="output_config.format" if form and schema is None else None,
            mistake=base.no_messages(body),
        )

    def reply(
        self, chosen: Response, responses: Sequence[Response], prompt_tokens: int, completion_tokens: int
    ) -> dict[str, Any]:
        """The chosen message as it came, with the usage of all."""
        usage = base.usage_of_all(responses)
        cached = sum(base.count(usage.get(name)) or 0 for name in _CACHED)
        tokens = {"input_tokens": max(0, prompt_tokens - cached), "output_tokens": completion_tokens}
        return {**chosen.reply, "usage": {**usage, **tokens}}

    def rewritten(self, response: Response, value: Any) -> Response:
        """Its text, or its uses of tools, in other words."""
        if response.tool_calls is None or not isinstance(value, list):
            text = json.dumps(value, ensure_ascii=False)
            return base.with_parts(response, "content", ["text"], [{"type": "text", "text": text}])
        uses = [
            {"type": "tool_use", "id": f"toolu_{place}", "name": call["name"], "input": call["arguments"]}
            for place, call in enumerate(value)
        ]
        return base.with_parts(response, "content", ["tool_use"], uses)

    def events(self, reply: dict[str, Any], usage_wanted: bool) -> list[bytes]:
        """The message as it begins, each block as it grows, and how it ends."""
        usage = {**reply["usage"], "output_tokens": 0}
        begun = {**reply, "content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
        told: list[dict[str, Any]] = [{"type": "message_start", "message": begun}]
        told += _blocks_events(reply["content"])
        return [base.event(event, event["type"]) for event in [*told, *_end_events(reply)]]

    def events_after_thoughts(self, reply: dict[str, Any], usage_wanted: bool, told: int) -> list[bytes]:
        """Without the beginning, which has been told, and with other blocks than the first, which is of thoughts."""
        said = [block for block in base.objects(reply["content"]) if "thinking" not in str(block["type"])]
        delta, stop = _end_events(reply)
        delta |= {"suffice": reply["suffice"]} if "suffice" in reply else {}  # the message has begun without it
        return [base.event(event, event["type"]) for event in [*_blocks_events(said, first=1), delta, stop]]

    def error(self, message: str, kind: str, param: str | None, code: str | None) -> dict[str, Any]:
        """As Anthropic has it, and the code where there is one."""
        kind = _KINDS.get(code or "") or _KINDS.get(kind, kind)
        return {"type": "error", "error": {"type": kind, "message": message, **({"code": code} if code else {})}}

    def is_error(self, body: Mapping[str, Any]) -> bool:
        """Anthropic's say that they are one."""
        return body.get("type") == "error"

    def error_event(self, error: dict[str, Any]) -> bytes:
        """The error by its own event."""
        return base.event(error, "error")


MESSAGES = base.Dialect("messages", MessagesFace(), MessagesWire())


def _blocks_events(content: Any, first: int = 0) -> list[dict[str, Any]]:
    """The blocks of a message as they grow, numbered from the first."""
    blocks = enumerate(base.objects(content), first)
    return [{**event, "index": place} for place, block in blocks for event in _block_events(block)]


def _end_events(reply: Mapping[str, Any]) -> list[dict[str, Any]]:
    """How a message ends."""
    end = {"stop_reason": reply.get("stop_reason"), "stop_sequence": reply.get("stop_sequence")}
    return [{"type": "message_delta", "delta": end, "usage": reply["usage"]}, {"type": "message_stop"}]


def _obstacle(body: Mapping[str, Any]) -> str | None:
    """What the server runs by itself."""
    kinds = [tool.get("type") for tool in base.objects(body.get("tools"))]
    if body.get("mcp_servers") or any(kind and not str(kind).startswith(_CLIENT_TOOLS) for kind in kinds):
        return "server tools"
    return "container" if body.get("container") else None


def _form(body: Mapping[str, Any]) -> Any:
    config = body.get("output_config")
    return config.get("format") if isinstance(config, dict) else body.get("output_format")


def _is_result(content: Any) -> bool:
    """Whether a message brings results of tools and no text."""
    kinds = {block.get("type") for block in base.objects(content)}
    return "tool_result" in kinds and "text" not in kinds


def _call(block: dict[str, Any]) -> dict[str, Any]:
    """A call as a chat completion's message has it."""
    function = {"name": block.get("name"), "arguments": json.dumps(block.get("input") or {}, ensure_ascii=False)}
    return {"id": block.get("id"), "type": "function", "function": function}


_DELTAS = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}


def _add_event(message: dict[str, Any], kind: Any, event: dict[str, Any]) -> None:
    """Join what an event adds to a message."""
    if kind == "content_block_start":
        if len(message["content"]) >= MOST_BLOCKS:
            raise ValueError
        message["content"].append(dict(event["content_block"]))
    elif kind == "content_block_delta":
        _add_delta(message["content"][event["index"]], event["delta"])
    elif kind == "content_block_stop":
        block = message["content"][event["index"]]
        if "partial_json" in block:
            block["input"] = json.loads(block.pop("partial_json") or "{}")
    elif kind == "message_delta":
        message |= event["delta"]
        told = {name: value for name, value in base.usage_of(event).items() if value is not None}
        message["usage"] = {**base.usage_of(message), **told}


def _add_delta(block: dict[str, Any], delta: dict[str, Any]) -> None:
    kind = delta.get("type")
    if kind in _DELTAS:
        name = _DELTAS[kind]
        block[name] = (block.get(name) or "") + delta[name]
    elif kind == "input_json_delta":
        block["partial_json"] = block.get("partial_json", "") + delta["partial_json"]
    elif kind == "citations_delta":
        block["citations"] = [*(block.get("citations") or ()), delta["citation"]]


def _block_events(block: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """How a block begins, grows and ends."""
    kind = block.get("type")
    begun: dict[str, Any] = {}
    deltas: list[dict[str, Any]] = []
    if kind == "text":
        begun = {"text": ""} | ({"citations": []} if block.get("citations") else {})
        deltas = [{"type": "citations_delta", "citation": one} for one in block.get("citations") or ()]
        deltas.append({"type": "text_delta", "text": block.get("text") or ""})
    elif kind == "thinking":
        begun = {"thinking": "", "signature": ""}
        deltas = [
            {"type": "thinking_delta", "thinking": block.get("thinking") or ""},
            {"type": "signature_delta", "signature": block.get("signature") or ""},
        ]
    elif kind == "tool_use":
        begun = {"input": {}}
        deltas = [{"type": "input_json_delta", "partial_json": json.dumps(block.get("input") or {})}]
    yield {"type": "content_block_start", "content_block": {**block, **begun}}
    yield from ({"type": "content_block_delta", "delta": delta} for delta in deltas)
    yield {"type": "content_block_stop"}
