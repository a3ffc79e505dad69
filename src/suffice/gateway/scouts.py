"""The scout: a first single draw, just as the client asked for it, that shows whether there is anything to vote on.

Where it gives no answer it is the reply, byte for byte; where it does, the vote goes on from there.
"""

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, replace

import aiohttp
from starlette.requests import Request
from starlette.responses import Response as Reply

from suffice.answers import Extractor
from suffice.answers.early import is_hopeless
from suffice.gateway import metrics
from suffice.gateway.bodies import with_members
from suffice.gateway.transport import back, bounded, unpacked
from suffice.gateway.upstreams import Upstreams
from suffice.live import Progress
from suffice.live.dialects import MalformedError
from suffice.live.dialects.wire import UNREADABLE, as_json
from suffice.live.facts import Asking
from suffice.live.server import Server
from suffice.live.signals import silenced
from suffice.response import Response


@dataclass(frozen=True)
class Found:
    """A scout's response that has an answer, and what reads such answers."""

    response: Response
    extractor: Extractor


@dataclass(frozen=True)
class Scouted:
    """What a scout brought: something to vote on, or what is to be passed back as it is."""

    found: Found | None
    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes
    rest: AsyncGenerator[bytes, None] | None = None
    """What of a stream is still to come."""
    response: Response | None = None
    """What was said, where it could be read."""

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        """All that the upstream sends, as it arrives; whoever stops reading hangs up."""
        yield self.body
        if self.rest:
            async with aclosing(self.rest):
                async for piece in self.rest:
                    yield piece

    def reply(self) -> Reply:
        """The whole, as the upstream sent it."""
        reply = Reply(self.body, self.status)
        reply.raw_headers = [*self.headers]
        return reply


class Scout:
    """Sends scouts of one request."""

    def __init__(
        self, upstreams: Upstreams, server: Server, request: Request, extractor: Extractor, asking: Asking
    ) -> None:
        self._upstreams = upstreams
        self._server = server
        self._request = request
        self._extractor = extractor
        self._asking = asking
        self._signals = False
        """Whether the upstream was asked for log probabilities, which the client does not expect."""
        self._heard = server.dialect.meter()

    @property
    def progress(self) -> Progress:
        """How far it is, where its reply streams."""
        return Progress(1, 0, self._heard.generated)

    async def whole(self, raw: bytes) -> Scouted:
        """A scout whose reply comes whole."""
        begun = time.monotonic()

        async def attempt() -> tuple[aiohttp.ClientResponse, bytes]:
            reply = await self._open(raw)
            return reply, b"".join([piece async for piece in bounded(reply)])

        with metrics.IN_FLIGHT.track_inprogress():
            reply, body = await self._server.tried(attempt)
        try:
            plain = unpacked(body, reply.headers.get("content-encoding", ""))
            said = self._server.dialect.read(plain, 1, self._signals)[0]
        except MalformedError:
            said = None
        found = self._answering(said, begun) if said else None
        headers = back(reply.raw_headers)
        if self._signals and said:
            body = as_json(silenced(plain))
            headers = [one for one in headers if one[0] not in (b"content-length", b"content-encoding")]
            headers.append((b"content-length", str(len(body)).encode()))
        return Scouted(found, reply.status, headers, body, response=said)

    async def streamed(self, raw: bytes) -> Scouted:
        """A scout whose reply streams: it is held only until it is known that there will be no answer in it."""
        begun = time.monotonic()
        with metrics.IN_FLIGHT.track_inprogress():
            return await self._server.tried(lambda: self._held(raw, begun))

    async def _held(self, raw: bytes, begun: float) -> Scouted:
        """A stream that is not shown yet, so that it may begin again where it breaks off."""
        reply = await self._open(raw)
        about = reply.status, back(reply.raw_headers)
        hearing, held, shown = self._server.dialect.hearing(), bytearray(), bytearray()
        silence = Silence() if self._signals else None
        pieces = bounded(reply)
        self._heard.restart()
        async for piece in pieces:
            held += piece
            shown += silence.feed(piece) if silence else piece
            hearing.feed(piece)
            self._heard.feed(piece)
            if is_hopeless(hearing.text):
                return Scouted(None, *about, bytes(shown), silence.over(pieces) if silence else pieces)
        shown += silence.rest if silence else b""
        try:
            said = self._server.dialect.read_stream(bytes(held), self._signals)
        except MalformedError:
            said = None
        found = self._answering(said, begun) if said else None
        return Scouted(found, *about, bytes(shown), response=said)

    def _answering(self, response: Response, begun: float) -> Found | None:
        """The response, if it has an answer."""
        extractor = self._extractor.for_scout(response)
        timed = replace(response, seconds=round(time.monotonic() - begun, 3))
        return Found(timed, extractor) if extractor else None

    async def _open(self, raw: bytes) -> aiohttp.ClientResponse:
        return await self._server.with_signals(self._asking, lambda top: self._sent(raw, top))

    async def _sent(self, raw: bytes, top: int | None) -> aiohttp.ClientResponse:
        self._signals = top is not None
        if top is not None:
            asked = self._asking.fields
            more = self._server.dialect.with_signals(asked, top)
            raw = with_members(raw, {name: more[name] for name in more if more[name] is not asked.get(name)})
        upstream = self._upstreams.of(self._server)
        reply = await upstream.open(self._request, self._server.dialect.path, raw, plain=True)
        if reply.status >= 300:
            body = b"".join([piece async for piece in bounded(reply)])
            raise upstream.error_of(reply, body)
        return reply


class Silence:
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


class Interpreter:
    """Draws once from an upstream that speaks another dialect, so that its reply can't be passed back as it is."""

    def __init__(self, server: Server, asking: Asking, extractor: Extractor | None = None) -> None:
        self._server = server
        self._asking = asking
        self._extractor = extractor

    async def draw(self, streamed: bool) -> Scouted:
        """The draw: something to vote on, where that is looked for, and in any case its reply."""
        dialect = self._server.dialect
        begun = time.monotonic()
        (response,) = await self._server.ask(self._asking, [0], dialect.meter())
        extractor = self._extractor.for_scout(response) if self._extractor else None
        timed = replace(response, seconds=round(time.monotonic() - begun, 3))
        reply = dialect.reply(response, [response], response.prompt_tokens, response.tokens or 0)
        kind = b"text/event-stream" if streamed else b"application/json"
        body = b"".join(dialect.events(reply, usage_wanted=False)) if streamed else as_json(reply)
        found = Found(timed, extractor) if extractor else None
        return Scouted(found, 200, [(b"content-type", kind)], body, response=response)
