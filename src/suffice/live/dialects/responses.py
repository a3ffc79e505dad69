"""OpenAI's Responses: a reply is a list of items, and a stream tells of each as it grows."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from suffice.answers import Extractor
from suffice.live.dialects import wire
from suffice.live.dialects.base import Dialect, Hearing, MalformedError, Meter
from suffice.live.dialects.wire import UNREADABLE
from suffice.live.signals import Token, load, signals_of, tokens_in
from suffice.response import Response

_FINISH = {"max_output_tokens": "length", "content_filter": "content_filter"}
_AT_THE_SERVER = ("previous_response_id", "conversation", "prompt", "background", "store")
"""Fields by which the server keeps what was said, or what will be: other draws would be kept beside the winner."""


LOGPROBS = "message.output_text.logprobs"


class Responses(Dialect):
    """`POST /responses`."""

    name = "responses"
    path = "/responses"
    owned = frozenset(("stream", "stream_options"))
    takes_n = False

    def asking(
        self, messages: Sequence[Mapping[str, Any]], response_format: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """The messages as input, and the form as that of the text."""
        form = {"text": {"format": wire.flat_form(response_format)}} if response_format is not None else {}
        return {"input": [dict(message) for message in messages], **form}

    def messages(self, fields: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
        """The instructions, and the messages among the input."""
        told, given = fields.get("instructions"), fields.get("input")
        items = [{"role": "user", "content": given}] if isinstance(given, str) else given
        said = [item for item in items if isinstance(item, dict) and "role" in item] if isinstance(items, list) else []
        return [{"role": "system", "content": told}, *said] if told else said

    def no_vote(self, body: Mapping[str, Any], extractor: Extractor, answer_named: bool) -> str | None:
        """What lives at the server, in a form of its own, or with more than its text."""
        kept = next((name for name in _AT_THE_SERVER if body.get(name)), None)
        if kept:
            return kept
        if any(kind not in ("function", "custom") for kind in _tool_types(body)):
            return "server tools"
        if body.get("tools") and not extractor.reads_tools:
            return "tools"
        include = body.get("include")
        if body.get("top_logprobs") or (isinstance(include, list) and LOGPROBS in include):
            return "logprobs"
        form = _form(body)
        odd = isinstance(form, dict) and form.get("type") != "text" and wire.schema_of(form) is None
        return "text.format" if odd and not answer_named else None

    def json_wanted(self, body: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """By `text.format`."""
        return wire.schema_of(_form(body))

    def check(self, body: Mapping[str, Any], extractor: Extractor) -> None:
        """There must be an input, and tools where they are voted on."""
        if not isinstance(body.get("input"), str | list) or not body["input"]:
            raise ValueError('"input" must be a text, or a list with an item at least')
        if extractor.reads_tools and not body.get("tools"):
            raise ValueError('"suffice.answer" is about tool calls, and there are no "tools"')

    def request(self, fields: Mapping[str, Any], draws: int, seed: int | None, streamed: bool) -> dict[str, Any]:
        """The fields, with the seed and the stream where they are wanted."""
        return {**fields, **({} if seed is None else {"seed": seed}), **({"stream": True} if streamed else {})}

    def with_signals(self, request: Mapping[str, Any], top: int) -> dict[str, Any]:
        """By `include`; what the caller asked for is left as it is."""
        include = request.get("include")
        wanted = [*(include if isinstance(include, list) else ()), LOGPROBS]
        asked = {name: value for name, value in request.items() if value or name != "top_logprobs"}
        return {**({"top_logprobs": top} if top else {}), **asked, "include": list(dict.fromkeys(wanted))}

    def read(self, body: bytes, draws: int, signals: bool = False) -> list[Response]:
        """One response, whatever the number of its items."""
        try:
            reply = load(body) if signals else json.loads(body)
            if not isinstance(reply["output"], list) or reply.get("status") in ("failed", "cancelled"):
                raise ValueError
            items = [item for item in reply["output"] if isinstance(item, dict)]
            text = "".join(_texts(items, "message", "content", "output_text"))
            thoughts = "\n".join([*_texts(items, "reasoning", "content"), *_texts(items, "reasoning", "summary")])
            calls = [_call(item) for item in items if item.get("type") in ("function_call", "custom_tool_call")]
            finish = _finish(reply, bool(calls))
            tokens = _take_tokens(reply) if signals else []
        except UNREADABLE:
            raise MalformedError(f"no response: {body[:80].decode(errors='replace')!r}") from None
        usage = wire.usage_of(reply)
        response = Response(
            wire.whole_characters(text) or None,
            finish,
            tokens=wire.count(usage.get("output_tokens")),
            reasoning=wire.whole_characters(thoughts) or None,
            tool_calls=calls or None,
            signals=signals_of(tokens),
            prompt_tokens=wire.count(usage.get("input_tokens")) or 0,
            reply=reply,
        )
        return [response]

    def read_stream(self, body: bytes, signals: bool = False) -> Response:
        """The whole that its last event has; its items where a server leaves them out there."""
        if body.lstrip()[:1] == b"{":
            return self.read(body, 1, signals)[0]
        items: list[Any] = []
        whole = None
        try:
            for event in wire.events(body, load if signals else json.loads):
                kind = event.get("type")
                if kind in ("error", "response.failed") or "error" in event:
                    raise MalformedError(f"an error in the stream: {str(event)[:200]}")
                if kind == "response.output_item.done":
                    items.append(event["item"])
                if kind in ("response.completed", "response.incomplete"):
                    whole = {**event["response"], "output": event["response"].get("output") or items}
            tokens = _take_tokens(whole) if signals and whole else []
        except UNREADABLE:
            raise MalformedError(f"no stream of a response: {body[:80].decode(errors='replace')!r}") from None
        if whole is None:
            raise MalformedError("a stream that ends before its response does")
        return replace(self.read(json.dumps(whole).encode(), 1)[0], signals=signals_of(tokens))

    def meter(self) -> Meter:
        """A reader of deltas."""
        return wire.PieceMeter(lambda line: b'.delta"' in line)

    def hearing(self) -> Hearing:
        """A listener to deltas."""
        return wire.TextHearing(lambda event: event["delta"] if event.get("type") == _TEXT_DELTA else "")

    def reply(
        self, chosen: Response, responses: Sequence[Response], prompt_tokens: int, completion_tokens: int
    ) -> dict[str, Any]:
        """The chosen response as it came, with the usage of all."""
        tokens = {"input_tokens": prompt_tokens, "output_tokens": completion_tokens}
        usage = {**wire.usage_of_all(responses), **tokens, "total_tokens": prompt_tokens + completion_tokens}
        return {**chosen.reply, "usage": usage}

    def rewritten(self, response: Response, value: Any) -> Response:
        """Its message, or its function calls, in other words."""
        output = [item for item in response.reply["output"] if isinstance(item, dict)]
        if response.tool_calls is None or not isinstance(value, list):
            part = {"type": "output_text", "text": json.dumps(value, ensure_ascii=False), "annotations": []}
            new = [{"id": "msg_0", "role": "assistant", "status": "completed", "type": "message", "content": [part]}]
            old = [item for item in output if item.get("type") == "message"]
        else:
            new = [_function_call(place, call) for place, call in enumerate(value)]
            old = [item for item in output if item.get("type") in ("function_call", "custom_tool_call")]
        # What is new keeps the names that others know it by, where it had them.
        told = [{**one, **_names(old[place])} if place < len(old) else one for place, one in enumerate(new)]
        return replace(response, reply={**response.reply, "output": wire.in_place(output, old, told)})

    def events(self, reply: dict[str, Any], usage_wanted: bool) -> list[bytes]:
        """The response as it begins, each item as it grows, and the whole."""
        begun = {**reply, "status": "in_progress", "output": [], "usage": None}
        begun.pop("suffice", None)
        told: list[dict[str, Any]] = [
            {"type": "response.created", "response": begun},
            {"type": "response.in_progress", "response": begun},
        ]
        for place, item in enumerate(item for item in reply["output"] if isinstance(item, dict)):
            told += [{**event, "output_index": place} for event in _item_events(item)]
        end = "incomplete" if reply.get("status") == "incomplete" else "completed"
        told.append({"type": f"response.{end}", "response": reply})
        numbered = [{**event, "sequence_number": number} for number, event in enumerate(told)]
        return [wire.event(event, event["type"]) for event in numbered]

    def error(self, message: str, kind: str, param: str | None, code: str | None) -> dict[str, Any]:
        """As OpenAI has it."""
        return {"error": {"message": message, "type": kind, "param": param, "code": code}}

    def error_event(self, error: dict[str, Any]) -> bytes:
        """The error by its own event; once more as an object, which is what makes OpenAI's clients raise it."""
        told = error["error"]
        told = told if isinstance(told, dict) else {}
        plain = {name: told.get(name) for name in ("code", "message", "param")}
        return wire.event({"type": "error", **plain, "sequence_number": 0, "error": told}, "error")


_TEXT_DELTA = "response.output_text.delta"


def _finish(reply: dict[str, Any], calls: bool) -> str:
    """Why a response ended, in the words of a chat completion."""
    if reply.get("status") == "incomplete":
        return _FINISH.get((reply.get("incomplete_details") or {}).get("reason") or "", "length")
    return "tool_calls" if calls else "stop"


def _take_tokens(reply: dict[str, Any]) -> list[Token]:
    """The tokens of a reply's text, which are no longer in it."""
    contents = [item.get("content") for item in reply["output"] if isinstance(item, dict)]
    tokens: list[Token] = []
    for part in chain(*(content for content in contents if isinstance(content, list))):
        found = tokens_in(part.get("logprobs"))
        if found:
            tokens += found
            part["logprobs"] = []
    if tokens and "top_logprobs" in reply:
        reply["top_logprobs"] = 0
    return tokens


def _form(body: Mapping[str, Any]) -> Any:
    text = body.get("text")
    return text.get("format") if isinstance(text, dict) else None


def _function_call(place: int, call: Mapping[str, Any]) -> dict[str, Any]:
    arguments = json.dumps(call["arguments"], ensure_ascii=False)
    names = {"id": f"fc_{place}", "call_id": f"call_{place}", "name": call["name"]}
    return {"type": "function_call", "status": "completed", **names, "arguments": arguments}


def _names(item: Mapping[str, Any]) -> dict[str, Any]:
    return {name: item[name] for name in ("id", "call_id") if name in item}


def _tool_types(body: Mapping[str, Any]) -> list[Any]:
    tools = body.get("tools")
    return [tool.get("type") for tool in tools if isinstance(tool, dict)] if isinstance(tools, list) else []


def _texts(items: Sequence[dict[str, Any]], kind: str, within: str, part_kind: str | None = None) -> Iterator[str]:
    """The texts of the parts of items of a kind."""
    for item in items:
        parts = (item.get(within) or []) if item.get("type") == kind else []
        for part in [{"type": part_kind, "text": parts}] if isinstance(parts, str) else parts:
            if part_kind in (None, part.get("type")):
                yield part.get("text") or ""


def _call(item: dict[str, Any]) -> dict[str, Any]:
    """A call as a chat completion's message has it; a free text that a custom tool takes, as its one argument."""
    arguments = item.get("arguments")
    if item["type"] == "custom_tool_call":
        arguments = json.dumps({"input": item.get("input")})
    function = {"name": item.get("name"), "arguments": arguments}
    return {"id": item.get("call_id"), "type": "function", "function": function}


def _item_events(item: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """How an item begins, grows and ends."""
    kind = item.get("type")
    begun: dict[str, Any]
    grown: Iterator[dict[str, Any]]
    if kind == "message":
        begun, grown = {"content": []}, _part_events(item.get("content"))
    elif kind == "function_call":
        begun, grown = {"arguments": ""}, _growth("response.function_call_arguments", "arguments", item)
    elif kind == "custom_tool_call":
        begun, grown = {"input": ""}, _growth("response.custom_tool_call_input", "input", item)
    elif kind == "reasoning":
        begun = {name: [] for name in ("summary", "content") if item.get(name)}
        grown = chain(_summary_events(item.get("summary")), _thought_events(item.get("content")))
    else:
        begun, grown = {}, iter(())
    status = {"status": "in_progress"} if "status" in item else {}
    yield {"type": "response.output_item.added", "item": {**item, **begun, **status}}
    yield from ({"item_id": item.get("id"), **event} for event in grown)
    yield {"type": "response.output_item.done", "item": item}


def _growth(event: str, name: str, whole: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """A text that grows, in one piece."""
    logprobs: dict[str, Any] = {"logprobs": []} if event == "response.output_text" else {}
    yield {"type": f"{event}.delta", "delta": whole.get(name) or "", **logprobs}
    named = {"name": whole["name"]} if "name" in whole else {}
    yield {"type": f"{event}.done", name: whole.get(name) or "", **named, **logprobs}


def _part_events(content: Any) -> Iterator[dict[str, Any]]:
    for place, part in enumerate(content if isinstance(content, list) else ()):
        name = "refusal" if part.get("type") == "refusal" else "text"
        yield {"type": "response.content_part.added", "content_index": place, "part": {**part, name: ""}}
        event = "response.refusal" if name == "refusal" else "response.output_text"
        yield from ({**grown, "content_index": place} for grown in _growth(event, name, part))
        yield {"type": "response.content_part.done", "content_index": place, "part": part}


def _summary_events(summary: Any) -> Iterator[dict[str, Any]]:
    event = "response.reasoning_summary"
    for place, part in enumerate(summary if isinstance(summary, list) else ()):
        yield {"type": f"{event}_part.added", "summary_index": place, "part": {**part, "text": ""}}
        yield from ({**grown, "summary_index": place} for grown in _growth(f"{event}_text", "text", part))
        yield {"type": f"{event}_part.done", "summary_index": place, "part": part}


def _thought_events(content: Any) -> Iterator[dict[str, Any]]:
    for place, part in enumerate(content if isinstance(content, list) else ()):
        yield from ({**grown, "content_index": place} for grown in _growth("response.reasoning_text", "text", part))
