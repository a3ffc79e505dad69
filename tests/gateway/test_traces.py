"""The gateway's traces: what a client began goes on here and at the upstream; a collector gets it, and may be gone."""

import asyncio
import importlib.util
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from helpers.commands import fails
from helpers.gateways import ASK, always, free_port, gateway, post
from helpers.traces import Traces, facts, parent, span_id
from opentelemetry.trace import SpanKind, StatusCode

from suffice.gateway.operations import traces as traced
from suffice.gateway.settings import Settings
from suffice.live.tracing import TRACING
from suffice.testing import FakeServer, Reply

TRACE, CLIENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
SENT = {"traceparent": f"00-{TRACE}-{CLIENT}-01", "tracestate": "vendor=1", "baggage": "tenant=7"}
POEM = {"model": "fake", "messages": [{"role": "user", "content": "Write a poem about the sea."}]}
UNSURE = {"model": "fake", "messages": [{"role": "user", "content": "What is 6 * 7?"}]}


@pytest.fixture
def traces(monkeypatch: pytest.MonkeyPatch) -> Iterator[Traces]:
    for name in list(os.environ):
        if name.startswith("OTEL_"):
            monkeypatch.delenv(name)
    traces = Traces()
    monkeypatch.setattr(traced, "exporter", lambda: traces.memory)
    yield traces


def test_a_vote_goes_on_with_the_client_s_trace(traces: Traces) -> None:
    with FakeServer(always) as upstream, gateway(upstream, otel=True) as url:
        assert post(url, ASK, headers=SENT).status_code == 200
        assert httpx.get(f"{url}/healthz", headers=SENT).status_code == 200
    (request,), (vote,) = traces.named("POST"), traces.named("vote")
    assert request.kind is SpanKind.SERVER and parent(request) == int(CLIENT, 16)
    assert request.parent and request.parent.trace_id == int(TRACE, 16)
    assert facts(request)["http.response.status_code"] == 200
    assert parent(vote) == span_id(request) and not traces.named("GET")
    draws = {span_id(draw): draw for draw in traces.named("chat")}
    assert {parent(draw) for draw in draws.values()} == {span_id(vote)}
    assert facts(vote)["suffice.samples"] == len(draws)
    for headers in upstream.headers:
        assert headers["tracestate"] == "vendor=1" and headers["baggage"] == "tenant=7"
        trace, span = headers["traceparent"].split("-")[1:3]
        assert trace == TRACE and int(span, 16) in draws
    assert all(facts(draw)["suffice.upstream"] == "upstream-1" for draw in draws.values())
    assert "42" not in str([facts(span) for span in (request, vote, *draws.values())])


def test_where_it_is_off_what_a_client_sends_goes_through_as_it_is() -> None:
    with FakeServer(always) as upstream, gateway(upstream) as url:
        post(url, ASK, headers=SENT)
    assert all({**headers, **SENT} == headers for headers in upstream.headers)


def test_a_scout_and_the_vote_after_it_are_parts_of_the_request(traces: Traces) -> None:
    with FakeServer(always) as upstream, gateway(upstream, otel=True, vote="auto") as url:
        assert "x-suffice-samples" in post(url, UNSURE).headers
    scout, *draws = sorted(traces.named("chat"), key=lambda span: span.start_time or 0)
    (request,), (vote,) = traces.named("POST"), traces.named("vote")
    assert facts(scout)["suffice.role"] == "scout" and facts(scout)["gen_ai.usage.output_tokens"] > 0
    assert parent(scout) == parent(vote) == span_id(request)
    assert {parent(draw) for draw in draws} == {span_id(vote)}
    assert int(upstream.headers[0]["traceparent"].split("-")[2], 16) == span_id(scout)


@pytest.mark.parametrize("streamed", [False, True])
def test_what_is_passed_on_has_a_span_to_the_end_of_its_reply(streamed: bool, traces: Traces) -> None:
    poet = FakeServer(lambda request, number: "O sea", streams=True)
    with poet as upstream, gateway(upstream, otel=True, vote="auto") as url:
        reply = post(url, {**POEM, "stream": streamed}, headers={**SENT, "traceparent": "nonsense"})
    assert reply.headers["x-suffice-no-vote"] == "no answer"
    (relay,), (request,) = traces.named("relay" if streamed else "chat"), traces.named("POST")
    assert parent(relay) == span_id(request) and request.parent is None
    assert facts(relay)["gen_ai.request.model"] == "fake"
    assert facts(relay).get("http.response.status_code", 200) == 200
    assert int(upstream.headers[0]["traceparent"].split("-")[2], 16) == span_id(relay)
    assert "tracestate" not in upstream.headers[0]  # it was of a trace that can't be read


def test_an_upstream_s_errors_are_the_spans_too(traces: Traces) -> None:
    broken = Reply({"error": {"message": "my words"}}, 500)
    with FakeServer(lambda request, number: broken) as upstream, gateway(upstream, otel=True, retries=0) as url:
        assert post(url, ASK).status_code == 500
        assert post(url, b"{").status_code == 400
    for span in [*traces.named("vote"), *traces.named("chat"), *traces.named("POST")[:1]]:
        assert span.status.status_code is StatusCode.ERROR and "my words" not in str(span.status.description)
    assert traces.named("POST")[-1].status.status_code is StatusCode.UNSET  # the client's own mistake


def test_a_collector_that_fails_disturbs_nobody(traces: Traces, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(spans: Any) -> Any:
        raise ConnectionError("no collector")

    monkeypatch.setattr(traces.memory, "export", refuse)
    with FakeServer(always) as upstream, gateway(upstream, otel=True) as url:
        assert post(url, ASK).status_code == 200


def test_an_end_does_not_wait_for_a_collector_that_hangs(traces: Traces, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traced, "FLUSH_SECONDS", 0.1)
    asked, released, sent = threading.Event(), threading.Event(), threading.Event()

    def hang(spans: Any) -> None:
        asked.set()
        released.wait(60)
        sent.set()

    async def run() -> None:
        async with traced.traces(Settings(upstream="http://up/v1", otel=True)):
            TRACING.tracer.start_span("a request").end()

    monkeypatch.setattr(traces.memory, "export", hang)
    asyncio.run(run())
    assert asked.wait(60) and not sent.is_set()
    released.set()


def test_when_there_are_traces(monkeypatch: pytest.MonkeyPatch, traces: Traces) -> None:
    plain, asked = Settings(upstream="http://up/v1"), Settings(upstream="http://up/v1", otel=True)
    assert (traced.wanted(plain), traced.wanted(asked)) == (False, True)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318")
    assert traced.wanted(plain) and traced.ignored(plain) is None
    for name, value in [("OTEL_TRACES_EXPORTER", "none"), ("OTEL_SDK_DISABLED", "true")]:
        with monkeypatch.context() as changed:
            changed.setenv(name, value)
            assert not traced.wanted(plain)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
    assert not traced.wanted(plain) and "http/protobuf" in str(traced.ignored(plain))


def test_without_the_extra_it_says_so_in_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(traced, "find_spec", lambda name: None if "exporter" in name else found(name))
    config = tmp_path / "gateway.toml"
    config.write_text("otel = true")
    said = fails("serve", "--upstream", "http://127.0.0.1:1/v1", "--config", config, "--port", str(free_port()))
    assert said == "suffice: otel needs OpenTelemetry, of the extra otel: pip install 'suffice[otel]'\n"
