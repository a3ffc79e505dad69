"""The scout: a first single draw, just as the client asked for it, that shows whether there is anything to vote on.

Where it gives no answer it is the reply, byte for byte; where it does, the vote goes on from there. In the shadow a
reply that goes by tells the same, at no cost upstream.
"""

import asyncio
import math
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any

import aiohttp

from suffice.answers import Evidence, Extractor
from suffice.gateway.errors import from_upstream
from suffice.gateway.exchange import Counted, DrawBegun, Exchange, Foretold, Passed, Thought, Upcoming
from suffice.gateway.fleet.relay import back, whole
from suffice.gateway.fleet.upstreams import Upstreams, pieces_of, unpacked
from suffice.gateway.operations import metrics
from suffice.gateway.requests.parse import ParsedRequest, route_of, with_members
from suffice.gateway.votes.learning import Learning
from suffice.live import Progress
from suffice.live.dialects import MalformedError
from suffice.live.dialects.base import UNREADABLE, StreamReader, as_json
from suffice.live.dialects.sse import Delta, EventDecoder, Piece, data_of
from suffice.live.servers.hosts import DrawRequest, most_tokens
from suffice.live.servers.retry import TooLongError
from suffice.live.servers.server import DrawError, Server
from suffice.live.signals import silenced
from suffice.live.tracing import TRACING
from suffice.live.vote import COMPLETE_WITHOUT
from suffice.response import Response

MOST_BYTES = 1 << 20
"""A reply that is longer is not looked at: it is no answer."""

MOST_HELD = 64
"""The most tokens of a stream that are held."""


class Hold:
    """Limits how long a stream is held, to see whether it has an answer: `seconds` from its first word."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.ends = math.inf

    def is_over(self, said: int) -> bool:
        """Whether to pass it on after so many tokens, without those of reasoning."""
        now = time.monotonic()
        if said and self.ends == math.inf:
            self.ends = now + self.seconds
        return now > self.ends or (said > MOST_HELD and self.seconds < math.inf)


@dataclass(frozen=True)
class Scouted:
    """The result of a scout: a response to vote on, or a reply to pass back."""

    passed: Passed
    """It as the reply."""
    response: Response | None = None
    """What was said, where it could be read."""
    extractor: Extractor | None = None
    """What reads such answers; None where there is nothing to vote on."""
    told: bool = False
    """Whether the client's stream has begun with its thoughts."""


class Scout:
    """Sends scouts of one request.

    A stream is held for `hold` seconds at most from its first token; None where it is the reply in any case. `tell` is
    called with what the model thinks before that.
    """

    def __init__(
        self,
        parsed: ParsedRequest,
        server: Server,
        upstreams: Upstreams,
        exchange: Exchange,
        tell: Callable[[Thought], None],
        hold: float | None,
    ) -> None:
        self._parsed = parsed
        self._server = server
        self._upstreams = upstreams
        self._exchange = exchange
        self._tell = tell
        self._hold = hold or 0.0
        self._may_vote = hold is not None
        most = most_tokens(parsed.fields)
        self._extractor = parsed.options.extractor.for_request(parsed.messages, asked=False, most_tokens=most)
        signals = self._may_vote and parsed.options.voting.wants_signals
        self._draw = DrawRequest(parsed.fields, parsed.client.streamed, signals=signals)
        self._reader = StreamReader(server.dialect, signals)

    async def send(self) -> Scouted:
        """Send it, and read the reply: the whole, or of a stream as much as shows whether to vote."""
        server, reader = self._server, self._reader
        self._exchange.add(DrawBegun(lambda: Progress(1, 0, reader.generated)))
        span = TRACING.begin("chat", self._parsed.fields, server.dialect, role="scout" if self._may_vote else "once")
        try:
            with span.within(), metrics.IN_FLIGHT.track_inprogress():
                async with asyncio.timeout(max(0.01, server.question.deadline - time.monotonic())):
                    scouted = await server.handling_retries(self._send_and_read)
                span.brought(scouted.response, server.host.name)
        except asyncio.CancelledError:
            self._exchange.add(Counted(0, reader.generated, estimated=True))
            raise
        except TimeoutError:
            seconds = self._parsed.options.deadline_seconds
            raise from_upstream(TimeoutError(), f"no reply within {seconds:g} seconds") from None
        except DrawError as error:
            raise from_upstream(error.cause, str(error)) from None
        if self._may_vote:
            metrics.SCOUTS.labels("yes" if scouted.extractor else "no").inc()
        return scouted

    async def _send_and_read(self) -> Scouted:
        begun = time.monotonic()
        scouted = await (self._streamed() if self._parsed.client.streamed else self._whole())
        if scouted.response is None:
            return scouted
        timed = replace(scouted.response, seconds=round(time.monotonic() - begun, 3))
        return replace(scouted, response=timed, extractor=self._extractor.for_scout(timed) if self._may_vote else None)

    async def _whole(self) -> Scouted:
        reply, has_signals = await self._server.handling_refused_signals(self._draw, self._send_once)
        body = b"".join([piece async for piece in pieces_of(reply)])
        headers = back(reply.raw_headers)
        plain = unpacked(body, reply.headers.get("content-encoding", ""))
        try:
            said = self._server.dialect.read(plain, 1, has_signals)[0]
        except MalformedError:
            return Scouted(Passed(reply.status, headers, whole(body)))
        if has_signals:
            body = as_json(silenced(plain))
            headers = [one for one in headers if one[0] not in (b"content-length", b"content-encoding")]
            headers.append((b"content-length", str(len(body)).encode()))
        return Scouted(Passed(reply.status, headers, whole(body)), said)

    async def _streamed(self) -> Scouted:
        """Hold a stream while it may have an answer; it may begin again unless reasoning was passed on."""
        reply, has_signals = await self._server.handling_refused_signals(self._draw, self._send_once)
        passed = Passed(reply.status, back(reply.raw_headers), pieces_of(reply))
        reader, strip = self._reader, without_logprobs if has_signals else bytes
        reasoning = ReasoningRelay(self._tell)
        pieces = Upcoming(passed.pieces)
        hold, over = Hold(self._hold), False
        reader.restart()
        try:
            while (piece := await pieces.next(hold.ends - time.monotonic())) is not None:
                for event in reader.decoder.feed(piece):  # from where it is passed on, it need not be read
                    reasoning.take(strip(event), [] if over else reader.read(event))
                    over = over or hold.is_over(reader.said)
                if over or self._extractor.is_hopeless(reader.text):
                    break
            left = bytes(reader.decoder.rest)
            if pieces.ended and reader.streamed:
                reader.feed(b"\n\n")  # some servers leave the last event without its end
            if pieces.ended and reader.streamed and not reader.closed:
                raise ConnectionError("its stream ended before its response did")
            if not pieces.ended:
                stream = pieces.rest(bytes(reasoning.held + left))
                return Scouted(replace(passed, pieces=_stripped(stream) if has_signals else stream))
        except BaseException as error:
            await pieces.close()
            if reasoning.told and isinstance(error, ConnectionError | TimeoutError | TooLongError):
                raise from_upstream(error, str(error)) from None
            raise
        body = bytes(reasoning.held) + strip(left)
        try:  # a server that does not stream sends a whole reply
            dialect = self._server.dialect
            (response,) = reader.responses() if reader.streamed else dialect.read(left, 1, has_signals)
        except MalformedError:
            response = None
        return Scouted(replace(passed, pieces=whole(body)), response, told=reasoning.told > 0)

    async def _send_once(self, top: int | None) -> tuple[aiohttp.ClientResponse, bool]:
        """Begin a reply; tell whether it has log probabilities that the client does not expect."""
        raw = self._parsed.raw
        if top is not None:
            asked = self._draw.fields
            more = self._server.dialect.with_signals(asked, top)
            raw = with_members(raw, {name: more[name] for name in more if more[name] is not asked.get(name)})
        upstream = self._upstreams.by_host[self._server.host]
        ends = self._server.question.deadline
        return await upstream.open(self._exchange.request, self._parsed.path, raw, ends, plain=True), top is not None


class ReasoningRelay:
    """Passes reasoning on as it arrives, with the events around it; holds all from the first word on."""

    def __init__(self, tell: Callable[[Thought], None]) -> None:
        self.held = bytearray()
        self.told = 0
        """The number of events passed on."""
        self._tell = tell
        self._waiting = 0
        self._over = False

    def take(self, event: bytes, deltas: Sequence[Delta]) -> None:
        """Pass on or hold an event, as it came, by its deltas."""
        self.held += event
        if self._over:
            return
        self._waiting += 1
        pieces = [delta for delta in deltas if isinstance(delta, Piece)]
        if (self.told and not deltas) or (pieces and all(piece.kind == "reasoning" for piece in pieces)):
            self._tell(Thought(bytes(self.held), self._waiting))
            self.told += self._waiting
            self._waiting = 0
            self.held.clear()
        else:
            self._over = bool(self.told or pieces)


async def _stripped(pieces: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    decoder = EventDecoder()
    async with aclosing(pieces):
        async for piece in pieces:
            yield b"".join(map(without_logprobs, decoder.feed(piece)))
    yield without_logprobs(bytes(decoder.rest))


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


class Shadow:
    """Looks at the reply to one request as it goes by."""

    def __init__(self, parsed: ParsedRequest, learning: Learning, exchange: Exchange, hold: float) -> None:
        self._parsed = parsed
        self._learning = learning
        self._exchange = exchange
        self._size = 0
        self._reader = StreamReader(parsed.dialect)
        self._hold = Hold(hold)
        self._passed_on = False
        """Whether a scout's stream would have been passed on before its end."""

    async def over(self, pieces: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
        """Yield the pieces of the reply, then note what `auto` would have done."""
        try:
            async with aclosing(pieces):
                async for piece in pieces:
                    self._size += len(piece)
                    if self._size <= MOST_BYTES:
                        self._reader.feed(piece)
                        self._passed_on |= self._hold.is_over(self._reader.said)
                    yield piece
        finally:
            self._judge()

    def _judge(self) -> None:
        response, counted = self._read(), self._exchange.last(Counted)
        if response is None or not counted or not counted.tokens:
            return
        evidence, samples = self._foretold(response)
        if samples is not None:
            kind = evidence.kind if evidence else None
            expected = round(samples, 2), round(samples * counted.tokens)
            self._exchange.add(Foretold(samples > 1, kind, *expected))

    def _read(self) -> Response | None:
        if not self._size or self._size > MOST_BYTES:
            return None
        try:
            return self._reader.responses()[0]
        except MalformedError:
            return None

    def _foretold(self, response: Response) -> tuple[Evidence | None, float | None]:
        """What shows its answer, and how many samples a vote on it would likely take; 1 where there would be none.

        None where that is not worked out yet.
        """
        parsed, options = self._parsed, self._parsed.options
        route = route_of(replace(parsed, vote="auto"))
        if route.kind == "relay" or parsed.client.mistake or (route.kind == "scout" and self._passed_on):
            return None, 1.0
        asked = route.kind == "vote" and route.asked
        extractor: Any = options.extractor.for_request(
            parsed.messages, asked=asked, most_tokens=most_tokens(parsed.fields)
        )
        extractor = extractor.for_scout(response) if route.kind == "scout" else extractor
        if extractor is None:
            return None, 1.0
        evidence = extractor.evidence(response)
        if evidence is None:
            return None, float(COMPLETE_WITHOUT)
        kind = self._learning.key(parsed.client.model, options.topic)
        certain = asked or evidence.certain
        return evidence, self._learning.forecast(kind, options.voting.controller, options.budget, certain=certain)
