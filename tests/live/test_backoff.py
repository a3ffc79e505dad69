"""What all questions learn from one server's refusals, and how a question goes on where its server dies."""

import asyncio
import time
from collections.abc import Callable
from itertools import count
from typing import Any

import openai
import pytest
from helpers.live import KEY, QUESTION, ask_async, awaited, boxed

import suffice
from suffice.live.servers import gate as live_gate
from suffice.live.servers.gate import Gate
from suffice.live.servers.hosts import FAILURES, DrawRequest, Fleet, Host, ServerCapabilities
from suffice.live.servers.retry import PausedError
from suffice.testing import FakeServer, Reply, completion

pytestmark = pytest.mark.usefixtures("quick")

NUMBERS = count()
GREEDY = "n must be 1 when using greedy sampling"


def varied(request: dict[str, Any], number: int) -> list[str | None]:
    """Nothing that two draws agree on."""
    return [boxed(next(NUMBERS)) for _ in range(request.get("n", 1))]


def only(answer: object) -> Callable[[dict[str, Any], int], Any]:
    return lambda request, number: boxed(answer)


class Clock:
    """Time that passes when it is told to."""

    now = 1000.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(time, "monotonic", lambda: clock.now)
    return clock


def test_a_greedy_request_whose_n_is_refused_leaves_others_theirs() -> None:
    def script(request: dict[str, Any], number: int) -> Any:
        if request.get("n", 1) > 1 and request["temperature"] < 0.1:
            return Reply({"error": {"message": GREEDY}}, 400)
        return [boxed(42)] * request.get("n", 1)

    with FakeServer(script) as server:
        assert ask_async(server, controller="sc:draws=4", temperature=1e-6).samples == 4
        assert ask_async(server, controller="sc:draws=4", temperature=1.0).samples == 4
    assert server.requests[-1]["n"] == 4, "its prompt is computed once"


def test_what_is_learned_of_n_is_by_model_and_kind_and_expires(clock: Clock) -> None:
    known = ServerCapabilities()
    plain, greedy = DrawRequest({"model": "a"}), DrawRequest({"model": "a", "temperature": 0})
    known.learn_most(greedy, 1, GREEDY)
    assert known.most_at_once(greedy) == 1 and known.most_at_once(plain) > 100
    known.learn_most(plain, 8, "Field 'n' is too large")
    assert known.most_at_once(plain) == 8 and known.most_at_once(DrawRequest({"model": "a", "top_p": 0.5})) == 8
    assert known.most_at_once(DrawRequest({"model": "b"})) > 100
    known.learn_most(plain, 2)
    clock.now += 10 * 60 - 1
    assert known.most_at_once(plain) == 2 and known.most_at_once(greedy) == 1
    clock.now += 2
    assert known.most_at_once(plain) > 100 and known.most_at_once(greedy) > 100


def exhaust(gate: Gate, seconds: float) -> None:
    """Refuse as many requests in a row as it takes for all to wait, where others were taken before."""
    paused = [gate.refuse(time.monotonic(), seconds) for _ in range(live_gate.IN_A_ROW)]
    assert paused == [False] * (live_gate.IN_A_ROW - 1) + [True]


@awaited
async def test_a_pause_holds_for_all_and_the_oldest_question_goes_first() -> None:
    gate, order = Gate(), list[str]()

    async def ask(name: str, age: float) -> None:
        await gate.enter(age)
        order.append(name)
        gate.leave()

    gate.refuse(time.monotonic(), 0.05)
    assert gate.pause > 0
    await asyncio.gather(*(ask(name, age) for name, age in (("young", 3), ("old", 1), ("middle", 2))))
    assert gate.pause == 0
    assert order == ["old", "middle", "young"]


@awaited
async def test_whoever_can_t_wait_for_the_end_of_a_pause_is_told_at_once() -> None:
    gate = Gate()
    gate.refuse(time.monotonic())
    while gate.pause:
        await asyncio.sleep(gate.pause)
    gate.refuse(time.monotonic(), 50.0)
    with pytest.raises(PausedError) as paused:
        await gate.enter(0.0, time.monotonic() + 10)
    assert 50 <= paused.value.retry_after < 52
    patient = asyncio.create_task(gate.enter(0.0, time.monotonic() + 100, 120.0))
    await asyncio.sleep(0)
    assert not patient.done()
    gate.refuse(time.monotonic(), 121.0)
    with pytest.raises(PausedError):
        await patient


@awaited
async def test_a_cancelled_wait_leaves_no_trace() -> None:
    gate = Gate()
    gate.refuse(time.monotonic(), 0.02)
    waiting = [asyncio.create_task(gate.enter(age)) for age in range(3)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    await asyncio.gather(*waiting[1:])
    assert waiting[0].cancelled()


@awaited
async def test_a_new_server_is_not_asked_by_everybody_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_gate, "STAGGER", 60.0)
    gate = Gate()
    entering = [asyncio.create_task(gate.enter(age)) for age in range(live_gate.FIRST + 10)]
    await asyncio.sleep(0)
    assert sum(task.done() for task in entering) == live_gate.FIRST
    for _ in range(live_gate.FIRST):
        gate.grant()
    for _ in range(live_gate.FIRST):
        gate.leave()
    await asyncio.wait(entering, timeout=1.0)
    assert all(task.done() for task in entering)


@awaited
async def test_the_pace_is_four_fifths_of_what_was_granted_however_much_that_was(clock: Clock) -> None:
    gate = Gate()
    for _ in range(1000):  # more than are remembered
        clock.now += 1 / 500
        await gate.enter(0)
        gate.grant()
        gate.leave()
    exhaust(gate, 0.0)  # not one mishap alone
    for _ in range(3):
        gate.refuse(clock.now)
    clock.now += gate.pause
    await gate.enter(0)
    waiting = asyncio.create_task(gate.enter(0))
    clock.now += 1 / 450
    await asyncio.sleep(0)
    assert not waiting.done(), "not as fast as it was granted"
    clock.now += 1 / 350 - 1 / 450
    gate.leave()
    await asyncio.sleep(0)
    assert waiting.done(), "nor much slower"


@awaited
async def test_one_alone_is_refused_without_a_pace(clock: Clock) -> None:
    gate = Gate()
    for _ in range(4):
        started = await gate.enter(0)
        gate.leave()
        gate.refuse(started, 1.0)
        clock.now += gate.pause + 0.01
    await asyncio.gather(gate.enter(0))  # the clock stands still


@awaited
async def test_a_mishap_now_and_then_sets_no_pace(clock: Clock) -> None:
    gate = Gate()
    for number in range(200):
        started = await gate.enter(0)
        gate.refuse(started) if number % 50 == 49 else gate.grant()
        gate.leave()
        clock.now += 20.0
    await asyncio.gather(*(gate.enter(age) for age in range(50)))  # the clock stands still: nobody has to wait


@pytest.mark.parametrize(("taken", "pauses"), [([0], True), ([0, 2], False), ([0, 3], False)])
@awaited
async def test_one_that_was_taken_between_refusals_shows_that_they_were_chance(
    taken: list[int], pauses: bool, clock: Clock
) -> None:
    """Of the requests in order: what was taken before the refused ones shows nothing."""
    gate = Gate()
    for place in range(len(taken) + live_gate.IN_A_ROW):
        started = await gate.enter(0)
        clock.now += 0.001
        if place not in taken:
            gate.refuse(started, 5.0)
        clock.now += 0.1 if gate.pause == 0 else 0.0
    assert (gate.pause > 0) == pauses


@awaited
async def test_where_refusals_are_chance_a_pace_that_was_taken_is_kept(clock: Clock) -> None:
    gate, begun = Gate(), clock.now
    for number in range(200):
        entering = asyncio.create_task(gate.enter(0))
        await asyncio.sleep(0)
        while not entering.done():
            clock.now += 0.001
            await asyncio.sleep(0)
        gate.refuse(entering.result(), 1.0) if number % 2 else gate.grant()
        gate.leave()
    assert 200 / (clock.now - begun) > 1.0


@awaited
async def test_whoever_is_refused_alone_waits_alone() -> None:
    def script(request: dict[str, Any], number: int) -> Any:
        if number == 1:
            return Reply({"error": {"message": "busy"}}, 429, {"retry-after": "2"})
        return boxed(42)

    with FakeServer(script) as server:
        async with openai.AsyncOpenAI(base_url=server.base_url, api_key=KEY) as client:
            await suffice.asample(client, QUESTION, model="fake", controller="sc:draws=1")
            asking = (suffice.asample(client, QUESTION, model="fake", controller="sc:draws=1") for _ in range(3))
            *others, refused = sorted(outcome.seconds for outcome in await asyncio.gather(*asking))
    assert max(others) < 1.5 < 2.0 <= refused


def test_questions_go_where_the_load_is_least_for_the_weight() -> None:
    small, large = Host("small"), Host("large", weight=3.0)
    fleet = Fleet([small, large])
    for _ in range(400):
        fleet.choose().load += 1
    assert (small.load, large.load) == (100, 300)


def test_a_question_goes_only_where_its_model_is() -> None:
    one, other, any_ = Host(models=["a"]), Host(models=["b"]), Host()
    assert Fleet([one, other]).choose("b") is other
    assert {Fleet([one, any_]).choose("c") for _ in range(5)} == {any_}
    any_.capabilities.lack("a")
    assert {Fleet([one, any_]).choose("a") for _ in range(5)} == {one}
    assert Fleet([one]).choose("c") is one, "it will say so itself"


def test_the_circuit_breaker_opens_after_failures_in_a_row_and_closes_little_by_little(clock: Clock) -> None:
    host, other = Host(), Host()
    fleet = Fleet([host, other])
    for _ in range(FAILURES - 1):
        host.fail()
    host.answer()
    for _ in range(FAILURES - 1):
        host.fail()
    assert not host.is_aside
    host.fail()
    assert host.is_aside and {fleet.choose() for _ in range(5)} == {other}
    first = host.probe_due - clock.now
    clock.now = host.probe_due + 0.01
    assert not host.is_aside
    host.load, other.load = 1, 2
    assert fleet.choose() is other, "it is not trusted with as much as others yet"
    host.fail()
    assert host.is_aside and host.probe_due - clock.now > first, "and one failure is enough now"
    clock.now = host.probe_due + 0.01
    for _ in range(30):
        host.answer()
    assert fleet.choose() is host
    host.fail(dead=True)
    other.fail(dead=True)
    assert fleet.choose() in (host, other), "where all are aside, one is tried all the same"


def test_a_question_stays_on_its_server() -> None:
    with FakeServer(varied) as one, FakeServer(varied) as other:
        assert ask_async(one, other, controller="esc:window=2", budget=6).samples == 6
        assert sorted([one.served, other.served]) == [0, 3]


@pytest.mark.parametrize("streamed", [False, True], ids=["rounds", "flow"])
def test_a_question_whose_server_dies_goes_on_at_another_with_its_tally(streamed: bool) -> None:
    def dies(request: dict[str, Any], number: int) -> Any:
        return varied(request, number) if number < 2 else Reply(completion([boxed(0)]), dropped=True)

    flow = suffice.Flow() if streamed else None
    with FakeServer(dies, streams=True) as first, FakeServer(varied, streams=True) as second:
        outcome = ask_async(first, second, controller="asc", budget=6, retries=2, flow=flow)
    assert (outcome.samples, outcome.failures, outcome.stop_reason) == (6, (), "budget")
    assert len(outcome.votes) == 6 and first.served > 2 and second.served == 4


def test_a_server_that_is_gone_is_noticed_by_nobody() -> None:
    with FakeServer(only(42)) as gone:
        pass
    with FakeServer(only(42)) as there:
        for _ in range(3):
            assert ask_async(gone, there, controller="sc:draws=2", retries=0).samples == 2


@pytest.mark.parametrize("status", [401, 403, 404, 429, 500, 502, 503])
def test_what_one_server_refuses_another_may_do(status: int) -> None:
    refusal = Reply({"error": {"message": "not here"}}, status)
    outcome = ask_async(lambda request, number: refusal, only(42), controller="sc:draws=2", retries=1)
    assert outcome.votes == {"42": 2}


def test_a_refusal_of_the_request_itself_is_not_tried_elsewhere() -> None:
    refusal = Reply({"error": {"message": "bad request"}}, 400)
    servers = [FakeServer(lambda request, number: refusal) for _ in range(2)]
    with servers[0], servers[1], pytest.raises(suffice.SampleError, match="bad request"):
        ask_async(*servers, controller="sc:draws=1")
    assert sorted(server.served for server in servers) == [0, 1]


def test_estimated_tokens_are_no_more_than_possible_and_marked() -> None:
    def llama(request: dict[str, Any], number: int) -> Reply:
        body = completion(["x" * 10, "x" * 100, "x" * 5][: request.get("n", 1)])
        body["usage"] = {"prompt_tokens": 7, "completion_tokens": 10}
        return Reply(body | {"timings": {}})

    with FakeServer(llama) as server:
        capped = ask_async(server, controller="sc:draws=3", max_tokens=40)
        assert [one.tokens for one in capped.responses] == [10, 40, 5]
        assert capped.usage_estimated and capped.to_json()["usage_estimated"]
        assert [one.tokens for one in ask_async(server, controller="sc:draws=3").responses] == [10, 100, 5]
    with FakeServer(only(42)) as server:
        assert not ask_async(server, controller="sc:draws=3").usage_estimated
