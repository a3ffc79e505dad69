"""The usage of a reply that is passed back, and whether its stream is whole."""

import json
import re
from collections import deque
from functools import cached_property
from itertools import islice

from suffice.live.dialects import Dialect
from suffice.live.dialects.base import UNREADABLE, token_usage
from suffice.live.dialects.sse import DONE, Delta, Ended, EventDecoder, Failed, Piece, TokenUsage, data_of

MAX_BODY_BYTES = 16 << 20  # files may pass that are longer, and no reply with a usage is
EDGE = 4  # events: those with usage, end or error are the first or the last
CHARACTERS = 4
"""Characters of a token, where the upstream does not count them."""

_USAGE = re.compile(rb'"usage"\s*:\s*(?=\{)')
_DECODER = json.JSONDecoder()


class ReplyReader:
    """Reads a reply as it passes; with a dialect, it is a stream of events.

    Of these only the first and the last are decoded, and each of the others counts as a token.
    """

    def __init__(self, dialect: Dialect | None) -> None:
        self._dialect = dialect
        self.decoder = EventDecoder()
        self._events = 0
        self._first: list[bytes] = []
        self._last: deque[bytes] = deque(maxlen=EDGE)
        self._size = 0
        self._body = bytearray()

    def feed(self, data: bytes) -> None:
        self._size += len(data)
        if self._dialect is None:
            self._body += data if self._size <= MAX_BODY_BYTES else b""
            return
        events = [event for event in self.decoder.feed(data) if event[:1] != b":"]
        if self._events < EDGE:
            self._first += events[: EDGE - self._events]
            self._last += islice(events, EDGE - self._events, None)
        else:
            self._last += events
        self._events += len(events)

    @property
    def is_cut(self) -> bool:
        """Whether it is a stream that has told neither its end nor an error."""
        told = (delta for deltas in self._deltas for delta in deltas)
        return self._dialect is not None and not any(isinstance(delta, Ended | Failed) for delta in told)

    def usage(self, *, estimate: bool) -> tuple[TokenUsage, bool]:
        """Return the tokens, and whether they are estimated, at least in part.

        If the upstream does not count them, estimate those of the completion by its events or its length.
        """
        told, since = self._found()
        if told is not None:
            return TokenUsage(told.prompt or 0, (told.completion or 0) + since), since > 0
        estimate = estimate and self._size > 0
        return TokenUsage(0, max(1, since or self._size // CHARACTERS) if estimate else 0), estimate

    def _found(self) -> tuple[TokenUsage | None, int]:
        """The last usage that was told, and the tokens after it."""
        if self._dialect is None:
            return _usage_in(self._body), 0
        told, since = None, 0
        for place, deltas in enumerate(self._deltas):
            if place == len(self._first):
                since += self._events - len(self._first) - len(self._last)
            for usage in deltas:
                if isinstance(usage, TokenUsage):
                    prompt = usage.prompt if usage.prompt is not None or told is None else told.prompt
                    told, since = TokenUsage(prompt, usage.completion), 0
            since += any(isinstance(delta, Piece) for delta in deltas)
        return told, since

    @cached_property
    def _deltas(self) -> list[list[Delta]]:
        """Those of the events that are decoded, once all have passed."""
        left = bytes(self.decoder.rest)  # some servers leave the last event without its end
        return [self._decoded(data_of(event)) for event in (*self._first, *self._last, left)]

    def _decoded(self, data: bytes) -> list[Delta]:
        try:
            return [Ended()] if data == DONE else self._dialect.deltas(json.loads(data)) if self._dialect else []
        except UNREADABLE:
            return []


def _usage_in(body: bytearray) -> TokenUsage | None:
    """Return the last usage in a whole reply. Within a string its quotes would have a backslash."""
    told = None
    for begins in _USAGE.finditer(body):
        try:
            text = body[begins.end() : begins.end() + (1 << 14)].decode(errors="replace")
            told = token_usage({"usage": _DECODER.raw_decode(text)[0]}) or told
        except (ValueError, RecursionError):
            continue
    return told
