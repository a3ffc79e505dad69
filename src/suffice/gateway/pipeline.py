"""From a client's request to its reply: parse → decide → draw → render, with immutable values between the steps."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, nullcontext
from dataclasses import replace
from functools import partial
from itertools import count
from operator import is_not
from typing import TYPE_CHECKING

import numpy as np
from starlette.responses import Response

from suffice.answers.reader import is_grounded
from suffice.errors import SampleError, SufficeError
from suffice.gateway.door import Places, body_of
from suffice.gateway.errors import GatewayError, from_upstream
from suffice.gateway.exchange import (
    Elected,
    Events,
    Exchange,
    NotVoted,
    Passed,
    Routed,
    Standing,
    Thought,
    VoteBegun,
    Voted,
    until_done,
)
from suffice.gateway.fleet.relay import in_time, overheard, relay
from suffice.gateway.fleet.upstreams import Upstreams
from suffice.gateway.operations import metrics
from suffice.gateway.operations.costs import measure
from suffice.gateway.operations.state import FileState
from suffice.gateway.render import headers_of, render_stream, render_whole, reply_of, standing
from suffice.gateway.requests.options import Policies
from suffice.gateway.requests.parse import ParsedRequest, Route, as_panel, as_voter, parse, route_of
from suffice.gateway.settings import Settings
from suffice.gateway.votes.learning import ONCE, Learning
from suffice.gateway.votes.scout import Scout, Scouted, foretell
from suffice.gateway.votes.thoughts import ThinkingDraws
from suffice.gateway.votes.topics import as_taught
from suffice.live import Moment, Outcome
from suffice.live.dialects import Dialect
from suffice.live.servers.server import Server
from suffice.live.vote import Vote
from suffice.panel.live import Panel
from suffice.planning.promises import OverOneCap
from suffice.response import Response as Sample

if TYPE_CHECKING:
    from suffice.gateway.operations.feedback import Assurance


CONFIRMED_WITHIN = 4
"""Draws of which two agree, where the answer that began a vote may have been made up."""


class Pipeline:
    """Answers requests in all dialects, with what they share."""

    def __init__(self, settings: Settings, places: Places, cap: OverOneCap | None, state: FileState | None) -> None:
        self.settings = settings
        self.places = places
        self.policies = Policies(settings)
        self._cap = cap
        self._state = state
        self.upstreams: Upstreams  # these while it is open: what they need belongs to an event loop
        self.learning: Learning
        self.assurance: Assurance | None = None
        """The calibrations in force, if there are any."""

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Answer requests in here; load what was learned before, and keep what is learned."""
        async with AsyncExitStack() as closing:
            self.upstreams = Upstreams(self.settings)
            closing.push_async_callback(self.upstreams.close)
            self.learning = Learning(self.settings, self._state, self.places.is_crowded, self._cap)
            await closing.enter_async_context(self.learning.open())
            if self.settings.calibrations:  # where there is none, nothing of it is loaded
                from suffice.gateway.operations.feedback import Assurance

                self.assurance = Assurance(self.settings, self._state)
                await closing.enter_async_context(self.assurance.keeper.open())
            yield

    async def answer(self, dialect: Dialect, exchange: Exchange) -> Response:
        """The reply to a request; headers say where it is no vote, and why."""
        raw = await body_of(exchange.request, self.settings)
        parsed = await parse(self.policies, dialect, exchange, raw)
        topics = self.learning.topics
        topic = topics.name(parsed)
        if self.policies.know_topics:
            parsed = await parse(self.policies, dialect, exchange, raw, topic)
        route = topics.route(parsed, topic, route_of(parsed))
        exchange.add(Routed(route.kind, topic))
        metrics.ROUTES.labels(route.kind).inc()
        parsed = as_taught(parsed, route)
        panel = self.settings.voters
        if panel and panel.name == parsed.client.model:
            parsed = as_panel(parsed, panel)
        del raw  # it may be long, and is held no longer than it is needed
        if route.kind == "relay":
            exchange.add(NotVoted(route.why))
        else:
            parsed.check()
        parsed = replace(parsed, raw=b"") if route.kind == "vote" else parsed
        events = self.draw(parsed, route, topic, exchange)
        if parsed.client.streamed and (parsed.panel or route.kind != "relay"):
            return await render_stream(events, exchange, parsed, self.settings.heartbeat_seconds)
        return await render_whole(events, exchange.request)

    async def draw(self, parsed: ParsedRequest, route: Route, topic: str, exchange: Exchange) -> Events:
        """Yield what becomes of a request. It keeps its place until the reply has been sent."""
        async with self.places.hold(parsed.options.deadline_seconds) as ends:
            may_vote = route.looks_first(parsed.client.streamed)
            if route.kind == "relay" and not may_vote and not parsed.panel:
                yield await self._relay(parsed, route, topic, exchange, ends)
                return
            patience, scouted = parsed.options.patience, None
            server = self.upstreams.server(exchange, parsed.dialect, parsed.client.model, ends, patience)
            if route.kind != "vote":
                thoughts: asyncio.Queue[Thought | None] = asyncio.Queue()
                scouting = asyncio.create_task(self._scout(parsed, may_vote, server, exchange, thoughts.put_nowait))
                async with aclosing(until_done(thoughts, scouting)) as told:
                    async for thought in told:
                        yield thought
                scouted = scouting.result()
                if scouted.extractor is None:
                    self.learning.topics.missed(parsed, topic, route)
                    if scouted.response and self.learning.topics.is_due(parsed, topic, route):
                        self._look(parsed, topic, server, scouted.response)
                    yield self._alone(parsed, route, scouted, exchange)
                    return
                exchange.add(Routed("look", topic))
            async with aclosing(self._vote(parsed, route, topic, server, exchange, scouted)) as events:
                async for event in events:
                    yield event

    async def _relay(self, parsed: ParsedRequest, route: Route, topic: str, exchange: Exchange, ends: float) -> Passed:
        """Pass a request on; its reply is read only in the shadow, or where the topic learns from it."""
        seconds, sent = parsed.options.deadline_seconds, (parsed.path, parsed.raw, parsed.client.model or "")
        passed = await relay(self.upstreams, exchange, *sent, ends=ends, seconds=seconds, dialect=parsed.dialect)
        topics = self.learning.topics
        if passed.status < 400 and route.why == "shadow":
            heard = partial(foretell, parsed, topic, self.learning, exchange)
            passed = replace(passed, pieces=overheard(passed.pieces, parsed.dialect, heard))
        elif passed.status < 400 and topics.is_due(parsed, topic, route):
            server = self.upstreams.server(exchange, parsed.dialect, parsed.client.model, ends)

            look = partial(self._look, parsed, topic, server)
            passed = replace(passed, pieces=overheard(passed.pieces, parsed.dialect, look))
        return replace(passed, told=_no_vote(parsed, route.why, passed.status))

    def _look(self, parsed: ParsedRequest, topic: str, server: Server, response: Sample) -> None:
        """Draw a request a few times more, when there is room, to learn of its topic."""
        look = partial(self.learning.topics.look, parsed, topic, server, response)
        self.learning.spare.begin(server, look, lambda: None)

    async def _scout(
        self, parsed: ParsedRequest, may_vote: bool, server: Server, exchange: Exchange, tell: Callable[[Thought], None]
    ) -> Scouted:
        """Send a single draw; of a panel to the first voter, and if its server is dead, to the next."""
        if parsed.panel is None:
            return await Scout(parsed, server, self.upstreams, exchange, tell, may_vote).send()
        servers = self._voters(parsed, parsed.panel, server, exchange)
        last = parsed.panel.in_turn[-1]
        for voter in parsed.panel.in_turn:
            server = servers[voter.name].for_question(partial(is_not, voter, last))
            try:
                asked = as_voter(parsed, voter)
                scouted = await Scout(asked, server, self.upstreams, exchange, tell, may_vote).send()
            except GatewayError:
                if voter is last or not server.host.is_aside:
                    raise
            else:
                said = scouted.response and parsed.panel.counted(scouted.response, voter.name)
                return replace(scouted, response=said)
        raise AssertionError

    def _voters(self, parsed: ParsedRequest, panel: Panel, server: Server, exchange: Exchange) -> dict[str, Server]:
        ends, patience = server.question.deadline, parsed.options.patience
        return self.upstreams.voters(exchange, parsed.dialect, panel, ends, patience)

    def _alone(
        self, parsed: ParsedRequest, route: Route, scouted: Scouted, exchange: Exchange, vote: Outcome | None = None
    ) -> Passed:
        """A scout as the reply, with its tokens counted; after a vote that it began, with those of the vote."""
        why, passed = "no answer" if route.kind == "look" else route.why, scouted.passed
        exchange.add(NotVoted(why))
        told = _no_vote(parsed, why, passed.status)
        if vote:
            costs = headers_of(vote)
            return replace(passed, told=told | {name: costs[name] for name in told if name in costs})
        pieces = in_time(passed, parsed.options.deadline_seconds, exchange, parsed.dialect)
        return replace(passed, pieces=pieces, told=told)

    async def _vote(
        self,
        parsed: ParsedRequest,
        route: Route,
        topic: str,
        server: Server,
        exchange: Exchange,
        scouted: Scouted | None,
    ) -> Events:
        """Yield how a vote stands, for streams, and its end. A scout counts as its first draw."""
        options = parsed.options
        key = self.learning.key(parsed.client.model, options.topic)
        controller = self.learning.controller(key, options.voting.controller, options.budget, options.learn)
        expected = self.learning.cap.expecting() if self.learning.cap and controller is not ONCE else nullcontext()
        named = parsed.named and controller is not ONCE  # what a cap forbids is not saved
        prior = self.learning.topics.certainty_prior(parsed.client.model, topic)
        voting = replace(options.voting, controller=controller, asked=route.asked, named=named, certainty_prior=prior)
        decided_by = options.controller[:100]
        if panel := parsed.panel:
            voting = panel.voting(voting, self._voters(parsed, panel, server, exchange))
            decided_by = str(voting.controller)
        if scouted and scouted.extractor:  # nobody asked for it, and answers are read like the scout's
            voting = replace(voting, extractor=options.applied_to(scouted.extractor), asked=False)
            said = scouted.response and scouted.extractor.extract(scouted.response)
            if said and not voting.extractor.structure and not is_grounded(parsed.messages, said):
                voting = replace(voting, agrees_within=CONFIRMED_WITHIN)
        assured = await self.assurance.begin(parsed.client.model, options.topic) if self.assurance else None
        if assured:
            voting = replace(voting, calibration=assured.calibration, threshold=assured.threshold)
        moments: asyncio.Queue[Standing | Thought | None] = asyncio.Queue()
        if parsed.client.streamed and not scouted and not parsed.panel:
            voting = replace(voting, source=partial(ThinkingDraws, tell=moments.put_nowait))

        def watch(moment: Moment) -> None:
            if moment.outcome is None:
                moments.put_nowait(standing(moment, vote.progress.tokens))

        watching = watch if parsed.client.streamed else None
        seed = parsed.fields.get("seed")
        random, numbers = np.random.default_rng(seed and abs(seed)), count(1 if scouted else 0)
        vote = voting.begin(server, parsed.fields, random, watching, numbers=numbers)
        exchange.add(VoteBegun(decided_by, options.budget, lambda: vote.progress))
        scout = scouted.response if scouted else None
        with expected:
            holding = asyncio.create_task(self._hold(vote, scout, parsed, server, exchange))
            async with aclosing(until_done(moments, holding)) as standings:
                async for event in standings:
                    yield event
        outcome = holding.result()
        self.learning.ended(key, vote, server, outcome, options.learn)
        self.learning.topics.voted(parsed, topic, route, vote.tally)
        told = headers_of(outcome)
        if scouted and outcome.stop_reason == "no answer":
            yield self._alone(parsed, route, scouted, exchange, outcome)
            return
        reply = reply_of(parsed, outcome)
        thoughts = scouted.told if scouted else isinstance(vote.draws, ThinkingDraws) and vote.draws.relay.told
        first = next((one for one in vote.responses if one.draw == 0), None)
        if thoughts and first:
            reply = parsed.dialect.continued(reply, first.reply)
        if assured:
            assured.remember(str(reply.get("id")), exchange.key or "", outcome)
        if outcome.sure is False and self.settings.unsure == "error":
            raise _unsure(str(reply.get("id")), self.settings.risk, told)
        yield Elected(reply, told)

    async def _hold(
        self, vote: Vote, scout: Sample | None, parsed: ParsedRequest, server: Server, exchange: Exchange
    ) -> Outcome:
        """Hold a vote to its end, which is measured and logged in any case."""
        metrics.IN_PROGRESS.inc()
        outcome: Outcome | None = None
        try:
            if scout:
                await vote.take(scout)
            outcome = await vote.outcome(max(0.01, server.question.deadline - time.monotonic()))
        except SampleError as error:
            outcome = error.outcome
            if not outcome.samples:
                raise from_upstream(error.cause, outcome.failures[-1]) from None
        except SufficeError as error:
            raise GatewayError(400, f"suffice.controller: {error}", param="suffice.controller") from None
        except asyncio.CancelledError:
            metrics.CANCELLATIONS.inc()
            outcome = await vote.so_far("cancelled")
            raise
        finally:
            metrics.IN_PROGRESS.dec()
            if outcome:
                exchange.add(Voted(outcome, parsed.messages if self.settings.log_text else None))
                if outcome.responses:
                    measure(outcome)
        if not outcome.responses:
            seconds = parsed.options.deadline_seconds
            raise from_upstream(TimeoutError(), f"no response within {seconds:g} seconds")
        return outcome


def _unsure(reply: str, risk: float | None, told: dict[str, str]) -> GatewayError:
    """Return the error instead of an answer that is not sure enough, with an id for feedback."""
    message = f"the answer is not sure enough for a risk of {risk:g}: ask elsewhere"
    return GatewayError(422, message, code="unsure", headers={**told, "x-suffice-reply": reply}, reply=reply)


def _no_vote(parsed: ParsedRequest, why: str, status: int) -> dict[str, str]:
    """The headers that say why there was no vote."""
    told = {"x-suffice-samples": str(parsed.samples), "x-suffice-over-one": "0"}
    return {"x-suffice-no-vote": why} | (told if status < 400 else {})
