"""The scout: a first single draw, just as the client asked for it, that shows whether there is anything to vote on.

Where it gives no answer it is the reply, byte for byte; where it does, the vote goes on from there.
"""

import asyncio
import math
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace

import aiohttp
from starlette.requests import Request

from suffice.answers import Extractor
from suffice.gateway.errors import from_upstream
from suffice.gateway.events import Passed, Thought
from suffice.gateway.fleet.relay import back, bounded
from suffice.gateway.fleet.upstreams import Upstreams, unpacked
from suffice.gateway.operations import metrics
from suffice.gateway.requests.parse import ParsedRequest, with_members
from suffice.live.dialects import MalformedError, Wire
from suffice.live.dialects.base import UNREADABLE, Meter, StreamText, as_json
from suffice.live.servers.hosts import DrawRequest
from suffice.live.servers.server import Server, TooLongError
from suffice.live.signals import silenced
from suffice.response import Response

Headers = list[tuple[bytes, bytes]]

MOST_HELD = 64
"""So many tokens of a stream are held at most."""


class Hold:
    """How long a stream is held, to see whether there will be an answer in it: for so many seconds of saying it."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.ends = math.inf

    def is_over(self, said: int) -> bool:
        """Whether it is passed on now that so many tokens are said; those of thoughts are not."""
        now = time.monotonic()
        if said and self.ends == math.inf:
            self.ends = now + self.seconds
        return now > self.ends or (said > MOST_HELD and self.seconds < math.inf)


@dataclass(frozen=True)
class Scouted:
    """What a scout brought: something to vote on, or what is to be passed back as it is."""

    status: int
    headers: Headers
    body: bytes
    rest: AsyncGenerator[bytes, None] | None = None
    """What of a stream is still to come."""
    response: Response | None = None
    """What was said, where it could be read."""
    extractor: Extractor | None = None
    """What reads such answers; None where there is nothing to vote on."""
    told: bool = False
    """Whether the client's stream has begun with its thoughts."""

    def passed(self) -> Passed:
        """It as the reply."""
        return Passed(self.status, self.headers, self._pieces())

    async def _pieces(self) -> AsyncGenerator[bytes, None]:
        """All that the upstream sends, as it arrives; whoever stops reading hangs up."""
        yield self.body
        if self.rest:
            async with aclosing(self.rest):
                async for piece in self.rest:
                    yield piece


@dataclass(frozen=True)
class Scout:
    """Sends scouts of one request to an upstream that speaks its dialect."""

    parsed: ParsedRequest
    server: Server
    upstreams: Upstreams
    http: Request
    extractor: Extractor
    draw: DrawRequest
    meter: Meter
    """Shows how far it is, where its reply streams."""
    hold: float
    """So many seconds a stream is held at most, from its first token."""
    tell: Callable[[Thought], None]
    """Is told what the model thinks before it says anything."""

    async def send(self) -> Scouted:
        """What it brings, whole or, where the client wants a stream, held until it is known what it will be."""
        with metrics.IN_FLIGHT.track_inprogress():
            return await self.server.handling_retries(self._send_and_read)

    async def _send_and_read(self) -> Scouted:
        begun = time.monotonic()
        scouted = await (self._streamed() if self.parsed.client.streamed else self._whole())
        if scouted.response is None or scouted.rest:
            return scouted
        timed = replace(scouted.response, seconds=round(time.monotonic() - begun, 3))
        return replace(scouted, response=timed, extractor=self.extractor.for_scout(timed))

    async def _whole(self) -> Scouted:
        """One whose reply comes whole."""
        reply, has_signals = await self._open()
        body = b"".join([piece async for piece in bounded(reply)])
        headers = back(reply.raw_headers)
        plain = unpacked(body, reply.headers.get("content-encoding", ""))
        try:
            said = self.server.wire.read(plain, 1, has_signals)[0]
        except MalformedError:
            return Scouted(reply.status, headers, body)
        if has_signals:
            body = as_json(silenced(plain))
            headers = [one for one in headers if one[0] not in (b"content-length", b"content-encoding")]
            headers.append((b"content-length", str(len(body)).encode()))
        return Scouted(reply.status, headers, body, response=said)

    async def _streamed(self) -> Scouted:
        """One whose reply streams: it is held for a while, to see whether there will be an answer in it.

        So it may begin again where it breaks off, unless thoughts were told.
        """
        reply, has_signals = await self._open()
        about = reply.status, back(reply.raw_headers)
        text, held = StreamText(self.server.wire.heard), bytearray()
        stripper = LogprobStripper() if has_signals else None
        thoughts = Thoughts(self.server.wire, self.tell)
        pieces = Peeked(bounded(reply))
        hold = Hold(self.hold)
        self.meter.restart()
        try:
            while (piece := await pieces.next(hold.ends - time.monotonic())) is not None:
                held += piece
                text.feed(piece)
                self.meter.feed(piece)
                thoughts.feed(stripper.feed(piece) if stripper else piece)
                said = self.meter.generated - thoughts.told
                if hold.is_over(said) or self.extractor.is_hopeless(text.text):
                    break
            if not pieces.ended:
                return Scouted(
                    *about, bytes(thoughts.held), stripper.over(pieces.rest()) if stripper else pieces.rest()
                )
        except (ConnectionError, TimeoutError, TooLongError) as error:
            await pieces.close()
            if thoughts.told:
                raise from_upstream(error, str(error)) from None
            raise
        except BaseException:
            await pieces.close()
            raise
        thoughts.held += stripper.rest if stripper else b""
        try:
            response = self.server.wire.read_stream(bytes(held), has_signals)
        except MalformedError:
            response = None
        return Scouted(*about, bytes(thoughts.held), response=response, told=thoughts.told > 0)

    async def _open(self) -> tuple[aiohttp.ClientResponse, bool]:
        """The beginning of the reply, and whether there are log probabilities in it that the client does not expect."""
        return await self.server.handling_refused_signals(self.draw, self._send_once)

    async def _send_once(self, top: int | None) -> tuple[aiohttp.ClientResponse, bool]:
        raw = self.parsed.raw
        if top is not None:
            asked = self.draw.fields
            more = self.server.wire.with_signals(asked, top)
            raw = with_members(raw, {name: more[name] for name in more if more[name] is not asked.get(name)})
        upstream = self.upstreams.at(self.server.host)
        reply = await upstream.open(self.http, self.parsed.path, raw, plain=True)
        if reply.status >= 300:
            body = b"".join([piece async for piece in bounded(reply)])
            raise upstream.error_of(reply, body)
        return reply, top is not None


class Peeked:
    """Pieces of a stream, each of which may be waited for a while; what is not waited for comes with the rest."""

    def __init__(self, pieces: AsyncGenerator[bytes, None]) -> None:
        self.ended = False
        self._pieces = pieces
        self._coming: asyncio.Task[bytes | None] | None = None

    async def next(self, seconds: float) -> bytes | None:
        """The next piece; None where it has not come within so many seconds, or all have ended."""
        self._coming = self._coming or asyncio.ensure_future(anext(self._pieces, None))
        await asyncio.wait({self._coming}, timeout=None if seconds == math.inf else max(0.0, seconds))
        if not self._coming.done():
            return None
        piece, self._coming = self._coming.result(), None
        self.ended = piece is None
        return piece

    async def rest(self) -> AsyncGenerator[bytes, None]:
        """What is still to come."""
        try:
            if self._coming and (piece := await self._coming):
                self._coming = None
                yield piece
            async for piece in self._pieces:
                yield piece
        finally:
            await self.close()

    async def close(self) -> None:
        """Hang up."""
        if self._coming and not self._coming.done():
            self._coming.cancel()
            await asyncio.wait({self._coming})
        await self._pieces.aclose()


class Thoughts:
    """Tells what a model thinks as it arrives, from the first thought on; all from the first word on is held."""

    def __init__(self, wire: Wire, tell: Callable[[Thought], None]) -> None:
        self.held = bytearray()
        self.told = 0
        """How many thoughts were told."""
        self._wire = wire
        self._tell = tell
        self._meter = wire.meter()
        self._looked_at = 0
        self._over = False

    def feed(self, piece: bytes) -> None:
        """Take in what has arrived."""
        self.held += piece
        while not self._over and (end := self.held.find(b"\n\n", self._looked_at) + 2) > 1:
            event = bytes(self.held[self._looked_at : end])
            if self._wire.is_thought(event, begun=self.told > 0):
                self._tell(Thought(bytes(self.held[:end])))  # with how the stream begins
                del self.held[:end]
                self._looked_at = 0
                self.told += self._wire.is_thought(event, begun=False)
            else:
                self._looked_at = end
                self._meter.feed(event)
                self._over = self.told > 0 or self._meter.generated > 0


class LogprobStripper:
    """Takes the log probabilities out of a stream as it passes by."""

    def __init__(self) -> None:
        self.rest = b""
        """What is no whole line yet."""

    def feed(self, piece: bytes) -> bytes:
        """What is passed on of what has arrived."""
        *lines, self.rest = (self.rest + piece).split(b"\n")
        return b"".join(self._line(line) + b"\n" for line in lines)

    async def over(self, pieces: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
        """The pieces that are still to come."""
        async with aclosing(pieces):
            async for piece in pieces:
                yield self.feed(piece)
        yield self.rest

    @staticmethod
    def _line(line: bytes) -> bytes:
        if not line.startswith(b"data:") or b"logprobs" not in line:
            return line
        try:
            return b"data: " + as_json(silenced(line[5:]))
        except UNREADABLE:
            return line
