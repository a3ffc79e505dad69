"""What becomes of a request, as one sequence of events: how its vote stands, again and again, and then its end.

The end is what the vote elected, or what an upstream said, passed back as it is; a GatewayError where there is neither.
"""

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Standing:
    """How a vote stands: a response arrived, or its controller decided."""

    facts: Mapping[str, Any]


@dataclass(frozen=True)
class Thought:
    """A piece of what the model thinks before it says anything: it goes on as the upstream sent it."""

    piece: bytes
    events: int
    """The number of events in it."""


@dataclass(frozen=True)
class Elected:
    """The reply that a vote came to, and the headers that tell of it."""

    reply: dict[str, Any]
    told: Mapping[str, str]


@dataclass(frozen=True)
class Passed:
    """A reply that is passed back as the upstream sends it."""

    status: int
    headers: list[tuple[bytes, bytes]]
    pieces: AsyncGenerator[bytes, None]
    told: Mapping[str, str] = field(default_factory=dict)
    """Headers of ours."""

    @property
    def is_stream(self) -> bool:
        """Whether it is a stream of events that can be read."""
        headers = dict(self.headers)
        return headers.get(b"content-type", b"").startswith(b"text/event-stream") and b"content-encoding" not in headers

    @property
    def has_open_end(self) -> bool:
        """Whether its length is not told, so that an event may be added."""
        return b"content-length" not in dict(self.headers)


Event = Standing | Thought | Elected | Passed
Events = AsyncGenerator[Event, None]


class CutError(Exception):
    """A reply that has begun and can't be ended: the connection is closed, and nobody takes it for whole."""
