"""Traces of votes: their spans by the GenAI conventions, what is passed on, and nothing where nobody asked."""

import ast
import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
from helpers.live import KEY, QUESTION, ask_async, ask_sync, awaited, be_quick, boxed
from helpers.traces import Traces, facts, parent, span_id
from opentelemetry.trace import SpanKind, StatusCode

import suffice
from suffice.testing import FakeServer, Reply


@pytest.fixture
def traces(monkeypatch: pytest.MonkeyPatch) -> Iterator[Traces]:
    be_quick(monkeypatch)
    traces = Traces()
    suffice.trace(traces.provider)
    yield traces
    suffice.trace(False)


def passed_on(server: FakeServer) -> list[int]:
    return [int(headers["traceparent"].split("-")[2], 16) for headers in server.headers]


def six_then_seven(request: dict[str, Any], number: int) -> list[str]:
    return [boxed(6 if choice % 4 == 0 else 7) for choice in range(request.get("n", 1))]


def test_a_vote_has_a_span_and_each_draw_a_child(ask: Any, traces: Traces) -> None:
    with FakeServer(six_then_seven) as server:
        outcome = ask(server, controller="esc:window=4", budget=12, temperature=0.5, max_completion_tokens=99)
    (vote,) = traces.named("vote")
    draws = traces.named("chat")
    assert vote.name == "vote fake" and vote.kind is SpanKind.INTERNAL and parent(vote) is None
    told = facts(vote)
    assert told["suffice.samples"] == outcome.samples == len(draws) == 12
    assert told["suffice.stop_reason"] == "budget" and told["suffice.budget"] == 12
    assert told["suffice.input_tokens"] == outcome.prompt_tokens
    assert vote.status.status_code is StatusCode.UNSET
    for draw in draws:
        assert parent(draw) == span_id(vote) and draw.kind is SpanKind.CLIENT and draw.name == "chat fake"
        told = facts(draw)
        assert told["gen_ai.operation.name"] == "chat" and told["gen_ai.provider.name"] == "openai"
        assert told["gen_ai.request.model"] == "fake" and told["gen_ai.request.temperature"] == 0.5
        assert told["gen_ai.request.max_tokens"] == 99
        assert told["gen_ai.response.finish_reasons"] == ("stop",)
        assert told["server.address"] == "127.0.0.1" and told["server.port"] > 0
    assert sum(facts(draw)["gen_ai.usage.output_tokens"] for draw in draws) == outcome.completion_tokens
    assert sum(facts(draw)["gen_ai.usage.input_tokens"] for draw in draws) == outcome.prompt_tokens
    assert sorted(facts(draw)["suffice.draw"] for draw in draws) == list(range(12))


def test_every_decision_is_an_event_with_its_state(traces: Traces) -> None:
    ask_async(six_then_seven, controller="esc:window=4", budget=8)
    events = [dict(event.attributes or {}) for event in traces.named("vote")[0].events]
    assert {event.name for event in traces.named("vote")[0].events} == {"suffice.decision"}
    names = ("votes", "draws", "rounds", "decision")
    seen = [tuple(one[f"suffice.{name}"] for name in names) for one in events]
    assert seen == [((), 0, 0, 4), ((3, 1), 4, 1, 4), ((6, 2), 8, 2, 0)]


def test_no_text_is_told_unless_it_is_asked_for(traces: Traces) -> None:
    with FakeServer(six_then_seven) as server:
        ask_async(server, controller="sc", budget=4)
        (vote,) = traces.named("vote")
        assert "suffice.answer" not in facts(vote)
        suffice.trace(traces.provider, texts=True)
        ask_async(server, controller="sc", budget=4)
    vote = traces.named("vote")[1]
    assert facts(vote)["suffice.answer"] == "7"
    assert dict(vote.events[-1].attributes or {})["suffice.answers"] == ("7", "6")


def test_a_server_is_told_of_what_its_request_is_a_part(traces: Traces) -> None:
    """Within a span of the application's, from a client that blocks too."""
    tracer = traces.provider.get_tracer("application")
    with FakeServer(six_then_seven) as server, tracer.start_as_current_span("application") as span:
        ask_sync(server, controller="asc", budget=3, extra_headers={"x-mine": "1", "traceparent": "stale"})
    (vote,) = traces.named("vote")
    assert parent(vote) == span.get_span_context().span_id
    assert set(passed_on(server)) == {span_id(draw) for draw in traces.named("chat")}
    assert {headers["x-mine"] for headers in server.headers} == {"1"}
    trace_id = f"{span.get_span_context().trace_id:032x}"
    assert {headers["traceparent"].split("-")[1] for headers in server.headers} == {trace_id}


def test_a_request_for_several_names_the_first(traces: Traces) -> None:
    with FakeServer(six_then_seven) as server:
        ask_async(server, controller="sc", budget=4)
    draws = {facts(draw)["suffice.draw"]: draw for draw in traces.named("chat")}
    assert passed_on(server) == [span_id(draws[0])]
    assert [facts(draws[number])["gen_ai.request.choice.count"] for number in range(4)] == [4] * 4


def test_a_server_that_takes_no_n_still_gives_one_span_a_draw(traces: Traces) -> None:
    def single(request: dict[str, Any], number: int) -> Reply | str:
        many = request.get("n", 1) > 1
        return Reply({"error": {"message": "n must be 1"}}, 400) if many else boxed(42)

    with FakeServer(single) as server:
        ask_async(server, controller="sc", budget=4)
    draws = traces.named("chat")
    assert sorted(facts(draw)["suffice.draw"] for draw in draws) == [0, 1, 2, 3]
    assert all(draw.status.status_code is StatusCode.UNSET for draw in draws)
    granted = [
        sent for sent, request in zip(passed_on(server), server.requests, strict=True) if request.get("n", 1) == 1
    ]
    assert sorted(granted) == sorted(map(span_id, draws))


@pytest.mark.parametrize("texts", [False, True])
def test_errors_set_the_status_and_say_little(texts: bool, traces: Traces) -> None:
    suffice.trace(traces.provider, texts=texts)
    refusal = Reply({"error": {"message": "you said: my secret"}}, 404)
    with FakeServer(lambda request, number: refusal) as server, pytest.raises(suffice.SampleError):
        ask_async(server, controller="sc", budget=2)
    for span in [*traces.named("vote"), *traces.named("chat")]:
        assert span.status.status_code is StatusCode.ERROR
        assert facts(span)["error.type"] == "404"
        assert ("my secret" in str(span.status.description)) == texts


def test_draws_that_are_cut_off_end_as_such(traces: Traces) -> None:
    slow = lambda request, number: Reply(delay=60)  # noqa: E731
    ask_async(slow, controller="sc", budget=2, deadline_seconds=0.1)
    assert facts(traces.named("vote")[0])["suffice.stop_reason"] == "deadline"
    assert [facts(draw)["suffice.cancelled"] for draw in traces.named("chat")] == [True, True]


@awaited
async def test_votes_at_the_same_time_keep_apart(traces: Traces) -> None:
    with FakeServer(six_then_seven) as server:
        async with openai.AsyncOpenAI(base_url=server.base_url, api_key=KEY) as client:
            ask = [suffice.asample(client, QUESTION, model=f"model-{i}", controller="asc", budget=6) for i in range(8)]
            await asyncio.gather(*ask)
    votes = {span_id(vote): facts(vote)["gen_ai.request.model"] for vote in traces.named("vote")}
    assert len(votes) == 8
    assert all(votes[parent(draw) or 0] == facts(draw)["gen_ai.request.model"] for draw in traces.named("chat"))


def test_flow_is_traced_alike(traces: Traces) -> None:
    outcome = ask_async(lambda request, number: boxed(42), controller="asc", budget=8, flow=suffice.Flow("arrival", 2))
    assert len(traces.named("chat")) == outcome.launched
    assert {parent(draw) for draw in traces.named("chat")} == {span_id(traces.named("vote")[0])}


def test_without_the_word_nothing_of_it_is_loaded() -> None:
    for path in (Path(__file__).parents[2] / "src").rglob("*.py"):
        for node in ast.parse(path.read_text()).body:
            assert not (isinstance(node, ast.Import | ast.ImportFrom) and "opentelemetry" in ast.unparse(node)), path


def test_without_the_package_the_word_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", None)
    with pytest.raises(suffice.OptionError, match=r"pip install 'suffice\[otel\]'"):
        suffice.trace()
