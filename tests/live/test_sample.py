"""`sample` and `asample` against a scripted server: what they return, and what ends them."""

import asyncio
import json
import signal
import subprocess
import threading
from typing import Any

import openai
import pytest
from helpers.commands import SUFFICE
from helpers.commands import suffice as run_suffice
from helpers.live import KEY, QUESTION, Ask, ask_async, ask_sync, awaited, boxed, until
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import suffice
from suffice.live import Moment
from suffice.live.servers import clients
from suffice.live.servers.hosts import DrawRequest, ServerCapabilities
from suffice.live.vote import COMPLETE_WITHOUT
from suffice.replay.run import run
from suffice.testing import FakeServer, Reply, completion

pytestmark = pytest.mark.usefixtures("quick")


def test_the_outcome_tells_what_was_asked_and_answered(ask: Ask) -> None:
    texts = [boxed(7), boxed(42), "Could you say more?", boxed("42.0"), boxed(42), boxed(42), boxed(42), boxed(42)]
    with FakeServer(lambda request, number: [texts.pop(0) for _ in range(request.get("n", 1))]) as server:
        outcome = ask(server, controller="esc:window=4", budget=16, temperature=0.7)
    assert outcome.answer == "42"
    assert outcome.response is not None and outcome.response.text == boxed(42)
    assert outcome.votes == {"42": 6, "7": 1}
    assert (outcome.samples, outcome.rounds, outcome.by_round, outcome.budget) == (8, 2, (4, 4), 16)
    assert outcome.share == 6 / 8
    assert outcome.confidence is not None and 0.9 < outcome.confidence < 1
    assert (outcome.prompt_tokens, outcome.completion_tokens, outcome.tokens) == (10, 80, 80)
    assert outcome.stop_reason == "controller" and outcome.failures == ()
    assert [response.answer for response in outcome.responses] == ["7", "42", None, *["42"] * 5]
    assert [request["temperature"] for request in server.requests] == [0.7, 0.7]
    assert json.loads(json.dumps(outcome.to_json()))["draws"] == [4, 4]


@settings(max_examples=40, deadline=None)
@given(
    answers=st.lists(st.sampled_from(["1", "2", "3", None]), min_size=32, max_size=32),
    controller=st.sampled_from(["sc", "asc", "esc:window=3", "doubling", "boinf", "plan", "rl"]),
)
def test_live_and_replay_decide_the_same(answers: list[str | None], controller: str) -> None:
    assume(any(answers[:COMPLETE_WITHOUT]))  # live, so many without an answer are the end
    left = list(answers)
    texts = lambda request, number: [  # noqa: E731
        "Could you say more?" if answer is None else boxed(answer)
        for answer in (left.pop(0) for _ in range(request.get("n", 1)))
    ]
    outcome = ask_async(texts, controller=controller, budget=len(answers))
    replayed = run(suffice.get_controller(controller), answers)
    assert [response.answer for response in outcome.responses] == replayed.answers
    assert (outcome.answer, outcome.votes) == (replayed.leader, replayed.votes)
    assert outcome.by_round == tuple(
        b - a for a, b in zip([0, *replayed.round_ends], replayed.round_ends, strict=False)
    )
    assert outcome.stop_reason == ("controller" if replayed.left else "budget")


def test_draws_without_an_answer_are_none(ask: Ask) -> None:
    choices = [
        {"message": {"content": None}, "finish_reason": "length"},
        {"message": {"content": boxed(1)}, "finish_reason": "length"},
        {"message": {"content": None, "refusal": "I won't"}, "finish_reason": "stop"},
        {"message": {"content": boxed(3), "reasoning_content": boxed(2)}, "finish_reason": "stop"},
        {"message": {"content": f"<think>{boxed(4)}</think>it is {boxed(5)}"}, "finish_reason": "stop"},
        {"message": {"content": f"<think>{boxed(4)}"}, "finish_reason": "length"},
        {"message": {"content": "", "reasoning_content": boxed(6)}, "finish_reason": "length"},
        {"message": {"content": "no number", "reasoning_content": boxed(7)}, "finish_reason": "stop"},
        {"message": {"content": rf"hm {boxed(8)}? no.</think> The answer is 9."}, "finish_reason": "stop"},
    ]
    outcome = ask(lambda request, number: Reply({"choices": choices}), controller="sc:draws=9")
    assert [response.answer for response in outcome.responses] == [None, None, None, "3", "5", None, None, None, "9"]
    thoughts = [outcome.responses[place].reasoning for place in (3, 4, 8)]
    assert thoughts == [boxed(2), boxed(4), f"hm {boxed(8)}? no."], "some leave out where they begin"
    assert outcome.samples == 9 and outcome.completion_tokens == 0


def test_tokens_of_a_request_for_many_are_shared_out(ask: Ask) -> None:
    def script(request: dict[str, Any], number: int) -> Reply:
        body = completion(["x" * 30, "x" * 10])
        body["usage"] = {"prompt_tokens": 7, "completion_tokens": 40}
        return Reply(body | ({"timings": {}} if number else {}))

    with FakeServer(script) as server:
        whole, llama = (ask(server, controller="sc:draws=2") for _ in range(2))
    assert [response.tokens for response in whole.responses] == [30, 10]
    assert [response.tokens for response in llama.responses] == [40, 13], "llama.cpp counts the first choice alone"
    assert (llama.prompt_tokens, llama.completion_tokens) == (7, 53)


def test_temperature_0_gets_a_warning(ask: Ask) -> None:
    with FakeServer(lambda request, number: boxed(42)) as server, pytest.warns(UserWarning, match="temperature 0"):
        ask(server, controller="sc:draws=2", temperature=0)


def test_no_more_draws_are_in_flight_than_allowed(ask: Ask) -> None:
    script = lambda request, number: Reply(completion([boxed(42)] * request.get("n", 1)), delay=0.05)  # noqa: E731
    with FakeServer(script) as server:
        assert ask(server, controller="sc", concurrency=5).samples == 32
    assert server.most_in_flight == 5


def test_a_deadline_returns_what_there_is_and_hangs_up(ask: Ask) -> None:
    script = lambda request, number: Reply(completion([boxed(42)]), delay=0.0 if number < 3 else 30)  # noqa: E731
    with FakeServer(script) as server:
        clients.KNOWN[server.base_url + "/"] = ServerCapabilities()
        clients.KNOWN[server.base_url + "/"].learn_most(DrawRequest({"model": "fake"}), 1)
        outcome = ask(server, controller="sc:draws=8", deadline_seconds=2)
        assert (outcome.answer, outcome.samples, outcome.by_round, outcome.stop_reason) == ("42", 3, (3,), "deadline")
        assert until(lambda: server.hung_up == 5)


def slow_after_the_first_round(request: dict[str, Any], number: int) -> Reply:
    return Reply(completion(["Could you say more?"] * request.get("n", 1)), delay=30 if number else 0)


@awaited
async def test_a_cancelled_vote_tells_its_outcome_and_hangs_up() -> None:
    moments: list[Moment] = []
    with FakeServer(slow_after_the_first_round) as server:
        async with openai.AsyncOpenAI(base_url=server.base_url, api_key=KEY) as client:
            watched: dict[str, Any] = {"controller": "esc:window=2", "watch": moments.append}
            task = asyncio.create_task(suffice.asample(client, QUESTION, model="fake", **watched))
            while len(server.requests) < 2:
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert asyncio.all_tasks() == {asyncio.current_task()}, "no task is left behind"
        assert until(lambda: server.hung_up == 1 and server.connections == 0)
    outcome = moments[-1].outcome
    assert outcome and (outcome.samples, outcome.stop_reason) == (2, "cancelled")


def test_ctrl_c_is_raised_again_and_the_outcome_told() -> None:
    moments: list[Moment] = []
    with FakeServer(slow_after_the_first_round) as server:

        def interrupt() -> None:
            begun.append(until(lambda: len(server.requests) == 2))
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

        begun: list[bool] = []
        threading.Thread(target=interrupt).start()
        with pytest.raises(KeyboardInterrupt):
            ask_sync(server, controller="esc:window=2", watch=moments.append)
        assert begun == [True]
        assert until(lambda: server.hung_up == 1)
    outcome = moments[-1].outcome
    assert outcome and (outcome.samples, outcome.stop_reason) == (2, "cancelled")


@pytest.mark.parametrize("json_output", [True, False])
def test_ask_prints_the_outcome_on_ctrl_c(json_output: bool) -> None:
    with FakeServer(slow_after_the_first_round) as server:
        options = ["--base-url", server.base_url, "--controller", "esc:window=2", *["--json"] * json_output]
        asking = subprocess.Popen([SUFFICE, "ask", "Well?", *options], stdout=subprocess.PIPE, text=True)
        assert until(lambda: len(server.requests) == 2, 60)
        asking.send_signal(signal.SIGINT)
        printed, _ = asking.communicate(timeout=60)
    assert asking.returncode == 130
    if json_output:
        assert json.loads(printed)["stop_reason"] == "cancelled" and json.loads(printed)["samples"] == 2
    else:
        assert "Answer: none" in printed and "cancelled" in printed


@awaited
async def test_sampling_works_where_an_event_loop_is_running() -> None:
    assert ask_sync(lambda request, number: boxed(42), controller="sc:draws=2").answer == "42"


def test_a_mistake_in_the_request_is_raised_as_it_is(ask: Ask) -> None:
    with FakeServer(lambda request, number: boxed(42)) as server:
        with pytest.raises(TypeError, match="no_such_argument"):
            ask(server, no_such_argument=1)
        for wrong in ({"n": 3}, {"stream": True}, {"budget": 0}, {"answer": "nonsense"}, {"concurrency": 0}):
            with pytest.raises(suffice.OptionError):
                ask(server, **wrong)
        with pytest.raises(suffice.ControllerError):
            ask(server, controller="nonsense")


def test_a_deadline_holds_while_a_confidence_is_prepared(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, may_end = threading.Event(), threading.Event()

    def prepare(*arguments: Any) -> None:
        begun.set()
        may_end.wait()

    monkeypatch.setattr("suffice.live.vote.is_ready", lambda *arguments: False)
    monkeypatch.setattr("suffice.live.vote.prepare", prepare)
    slow = lambda request, number: Reply(completion([boxed(1)]), delay=100)  # noqa: E731
    try:
        with FakeServer(slow) as server:
            outcome = ask(server, controller="asc", deadline_seconds=0.3)
    finally:
        may_end.set()
    assert outcome.stop_reason == "deadline" and begun.is_set()


def test_a_question_that_failed_is_told_and_ends_with_1() -> None:
    with FakeServer(lambda request, number: Reply({"error": {"message": "not for you"}}, 403)) as server:
        done = run_suffice("ask", "Well?", "--base-url", server.base_url, "--json")
    assert done.returncode == 1 and "not for you" in done.stderr and done.stderr.count("\n") == 1
    assert json.loads(done.stdout)["stop_reason"] == "failed"
