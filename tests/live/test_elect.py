"""Live votes whose election weighs: by counts they stop, by signals they elect, and both winners are told."""

import asyncio
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.commands import fails, suffice, works
from helpers.live import WEIGHTED, Ask, ask_async, ask_sync, boxed, seven_then_42, surely_42

from suffice import Flow, OptionError, parse
from suffice.elections import LearnedWeights, save_weights
from suffice.ray import ask as ray_ask
from suffice.testing import FakeServer, Reply

pytestmark = pytest.mark.usefixtures("quick")


def five(**options: Any) -> dict[str, Any]:
    return {"controller": "sc:draws=5", "concurrency": 1} | options


def test_the_election_weighs_and_both_winners_are_told(ask: Ask) -> None:
    with FakeServer(seven_then_42(), logprob=surely_42) as server:
        outcome, plain = ask(server, **five(elect=WEIGHTED)), ask(server, **five())
    assert (outcome.answer, outcome.majority) == ("42", "7")
    assert (outcome.votes, outcome.share) == ({"7": 3, "42": 2}, 0.4)
    assert outcome.response is not None and outcome.response.answer == "42"
    assert outcome.to_json()["majority"] == "7"
    assert (plain.answer, plain.majority, plain.votes) == ("7", "7", outcome.votes)
    assert "majority" not in plain.to_json()
    assert (plain.confidence, plain.certainty) == (outcome.confidence, outcome.certainty), "which are of the counts"
    assert ["logprobs" in request for request in server.requests[:2] + server.requests[-1:]] == [True, True, False]


@pytest.mark.parametrize("flow", [None, Flow()], ids=["rounds", "flow"])
def test_votes_stop_by_counts_whatever_the_election(flow: Flow | None) -> None:
    def stops(**options: Any) -> tuple[int, tuple[int, ...], str]:
        with FakeServer(seven_then_42(), streams=True, logprob=surely_42) as server:
            outcome = ask_async(server, controller="asc", budget=7, concurrency=1, flow=flow, **options)
        return outcome.samples, outcome.by_round, outcome.stop_reason

    assert stops(elect="weighted:strength=3") == stops() == (7, stops()[1], "budget")


def test_learned_weights_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.safetensors"
    save_weights(LearnedWeights(("logprob", "length"), (0.4, -0.1)), path)
    with FakeServer(seven_then_42(), logprob=surely_42) as server:
        assert ask_sync(server, **five(elect=f"file:{path}")).answer == "42"


def test_by_length_no_log_probabilities_are_asked_for() -> None:
    with FakeServer(seven_then_42(), logprob=surely_42) as server:
        outcome = ask_sync(server, **five(elect="weighted:signal=length,strength=-1"))
    assert (outcome.answer, outcome.majority) == ("7", "7"), "all are as long"
    assert "logprobs" not in server.requests[0]


def test_where_nothing_is_known_the_majority_wins() -> None:
    with FakeServer(seven_then_42(), logprob=None) as server, pytest.warns(UserWarning, match="it leaves them out"):
        assert ask_sync(server, **five(elect=WEIGHTED)).answer == "7"


def test_what_cannot_be_weighed_is_refused() -> None:
    with FakeServer(lambda request, number: "{}") as server:
        with pytest.raises(OptionError, match="elect must be majority: by that the fields"):
            ask_sync(server, answer="json", elect=WEIGHTED)
        with pytest.raises(OptionError, match='elect weighs by "mood", and live responses have logprob'):
            ask_sync(server, elect="weighted:signal=mood")
        with pytest.raises(OptionError, match="wieghted"):
            ask_sync(server, elect="wieghted")
        with pytest.raises(OptionError, match="elect must be majority"):
            ask_sync(server, call=parse, response_format={"type": "object"}, elect=WEIGHTED)
    assert server.served == 0


def test_ask_tells_both_winners() -> None:
    command = ["ask", "What is 6 * 7?", "--controller", "sc:draws=5", "--elect", WEIGHTED]
    with FakeServer(seven_then_42(), logprob=surely_42) as server:
        shown = works(*command, "--base-url", server.base_url)
        told = json.loads(works(*command, "--base-url", server.base_url, "--json"))
    assert "Answer: 42\n" in shown and "are for: 7\n" in shown
    assert (told["answer"], told["majority"], told["response"]["answer"]) == ("42", "7", "42")
    assert told["response"]["signals"]["logprob"] == -0.1
    assert "--elect must be majority" in fails(*command, "--answer", "json", "--base-url", server.base_url)


def test_run_resumes_with_the_signals_that_its_journal_has(tmp_path: Path) -> None:
    questions, out = tmp_path / "questions.jsonl", tmp_path / "out.jsonl"
    questions.write_text('{"id": "q", "question": "What is 6 * 7?", "gold": 42}\n')
    command = ["run", str(questions), "--out", str(out), "--controller", "sc:draws=5", "--concurrency", "1"]
    journal = tmp_path / "out.jsonl.journal"
    with FakeServer(seven_then_42(), logprob=surely_42) as server:
        command += ["--base-url", server.base_url]
        works(*command, "--elect", WEIGHTED)
        first = json.loads(out.read_text())
        # What a crash left: four of five responses, and no outcome.
        out.unlink()
        journal.write_text("".join(journal.read_text().splitlines(keepends=True)[:-2]))
        works(*command, "--elect", WEIGHTED)
        assert "elect was" in fails(*command)
    again = json.loads(out.read_text())
    assert (first["answer"], first["majority"], first["right"]) == ("42", "7", True)
    assert (again["answer"], again["samples"]) == ("42", 5)
    assert sum(request.get("n", 1) for request in server.requests) == 6, "one response was asked for again"


def test_collecting_says_in_a_sentence_that_a_server_refuses(tmp_path: Path) -> None:
    def script(request: dict[str, Any], number: int) -> Reply | str:
        refused = Reply({"error": {"message": "logprobs are not supported"}}, 400)
        return refused if request.get("logprobs") else boxed(42)

    questions = tmp_path / "questions.jsonl"
    questions.write_text('{"id": "q", "question": "What is 6 * 7?"}\n')
    with FakeServer(script) as server:
        out = ["--out", str(tmp_path / "pool.jsonl"), "--samples", "8", "--base-url", server.base_url]
        done = suffice("collect", questions, *out, "--signals")
    assert done.returncode == 0
    said = [line for line in done.stderr.splitlines() if "signals" in line]
    assert len(said) == 1 and said[0].startswith("suffice: signals: asked for log probabilities, fake tells none")
    assert "signals" not in json.loads((tmp_path / "pool.jsonl").read_text())


def test_a_stage_of_ray_data_has_the_majority_beside_the_answer() -> None:
    async def columns(**options: Any) -> dict[str, list[Any]]:
        stage = ray_ask(base_url=server.base_url, model="fake", controller="sc:draws=5", concurrency=1, **options)
        (batch,) = [batch async for batch in stage({"question": np.array(["What is 6 * 7?"])})]
        await stage.close()
        return {name: list(values) for name, values in batch.items()}

    with FakeServer(seven_then_42(), logprob=surely_42) as server:
        weighed, plain = asyncio.run(columns(elect=WEIGHTED)), asyncio.run(columns())
    assert (weighed["answer"], weighed["majority"]) == (["42"], ["7"])
    assert plain["answer"] == ["7"] and "majority" not in plain
