"""Flow, live: no waiting between rounds, and the rest cancelled at the stop."""

import asyncio
import json
import random
from itertools import count
from typing import Any

import pytest
from helpers.live import ask_async, until
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import suffice
from suffice.live.vote import COMPLETE_WITHOUT
from suffice.replay.run import Clocked
from suffice.testing import FakeServer, Reply, Script, completion

pytestmark = pytest.mark.usefixtures("quick")


def ask(server: FakeServer | Script, order: str = "launch", extra: int = 0, **options: Any) -> suffice.Outcome:
    async def asample(*asked: Any, **options: Any) -> suffice.Outcome:
        outcome = await suffice.asample(*asked, **options)
        assert len(asyncio.all_tasks()) == 1, "no task is left behind"
        return outcome

    return ask_async(server, call=asample, flow=suffice.Flow(order, extra), **options)


_spelling = count()


def said(answer: object, words: int = 1, delay: float = 0.0, **options: Any) -> Reply:
    """So many words before the answer, never twice the same to the letter."""
    text = f"w{next(_spelling)} " + "so " * (words - 1) + rf"\boxed{{{answer}}}"
    return Reply(completion([text], tokens=words + 1), delay=delay, **options)


@pytest.mark.parametrize("order", ["launch", "arrival"])
def test_the_slow_ones_are_cancelled_and_what_they_took_is_counted(order: str) -> None:
    slow = {6} if order == "launch" else {0}
    script = lambda request, number: said(42, 50, 100.0 if request["seed"] in slow else 0.2)  # noqa: E731
    with FakeServer(script, streams=True) as server:
        outcome = ask(server, controller="asc", order=order, extra=6, seed=0)
        assert outcome.answer == "42" and outcome.stop_reason == "controller"
        assert outcome.launched > outcome.samples >= 3
        assert until(lambda: server.hung_up >= 1 and server.connections == 0)
    assert outcome.cancelled_tokens <= 51 * (outcome.launched - outcome.samples)
    assert outcome.completion_tokens == sum(one.tokens or 0 for one in outcome.responses) + outcome.cancelled_tokens
    assert sum(outcome.by_round) == outcome.samples and not outcome.runs_on
    assert all("n" not in request and request["stream"] for request in server.requests)


def test_a_cancelled_draw_is_counted_from_its_stream() -> None:
    script = lambda request, number: said(42, 99, 2.0 if request["seed"] == 4 else 0.5)  # noqa: E731
    with FakeServer(script, streams=True) as server:
        outcome = ask(server, controller="asc", extra=4, seed=0, budget=5)
        assert until(lambda: server.connections == 0)
    assert outcome.samples == 4 and outcome.launched == 5
    assert 5 < outcome.cancelled_tokens < 99, "a part of its hundred words"
    assert abs(outcome.cancelled_tokens - (server.generated - 400)) <= 5


@settings(max_examples=20, deadline=None)
@given(
    answers=st.lists(st.sampled_from(["1", "2", None]), min_size=10, max_size=10),
    controller=st.sampled_from(["asc", "plan", "boinf"]),
    extra=st.integers(0, 3),
    chance=st.randoms(use_true_random=False),
)
def test_counted_by_launch_it_stops_where_the_controller_does(
    answers: list[str | None], controller: str, extra: int, chance: random.Random
) -> None:
    assume(any(answers[:COMPLETE_WITHOUT]))  # so many without an answer are the end
    delays = [chance.choice([0.0, 0.01, 0.02]) for _ in answers]

    def script(request: dict[str, Any], number: int) -> Reply:
        answer = answers[request["seed"]]
        return said(answer, 1, delays[request["seed"]]) if answer else Reply(completion(["Could you say more?"]))

    with FakeServer(script, streams=True) as server:
        outcome = ask(server, controller=controller, budget=10, extra=extra, seed=0)
    counted = [response.answer for response in outcome.responses]
    assert counted == answers[: len(counted)], "votes count in the order of launch, whatever arrives first"
    chosen = suffice.get_controller(controller)
    tally = suffice.Tally(10)
    for answer in counted:
        tally.add(answer)
    assert chosen.next_round(tally) == 0 and outcome.answer == tally.leader


FAULTS = {
    "500": Reply(b"", 500),
    "429": Reply(b"", 429, {"retry-after": "0.05"}),
    "dropped half-way": said(1, 9, dropped=True),
    "malformed": Reply(b"data: {nonsense\n\n", headers={"content-type": "text/event-stream"}),
    "an error in the stream": Reply(b'data: {"error": {"message": "overloaded"}}\n\n'),
    "ends early": Reply(b'data: {"choices": [{"delta": {"content": "so"}}]}\n\n'),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_that_pass_cost_nothing(fault: str) -> None:
    script = lambda request, number: FAULTS[fault] if number % 3 == 1 else said(42)  # noqa: E731
    with FakeServer(script, streams=True) as server:
        outcome = ask(server, controller="plan", extra=2)
        assert until(lambda: server.connections == 0)
    assert outcome.answer == "42" and set(outcome.votes) == {"42"} and outcome.failures == ()


@pytest.mark.parametrize("order", ["launch", "arrival"])
def test_draws_that_fail_for_good_are_passed_over(order: str) -> None:
    script = lambda request, number: Reply(b"", 403) if request["seed"] in (1, 2) else said(42)  # noqa: E731
    with FakeServer(script, streams=True) as server:
        outcome = ask(server, controller="plan", order=order, seed=0)
    assert outcome.answer == "42" and 1 <= len(outcome.failures) <= 2 and outcome.samples >= 4
    refusing = FakeServer(lambda request, number: Reply(b"", 403), streams=True)
    with refusing, pytest.raises(suffice.SampleError) as failed:
        ask(refusing, controller="plan", order=order)
    assert failed.value.outcome.stop_reason == "failed" and failed.value.outcome.samples == 0


def test_a_server_that_does_not_stream_is_noticed() -> None:
    outcome = ask(lambda request, number: said(42), controller="asc")
    assert outcome.answer == "42" and outcome.runs_on and outcome.to_json()["runs_on"]


def test_a_server_that_knows_no_stream_options_is_asked_without() -> None:
    def script(request: dict[str, Any], number: int) -> Reply:
        if "stream_options" in request:
            return Reply({"error": {"message": "unknown field stream_options"}}, 400)
        return said(42)

    with FakeServer(script, streams=True) as server:
        assert ask(server, controller="asc").answer == "42"


def test_a_deadline_holds_in_flow() -> None:
    script = lambda request, number: said(42, 9, 0.0 if number < 2 else 30.0)  # noqa: E731
    with FakeServer(script, streams=True) as server:
        outcome = ask(server, controller="plan", order="arrival", deadline_seconds=1)
        assert (outcome.stop_reason, outcome.samples) == ("deadline", 2)
        assert until(lambda: server.connections == 0)


@pytest.mark.parametrize("controller", ["sc", "esc", "doubling"])
def test_controllers_that_mean_rounds_are_refused(controller: str) -> None:
    with pytest.raises(suffice.ControllerError, match="rounds"):
        Clocked(["1"], [1]).run(suffice.get_controller(controller), suffice.Flow())


def test_what_arrived_and_was_not_counted_was_spent_all_the_same() -> None:
    script = lambda request, number: said(42, 9, 60.0 if request["seed"] == 0 else 0.0)  # noqa: E731
    with FakeServer(script, streams=True) as server:
        outcome = ask(server, controller="asc", extra=3, seed=0, deadline_seconds=3)
    # Three of four arrived, and wait for the first of which not a word was said: 10 tokens each, and 5 for each prompt.
    assert (outcome.stop_reason, outcome.samples, outcome.launched) == ("deadline", 0, 4)
    assert (outcome.prompt_tokens, outcome.completion_tokens, outcome.cancelled_tokens) == (20, 30, 30)


def test_a_draw_that_begins_again_is_counted_from_there() -> None:
    dropped, slow = said(42, 99, dropped=True), said(42, 99, 100.0)
    with FakeServer(lambda request, number: slow if number else dropped, streams=True) as server:
        outcome = ask(server, controller="asc", budget=1, deadline_seconds=4)
        assert until(lambda: server.connections == 0)
    assert len(server.requests) == 2 and outcome.stop_reason == "deadline"
    assert 1 <= outcome.cancelled_tokens <= 5, "a word a second, and not the fifty of the first try"


def test_a_tool_call_that_comes_in_pieces_is_joined() -> None:
    pieces: list[dict[str, Any]] = [
        {"id": "call_1", "type": "function", "function": {"name": "book", "arguments": '{"to": '}},
        {"function": {"arguments": '"Os'}},
        {"function": {"arguments": 'lo"}'}},
    ]
    deltas: list[dict[str, Any]] = [{"delta": {"tool_calls": [{"index": 0, **piece}]}} for piece in pieces]
    deltas.append({"delta": {}, "finish_reason": "tool_calls"})
    events = [b"data: " + json.dumps({"choices": [delta]}).encode() + b"\n\n" for delta in deltas]
    reply = Reply(b"".join(events), headers={"content-type": "text/event-stream"})
    outcome = ask(lambda request, number: reply, controller="asc", answer="tool", tools=[{"type": "function"}])
    assert outcome.answer == 'book({"to": "Oslo"})' and outcome.share == 1
