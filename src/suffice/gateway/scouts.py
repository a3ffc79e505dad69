"""The scout: a first single draw, just as the client asked for it, that shows whether there is anything to vote on.

Where it gives no answer it is the reply, byte for byte; where it does, the vote goes on from there.
"""

import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any

import aiohttp
from starlette.requests import Request
from starlette.responses import Response as Reply

from suffice.answers import Extractor
from suffice.answers.early import is_hopeless
from suffice.gateway import metrics
from suffice.gateway.transport import back, bounded, unpacked
from suffice.gateway.upstreams import Upstreams
from suffice.live import Progress
from suffice.live.dialects import MalformedError
from suffice.live.dialects.wire import as_json
from suffice.live.facts import Asking
from suffice.live.server import Server
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

    def reply(self, samples: int = 1) -> Reply:
        """The whole, as the upstream sent it."""
        reply = Reply(self.body, self.status)
        reply.raw_headers = [*self.headers, (b"x-suffice-samples", str(samples).encode())]
        return reply


class Scout:
    """Sends scouts of one request."""

    def __init__(self, upstreams: Upstreams, server: Server, request: Request, extractor: Extractor) -> None:
        self._upstreams = upstreams
        self._server = server
        self._request = request
        self._extractor = extractor
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
            said = self._server.dialect.read(plain, 1)[0]
        except MalformedError:
            said = None
        found = self._answering(said, begun) if said else None
        return Scouted(found, reply.status, back(reply.raw_headers), body, response=said)

    async def streamed(self, raw: bytes) -> Scouted:
        """A scout whose reply streams: it is held only until it is known that there will be no answer in it."""
        begun = time.monotonic()
        with metrics.IN_FLIGHT.track_inprogress():
            return await self._server.tried(lambda: self._held(raw, begun))

    async def _held(self, raw: bytes, begun: float) -> Scouted:
        """A stream that is not shown yet, so that it may begin again where it breaks off."""
        reply = await self._open(raw)
        about = reply.status, back(reply.raw_headers)
        hearing, held = self._server.dialect.hearing(), bytearray()
        pieces = bounded(reply)
        self._heard.restart()
        async for piece in pieces:
            held += piece
            hearing.feed(piece)
            self._heard.feed(piece)
            if is_hopeless(hearing.text):
                return Scouted(None, *about, bytes(held), pieces)
        try:
            said = self._server.dialect.read_stream(bytes(held))
        except MalformedError:
            said = None
        found = self._answering(said, begun) if said else None
        return Scouted(found, *about, bytes(held), response=said)

    def _answering(self, response: Response, begun: float) -> Found | None:
        """The response, if it has an answer."""
        extractor = self._extractor.for_scout(response)
        timed = replace(response, seconds=round(time.monotonic() - begun, 3))
        return Found(timed, extractor) if extractor else None

    async def _open(self, raw: bytes) -> aiohttp.ClientResponse:
        upstream = self._upstreams.of(self._server)
        reply = await upstream.open(self._request, self._server.dialect.path, raw, plain=True)
        if reply.status >= 300:
            body = b"".join([piece async for piece in bounded(reply)])
            raise upstream.error_of(reply, body)
        return reply


class Interpreter:
    """Draws once from an upstream that speaks another dialect, so that its reply can't be passed back as it is."""

    def __init__(self, server: Server, fields: Mapping[str, Any], extractor: Extractor | None = None) -> None:
        self._server = server
        self._fields = fields
        self._extractor = extractor

    async def draw(self, streamed: bool) -> Scouted:
        """The draw: something to vote on, where that is looked for, and in any case its reply."""
        dialect = self._server.dialect
        begun = time.monotonic()
        (response,) = await self._server.ask(Asking(self._fields), [0], dialect.meter())
        extractor = self._extractor.for_scout(response) if self._extractor else None
        timed = replace(response, seconds=round(time.monotonic() - begun, 3))
        reply = dialect.reply(response, [response], response.prompt_tokens, response.tokens or 0)
        kind = b"text/event-stream" if streamed else b"application/json"
        body = b"".join(dialect.events(reply, usage_wanted=False)) if streamed else as_json(reply)
        found = Found(timed, extractor) if extractor else None
        return Scouted(found, 200, [(b"content-type", kind)], body, response=response)
