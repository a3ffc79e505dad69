"""Traces in OpenTelemetry: a span for each vote and each draw, an event for each decision.

Until `trace` is called there are none, and nothing of OpenTelemetry is imported.
"""

import asyncio
import importlib
from collections.abc import AsyncIterator, Iterator, Mapping, MutableMapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeVar
from urllib.parse import urlsplit

from suffice.errors import missing
from suffice.live.dialects import Dialect
from suffice.response import Response
from suffice.tally import Tally

LEADING = 5
"""So many answers' votes are told with each decision."""

_REQUEST = {
    **{name: name for name in ("temperature", "top_p", "top_k", "seed", "frequency_penalty", "presence_penalty")},
    **dict.fromkeys(("max_tokens", "max_completion_tokens", "max_output_tokens"), "max_tokens"),
}
"""What is told of a request, and its name in the conventions."""

Headers = TypeVar("Headers", bound=MutableMapping[str, str])


class Span:
    """A span of OpenTelemetry's: of a vote, a draw or a request that is passed on. Without one, nothing is recorded."""

    def __init__(self, span: Any = None, *, lasts: bool = False) -> None:
        self._span = span
        self._lasts = lasts

    @contextmanager
    def current(self) -> Iterator[None]:
        """Make the span the parent of what is started in here."""
        if self._span is None:
            yield
            return
        with TRACING.api.use_span(self._span, record_exception=False, set_status_on_exception=False):
            yield

    @contextmanager
    def within(self) -> Iterator[None]:
        """Make it current and end it on exit, unless it lasts; an error ends it as such in any case."""
        try:
            with self.current():
                yield
        except BaseException as error:
            self.failed(getattr(error, "cause", None) or error, str(error))
            self.end()
            raise
        if not self._lasts:
            self.end()

    def decided(self, tally: Tally, asked: int, sure: float | None = None, certain: float | None = None) -> None:
        """Add an event: the votes of the leading answers, the draws so far, and how many more are asked for."""
        if self._span is None:
            return
        answers = sorted(tally.votes, key=lambda one: -tally.votes[one])[:LEADING]
        facts = {
            "suffice.votes": [count for count in tally.top(LEADING) if count],
            "suffice.draws": tally.draws,
            "suffice.rounds": tally.rounds,
            "suffice.decision": asked,
            "suffice.confidence": sure,
            "suffice.certainty": certain,
            "suffice.answers": answers if TRACING.texts else None,
        }
        self._span.add_event("suffice.decision", {name: value for name, value in facts.items() if value is not None})

    def ended(self, outcome: Any) -> None:
        """Set what came of a vote. Tokens have names of ours: those of the conventions are on the draws."""
        if self._span is None:
            return
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
            "suffice.answer": outcome.answer if TRACING.texts else None,
        }
        self.set(facts)

    def brought(self, response: Response | None, upstream: str) -> None:
        """Set what a draw brought, where it could be read, and from where."""
        if self._span is not None:
            self.set(_place(upstream) | (_brought(response) if response else {}))

    def replied(self, status: int, *, error_from: int = 400) -> None:
        """Set the status of a reply."""
        self.set({"http.response.status_code": status})
        if status >= error_from:
            self._fail(str(status))

    def failed(self, error: BaseException | None, message: str) -> None:
        """Set the kind of an error; its message may quote a question, and is set only where texts are."""
        if isinstance(error, asyncio.CancelledError):
            self.set({"suffice.cancelled": True})
            return
        status = getattr(error, "status", None)
        kind = str(status) if status else type(error).__name__ if error else "_OTHER"
        self._fail(kind, message if TRACING.texts else f"failed: {kind}")

    def _fail(self, kind: str, message: str | None = None) -> None:
        self.set({"error.type": kind})
        if self._span is not None:
            self._span.set_status(TRACING.api.Status(TRACING.api.StatusCode.ERROR, message))

    def set(self, facts: Mapping[str, Any]) -> None:
        """Set attributes; those that are None are not known."""
        if self._span is not None:
            self._span.set_attributes({name: value for name, value in facts.items() if value is not None})

    def end(self) -> None:
        """End it."""
        if self._span is not None:
            self._span.end()

    def over(self, pieces: Any) -> Any:
        """Return the pieces of a reply; the span ends after the last."""
        return pieces if self._span is None else self._until_the_last(pieces)

    async def _until_the_last(self, pieces: Any) -> AsyncIterator[Any]:
        try:
            async for piece in pieces:
                yield piece
        finally:
            await pieces.aclose()
            self.end()


UNTRACED = Span()


class DrawSpans:
    """The spans of a vote's draws; where one request is for several, the server goes on from the first of them."""

    def __init__(self, dialect: Dialect, fields: Mapping[str, Any]) -> None:
        self._dialect = dialect
        self._fields = fields
        self._spans: dict[int, Span] = {}

    def launched(self, numbers: Sequence[int]) -> None:
        """Begin a span for each."""
        if TRACING.tracer is not None:
            for number in numbers:
                self._spans[number] = TRACING.draw(self._dialect, self._fields, "draw", {"suffice.draw": number})

    def asking(self, numbers: Sequence[int]) -> AbstractContextManager[None]:
        """Let one request for these draws name the first."""
        if len(numbers) > 1:
            for number in numbers:
                self._spans.get(number, UNTRACED).set({"gen_ai.request.choice.count": len(numbers)})
        return self._spans.get(numbers[0], UNTRACED).current()

    def arrived(self, number: int, arrived: Any, upstream: str) -> None:
        """End the span of a draw, with what it brought or what it failed with."""
        span = self._spans.pop(number, UNTRACED)
        span.brought(arrived if isinstance(arrived, Response) else None, upstream)
        if not isinstance(arrived, Response):
            span.failed(arrived.cause, arrived.message)
        span.end()

    def closed(self) -> None:
        """End the others: they never arrive."""
        for span in self._spans.values():
            span.failed(asyncio.CancelledError(), "")
            span.end()
        self._spans.clear()


class Tracing:
    """Makes spans where there is a tracer."""

    def __init__(self) -> None:
        self.tracer: Any = None
        self.texts = False
        self.api: Any = None

    def vote(self, dialect: Dialect, fields: Mapping[str, Any], controller: Any, budget: int) -> Span:
        """Begin the span of a vote on a request."""
        if self.tracer is None:
            return UNTRACED
        facts = {"suffice.budget": budget, "suffice.controller": repr(controller)[:100]}
        return self._begin(_named("vote", fields), "INTERNAL", facts | _asked(dialect, fields, operation="vote"))

    def draw(
        self, dialect: Dialect, fields: Mapping[str, Any], role: str, more: Mapping[str, Any] | None = None
    ) -> Span:
        """Begin the span of one draw: a vote's, a scout, or one that is passed back."""
        if self.tracer is None:
            return UNTRACED
        facts = {"suffice.role": role, **(more or {})} | _asked(dialect, fields, operation="chat")
        return self._begin(_named("chat", fields), "CLIENT", facts)

    def relay(self, path: str, model: str | None) -> Span:
        """Begin the span of a request that is passed on as it is, until the last piece of its reply."""
        if self.tracer is None:
            return UNTRACED
        facts = {"suffice.role": "relay", "url.path": path[:200]}
        return self._begin("relay", "CLIENT", facts | ({"gen_ai.request.model": model[:200]} if model else {}), True)

    def _begin(self, name: str, kind: str, facts: Mapping[str, Any], lasts: bool = False) -> Span:
        started = self.tracer.start_span(name, kind=self.api.SpanKind[kind], attributes=facts)
        return Span(started, lasts=lasts)

    def passed_on(self, headers: Headers) -> Headers:
        """Return the headers of a request to a server with the current span in them."""
        if self.tracer is None:
            return headers
        propagator = importlib.import_module("opentelemetry.propagate").get_global_textmap()
        sent = headers.copy()  # type: ignore[attr-defined]
        for name in propagator.fields:
            sent.pop(name, None)
        propagator.inject(sent)
        return sent  # type: ignore[no-any-return]

    def in_request(self, request: dict[str, Any]) -> dict[str, Any]:
        """Do the same for a client that takes such headers as an option."""
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


def _named(operation: str, fields: Mapping[str, Any]) -> str:
    return f"{operation} {fields['model']}" if isinstance(fields.get("model"), str) else operation


def _asked(dialect: Dialect, fields: Mapping[str, Any], operation: str) -> dict[str, Any]:
    """A request by the names of the GenAI conventions; the provider is whose dialect it is."""
    facts: dict[str, Any] = {
        "gen_ai.operation.name": operation,
        "gen_ai.provider.name": dialect.provider,
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
