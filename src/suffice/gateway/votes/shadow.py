"""Shadow: what `auto` would have made of a request, worked out from the reply that went by, at no cost upstream."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from suffice.answers import Evidence
from suffice.gateway.exchange import Counted, Exchange, Foretold
from suffice.gateway.requests.parse import ParsedRequest, route_of
from suffice.gateway.votes.learning import Learning
from suffice.gateway.votes.scout import Hold
from suffice.live.dialects import MalformedError
from suffice.live.dialects.base import StreamReader
from suffice.live.servers.hosts import most_tokens
from suffice.live.vote import COMPLETE_WITHOUT
from suffice.response import Response

MOST_BYTES = 1 << 20
"""A reply that is longer is not looked at: it is no answer."""


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
        """Yield the pieces of the reply as they are, and note at the end what `auto` would have done."""
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
