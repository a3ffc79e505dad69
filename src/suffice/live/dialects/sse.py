"""Server-sent events: from bytes to events, and the typed deltas of an event."""

import re
from typing import Literal, NamedTuple

MOST_BYTES = 64 << 20  # a longer reply is no answer, and a longer event has no end
DONE = b"[DONE]"

_END_OF_EVENT = re.compile(rb"\n\r?\n|\r\n\r?\n|\r\r")  # with no optional start: it is searched for much faster


class Piece(NamedTuple):
    """A piece of generated text, about one token."""

    kind: Literal["text", "reasoning", "tool", "refusal"]
    text: str


class Opened(NamedTuple):
    """A block or an item of the reply begins."""


class TokenUsage(NamedTuple):
    """Token counts so far; None for one that the event leaves out."""

    prompt: int | None
    completion: int | None


class Ended(NamedTuple):
    """The response is complete."""


class Failed(NamedTuple):
    """The server reports an error."""

    message: str


Delta = Piece | Opened | TokenUsage | Ended | Failed


class EventDecoder:
    r"""Splits the bytes of a stream into events as they arrive.

    >>> decoder = EventDecoder()
    >>> decoder.feed(b"data: 1\n\nda"), decoder.feed(b"ta: 2\r\n"), decoder.feed(b"\r\n")
    ([b'data: 1\n\n'], [], [b'data: 2\r\n\r\n'])
    """

    def __init__(self) -> None:
        self.rest = bytearray()  # the beginning of an event

    def feed(self, data: bytes) -> list[bytes]:
        """Return the events that end in `data`, byte for byte, with their empty lines."""
        if not self.rest and data.endswith(b"\n\n") and b"\r" not in data:  # most pieces are so, and this is quick
            if data.find(b"\n\n") == len(data) - 2:
                return [data]
            return [event + b"\n\n" for event in data[:-2].split(b"\n\n")]
        searched = max(0, len(self.rest) - 3)
        self.rest += data
        events, start = [], 0
        for end in _END_OF_EVENT.finditer(self.rest, searched):
            events.append(bytes(self.rest[start : end.end()]))
            start = end.end()
        del self.rest[:start]
        if len(self.rest) > MOST_BYTES:
            self.rest.clear()
        return events


def data_of(event: bytes) -> bytes:
    r"""Return the data of an event; none for a comment.

    >>> data_of(b'event: ping\r\ndata: {"a":\r\ndata: 1}\r\n\r\n')
    b'{"a":\n1}'
    """
    return b"\n".join([line[5:].strip() for line in event.splitlines() if line.startswith(b"data:")])
