"""How probable it is that an answer is right, live: in outcomes, in files of them, and what is refused."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from helpers.batches import read_lines, write_lines
from helpers.commands import fails, suffice, works
from helpers.labels import easy_and_hard
from helpers.live import QUESTION, WEIGHTED, Ask, ask_sync, boxed, seven_then_42, surely_42

from suffice import Calibration, OptionError, Sampling, Tally, calibrate
from suffice.planning.right import SignalScale
from suffice.testing import FakeServer

CALIBRATION = calibrate(easy_and_hard(easy=0.9))
UNDOUBTED = replace(CALIBRATION, card={})
"""It says nothing of how votes should stop."""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("right") / "right.json"
    CALIBRATION.save(path)
    return path


def agreed(request: dict[str, Any], number: int) -> str:
    return boxed(42)


def divided(request: dict[str, Any], number: int) -> list[str]:
    return [boxed(number + place) for place in range(request.get("n", 1))]


def test_an_outcome_says_how_probable_it_is_and_whether_that_is_enough(ask: Ask, file: Path) -> None:
    with FakeServer(agreed) as server:
        outcome = ask(server, right=file, risk=0.1)
        plain = ask(server)
    tally = Tally()
    tally.add_round(["42"] * outcome.samples)
    assert outcome.right == CALIBRATION.right(tally) and outcome.sure is True
    assert (outcome.to_json()["right"], outcome.to_json()["sure"]) == (outcome.right, True)
    assert (plain.right, plain.sure) == (None, None) and not {"right", "sure"} & plain.to_json().keys()


def test_a_divided_vote_is_not_sure_enough_and_without_a_risk_nothing_is_said_of_that() -> None:
    with FakeServer(divided) as server:
        outcome = ask_sync(server, right=UNDOUBTED, risk=0.1, controller="sc:draws=8")
        unasked = ask_sync(server, right=UNDOUBTED, controller="sc:draws=8")
    assert outcome.right is not None and outcome.right < 0.5 and outcome.sure is False
    assert unasked.sure is None and "sure" not in unasked.to_json()


def test_nothing_is_known_without_an_answer_nor_of_what_was_elected_against_the_vote() -> None:
    silent = ask_sync(lambda request, number: "I can't say.", right=CALIBRATION, risk=0.1, answer="boxed")
    with FakeServer(seven_then_42(), logprob=surely_42) as server:
        against = ask_sync(server, right=UNDOUBTED, risk=0.1, elect=WEIGHTED, controller="sc:draws=5")
    assert (silent.right, silent.sure) == (None, False)
    assert (against.answer, against.majority, against.right, against.sure) == ("42", "7", None, False)


def test_where_no_threshold_keeps_the_risk_nothing_is_sure_enough() -> None:
    with FakeServer(agreed) as server, pytest.warns(UserWarning, match="easy and hard proves no risk of 0.001"):
        outcome = ask_sync(server, right=CALIBRATION, risk=0.001)
    assert outcome.right and outcome.sure is False


def test_a_signal_that_was_learned_from_is_asked_for_and_counts() -> None:
    known = Calibration(0.0, 1.0, CALIBRATION.scores, CALIBRATION.truths, SignalScale("logprob", -1.0, 0.5))
    with FakeServer(agreed, logprob=surely_42) as server:
        outcome = ask_sync(server, right=known)
    assert server.requests[0]["logprobs"] is True
    tally = Tally()
    tally.add_round(["42"] * outcome.samples)
    assert outcome.right == known.right(tally, -0.1) != known.right(tally)


def test_a_risk_without_a_calibration_is_refused() -> None:
    with pytest.raises(OptionError, match="risk needs a calibration: make one with suffice calibrate"):
        Sampling(risk=0.1)
    with pytest.raises(OptionError, match="risk must be between 0 and 1"):
        Sampling(right=CALIBRATION, risk=10)
    assert "--risk needs a calibration" in fails("ask", "What is 6 * 7?", "--risk", "0.1")
    assert "--risk needs a calibration" in fails("evaluate", "smollm2-135m__arithmetic", "--risk", "0.1")
    assert "there is no such calibration" in fails("ask", "What is 6 * 7?", "--right", "none.json")


def test_ask_tells_it(file: Path) -> None:
    with FakeServer(agreed) as server:
        command: list[str | Path] = ["ask", QUESTION[0]["content"], "--right", file, "--base-url", server.base_url]
        assert "probable to be right: sure enough." in works(*command, "--risk", "0.1")
        done = suffice(*command, "--risk", "0.001")
    assert "not sure enough." in done.stdout and "proves no risk of 0.001" in done.stderr


def test_votes_that_stop_in_another_way_than_those_it_knows_are_doubted(file: Path) -> None:
    with pytest.warns(UserWarning, match="votes by plan with a budget of 32, and these are by sc with 8"):
        Sampling(right=file, controller="sc", budget=8)
    with FakeServer(agreed) as server:
        command: list[str | Path] = ["ask", QUESTION[0]["content"], "--right", file, "--base-url", server.base_url]
        assert "these are by asc with 32" in suffice(*command, "--controller", "asc").stderr
        assert "these are" not in suffice(*command).stderr


def test_run_writes_it_beside_what_gold_says_and_ends_with_the_coverage(file: Path, tmp_path: Path) -> None:
    def script(request: dict[str, Any], number: int) -> list[str]:
        hard = "hard" in request["messages"][-1]["content"]
        return divided(request, number) if hard else [boxed(42)] * request.get("n", 1)

    asked: list[dict[str, Any]] = [
        {"id": f"q{place}", "question": "easy", "gold": 42 if place else 7} for place in range(4)
    ]
    asked += [{"id": "hard", "question": "hard", "gold": None}]
    questions, out = write_lines(tmp_path / "questions.jsonl", asked), tmp_path / "out.jsonl"
    with FakeServer(script) as server:
        options = ["--controller", "sc:draws=8", "--base-url", server.base_url, "--concurrency", "1"]
        said = works("run", questions, "--out", out, *options, "--right", file, "--risk", "0.1")
    lines = {line["id"]: line for line in read_lines(out)}
    assert [lines[f"q{place}"]["graded"] for place in range(4)] == [False, True, True, True]
    assert all(0.5 < lines[f"q{place}"]["right"] < 1 and lines[f"q{place}"]["sure"] for place in range(4))
    assert lines["hard"]["graded"] is None and lines["hard"]["sure"] is False
    assert "Sure enough for a risk of 0.1: 4 of 5 answers (80%); 3 of 4 with gold are right." in said
    assert "accuracy 75.0% (3 of 4 with gold)" in said


def test_evaluate_tells_how_true_it_is_on_other_pools(file: Path, tmp_path: Path) -> None:
    told, pool = tmp_path / "told.json", "qwen2.5-coder-1.5b__gsm8k"
    options: list[str | Path] = ["--controller", "plan", "--repeats", "2", "--right", file, "--risk", "0.1"]
    assert "How often it is right, by the calibration: votes by plan" in works(
        "evaluate", pool, *options, "--json", told
    )
    (judged,) = json.loads(told.read_text())["right"].values()
    assert 0 < judged["coverage"] < 1 and judged["auroc"] > 0.6 and judged["risk"] == 0.1


def test_nothing_of_it_is_loaded_where_it_is_not_used() -> None:
    script = """
import sys, suffice
from suffice.gateway import Gateway, Settings
suffice.Sampling().voting
Gateway(Settings(upstream="http://localhost:9/v1"))
print([name for name in sys.modules if name.endswith((".right", ".feedback", ".calibrating"))])
"""
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout == "[]\n"
