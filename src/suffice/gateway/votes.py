"""A request by vote: how it is held, and what the client is told of it."""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np

from suffice.controllers import Controller
from suffice.errors import SampleError, SufficeError
from suffice.gateway import metrics
from suffice.gateway.bills import Bill
from suffice.gateway.errors import GatewayError, from_upstream
from suffice.gateway.scouts import Found
from suffice.gateway.wishes import Wish
from suffice.live import Outcome, Progress, Watch
from suffice.live.audits import Audit
from suffice.live.facts import Asking
from suffice.live.server import Server
from suffice.tally import Tally


class Held:
    """One vote for a client, under way."""

    def __init__(
        self,
        server: Server,
        fields: Mapping[str, Any],
        wish: Wish,
        watch: Watch | None = None,
        found: Found | None = None,
        bill: Bill | None = None,
        controller: Controller | None = None,
    ) -> None:
        seed = fields.get("seed")
        if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int)):
            raise GatewayError(400, '"seed" must be a whole number', param="seed")
        self.outcome: Outcome | None = None
        self._server = server
        self._bill = bill
        self._deadline_seconds = wish.deadline_seconds
        random = np.random.default_rng(None if seed is None else abs(seed))
        self._found = found
        voting = replace(wish.voting, controller=controller) if controller else wish.voting
        if found:
            extractor = found.extractor.ignoring(wish.ignore).comparing(wish.compare)
            voting = replace(voting, extractor=extractor, asked=False)
        self._asking = Asking(fields, signals=voting.wants_signals)
        self._vote = voting.begin(server, fields, random, watch, numbers=count(1 if found else 0))

    @property
    def progress(self) -> Progress:
        """How far it is."""
        return self._vote.progress

    @property
    def tally(self) -> Tally:
        """The votes so far."""
        return self._vote.tally

    @property
    def has_room(self) -> bool:
        """Whether the upstream could take as much again as it has to do now."""
        host = self._server.host
        return not host.is_aside and 2 * host.load <= host.limiter.limit

    async def audit(self, ready: Callable[[], Awaitable[None]], model: str, topic: str) -> Audit | None:
        """Draw the rest of the budget, a few draws whenever it is ready; None where it can't be had."""
        assert self.outcome  # noqa: S101
        self._server.ends = math.inf
        try:
            full = await self._vote.rest(ready)
        except SufficeError:
            return None
        return Audit.of(self.outcome, full, model, topic) if full else None

    async def reply(self, seconds: float) -> dict[str, Any]:
        """Draw until it is enough, for so long at most; the reply that comes of it."""
        self._server.ends = time.monotonic() + seconds
        if self._found:
            await self._vote.take(self._found.response)
        try:
            self.outcome = await self._vote.outcome(seconds)
        except SampleError as error:
            self.outcome = error.outcome
            if not error.outcome.samples:
                raise from_upstream(error.cause, error.outcome.failures[-1], self._server.secret) from None
        except SufficeError as error:
            raise GatewayError(400, f"suffice.controller: {error}", param="suffice.controller") from None
        except asyncio.CancelledError as cancelled:
            metrics.CANCELLATIONS.inc()
            self.outcome = getattr(cancelled, "outcome", None)
            if self.outcome:
                _measure_tokens(self.outcome)
            raise
        finally:
            metrics.RETRIES.inc(self._server.retried)
            metrics.UPSTREAM_QUESTIONS.labels(self._server.host.name).inc()
        outcome = self.outcome
        if not outcome.responses:
            raise from_upstream(TimeoutError(), f"no response within {self._deadline_seconds:g} seconds")
        _measure(outcome)
        chosen = outcome.response or outcome.responses[0]
        if outcome.composed:
            chosen = self._server.dialect.rewritten(chosen, outcome.value)
        tokens = outcome.prompt_tokens, outcome.completion_tokens
        told = summary(outcome) | self.charge(outcome)
        return {**self._server.dialect.reply(chosen, outcome.responses, *tokens), "suffice": told}

    def charge(self, outcome: Outcome) -> dict[str, float]:
        """Put the vote on the bill; what it and the full budget cost, where there is a price."""
        if self._bill is None or not self._bill.wanted:
            return {}
        self._bill.vote(outcome, self._server.most_at_once(self._asking))
        return self._bill.told()


def _measure(outcome: Outcome) -> None:
    metrics.SAMPLES.observe(outcome.samples)
    metrics.ROUNDS.observe(outcome.rounds)
    _measure_tokens(outcome)
    metrics.SAMPLES_SAVED.inc(outcome.samples_saved)
    metrics.TOKENS_SAVED.inc(outcome.tokens_saved)
    if outcome.confidence is not None:
        metrics.CONFIDENCE.observe(outcome.confidence)
    if outcome.certainty is not None:
        metrics.CERTAINTY.observe(outcome.certainty)


def _measure_tokens(outcome: Outcome) -> None:
    metrics.TOKENS.labels("prompt").inc(outcome.prompt_tokens)
    metrics.TOKENS.labels("completion").inc(outcome.completion_tokens)


def summary(outcome: Outcome) -> dict[str, Any]:
    """The `suffice` object of a reply."""
    seconds = sum(response.seconds for response in outcome.responses)
    return {
        "answer": outcome.answer,
        "votes": outcome.votes,
        "confidence": outcome.confidence,
        "certainty": outcome.certainty,
        "share": outcome.share,
        "samples": outcome.samples,
        "rounds": outcome.rounds,
        "draws": list(outcome.by_round),
        "stop_reason": outcome.stop_reason,
        "budget": outcome.budget,
        "samples_saved": outcome.samples_saved,
        "tokens_saved": outcome.tokens_saved,
        "seconds": round(outcome.seconds, 3),
        "seconds_saved": round(seconds / max(outcome.samples, 1) * outcome.samples_saved, 3),
        "failures": len(outcome.failures),
        "launched": outcome.launched,
        "cancelled_tokens": outcome.cancelled_tokens,
        "usage_estimated": outcome.usage_estimated,
    } | (outcome.told_of_majority() | _structured(outcome))


def _structured(outcome: Outcome) -> dict[str, Any]:
    """What is told of an object's fields."""
    if outcome.composed is None:
        return {}
    fields = {pointer: one.to_json() for pointer, one in outcome.fields.items()}
    return {"fields": fields, "composed": outcome.composed}


def headers_of(outcome: Outcome) -> dict[str, str]:
    """The same in brief, as headers."""
    headers = {
        "x-suffice-samples": str(outcome.samples),
        "x-suffice-rounds": str(outcome.rounds),
        "x-suffice-tokens": str(outcome.tokens),
        "x-suffice-stop-reason": outcome.stop_reason,
    }
    if outcome.confidence is not None:
        headers["x-suffice-confidence"] = f"{outcome.confidence:.4f}"
    if outcome.certainty is not None:
        headers["x-suffice-certainty"] = f"{outcome.certainty:.4f}"
    return headers


def line_of(outcome: Outcome) -> dict[str, Any]:
    """What the access log says of a vote: no text."""
    return {
        "samples": outcome.samples,
        "rounds": outcome.rounds,
        "samples_saved": outcome.samples_saved,
        "prompt_tokens": outcome.prompt_tokens,
        "tokens": outcome.tokens,
        "tokens_saved": outcome.tokens_saved,
        "confidence": outcome.confidence,
        "certainty": outcome.certainty,
        "stop_reason": outcome.stop_reason,
        "failures": len(outcome.failures),
    }
