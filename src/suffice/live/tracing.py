"""Traces in OpenTelemetry: a span for each vote and each draw, an event for each decision.

Until `trace` is called there are none: `Untraced` stands in their place, and nothing of OpenTelemetry is imported.
"""

import asyncio
import importlib
from collections.abc import AsyncIterator, Iterator, Mapping, MutableMapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any, TypeVar
from urllib.parse import urlsplit

from suffice.errors import missing
from suffice.live.dialects import Wire
from suffice.response import Response
from suffice.tally import Tally

LEADING = 5
"""So many answers' votes are told with each decision."""

_REQUEST = {
    **{name: name for name in ("temperature", "top_p", "top_k", "seed", "frequency_penalty", "presence_penalty")},
    **dict.fromkeys(("max_tokens", "max_completion_tokens", "max_output_tokens"), "max_tokens"),
}
"""What is told of a request, and its name in the conventions."""

_NOTHING: AbstractContextManager[None] = nullcontext()

Headers = TypeVar("Headers", bound=MutableMapping[str, str])


class Untraced:
    """Stands where nobody traces, and does nothing."""

    def within(self) -> AbstractContextManager[None]:
        """What is started in here is a part of it, and its end is the span's."""
        return _NOTHING

    def decided(self, tally: Tally, asked: int, sure: float | None = None, certain: float | None = None) -> None:
        """The controller decided."""

    def ended(self, outcome: Any) -> None:
        """The vote came to an outcome."""

    def brought(self, response: Response | None, upstream: str) -> None:
        """A single draw came in."""

    def replied(self, status: int) -> None:
        """An upstream replied with this status."""

    def over(self, pieces: Any) -> Any:
        """The pieces of a reply, to whose end it lasts."""
        return pieces

    def launched(self, numbers: Sequence[int]) -> None:
        """Draws of these numbers were started."""

    def asking(self, numbers: Sequence[int]) -> AbstractContextManager[None]:
        """One request for these draws is under way in here."""
        return _NOTHING

    def arrived(self, number: int, arrived: Any, upstream: str) -> None:
        """A draw came in, or failed for good."""

    def closed(self) -> None:
        """What has not arrived never will."""


UNTRACED = Untraced()


class Tracing:
    """Makes spans where there is a tracer."""

    def __init__(self) -> None:
        self.tracer: Any = None
        self.texts = False
        self.api: Any = None

    def vote(self, wire: Wire, fields: Mapping[str, Any], controller: Any, budget: int) -> Untraced:
        """A vote on what is said to a request."""
        if self.tracer is None:
            return UNTRACED
        facts = {"suffice.budget": budget, "suffice.controller": repr(controller)[:100]}
        kind = self.api.SpanKind.INTERNAL
        return Span(self, _named("vote", fields), facts | _asked(wire, fields, operation="vote"), kind)

    def draw(self, wire: Wire, fields: Mapping[str, Any], role: str) -> Untraced:
        """A single draw with a name: a scout, or one that is passed back."""
        if self.tracer is None:
            return UNTRACED
        facts = {"suffice.role": role} | _asked(wire, fields, operation="chat")
        return Span(self, _named("chat", fields), facts, self.api.SpanKind.CLIENT)

    def relay(self, path: str, model: str | None) -> Untraced:
        """A request that is passed on as it is, until the last piece of its reply."""
        if self.tracer is None:
            return UNTRACED
        facts = {"suffice.role": "relay", "url.path": path[:200]}
        facts |= {"gen_ai.request.model": model[:200]} if model else {}
        return Span(self, "relay", facts, self.api.SpanKind.CLIENT, lasts=True)

    def draws(self, wire: Wire, fields: Mapping[str, Any]) -> Untraced:
        """The draws of a vote, each with a span of its own."""
        return UNTRACED if self.tracer is None else DrawSpans(self, wire, fields)

    def passed_on(self, headers: Headers) -> Headers:
        """The headers of a request to a server, which then knows of what it is a part."""
        if self.tracer is None:
            return headers
        propagator = importlib.import_module("opentelemetry.propagate").get_global_textmap()
        sent = headers.copy()  # type: ignore[attr-defined]
        for name in propagator.fields:
            sent.pop(name, None)
        propagator.inject(sent)
        return sent  # type: ignore[no-any-return]

    def in_request(self, request: dict[str, Any]) -> dict[str, Any]:
        """The same for a client that takes such headers as an option."""
        if self.tracer is None:
            return request
        return {**request, "extra_headers": self.passed_on(dict(request.get("extra_headers") or {}))}


TRACING = Tracing()
"""Of this process."""


def trace(provider: Any = None, *, texts: bool = False) -> None:
    """Trace votes and draws from now on, with a tracer provider of OpenTelemetry's, or the application's own.

    A vote is a part of what is current where it is asked for. Without `texts` no word of questions, answers and errors
    is told. It needs the package `opentelemetry-api`, and to see anything the application an SDK. With `False` for a
    provider there are no traces any more.

    >>> from opentelemetry.sdk.trace import TracerProvider
    >>> trace(TracerProvider())
    >>> trace(False)
    """
    if provider is False:
        TRACING.tracer = None
        return
    try:
        TRACING.api = importlib.import_module("opentelemetry.trace")
    except ModuleNotFoundError:
        raise missing("opentelemetry", "otel") from None
    TRACING.texts = texts
    TRACING.tracer = (provider or TRACING.api.get_tracer_provider()).get_tracer("suffice")


class Traced(Untraced):
    """Begins and ends spans."""

    def __init__(self, tracing: Tracing) -> None:
        self._api = tracing.api
        self._tracer = tracing.tracer
        self._texts = tracing.texts

    def _fail(self, span: Any, error: BaseException | None, message: str) -> None:
        """An error is told by its kind; what it says may be what somebody said."""
        status = getattr(error, "status", None)
        kind = str(status) if status else type(error).__name__ if error else "_OTHER"
        span.set_attribute("error.type", kind)
        told = message if self._texts else f"failed: {kind}"
        span.set_status(self._api.Status(self._api.StatusCode.ERROR, told))


class Span(Traced):
    """The span of a vote, of a single draw, or of a request that is passed on."""

    def __init__(self, tracing: Tracing, name: str, facts: dict[str, Any], kind: Any, *, lasts: bool = False) -> None:
        super().__init__(tracing)
        self._begin = partial(self._tracer.start_span, name, kind=kind, attributes=facts)
        self._lasts = lasts
        self._span: Any = self._api.INVALID_SPAN

    @contextmanager
    def within(self) -> Iterator[None]:
        """Current in here, where it ends unless it lasts; an error ends it as such."""
        self._span = self._begin()
        try:
            with self._api.use_span(self._span, record_exception=False, set_status_on_exception=False):
                yield
        except BaseException as error:
            if isinstance(error, asyncio.CancelledError):
                self._span.set_attribute("suffice.cancelled", True)
            else:
                self._fail(self._span, getattr(error, "cause", None) or error, str(error))
            self._span.end()
            raise
        if not self._lasts:
            self._span.end()

    def decided(self, tally: Tally, asked: int, sure: float | None = None, certain: float | None = None) -> None:
        """An event: the votes of the leading answers, how many draws there were, and how many more are asked for."""
        votes = [count for count in tally.top(LEADING) if count]
        facts = {"suffice.votes": votes, "suffice.draws": tally.draws, "suffice.rounds": tally.rounds}
        facts |= {"suffice.decision": asked}
        told: dict[str, Any] = {"suffice.confidence": sure, "suffice.certainty": certain}
        if self._texts:
            told |= {"suffice.answers": sorted(tally.votes, key=lambda one: -tally.votes[one])[:LEADING]}
        self._span.add_event("suffice.decision", facts | {k: v for k, v in told.items() if v is not None})

    def ended(self, outcome: Any) -> None:
        """What came of it. Tokens have names of ours here: by the conventions' they are on the draws, to be summed."""
        facts = {
            "suffice.samples": outcome.samples,
            "suffice.rounds": outcome.rounds,
            "suffice.launched": outcome.launched,
            "suffice.failures": len(outcome.failures),
            "suffice.stop_reason": outcome.stop_reason,
            "suffice.input_tokens": outcome.prompt_tokens,
            "suffice.output_tokens": outcome.completion_tokens,
            "suffice.confidence": outcome.confidence,
            "suffice.certainty": outcome.certainty,
            "suffice.answer": outcome.answer if self._texts else None,
        }
        self._span.set_attributes({name: value for name, value in facts.items() if value is not None})

    def brought(self, response: Response | None, upstream: str) -> None:
        """What came in, where it could be read."""
        self._span.set_attributes(_place(upstream) | (_brought(response) if response else {}))

    def replied(self, status: int) -> None:
        """The status of the reply."""
        self._span.set_attribute("http.response.status_code", status)
        if status >= 400:
            self._span.set_attribute("error.type", str(status))
            self._span.set_status(self._api.Status(self._api.StatusCode.ERROR))

    async def over(self, pieces: Any) -> AsyncIterator[Any]:
        """The pieces of the reply, and at their end its own."""
        try:
            async for piece in pieces:
                yield piece
        finally:
            await pieces.aclose()
            self._span.end()


class DrawSpans(Traced):
    """The spans of a vote's draws; where one request is for several, the server goes on from the first of them."""

    def __init__(self, tracing: Tracing, wire: Wire, fields: Mapping[str, Any]) -> None:
        super().__init__(tracing)
        self._facts = _asked(wire, fields, operation="chat")
        self._name = _named("chat", fields)
        self._spans: dict[int, Any] = {}

    def launched(self, numbers: Sequence[int]) -> None:
        """Begin a span for each."""
        kind = self._api.SpanKind.CLIENT
        for number in numbers:
            facts = {**self._facts, "suffice.role": "draw", "suffice.draw": number}
            self._spans[number] = self._tracer.start_span(self._name, kind=kind, attributes=facts)

    def asking(self, numbers: Sequence[int]) -> AbstractContextManager[None]:
        """Let what is sent name the first."""
        if len(numbers) > 1:
            for number in numbers:
                self._spans[number].set_attribute("gen_ai.request.choice.count", len(numbers))
        within: AbstractContextManager[None] = self._api.use_span(
            self._spans[numbers[0]], record_exception=False, set_status_on_exception=False
        )
        return within

    def arrived(self, number: int, arrived: Any, upstream: str) -> None:
        """End its span, with what it brought or what it failed with."""
        span = self._spans.pop(number)
        span.set_attributes(_place(upstream))
        if isinstance(arrived, Response):
            span.set_attributes(_brought(arrived))
        else:
            self._fail(span, arrived.cause, arrived.message)
        span.end()

    def closed(self) -> None:
        """End the others."""
        for span in self._spans.values():
            span.set_attribute("suffice.cancelled", True)
            span.end()
        self._spans.clear()


def _named(operation: str, fields: Mapping[str, Any]) -> str:
    return f"{operation} {fields['model']}" if isinstance(fields.get("model"), str) else operation


def _asked(wire: Wire, fields: Mapping[str, Any], operation: str) -> dict[str, Any]:
    """A request by the names of the GenAI conventions; the provider is whose wire it is."""
    facts: dict[str, Any] = {
        "gen_ai.operation.name": operation,
        "gen_ai.provider.name": wire.provider,
    }
    if isinstance(fields.get("model"), str):
        facts["gen_ai.request.model"] = fields["model"]
    for name, told in _REQUEST.items():
        if isinstance(fields.get(name), int | float) and not isinstance(fields[name], bool):
            facts[f"gen_ai.request.{told}"] = fields[name]
    return facts


def _brought(response: Response) -> dict[str, Any]:
    """A response by their names."""
    facts = {
        "gen_ai.usage.input_tokens": response.prompt_tokens,
        "gen_ai.usage.output_tokens": response.tokens,
        "gen_ai.response.finish_reasons": [response.finish_reason] if response.finish_reason else None,
        "gen_ai.response.id": response.reply.get("id"),
        "gen_ai.response.model": response.reply.get("model"),
    }
    return {name: value for name, value in facts.items() if isinstance(value, int | str | list)}


def _place(upstream: str) -> dict[str, Any]:
    """Where it was asked: by name in the gateway; elsewhere by address, with nothing that may be secret in it."""
    if "://" not in upstream:
        return {"suffice.upstream": upstream} if upstream else {}
    url = urlsplit(upstream)
    port = url.port or (443 if url.scheme == "https" else 80)
    return {"server.address": url.hostname or "", "server.port": port}
