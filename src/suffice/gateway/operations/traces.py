"""The gateway's traces: whether there are any, where they are sent, and the span of each request."""

import asyncio
import os
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import Any

from starlette.requests import Request

from suffice.errors import OptionError, install
from suffice.gateway.settings import Settings
from suffice.live.tracing import TRACING, UNTRACED, Span, trace

ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
"""OpenTelemetry's own variables by which a collector is named."""

FLUSH_SECONDS = 5.0
"""The longest that the end waits for what is still to be sent."""

_PACKAGES = ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")


def wanted(settings: Settings) -> bool:
    """Whether there are traces: the operator asks for them, or a collector is named."""
    if os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true" or not (settings.otel or _named()):
        return False
    obstacle = _obstacle()
    if settings.otel and obstacle:
        raise OptionError(obstacle, "otel")
    return obstacle is None


def ignored(settings: Settings) -> str | None:
    """Why there are no traces though a collector is named, if that is so."""
    return None if wanted(settings) or not _named() else _obstacle()


def _named() -> bool:
    return os.environ.get("OTEL_TRACES_EXPORTER") != "none" and any(os.environ.get(name) for name in ENDPOINTS)


def _obstacle() -> str | None:
    protocols = [os.environ.get(f"OTEL_EXPORTER_OTLP_{part}PROTOCOL", "") for part in ("TRACES_", "")]
    if next(filter(None, protocols), "").startswith("grpc"):
        return "sends by HTTP, and OTEL_EXPORTER_OTLP_PROTOCOL says grpc: set it to http/protobuf (port 4318)"
    try:
        there = all(find_spec(package) for package in _PACKAGES)
    except ModuleNotFoundError:  # not even what they are in
        there = False
    return None if there else f"needs OpenTelemetry, of the extra otel: {install('otel')}"


def exporter() -> Any:
    """Make the exporter, which OpenTelemetry's own variables configure."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    return OTLPSpanExporter()


@asynccontextmanager
async def traces(settings: Settings) -> AsyncIterator[None]:
    """Send traces in here, from a thread; what can't be sent is lost, never waited for."""
    if not wanted(settings):
        yield
        return
    from opentelemetry.sdk.resources import SERVICE_NAME, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    named = "OTEL_SERVICE_NAME" in os.environ or SERVICE_NAME in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
    facts = {"process.pid": os.getpid()} | ({} if named else {SERVICE_NAME: "suffice"})
    provider = TracerProvider(resource=Resource.create(facts), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(exporter()))
    trace(provider, texts=settings.log_text)
    try:
        yield
    finally:
        trace(False)
        # A daemon: a collector that hangs does not keep the process from ending.
        flushing = threading.Thread(target=provider.shutdown, name="suffice-traces", daemon=True)
        flushing.start()
        await asyncio.to_thread(flushing.join, FLUSH_SECONDS)


def begin_span(request: Request) -> Span:
    """Begin the span of a request to a model, within the client's trace; none for other requests."""
    path = request.scope["path"]
    if not path.startswith(("/v1/", "/openai/")) or path.startswith("/v1/suffice/"):
        return UNTRACED
    from opentelemetry import propagate
    from opentelemetry.context import Context, attach

    headers = {name: request.headers.getlist(name) for name in request.headers.keys()}  # noqa: SIM118 - repeated ones
    context = propagate.extract(headers, Context())
    facts = {"http.request.method": request.method, "url.path": path[:200], "url.scheme": request.url.scheme}
    kind = TRACING.api.SpanKind.SERVER
    span = TRACING.tracer.start_span(f"{request.method} gateway", context, kind, attributes=facts)
    attach(TRACING.api.set_span_in_context(span, context))  # a request has a task, and so a context, of its own
    return Span(span)
