"""Streamed responses: what has arrived so far, and the whole at the end."""

import json
from typing import Any

from suffice.live.response import MalformedError, Response, read_responses


class Meter:
    """Reads a stream as it arrives: how much was generated, also where it is cut off."""

    def __init__(self) -> None:
        self.generated = 0
        """Tokens so far: one for each piece of text."""
        self.streamed = False
        """Whether the server streams at all; where it does not, a draw that is cancelled may run on there."""
        self._rest = b""

    def restart(self) -> None:
        """Begin again, with another request."""
        self.generated, self._rest = 0, b""

    def feed(self, data: bytes) -> None:
        """Take in what has arrived."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            if line.startswith(b"data:"):
                self.streamed = True
                self.generated += (
                    any(
                        f'"{name}":"'.encode() in line or f'"{name}": "'.encode() in line
                        for name in ("content", "reasoning_content", "reasoning", "arguments")
                    )
                    and b'"content": ""' not in line
                    and b'"content":""' not in line
                )


def read_stream(body: bytes) -> Response:
    """The response that the events of a stream make up; from a server that does not stream, that of a plain reply."""
    if body.lstrip()[:1] == b"{":
        return read_responses(body, 1)[0]
    around: dict[str, Any] = {}
    message: dict[str, Any] = {"role": "assistant", "content": None}
    finish_reason, usage, timings = None, None, None
    try:
        for event in _events(body):
            if "error" in event:
                raise MalformedError(f"an error in the stream: {str(event['error'])[:200]}")
            around = around or {name: value for name, value in event.items() if name not in ("choices", "usage")}
            usage = event.get("usage") or usage
            timings = event.get("timings", timings)
            for choice in event.get("choices") or ():
                _add_delta(message, choice.get("delta") or {})
                finish_reason = choice.get("finish_reason") or finish_reason
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        raise MalformedError(f"no stream of a chat completion: {body[:80].decode(errors='replace')!r}") from None
    if finish_reason is None:
        raise MalformedError("a stream that ends before its response does")
    whole = {
        **around,
        "object": "chat.completion",
        "choices": [{"index": 0, "message": message, "finish_reason": finish_reason}],
        "usage": usage,
    }
    return read_responses(json.dumps(whole).encode(), 1)[0]


def _events(body: bytes) -> list[dict[str, Any]]:
    lines = [line[5:].strip() for line in body.split(b"\n") if line.startswith(b"data:")]
    return [json.loads(line) for line in lines if line and line != b"[DONE]"]


def _add_delta(message: dict[str, Any], delta: dict[str, Any]) -> None:
    """Join a piece to what there is: text to text, and tool calls by their place."""
    for name, value in delta.items():
        if name == "tool_calls":
            calls = message.setdefault("tool_calls", [])
            for piece in value or ():
                place = piece.get("index", len(calls))
                while len(calls) <= place:
                    calls.append({"id": None, "type": "function", "function": {"name": "", "arguments": ""}})
                _add_call(calls[place], piece)
        elif name == "role":
            message["role"] = value or message["role"]
        elif isinstance(value, str):
            message[name] = (message.get(name) or "") + value
        elif value is not None:
            message[name] = value


def _add_call(call: dict[str, Any], piece: dict[str, Any]) -> None:
    call["id"] = piece.get("id") or call["id"]
    call["type"] = piece.get("type") or call["type"]
    function = piece.get("function") or {}
    call["function"]["name"] += function.get("name") or ""
    call["function"]["arguments"] += function.get("arguments") or ""
