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
    def has_events(self) -> bool:
        """Whether it is a stream to which an event may be added."""
        headers = dict(self.headers)
        is_stream = headers.get(b"content-type", b"").startswith(b"text/event-stream")
        return is_stream and not {b"content-encoding", b"content-length"} & headers.keys()


Event = Standing | Thought | Elected | Passed
Events = AsyncGenerator[Event, None]


class CutError(Exception):
    """A reply that has begun and can't be ended: the connection is closed, and nobody takes it for whole."""
