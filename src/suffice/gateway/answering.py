"""One request under way: from its bytes to its reply, by vote, by a scout, or straight from the upstream."""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse

from suffice.gateway import metrics
from suffice.gateway.access import Line, Places
from suffice.gateway.bills import bill_of
from suffice.gateway.bodies import json_object, with_member, without_member
from suffice.gateway.courses import course_of, split_model
from suffice.gateway.errors import GatewayError, from_upstream
from suffice.gateway.learning import Kind, Learning
from suffice.gateway.scouts import Interpreter, Scout, Scouted
from suffice.gateway.settings import Settings
from suffice.gateway.streams import WAITING, Relayed, arriving, comment, end, in_time, left, stream, unless_left, until
from suffice.gateway.upstreams import Upstreams
from suffice.gateway.votes import Held, headers_of, line_of
from suffice.gateway.wishes import check_samples, read_wish, samples_asked
from suffice.live import Moment, Progress
from suffice.live.dialects import CHAT, Dialect
from suffice.live.dialects.translated import Translated
from suffice.live.dialects.wire import as_json
from suffice.live.facts import Asking
from suffice.live.server import DrawError
from suffice.live.tracing import TRACING

QUICK = 0.05
"""A vote that ends within so many seconds has its headers in a stream too."""

TICK = 0.25
"""How often whoever watches is told what has arrived."""

_STREAM = {"cache-control": "no-store", "x-accel-buffering": "no"}


class Answering:
    """One request in a dialect."""

    def __init__(
        self, settings: Settings, places: Places, upstreams: Upstreams, learning: Learning, dialect: Dialect,
        request: Request, line: Line,
    ) -> None:  # fmt: skip
        self._settings = settings
        self._places = places
        self._upstreams = upstreams
        self._learning = learning
        self._dialect = dialect
        self._request = request
        self._line = line
        self._bill = bill_of(request)
        self._translated = settings.translate and dialect is not CHAT
        self._scout_progress = lambda: Progress(1, 0, 0)

    async def answer(self, raw: bytes) -> Response:
        """The reply, by the course that the request takes; headers say where that is no vote, and why."""
        self._raw = raw
        del raw  # it is held here alone, and let go when it is no longer needed: it may be long
        response = await self._answer()
        if "no_vote" in self._line:
            response.headers["x-suffice-no-vote"] = self._line["no_vote"]
            if response.status_code < 400:
                response.headers["x-suffice-samples"] = str(self._samples)
        if self._translated:
            response.headers["x-suffice-translated"] = "chat"
        return response

    async def _answer(self) -> Response:
        body = json_object(self._raw)
        model, suffix = split_model(body.get("model"))
        self._line["model"] = model[:100] if model is not None else None
        self._body = {**body, "model": model} if suffix else body
        if self._translated:
            self._dialect = Translated(self._dialect, self._body)
        self._samples = samples_asked(self._raw, body)
        check_samples(self._samples, self._settings, self._bill.max_samples)
        self._bill.send(model, body, self._samples)
        reading = self._settings, self._dialect, body, self._request.headers, self._bill.max_samples
        # A schema is checked in a process of its own, which takes its time.
        has_schema = bool(self._dialect.json_wanted(body) or body.get("tools"))
        self._wish = await asyncio.to_thread(read_wish, *reading) if has_schema else read_wish(*reading)
        course = course_of(self._settings.vote, self._dialect, body, self._wish, suffix)
        self._wish = replace(self._wish, asked=course.asked)
        if "suffice" in body:
            self._raw = without_member(self._raw, "suffice")
        if suffix and model is not None:
            self._raw = with_member(self._raw, "model", model)
        self._server = self._upstreams.server(self._request, self._dialect, model)
        if course.kind == "relay":
            self._line["no_vote"] = course.why
            return await (self._once() if self._translated else self._pass_on())
        self._check()
        if course.kind == "scout":
            return await self._scout()
        return await (self._stream(self._begin()) if self._streamed else self._whole(self._begin()))

    @property
    def _streamed(self) -> bool:
        return self._body.get("stream") is True

    def _check(self) -> None:
        try:
            self._dialect.check(self._body, self._wish.extractor)
        except ValueError as error:
            raise GatewayError(400, str(error), param=str(error).split('"')[1]) from None

    async def _pass_on(self) -> Response:
        seconds = self._wish.deadline_seconds
        path, model = self._dialect.path, self._server.model or ""
        return await pass_on(
            self._upstreams, self._places, self._request, self._line, path, self._raw, seconds, model, self._dialect
        )

    async def _once(self) -> Response:
        """A single draw in the upstream's dialect, and its reply in the client's."""
        self._check()
        ends = time.monotonic() + await self._places.take(self._wish.deadline_seconds)
        self._line["release"] = self._places.release
        self._server.ends = ends
        drawing = asyncio.create_task(
            self._in_time(Interpreter(self._server, Asking(self._fields)).draw(self._streamed), ends)
        )
        return self._passed_back(await unless_left(self._request, drawing))

    def _passed_back(self, scouted: Scouted) -> Response:
        """A single draw as the reply, billed."""
        self._bill.whole(scouted.body)
        reply = scouted.reply()
        reply.headers.update(self._bill.headers())
        return reply

    def _passing(self, scouted: Scouted) -> AsyncGenerator[bytes, None]:
        """The same as a stream."""
        return self._bill.passing(scouted.pieces()) if self._bill.wanted else scouted.pieces()

    @property
    def _fields(self) -> dict[str, Any]:
        """What of the request is the client's, in every draw."""
        owned = {*self._dialect.owned, "suffice"}
        return {name: value for name, value in self._body.items() if name not in owned}

    def _begin(self, scouted: Scouted | None = None, ends: float | None = None) -> "Holding":
        """Begin a vote; where a scout went before it, there is a place for it already, until it ends."""
        self._line |= {"kind": "vote", "controller": self._wish.controller[:100], "budget": self._wish.budget}
        fields = self._fields
        self._raw = b""
        moments: asyncio.Queue[bytes] = asyncio.Queue()

        def watch(moment: Moment) -> None:
            moments.put_nowait(comment(moment, held.progress.tokens))

        found = scouted.found if scouted else None
        kind = self._learning.kind(self._line.get("model"), self._wish.topic)
        chosen, budget = self._wish.voting.controller, self._wish.budget
        decides = self._learning.controller(kind, chosen, budget, self._wish.learn)
        watching = watch if self._streamed else None
        held = Held(self._server, fields, self._wish, watching, found, self._bill, decides)
        self._request.state.progress = lambda: held.progress._asdict()
        return Holding(held, asyncio.create_task(self._hold(held, kind, fields, ends)), moments, scouted)

    async def _hold(self, held: Held, kind: Kind, fields: dict[str, Any], ends: float | None) -> dict[str, Any]:
        """Hold a vote when there is a place for it."""
        if ends is None:
            ends = time.monotonic() + await self._places.take(self._wish.deadline_seconds)
            self._line["release"] = self._places.release
        metrics.IN_PROGRESS.inc()
        try:
            reply = await held.reply(max(0.01, ends - time.monotonic()))
            self._learning.ended(kind, held, self._wish.learn)
            return reply
        except Exception:
            self._line["kind"] = "error"
            raise
        except asyncio.CancelledError:
            self._line["kind"] = "cancelled"
            raise
        finally:
            metrics.IN_PROGRESS.dec()
            self._line["upstream"] = self._server.host.name
            if held.outcome:
                held.charge(held.outcome)
                self._line |= line_of(held.outcome)
                if self._settings.log_text:
                    self._line |= {"question": self._dialect.messages(fields), "answer": held.outcome.answer}

    async def _whole(self, holding: "Holding") -> Response:
        reply = await unless_left(self._request, holding.reply)
        assert holding.held.outcome  # noqa: S101
        headers = headers_of(holding.held.outcome) | self._bill.headers()
        if holding.scout_alone:
            alone = holding.scout_alone.reply()
            alone.headers.update(headers)
            return alone
        return Response(as_json(reply), headers=headers, media_type="application/json")

    async def _stream(self, holding: "Holding") -> Response:
        """A stream. It begins with the first heartbeat: what is known before has its own status and headers."""
        try:
            await asyncio.wait({holding.reply}, timeout=min(self._settings.heartbeat_seconds, QUICK))
            if holding.reply.done():
                holding.reply.result()
        except BaseException:
            holding.reply.cancel()
            raise
        outcome = holding.held.outcome if holding.reply.done() else None
        headers = {**_STREAM, **(headers_of(outcome) | self._bill.headers() if outcome else {})}
        pieces = self._pieces(holding, left(self._request))
        return StreamingResponse(pieces, headers=headers, media_type="text/event-stream")

    def _pieces(self, holding: "Holding", leaving: Awaitable[None]) -> AsyncIterator[bytes]:
        options = self._body.get("stream_options")
        usage_wanted = isinstance(options, dict) and bool(options.get("include_usage"))
        said, waiting = holding.said_by_scout, self._waiting(lambda: holding.held.progress)
        return stream(
            self._dialect, holding.reply, holding.moments, leaving, self._heartbeat, usage_wanted, said, waiting
        )

    @property
    def _heartbeat(self) -> float:
        """How long a stream may have nothing to say."""
        return min(self._settings.heartbeat_seconds, TICK) if self._wish.watch else self._settings.heartbeat_seconds

    def _waiting(self, progress: Callable[[], Progress]) -> Callable[[], bytes]:
        """What is said while there is nothing to say: to whoever watches, what has arrived."""
        return lambda: arriving(progress()) if self._wish.watch else WAITING

    async def _scout(self) -> Response:
        """Send a scout; pass its reply back as it is, or go on with a vote where it has an answer."""
        ends = time.monotonic() + await self._places.take(self._wish.deadline_seconds)
        self._line["release"] = self._places.release
        self._server.ends = ends
        self._bill.sent = True
        extractor = self._wish.extractor.for_request(self._dialect.messages(self._body), asked=False)
        asking = Asking(self._fields, self._streamed and not self._translated, signals=self._wish.voting.wants_signals)
        if self._translated:
            finding = Interpreter(self._server, asking, extractor).draw(self._streamed)
        else:
            scout = Scout(self._upstreams, self._server, self._request, extractor, asking)
            self._scout_progress = lambda: scout.progress
            finding = scout.streamed(self._raw) if self._streamed else scout.whole(self._raw)
        scouting = asyncio.create_task(self._scouted(finding, ends))
        if self._streamed:
            return await self._stream_scout(scouting, ends)
        scouted = await unless_left(self._request, scouting)
        if scouted.found is None:
            return self._passed_back(scouted)
        return await self._whole(self._begin(scouted, ends))

    async def _in_time(self, finding: Awaitable[Scouted], ends: float) -> Scouted:
        """What a draw brings before the deadline."""
        span = TRACING.draw(self._server.dialect, self._body, "once" if "no_vote" in self._line else "scout")
        try:
            with span.within():
                async with asyncio.timeout(max(0.01, ends - time.monotonic())):
                    scouted = await finding
                span.brought(scouted.response, self._server.host.name)
                return scouted
        except TimeoutError:
            seconds = self._wish.deadline_seconds
            raise from_upstream(TimeoutError(), f"no reply within {seconds:g} seconds") from None
        except DrawError as error:
            raise from_upstream(error.cause, str(error), self._server.secret) from None
        finally:
            self._line["upstream"] = self._server.host.name

    async def _scouted(self, finding: Awaitable[Scouted], ends: float) -> Scouted:
        """What a scout brings."""
        scouted = await self._in_time(finding, ends)
        has_answer = scouted.found is not None
        metrics.SCOUTS.labels("yes" if has_answer else "no").inc()
        if not has_answer:
            self._line |= {"no_vote": "no answer", "samples": 1}
        return scouted

    async def _stream_scout(self, scouting: asyncio.Task[Scouted], ends: float) -> Response:
        """A stream that begins when it is known what it will be, or else with the first heartbeat."""
        leaving = asyncio.create_task(left(self._request))
        await asyncio.wait({scouting, leaving}, timeout=self._heartbeat, return_when=asyncio.FIRST_COMPLETED)
        if not scouting.done() and not leaving.done():
            pieces = self._scout_pieces(scouting, leaving, ends)
            return StreamingResponse(pieces, headers=_STREAM, media_type="text/event-stream")
        await end(leaving)
        if not scouting.done():
            await end(scouting)
            raise ClientDisconnect
        scouted = scouting.result()
        if scouted.found is not None:
            return await self._stream(self._begin(scouted, ends))
        response = Relayed(self._passing(scouted), scouted.status)
        response.raw_headers = scouted.headers
        return until(response, ends, self._wish.deadline_seconds, self._line, self._dialect)

    async def _scout_pieces(
        self, scouting: asyncio.Task[Scouted], leaving: asyncio.Task[None], ends: float
    ) -> AsyncIterator[bytes]:
        """Comments until the scout is known, then its stream, or the vote's."""
        try:
            while not scouting.done():
                yield self._waiting(self._scout_progress)()
                await asyncio.wait({scouting, leaving}, timeout=self._heartbeat, return_when=asyncio.FIRST_COMPLETED)
                if leaving.done():
                    return
            scouted = scouting.result()
            alone = scouted.found is None
            late = ends, self._wish.deadline_seconds, self._line, self._dialect
            pieces = (
                in_time(self._passing(scouted), *late) if alone else self._pieces(self._begin(scouted, ends), leaving)
            )
            async for piece in pieces:
                yield piece
        except GatewayError as error:
            yield self._dialect.error_event(error.payload(self._dialect))
        finally:
            await end(scouting, leaving)


class Holding:
    """A vote under way: what comes of it, and how it stands meanwhile."""

    def __init__(
        self,
        held: Held,
        reply: asyncio.Task[dict[str, Any]],
        moments: "asyncio.Queue[bytes]",
        scouted: Scouted | None = None,
    ) -> None:
        self.held = held
        self.reply = reply
        self.moments = moments
        self._scouted = scouted

    @property
    def scout_alone(self) -> Scouted | None:
        """The scout that is the reply after all, since what others said showed that there is nothing to vote on."""
        outcome = self.held.outcome
        return self._scouted if outcome and outcome.stop_reason == "no answer" else None

    def said_by_scout(self) -> bytes | None:
        """What it said."""
        return self.scout_alone.body if self.scout_alone else None


async def pass_on(
    upstreams: Upstreams,
    places: Places,
    request: Request,
    line: Line,
    path: str,
    raw: bytes,
    seconds: float,
    model: str | None,
    dialect: Dialect = CHAT,
) -> Response:
    """Relay a request; it takes a place until its reply has been passed back, and that ends at the deadline."""
    ends = time.monotonic() + await places.take(seconds)
    line["release"] = places.release
    bill = bill_of(request)
    bill.sent = True
    span = TRACING.relay(path, model)
    try:
        with span.within():
            relayed = asyncio.create_task(upstreams.relay(request, path, raw, model, line, plain=bill.wanted))
            async with asyncio.timeout(ends - time.monotonic()):
                response = bill.relayed(await unless_left(request, relayed), path)
    except TimeoutError:
        raise from_upstream(TimeoutError(), f"no reply within {seconds:g} seconds") from None
    span.replied(response.status_code)
    response = until(response, ends, seconds, line, dialect)
    if isinstance(response, StreamingResponse):
        response.body_iterator = span.over(response.body_iterator)
    return response
