"""A chat completion by vote: which requests are votes, how one is held, and what the client gets."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

import numpy as np

from suffice.errors import SufficeError
from suffice.gateway import metrics
from suffice.gateway.errors import GatewayError, as_json, from_upstream
from suffice.gateway.settings import Settings, Wish
from suffice.live.draws import ServerDraws
from suffice.live.limiter import Limiter
from suffice.live.loop import Moment, Run
from suffice.live.outcome import Outcome, SampleError
from suffice.live.server import Post, Server

OWNED = ("n", "stream", "stream_options", "suffice", "messages")


def no_vote(body: Mapping[str, Any], wish: Wish) -> str | None:
    """Why a request is passed on as it is; None where it is a vote."""
    if wish.controller == "off":
        return "off"
    if body.get("n") not in (None, 1):
        return "n"
    if (body.get("tools") or body.get("functions")) and not wish.votes_on_tools:
        return "tools"
    if body.get("logprobs") or body.get("top_logprobs"):
        return "logprobs"
    form = body.get("response_format")
    if isinstance(form, dict) and form.get("type") != "text" and not wish.answer_named:
        return "response_format"
    modalities = body.get("modalities")
    if isinstance(modalities, list) and "audio" in modalities:
        return "modalities"
    return None


class Vote:
    """One request under way."""

    def __init__(
        self,
        settings: Settings,
        body: Mapping[str, Any],
        wish: Wish,
        post: Post,
        name: str,
        limiter: Limiter,
        secret: str = "",
        watch: Callable[[Moment], None] | None = None,
    ) -> None:
        messages = body.get("messages")
        if not isinstance(messages, list) or not messages:
            raise GatewayError(400, '"messages" must be a list with a message at least', param="messages")
        if wish.votes_on_tools and not body.get("tools"):
            raise GatewayError(400, f'suffice.answer "{wish.answer}" needs "tools"', param="suffice.answer")
        seed = body.get("seed")
        if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int)):
            raise GatewayError(400, '"seed" must be a whole number', param="seed")
        request = {field: value for field, value in body.items() if field not in OWNED}
        self.wish = wish
        self._secret = secret
        self.messages = messages
        self.outcome: Outcome | None = None
        self._server = Server(
            post,
            name,
            str(body.get("model", "")),
            request,
            limiter=Limiter(settings.fan_out, limiter),
            retries=settings.retries,
            timeout=settings.timeout_seconds,
            streamed=wish.mode == "flow",
            secret=secret,
        )
        random = np.random.default_rng(abs(seed) if isinstance(seed, int) else None)
        draws = ServerDraws(self._server, messages)
        self._run = Run(wish.chosen().for_question(random), draws, wish.extractor(), wish.budget, watch, wish.flow())

    async def hold(self, seconds: float) -> dict[str, Any]:
        """Draw until it is enough, for so long at most; the chat completion that comes of it."""
        try:
            self.outcome = await self._run.outcome(seconds)
        except SampleError as error:
            self.outcome = error.outcome
            if not error.outcome.samples:
                raise from_upstream(error.cause, error.outcome.failures[-1], self._secret) from None
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
        if not self.outcome.responses:
            raise from_upstream(TimeoutError(), f"no response within {self.wish.deadline_seconds:g} seconds")
        _measure(self.outcome)
        return completion_of(self.outcome)


def _measure(outcome: Outcome) -> None:
    metrics.SAMPLES.observe(outcome.samples)
    metrics.ROUNDS.observe(outcome.rounds)
    _measure_tokens(outcome)
    metrics.SAMPLES_SAVED.inc(outcome.budget - outcome.samples)
    metrics.TOKENS_SAVED.inc(tokens_saved(outcome))
    if outcome.confidence is not None:
        metrics.CONFIDENCE.observe(outcome.confidence)


def _measure_tokens(outcome: Outcome) -> None:
    metrics.TOKENS.labels("prompt").inc(outcome.prompt_tokens)
    metrics.TOKENS.labels("completion").inc(outcome.completion_tokens)


def tokens_saved(outcome: Outcome) -> int:
    """What the full budget would have taken more, by the mean of what was drawn."""
    return round(_saved(outcome, outcome.tokens))


def _saved(outcome: Outcome, spent: float) -> float:
    return spent / max(outcome.samples, 1) * (outcome.budget - outcome.samples)


def completion_of(outcome: Outcome) -> dict[str, Any]:
    """A normal chat completion: the response that carries the elected answer, and what all of them took."""
    chosen = outcome.response or outcome.responses[0]
    around = {name: value for name, value in chosen.completion.items() if name not in ("choices", "usage", "timings")}
    return {
        **around,
        "choices": [{**chosen.choice, "index": 0}],
        "usage": _usage(outcome),
        "suffice": summary(outcome),
    }


def summary(outcome: Outcome) -> dict[str, Any]:
    """The `suffice` object of a reply."""
    return {
        "answer": outcome.answer,
        "votes": outcome.votes,
        "confidence": outcome.confidence,
        "share": outcome.share,
        "samples": outcome.samples,
        "rounds": outcome.rounds,
        "draws": list(outcome.draws),
        "stop_reason": outcome.stop_reason,
        "samples_saved": outcome.budget - outcome.samples,
        "tokens_saved": tokens_saved(outcome),
        "seconds": round(outcome.seconds, 3),
        "seconds_saved": round(_saved(outcome, sum(response.seconds for response in outcome.responses)), 3),
        "failures": len(outcome.failures),
        "launched": outcome.launched,
        "cancelled_tokens": outcome.cancelled_tokens,
    }


def headers_of(outcome: Outcome) -> dict[str, str]:
    """The same in brief, as headers."""
    headers = {
        "x-suffice-samples": str(outcome.samples),
        "x-suffice-rounds": str(outcome.rounds),
        "x-suffice-stop-reason": outcome.stop_reason,
    }
    if outcome.confidence is not None:
        headers["x-suffice-confidence"] = f"{outcome.confidence:.4f}"
    return headers


def _usage(outcome: Outcome) -> dict[str, Any]:
    """The usage of all requests, summed field by field; completions as they were counted for each response."""
    requests = {id(response.completion): response.completion for response in outcome.responses}
    total: dict[str, Any] = {}
    for completion in requests.values():
        usage = completion.get("usage")
        _add(total, usage if isinstance(usage, dict) else {})
    total["prompt_tokens"] = outcome.prompt_tokens
    total["completion_tokens"] = outcome.completion_tokens
    total["total_tokens"] = outcome.prompt_tokens + outcome.completion_tokens
    return total


def _add(total: dict[str, Any], usage: Mapping[str, Any]) -> None:
    for name, value in usage.items():
        before = total.get(name)
        if isinstance(value, dict):
            total[name] = before if isinstance(before, dict) else {}
            _add(total[name], value)
        elif _is_number(value) and (before is None or _is_number(before)):
            total[name] = (before or 0) + value
        elif before is None:
            total[name] = value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def chunks(completion: dict[str, Any], usage_wanted: bool) -> list[dict[str, Any]]:
    """The chunks of a stream that says the same as a completion."""
    choice = completion["choices"][0]
    message = dict(choice["message"])
    around = {name: value for name, value in completion.items() if name not in ("choices", "usage", "suffice")}
    around["object"] = "chat.completion.chunk"
    said = {name: value for name, value in message.items() if name != "role" and value is not None}
    if isinstance(said.get("tool_calls"), list):
        calls = [call for call in said["tool_calls"] if isinstance(call, dict)]
        said["tool_calls"] = [{"index": place, **call} for place, call in enumerate(calls)]
    deltas: list[tuple[dict[str, Any], Any]] = [
        ({"role": message.get("role", "assistant"), "content": ""}, None),
        (said, None),
        ({}, choice.get("finish_reason")),
    ]
    sent = [
        {**around, "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}]}
        for delta, reason in deltas
    ]
    sent[-1]["suffice"] = completion["suffice"]
    if usage_wanted:
        sent = [{**chunk, "usage": None} for chunk in sent]
        sent.append({**around, "choices": [], "usage": completion["usage"]})
    return sent


async def stream(
    vote: asyncio.Task[dict[str, Any]],
    moments: "asyncio.Queue[bytes]",
    left: Awaitable[None],
    heartbeat: float,
    usage_wanted: bool,
) -> AsyncIterator[bytes]:
    """Comments while the vote is under way, so that nobody hangs up; then the completion, or an error event."""
    leaving = asyncio.ensure_future(left)
    news = asyncio.ensure_future(moments.get())
    try:
        while not vote.done():
            await asyncio.wait({vote, leaving, news}, timeout=heartbeat, return_when=asyncio.FIRST_COMPLETED)
            if leaving.done():
                return
            if news.done():
                yield news.result()
                news = asyncio.ensure_future(moments.get())
            elif not vote.done():
                yield b": waiting\n\n"
        while not moments.empty():
            yield moments.get_nowait()
        try:
            for chunk in chunks(vote.result(), usage_wanted):
                yield _event(chunk)
        except GatewayError as error:
            yield _event(error.payload)
        except Exception:  # the stream has begun: this is the only way left to say it
            yield _event(GatewayError(500, "the gateway failed", kind="server_error").payload)
        yield b"data: [DONE]\n\n"
    finally:
        await end(vote, leaving, news)


async def end(*tasks: asyncio.Future[Any]) -> None:
    """Cancel tasks and wait for their end; whoever is cancelled meanwhile does not disturb them."""
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


def _event(payload: dict[str, Any]) -> bytes:
    return b"data: " + as_json(payload) + b"\n\n"


def comment(moment: Moment) -> bytes:
    """How the vote stands, for whoever reads comments: our own page does."""
    tally = moment.tally
    standing = {
        "votes": tally.votes,
        "draws": tally.draws,
        "rounds": tally.rounds,
        "in_flight": moment.in_flight,
        "decision": moment.decision,
        "confidence": moment.confidence,
        "budget": tally.budget,
    }
    return b": suffice " + json.dumps(standing).encode() + b"\n\n"
