"""Traces that are kept in memory, and what is read off a span."""

from typing import Any

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter


class Traces:
    """What was traced, by the first word of its name."""

    def __init__(self) -> None:
        self.provider = TracerProvider(shutdown_on_exit=False)
        self.memory = InMemorySpanExporter()
        self.provider.add_span_processor(SimpleSpanProcessor(self.memory))

    def named(self, word: str) -> list[ReadableSpan]:
        return [span for span in self.memory.get_finished_spans() if span.name.split()[0] == word]


def facts(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def span_id(span: ReadableSpan) -> int:
    assert span.context
    return int(span.context.span_id)


def parent(span: ReadableSpan) -> int | None:
    return int(span.parent.span_id) if span.parent else None
