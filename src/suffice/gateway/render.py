"""From the events of a request to the client's reply: whole, or as a stream that tells how a vote stands meanwhile."""

import json
import time
from collections import deque
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, suppress
from itertools import islice
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from suffice.gateway.exchange import CutError, Elected, Event, Events, Exchange, Passed, Standing, Thought, Upcoming
from suffice.gateway.requests.parse import ParsedRequest
from suffice.live import Moment, Outcome
from suffice.live.dialects.base import as_json, usage_of_all

TICK, WATCHED_TICK = 1.0, 0.25
"""Seconds between two events of a vote's stream at most, and for a client that watches."""

QUICK = 0.05
"""A vote that ends within so many seconds has its headers in a stream too."""

MOST_FIELDS = 100
"""So many fields of an object are told of while its vote is under way."""

_STREAM = {"cache-control": "no-store", "x-accel-buffering": "no"}


async def render_whole(events: Events, request: Request) -> Response:
    """Return the elected reply, or stream the one that is passed back."""
    coming = Upcoming(events, request)
    try:
        while isinstance(event := await coming.next(), Standing | Thought):
            pass
    except BaseException:
        await coming.close()
        raise
    if isinstance(event, Passed):
        return _relayed(event, coming)
    await coming.close()
    if event is None:
        raise ClientDisconnect
    return Response(as_json(event.reply), headers=dict(event.told), media_type="application/json")


async def render_stream(events: Events, exchange: Exchange, parsed: ParsedRequest, heartbeat: float) -> Response:
    """A stream. What is known before the first heartbeat has its own status and headers; then it begins in any case.

    Whoever watches is told what has arrived, several times a second.
    """
    watched = parsed.options.watch
    often = min(heartbeat, WATCHED_TICK if watched else TICK)
    coming = Upcoming(events, exchange.request)
    before: list[Standing] = []
    try:
        seconds = often if watched else heartbeat
        begins = time.monotonic() + seconds
        event = await coming.next(seconds)
        while isinstance(event, Standing):
            before.append(event)
            if event.facts["draws"]:  # before the first response the upstream may still fail, with a status
                begins = min(begins, time.monotonic() + QUICK)
            event = await coming.next(begins - time.monotonic())
    except BaseException:
        await coming.close()
        raise
    if coming.left:
        await coming.close()
        raise ClientDisconnect
    if isinstance(event, Passed) and not before:
        return _relayed(event, coming)
    headers = {**_STREAM, **(event.told if isinstance(event, Elected | Passed) else {})}
    pieces = _told([*before, event], coming, exchange, parsed, often)
    return StreamingResponse(pieces, headers=headers, media_type="text/event-stream")


async def _told(
    begun: list[Event | None], coming: Upcoming[Event], exchange: Exchange, parsed: ParsedRequest, heartbeat: float
) -> AsyncGenerator[bytes, None]:
    """Stream the events that there are, then those to come; after a silent heartbeat, a comment."""
    waiting, thoughts = deque(begun), 0
    try:
        while True:
            event = waiting.popleft() if waiting else await coming.next(heartbeat)
            if coming.left:
                raise ClientDisconnect
            if event is None:
                progress = exchange.progress if parsed.options.watch else None
                yield _comment(progress._asdict()) if progress else b": waiting\n\n"
            elif isinstance(event, Standing):
                yield _comment(event.facts)
            elif isinstance(event, Thought):
                thoughts += event.events
                yield event.piece
            elif isinstance(event, Elected):
                for piece in parsed.dialect.events(event.reply, parsed.client.usage_wanted, thoughts):
                    yield piece
                return
            else:
                async with aclosing(event.pieces):
                    async for piece in event.pieces:
                        yield piece
                return
    finally:
        await coming.close()


class RelayedResponse(StreamingResponse):
    """A reply that is passed back as it arrives. If it is cut, the connection is closed."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass it back."""
        with suppress(CutError):
            await super().__call__(scope, receive, send)


def _relayed(passed: Passed, coming: Upcoming[Event]) -> Response:
    """A reply that is passed back; what it takes is held until it has been."""

    async def pieces() -> AsyncGenerator[bytes, None]:
        try:
            async with aclosing(passed.pieces):
                async for piece in passed.pieces:
                    yield piece
        finally:
            await coming.close()

    coming.stay()
    response = RelayedResponse(pieces(), passed.status)
    response.raw_headers = [*passed.headers]
    response.headers.update(passed.told)
    return response


def standing(moment: Moment, tokens: int) -> Standing:
    """How a vote stands now: its tally goes on changing."""
    tally = moment.tally
    facts: dict[str, Any] = {
        "votes": dict(tally.votes),
        "draws": tally.draws,
        "rounds": tally.rounds,
        "in_flight": moment.in_flight,
        "decision": moment.decision,
        "certainty": moment.certainty,
        "same_as_full_vote": moment.confidence,
        "budget": tally.budget,
        "tokens": tokens,
    }
    if moment.fields:
        told = islice(moment.fields.items(), MOST_FIELDS)
        facts |= {"votes": {}, "fields": {pointer: dict(one.votes) for pointer, one in told}}
    return Standing(facts)


def _comment(facts: Mapping[str, Any]) -> bytes:
    """Facts for whoever reads comments: our own page does."""
    return b": suffice " + json.dumps(facts).encode() + b"\n\n"


def reply_of(parsed: ParsedRequest, outcome: Outcome) -> dict[str, Any]:
    """Return the elected response as a reply in the client's dialect, with the facts of the vote."""
    dialect = parsed.dialect
    chosen = outcome.response or outcome.responses[0]
    if outcome.composed:
        chosen = dialect.rewritten(chosen, outcome.value)
    usage = usage_of_all(outcome.responses)
    reply = dialect.reply(chosen, usage, outcome.prompt_tokens, outcome.completion_tokens)
    told = _renamed(outcome.summary()) | {"failures": len(outcome.failures)}
    if "fields" in told:
        told["fields"] = {pointer: _renamed(one) for pointer, one in told["fields"].items()}
    if outcome.named:
        seconds = sum(response.seconds for response in outcome.responses) / max(outcome.samples, 1)
        told["seconds_saved"] = round(seconds * outcome.samples_saved, 3)
    return {**reply, "suffice": told}


def _renamed(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Call the confidence what it is: clients put thresholds on it."""
    return {"same_as_full_vote" if name == "confidence" else name: fact for name, fact in facts.items()}


def headers_of(outcome: Outcome) -> dict[str, str]:
    """The same in brief, as headers."""
    headers = {
        "x-suffice-samples": str(outcome.samples),
        "x-suffice-over-one": str(outcome.over_one.samples),
        "x-suffice-rounds": str(outcome.rounds),
        "x-suffice-tokens": str(outcome.tokens),
        "x-suffice-stop-reason": outcome.stop_reason,
    }
    sure = {"certainty": outcome.certainty, "same-as-full-vote": outcome.confidence, "right": outcome.right}
    headers |= {f"x-suffice-{name}": f"{value:.4f}" for name, value in sure.items() if value is not None}
    if outcome.sure is not None:
        headers["x-suffice-sure"] = "yes" if outcome.sure else "no"
    return headers
