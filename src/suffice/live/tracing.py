"""Traces in OpenTelemetry: a span for each vote and each draw, an event for each decision.

Until `trace` is called there are none, and nothing of OpenTelemetry is imported.
"""

import asyncio
import importlib
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager, nullcontext
from typing import Any, TypeVar
from urllib.parse import urlsplit

from suffice.errors import missing
from suffice.live.dialects import Dialect
from suffice.response import Response
from suffice.tally import Tally

LEADING = 5  # answers whose votes are told with each decision

_REQUEST = {
    **{name: name for name in ("temperature", "top_p", "top_k", "seed", "frequency_penalty", "presence_penalty")},
    **dict.fromkeys(("max_tokens", "max_completion_tokens", "max_output_tokens"), "max_tokens"),
}
"""Fields of a request, and their names in the conventions."""

Headers = TypeVar("Headers", bound=MutableMapping[str, str])


class Span:
    """A span of a vote, a draw or a relayed request; without one of OpenTelemetry's it records nothing."""

    def __init__(self, span: Any = None) -> None:
        self._span = span

    def current(self) -> Any:
        """Make the span the parent of what is started in here."""
        if self._span is None:
            return nullcontext()
        return TRACING.api.use_span(self._span, record_exception=False, set_status_on_exception=False)

    @contextmanager
    def within(self, *, lasts: bool = False) -> Iterator[None]:
        """Make it current, and end it on exit unless it lasts; an error ends it in any case."""
        try:
            with self.current():
                yield
        except BaseException as error:
            self.failed(getattr(error, "cause", None) or error, str(error))
            self.end()
            raise
        if not lasts:
            self.end()

    def decided(self, tally: Tally, asked: int, sure: float | None = None, certain: float | None = None) -> None:
        """Add an event: the leading votes, the draws so far, and how many more are asked for."""
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
        self._span.add_event("suffice.decision", _known(facts))

    def ended(self, outcome: Any) -> None:
        """Set what came of a vote. Tokens have names of ours: those of the draws add up."""
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
        """Set what a draw brought, if it could be read, and its upstream: an address, or in the gateway a name."""
        if self._span is None:
            return
        if "://" in upstream:
            url = urlsplit(upstream)
            port = url.port or (443 if url.scheme == "https" else 80)
            self.set({"server.address": url.hostname or "", "server.port": port})
        else:
            self.set({"suffice.upstream": upstream or None})
        if response:
            facts = {
                "gen_ai.usage.input_tokens": response.prompt_tokens,
                "gen_ai.usage.output_tokens": response.tokens,
                "gen_ai.response.finish_reasons": [response.finish_reason] if response.finish_reason else None,
                "gen_ai.response.id": response.reply.get("id"),
                "gen_ai.response.model": response.reply.get("model"),
            }
            self.set({name: value for name, value in facts.items() if isinstance(value, int | str | list)})

    def replied(self, status: int, *, error_from: int = 400) -> None:
        self.set({"http.response.status_code": status})
        if status >= error_from:
            self._fail(str(status))

    def failed(self, error: BaseException | None, message: str) -> None:
        """Set the kind of an error; its message may quote a question, and is a text."""
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
        """Set attributes that are not None."""
        if self._span is not None:
            self._span.set_attributes(_known(facts))

    def end(self) -> None:
        if self._span is not None:
            self._span.end()


UNTRACED = Span()


class Tracing:
    """Begins spans, and names the current one to servers, if there is a tracer."""

    def __init__(self) -> None:
        self.tracer: Any = None
        self.texts = False
        self.api: Any = None

    def begin(self, operation: str, fields: Mapping[str, Any], dialect: Dialect | None = None, **facts: Any) -> Span:
        """Begin the span of a `vote`, of a single draw (`chat`), or of a request that is passed on (`relay`).

        The fields of the request have the names of the GenAI conventions, and `facts` those of ours.
        """
        if self.tracer is None:
            return UNTRACED
        told = {
            f"suffice.{name}": fact if isinstance(fact, int | str) else repr(fact)[:100] for name, fact in facts.items()
        }
        name, model = operation, fields.get("model")
        if dialect:
            told |= {"gen_ai.operation.name": operation, "gen_ai.provider.name": dialect.provider}
            name += f" {model}" if isinstance(model, str) else ""
        if isinstance(model, str):
            told["gen_ai.request.model"] = model
        for field, convention in _REQUEST.items():
            if isinstance(fields.get(field), int | float) and not isinstance(fields[field], bool):
                told[f"gen_ai.request.{convention}"] = fields[field]
        kind = self.api.SpanKind.INTERNAL if operation == "vote" else self.api.SpanKind.CLIENT
        return Span(self.tracer.start_span(name, kind=kind, attributes=told))

    def passed_on(self, headers: Headers) -> Headers:
        """Return the headers of a request with the current span in them."""
        if self.tracer is None:
            return headers
        propagator = importlib.import_module("opentelemetry.propagate").get_global_textmap()
        sent = headers.copy()  # type: ignore[attr-defined]
        for name in propagator.fields:
            sent.pop(name, None)
        propagator.inject(sent)
        return sent  # type: ignore[no-any-return]


TRACING = Tracing()


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


def _known(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in facts.items() if value is not None}
