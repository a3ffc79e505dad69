"""The scout: a single draw, just as the client asked for it, from which a vote goes on where it concludes in a value.

Where it does not, it is the reply, byte for byte.
"""

import asyncio
import time
from contextlib import aclosing
from dataclasses import dataclass, replace

import aiohttp

from suffice.answers import Extractor
from suffice.gateway.errors import from_upstream
from suffice.gateway.exchange import Counted, DrawBegun, Exchange, Foretold, Passed
from suffice.gateway.fleet.relay import back, whole
from suffice.gateway.fleet.upstreams import Upstreams, pieces_of, unpacked
from suffice.gateway.operations import metrics
from suffice.gateway.requests.parse import ParsedRequest, with_members
from suffice.gateway.votes.learning import Learning
from suffice.gateway.votes.thoughts import Tell, ThoughtRelay, without_logprobs
from suffice.gateway.votes.topics import as_taught
from suffice.live import Progress
from suffice.live.dialects import MalformedError
from suffice.live.dialects.base import StreamReader, as_json
from suffice.live.servers.hosts import DrawRequest, most_tokens
from suffice.live.servers.retry import TooLongError
from suffice.live.servers.server import DrawError, Server
from suffice.live.signals import silenced
from suffice.live.tracing import TRACING
from suffice.response import Response


@dataclass(frozen=True)
class Scouted:
    """The result of a scout: a response to vote on, or a reply to pass back."""

    passed: Passed
    """It as the reply."""
    response: Response | None = None
    """What was said, where it could be read."""
    extractor: Extractor | None = None
    """What reads such answers; None where there is nothing to vote on."""
    told: int = 0
    """The number of events that the client has already: reasoning."""


class Scout:
    """Sends scouts of one request; `tell` is called with what the model thinks before it answers.

    Where there can't be a vote (`may_vote`), the reply is passed back unread.
    """

    def __init__(
        self,
        parsed: ParsedRequest,
        server: Server,
        upstreams: Upstreams,
        exchange: Exchange,
        tell: Tell,
        may_vote: bool,
    ) -> None:
        self._parsed = parsed
        self._server = server
        self._upstreams = upstreams
        self._exchange = exchange
        self._tell = tell
        self._may_vote = may_vote
        most = most_tokens(parsed.fields)
        self._extractor = parsed.options.extractor.for_request(parsed.messages, asked=False, most_tokens=most)
        signals = may_vote and parsed.options.voting.wants_signals
        self._draw = DrawRequest(parsed.fields, parsed.client.streamed, signals=signals)
        self._reader = StreamReader(server.dialect, signals)

    async def send(self) -> Scouted:
        """Send it, and read the reply."""
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
        if not self._may_vote:
            reply, _ = await self._send_once(None)
            return Scouted(Passed(reply.status, back(reply.raw_headers), pieces_of(reply)))
        scouted = await (self._streamed() if self._parsed.client.streamed else self._whole())
        if scouted.response is None:
            return scouted
        timed = replace(scouted.response, seconds=round(time.monotonic() - begun, 3))
        return replace(scouted, response=timed, extractor=self._extractor.for_scout(timed))

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
        """Read a stream; a broken one is sent again, unless reasoning was passed on."""
        reply, has_signals = await self._server.handling_refused_signals(self._draw, self._send_once)
        reader, strip = self._reader, without_logprobs if has_signals else bytes
        thoughts = ThoughtRelay(self._tell)
        reader.restart()
        try:
            async with aclosing(pieces_of(reply)) as pieces:
                async for piece in pieces:
                    for event in reader.decoder.feed(piece):
                        thoughts.take(strip(event), reader.read(event))
            left = bytes(reader.decoder.rest)
            if reader.streamed:
                reader.feed(b"\n\n")  # some servers leave the last event without its end
                if not reader.closed:
                    raise ConnectionError("its stream ended before its response did")
        except (ConnectionError, TimeoutError, TooLongError) as error:
            if thoughts.told:
                raise from_upstream(error, str(error)) from None
            raise
        try:  # a server that does not stream sends a whole reply
            dialect = self._server.dialect
            (response,) = reader.responses() if reader.streamed else dialect.read(left, 1, has_signals)
        except MalformedError:
            response = None
        passed = Passed(reply.status, back(reply.raw_headers), whole(bytes(thoughts.held) + strip(left)))
        return Scouted(passed, response, told=thoughts.told)

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


def foretell(parsed: ParsedRequest, topic: str, learning: Learning, exchange: Exchange, response: Response) -> None:
    """Note what `auto` would have done with a request whose reply went by: the likely samples and tokens."""
    counted = exchange.last(Counted)
    if not counted or not counted.tokens or parsed.client.mistake:
        return
    route, samples = learning.topics.foretold(parsed, topic), 1.0
    parsed = as_taught(parsed, route)
    options, extractor, evidence = parsed.options, None, None
    looks_first = route.looks_first(parsed.client.streamed)
    if looks_first or route.kind == "vote":
        most = most_tokens(parsed.fields)
        reader = options.extractor.for_request(parsed.messages, asked=route.asked, most_tokens=most)
        extractor = reader.for_scout(response) if looks_first else reader
        evidence = extractor.evidence(response) if extractor else None
    if not extractor and route.kind == "relay" and route.may_be_taught:
        samples += learning.topics.expected_draws(response)
    if extractor:
        key = learning.key(parsed.client.model, options.topic)
        forecast = learning.forecast(key, options.voting.controller, options.budget)
        if forecast is None:  # not worked out yet
            return
        samples = forecast
    kind = evidence.kind if evidence else None
    exchange.add(Foretold(extractor is not None, kind, round(samples, 2), round(samples * counted.tokens)))
