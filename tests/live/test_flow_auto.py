"""Flow that follows the load: extra draws where a server has little to do, rounds where it is busy."""

import asyncio
from pathlib import Path
from typing import Any

import openai
import pytest
from helpers.commands import fails, works
from helpers.live import QUESTION, ask_async, awaited, boxed, said, until

import suffice
from suffice.gateway import Settings
from suffice.live.sampling import priced
from suffice.live.servers.hosts import MOST_IDLE, Pace
from suffice.testing import FakeServer, Reply

pytestmark = pytest.mark.usefixtures("quick")


def test_an_idle_server_has_extra_draws_each_of_which_can_be_ended() -> None:
    def script(request: dict[str, Any], number: int) -> Reply:
        late = not first and request["seed"] >= 4
        return said(42, request.get("n", 1), delay=60.0 if late else 0.2)

    first = True
    with FakeServer(script, streams=True) as server:
        outcome = ask_async(server, flow="auto", seed=0)
        assert outcome.launched == 4 and [request["n"] for request in server.requests] == [4], "nothing is known yet"
        first = False
        outcome = ask_async(server, flow="auto", seed=0)
        assert until(lambda: server.connections == 0)
    assert outcome.answer == "42" and outcome.samples == 4 and outcome.stop_reason == "controller"
    assert outcome.launched == 8, "twice as many as were seen"
    assert all("n" not in request and request["stream"] for request in server.requests[1:])
    assert not outcome.runs_on


@awaited
async def test_a_busy_server_is_asked_in_rounds() -> None:
    def script(request: dict[str, Any], number: int) -> Reply:
        return said(42, request.get("n", 1), delay=0.2)

    suffice.get_controller("plan").next_round(suffice.Tally())  # so that all decide at once
    with FakeServer(script, streams=True) as server:
        async with openai.AsyncOpenAI(base_url=server.base_url, api_key="none") as client:
            asking = (suffice.asample(client, QUESTION, model="fake", flow="auto") for _ in range(24))
            outcomes = await asyncio.gather(*asking)
    assert {outcome.answer for outcome in outcomes} == {"42"}
    rounds = [outcome for outcome in outcomes if outcome.launched == 4]
    assert len(rounds) >= 20
    together = [request for request in server.requests if request.get("n") == 4]
    assert len(together) == len(rounds) and not any(request.get("stream") for request in together)


def test_a_server_that_gets_slower_is_left_what_it_can_take() -> None:
    pace = Pace()
    assert pace.most_idle == 0 and pace.tokens_in(1.0, 4) == 0
    pace.saw(1.0, 100, 4)
    assert pace.most_idle == 8
    pace.saw(1.5, 100, 16)
    assert pace.most_idle == 32
    pace.saw(1.6, 100, 64)
    assert pace.most_idle == MOST_IDLE
    pace.saw(3.0, 100, 32)
    assert pace.most_idle == 31 and pace.tokens_in(1.0, 2) == 200
    pace.saw(9.0, 10, 4)  # so short a response says nothing
    pace.saw(2.1, 100, 8)
    assert pace.most_idle == 7
    pace.add(3)
    assert pace.under_way == 3
    pace.add(-3)
    assert pace.under_way == 0


@awaited
async def test_extra_is_the_most_that_there_are() -> None:
    asked: dict[str, Any] = {"model": "fake", "flow": suffice.Flow("auto", extra=2)}
    with FakeServer(lambda request, number: said(42, request.get("n", 1), delay=0.1)) as server:
        async with openai.AsyncOpenAI(base_url=server.base_url, api_key="none") as client:
            await suffice.asample(client, QUESTION, **asked)
            assert (await suffice.asample(client, QUESTION, **asked)).launched == 6


def test_prices_decide_on_rounds_and_on_extra_draws() -> None:
    dear = suffice.Costs(seconds_per_round=5, value_of_a_second=0.01, value_of_an_answer=1)
    settings = priced({"flow": "auto", "budget": 16}, dear)
    plan = suffice.get_controller(settings["controller"])
    assert isinstance(plan, suffice.Plan) and (plan.penalty_draw, plan.penalty_round) == (0.0075, 0.1)
    assert settings["flow"] == "order=auto,extra=8" and settings["budget"] == 16
    both = suffice.Costs(2, 500, 5, 0.01, 1)
    plan = suffice.get_controller(priced({}, both)["controller"])
    assert isinstance(plan, suffice.Plan) and plan.penalty_draw == both.penalties.draw
    serving = Settings(flow="auto", controller="plan", value_of_a_second=0.01, seconds_per_round=5.0).sampling
    assert serving.voting.flow == suffice.Flow("auto", 8) and "penalty_round=0.1" in str(serving.controller)
    for settings, costs, words in (
        ({"controller": "asc"}, dear, "needs the controller plan"),
        ({}, suffice.Costs(value_of_a_second=1), "seconds_per_round must be given"),
        ({}, suffice.Costs(price_per_million_tokens=1), "tokens_per_sample must be given"),
    ):
        with pytest.raises(suffice.OptionError, match=words):
            priced(settings, costs)


def test_a_command_weighs_prices_where_a_second_has_one(tmp_path: Path) -> None:
    with FakeServer(lambda request, number: [f"{place} {boxed(42)}" for place in range(request.get("n", 1))]) as server:
        where = ("--base-url", server.base_url, "--model", "fake", "--flow", "auto")
        dear = ("--value-of-a-second", "0.02", "--seconds-per-round", "5", "--value-of-an-answer", "1")
        assert "42" in works("ask", "What is 6 * 7?", *where, *dear)
        assert server.requests[0]["n"] > 4, "rounds are larger where time is dear"
        questions = tmp_path / "questions.jsonl"
        questions.write_text('{"id": "1", "question": "What is 6 * 7?"}\n')
        works("run", questions, "--out", tmp_path / "outcomes.jsonl", *where, *dear)
        assert '"plan:penalty_draw=0.0075,penalty_round=0.2' in (tmp_path / "outcomes.jsonl.journal").read_text()
        assert "--value-of-an-answer must be given" in fails("ask", "What is 6 * 7?", *where, *dear[:4])
