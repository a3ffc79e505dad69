"""Reasoning of streamed replies, passed on as it comes: from a scout, or from the first draw of a vote."""

from collections.abc import Callable, Sequence
from typing import Any

from suffice.gateway.exchange import Thought
from suffice.live.dialects.base import UNREADABLE, StreamReader, as_json
from suffice.live.dialects.sse import Delta, Piece, data_of
from suffice.live.draws import ServerDraws
from suffice.live.servers.hosts import DrawRequest
from suffice.live.signals import silenced
from suffice.tally import Tally

OPEN, CLOSE = "<think>", "</think>"
"""What some servers put around reasoning that they leave in the text."""

Tell = Callable[[Thought], None]


class ThoughtRelay:
    """Passes on events of reasoning, and those before and among them; holds all from the first word of the answer."""

    def __init__(self, tell: Tell) -> None:
        self.held = bytearray()
        self.told = 0
        """The number of events passed on."""
        self._tell = tell
        self._waiting = 0
        self._text = ""
        self._is_over = False

    def take(self, event: bytes, deltas: Sequence[Delta]) -> None:
        """Pass on or hold an event, as it came, by its deltas."""
        self.held += event
        if self._is_over:
            return
        self._waiting += 1
        pieces = [delta for delta in deltas if isinstance(delta, Piece)]
        self._text += "".join(piece.text for piece in pieces if piece.kind == "text")
        said = self._text.lstrip()
        if said and not said.startswith(OPEN) and OPEN.startswith(said):
            return  # it may become the beginning of reasoning
        within = said.startswith(OPEN) and CLOSE not in said
        if (self.told and not deltas) or (pieces and all(within or piece.kind == "reasoning" for piece in pieces)):
            self._tell(Thought(bytes(self.held), self._waiting))
            self.told += self._waiting
            self._waiting = 0
            self.held.clear()
        else:
            self._is_over = bool(self.told or pieces)


class ThinkingDraws(ServerDraws):
    """Draws of a vote of which the first is streamed, and its reasoning passed on."""

    def __init__(self, *arguments: Any, tell: Tell) -> None:
        super().__init__(*arguments)
        self.relay = ThoughtRelay(tell)
        self._has_begun = False

    def launch(self, draws: int, tally: Tally, *, single: bool = False, streamed: bool = False) -> list[int]:
        if self._has_begun:
            return super().launch(draws, tally, single=single, streamed=streamed)
        self._has_begun = True
        first = super().launch(1, tally, streamed=True)
        return first + (super().launch(draws - 1, tally, single=single, streamed=streamed) if draws > 1 else [])

    def _reader(self, numbers: Sequence[int], request: DrawRequest) -> StreamReader:
        if numbers[0]:
            return super()._reader(numbers, request)
        return _ThoughtReader(self._server.dialect, request.signals, self.relay)


class _ThoughtReader(StreamReader):
    """Reads a stream, and hands its events to a relay; after a break, those of the next try are none of its own."""

    def __init__(self, dialect: Any, signals: bool, relay: ThoughtRelay) -> None:
        self._relay: ThoughtRelay | None = relay
        super().__init__(dialect, signals)

    def restart(self) -> None:
        if self._relay and self._relay.told:
            self._relay = None
        super().restart()

    def read(self, event: bytes) -> list[Delta]:
        deltas = super().read(event)
        if self._relay:
            self._relay.take(without_logprobs(event) if self._signals else event, deltas)
        return deltas


def without_logprobs(event: bytes) -> bytes:
    r"""Remove log probabilities from an event.

    >>> without_logprobs(b'id: 1\r\ndata: {"choices":\r\ndata: [{"logprobs": {}}]}\r\n\r\n')
    b'id: 1\ndata: {"choices": [{"logprobs": null}]}\n\n'
    """
    if b"logprobs" not in event:
        return event
    try:
        data = as_json(silenced(data_of(event)))
    except UNREADABLE:
        return event
    others = [line for line in event.splitlines() if line and not line.startswith(b"data:")]
    return b"\n".join([*others, b"data: " + data]) + b"\n\n"
