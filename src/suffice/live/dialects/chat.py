"""Chat completions, as OpenAI and others have them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from suffice.live.dialects import base
from suffice.live.dialects.sse import Delta, Ended, Failed, Piece, TokenUsage
from suffice.live.signals import Token, signals_of, tokens_in
from suffice.response import Response


class _ChatDialect(base.Dialect):
    name = "chat"
    routes = ("/chat/completions",)
    takes_n = True

    def fields(self, messages: base.Messages, response_format: Mapping[str, Any] | None = None) -> dict[str, Any]:
        form = {"response_format": response_format} if response_format is not None else {}
        return {"messages": [dict(message) for message in messages], **form}

    def messages(self, fields: Mapping[str, Any]) -> base.Messages:
        return base.objects(fields.get("messages"))

    def request(self, fields: Mapping[str, Any], draws: int, streamed: bool) -> dict[str, Any]:
        several = {"n": draws} if draws > 1 else {}
        told = {"stream_options": {"include_usage": True}} if streamed else {}
        return super().request(fields, draws, streamed) | several | told

    def with_signals(self, request: Mapping[str, Any], top: int) -> dict[str, Any]:
        """By `logprobs`; what the caller asked for stays."""
        asked = {name: value for name, value in request.items() if value or name not in ("logprobs", "top_logprobs")}
        return {"logprobs": True, **({"top_logprobs": top} if top else {}), **asked}

    def responses(self, reply: dict[str, Any], draws: int) -> list[Response]:
        choices = reply["choices"][:draws]
        read = [_read_choice(choice) for choice in choices]
        if not read:
            raise base.MalformedError("a chat completion with no choices")
        tokens = [_take_tokens(choice) for choice in reply["choices"]]
        usage = base.token_usage(reply) or TokenUsage(None, None)
        counts_one = "timings" in reply
        counts = _share_out(usage.completion, read, counts_one)
        return [
            replace(
                response,
                tokens=counts[place],
                estimated=counts_one and place > 0,
                signals=signals_of(tokens[place]) if tokens[place] else {},
                prompt_tokens=0 if place else usage.prompt or 0,
                choice=choices[place],
                reply=reply,
            )
            for place, response in enumerate(read)
        ]

    def deltas(self, event: dict[str, Any]) -> list[Delta]:
        """Those of choices, and the usage; a choice of a text completion is its own delta."""
        found: list[Delta] = [Failed(str(event["error"]))] if event.get("error") else []
        for choice in event.get("choices") or ():
            delta = choice.get("delta") or choice
            content = delta.get("content")
            if reasoning := delta.get("reasoning_content") or delta.get("reasoning") or _thoughts(content):
                found.append(Piece("reasoning", reasoning))
            if text := _text(content) or delta.get("text"):
                found.append(Piece("text", text))
            if refusal := delta.get("refusal"):
                found.append(Piece("refusal", refusal))
            found += [Piece("tool", str(call.get("function"))) for call in delta.get("tool_calls") or ()]
            found += [Ended()] if choice.get("finish_reason") else []
        usage = base.token_usage(event)
        return [*found, usage] if usage else found

    def join(self, reply: dict[str, Any], event: dict[str, Any]) -> None:
        if not reply:
            choice = {"index": 0, "message": {"role": "assistant", "content": None}, "finish_reason": None}
            reply |= {**event, "object": "chat.completion", "choices": [choice], "usage": None}
        reply["usage"] = event.get("usage") or reply["usage"]
        (choice,) = reply["choices"]
        for piece in event.get("choices") or ():
            _add_delta(choice["message"], piece.get("delta") or {})
            choice["finish_reason"] = piece.get("finish_reason") or choice["finish_reason"]
            if tokens := _take_tokens(piece):
                choice.setdefault("logprobs", {"content": []})["content"] += tokens

    def client_request(self, body: Mapping[str, Any], path: Mapping[str, str]) -> base.ClientRequest:
        form = body.get("response_format")
        flat = base.flat_form(form) if isinstance(form, dict) else None
        return base.client_request(body, _obstacle(body), flat, "response_format", base.no_messages(body))

    def reply(self, chosen: Response, usage: dict[str, Any], prompt: int, completion: int) -> dict[str, Any]:
        around = {name: value for name, value in chosen.reply.items() if name not in ("choices", "usage", "timings")}
        total = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
        return {**around, "choices": [{**chosen.choice, "index": 0}], "usage": {**usage, **total}}

    def rewritten(self, response: Response, value: Any) -> Response:
        message = dict(response.choice["message"])
        if response.tool_calls is None or not isinstance(value, list):
            message["content"] = json.dumps(value, ensure_ascii=False)
        else:
            before = [call if isinstance(call, dict) else {} for call in response.tool_calls]
            message["tool_calls"] = [
                {
                    "id": f"call_{place}",
                    "type": "function",
                    **(before[place] if place < len(before) else {}),
                    "function": {"name": call["name"], "arguments": json.dumps(call["arguments"], ensure_ascii=False)},
                }
                for place, call in enumerate(value)
            ]
        return replace(response, choice={**response.choice, "message": message})

    def continued(self, reply: dict[str, Any], begun: Mapping[str, Any]) -> dict[str, Any]:
        """Where the stream began with thoughts in its text, with their end."""
        (first,), (choice,) = begun["choices"], reply["choices"]
        text = choice["message"].get("content")
        if "</think>" in str(first["message"].get("content")) and isinstance(text, str):
            message = {**choice["message"], "content": f"</think>{text.rpartition('</think>')[2]}"}
            reply = {**reply, "choices": [{**choice, "message": message}]}
        return super().continued(reply, begun)

    def events(self, reply: dict[str, Any], usage_wanted: bool, told: int = 0) -> list[bytes]:
        """Chunks: the role, the text, the end and the usage; told are role and reasoning."""
        choice = reply["choices"][0]
        message = choice["message"]
        around = {name: value for name, value in reply.items() if name not in ("choices", "usage", "suffice")}
        around["object"] = "chat.completion.chunk"
        left_out = ("role", "reasoning", "reasoning_content") if told else ("role",)
        said = {name: value for name, value in message.items() if name not in left_out and value is not None}
        if isinstance(said.get("tool_calls"), list):
            calls = base.objects(said["tool_calls"])
            said["tool_calls"] = [{"index": place, **call} for place, call in enumerate(calls)]
        deltas: list[tuple[dict[str, Any], Any]] = [
            ({"role": message.get("role", "assistant"), "content": ""}, None),
            (said, None),
            ({}, choice.get("finish_reason")),
        ]
        chunks = [
            {**around, "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}]}
            for delta, reason in deltas
        ]
        if "suffice" in reply:
            chunks[-1]["suffice"] = reply["suffice"]
        if usage_wanted:
            chunks = [{**chunk, "usage": None} for chunk in chunks]
            chunks.append({**around, "choices": [], "usage": reply["usage"]})
        return [*map(base.event, chunks[1:] if told else chunks), b"data: [DONE]\n\n"]


CHAT = _ChatDialect()


def _obstacle(body: Mapping[str, Any]) -> str | None:
    if body.get("n") not in (None, 1):
        return "n"
    if body.get("logprobs") or body.get("top_logprobs"):
        return "logprobs"
    modalities = body.get("modalities")
    return "modalities" if isinstance(modalities, list) and "audio" in modalities else None


def _read_choice(choice: Any) -> Response:
    message = choice["message"]
    text = _text(message.get("content"))
    reasoning = message.get("reasoning_content") or message.get("reasoning") or _thoughts(message.get("content"))
    if text is not None and ("</think>" in text or text.lstrip().startswith("<think>")):
        # Some servers leave thoughts in the text, and some leave out where they begin.
        reasoning, ended, text = text.lstrip().removeprefix("<think>").rpartition("</think>")
        reasoning, text = (reasoning, text) if ended else (text, None)
    calls = message.get("tool_calls")
    return Response(
        base.whole_characters(text),
        choice.get("finish_reason"),
        reasoning=base.whole_characters(reasoning),
        tool_calls=calls if isinstance(calls, list) and calls else None,
    )


def _take_tokens(choice: dict[str, Any]) -> list[Token]:
    """Take the tokens out of a choice, or of a piece of one."""
    told = choice.get("logprobs")
    tokens = tokens_in(told.get("content")) if isinstance(told, dict) else []
    if tokens:
        choice["logprobs"] = None
    return tokens


def _text(content: Any) -> str | None:
    """Return the text of a content, which may be in parts; TypeError if it is none."""
    if content is None or isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise TypeError
    return "".join(part if isinstance(part, str) else part.get("text") or "" for part in content)


def _thoughts(content: Any) -> str | None:
    """Return the thoughts among the parts of a content, as Mistral has them."""
    if not isinstance(content, list):
        return None
    return "".join(_text(part.get("thinking")) or "" for part in base.objects(content)) or None


def _share_out(total: int | None, read: Sequence[Response], counts_one: bool) -> list[int | None]:
    """Return the tokens of each choice, by its length, where a server tells the sum.

    llama.cpp, known by its `timings`, tells those of the first choice alone.
    """
    if total is None:
        return [None] * len(read)
    lengths = [len(response.text or "") + len(response.reasoning or "") for response in read]
    if counts_one:
        return [total, *(round(total * length / max(lengths[0], 1)) for length in lengths[1:])]
    ends = [round(total * sum(lengths[: place + 1]) / max(sum(lengths), 1)) for place in range(len(lengths))]
    ends[-1] = total
    return [end - start for start, end in zip([0, *ends], ends, strict=False)]


def _add_delta(message: dict[str, Any], delta: dict[str, Any]) -> None:
    """Join a piece to a message: text to text, and tool calls by their place."""
    for name, value in delta.items():
        if name == "tool_calls":
            calls = message.setdefault("tool_calls", [])
            for piece in value or ():
                place = piece.get("index", len(calls))
                if place > base.MOST_PARTS:
                    raise ValueError
                while len(calls) <= place:
                    calls.append({"id": None, "type": "function", "function": {"name": "", "arguments": ""}})
                call, function = calls[place], piece.get("function") or {}
                call |= {name: piece[name] for name in ("id", "type") if piece.get(name)}
                for part in ("name", "arguments"):
                    call["function"][part] += function.get(part) or ""
        elif name == "role":
            message["role"] = value or message["role"]
        elif isinstance(value, list) or isinstance(message.get(name), list):
            message[name] = _parts(message.get(name)) + _parts(value)
        elif isinstance(value, str):
            message[name] = (message.get(name) or "") + value
        elif value is not None:
            message[name] = value


def _parts(content: Any) -> list[Any]:
    return content if isinstance(content, list) else [content] if content else []
