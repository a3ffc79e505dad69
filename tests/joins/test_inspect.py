"""Epochs of an Inspect evaluation stop when their vote is settled, and its logs become pools."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import anyio
import pytest

import suffice
from suffice.inspect import early_stopping

ROOT = Path(__file__).parents[2]
HELPER = ROOT / "tests" / "helpers" / "inspect_evaluation.py"
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """One evaluation, with its log in both formats."""
    folder = tmp_path_factory.mktemp("logs")
    path = os.pathsep.join(filter(None, [str(ROOT / "src"), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [sys.executable, HELPER, folder], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def samples(run: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = run["summary"]["metadata"]["samples"]
    return found


def test_a_settled_sample_stops_and_an_unsettled_one_goes_on_to_the_budget(run: dict[str, Any]) -> None:
    settled, unsettled = samples(run)["settled"], samples(run)["unsettled"]
    assert settled == {"answer": "0.5", "votes": {"0.5": 4}, "epochs": 4, "rounds": 1}
    assert unsettled == {"answer": "1", "votes": {"1": 4, "2": 4}, "epochs": 8, "rounds": 2}


def test_epochs_that_fail_are_drawn_again_by_later_ones_and_nobody_waits_for_them(run: dict[str, Any]) -> None:
    failing = samples(run)["failing"]
    assert failing["votes"] == {"7": failing["epochs"]}
    assert failing["epochs"] >= 4


def test_the_log_has_the_figures(run: dict[str, Any]) -> None:
    summary = run["summary"]
    figures = summary["metadata"]
    assert figures["budget"] == 8 and "window=4" in figures["controller"]
    assert figures["epochs_run"] == sum(one["epochs"] for one in samples(run).values())
    assert figures["epochs_stopped"] == len(summary["early_stops"])
    reasons = {(stop["id"], stop["reason"]) for stop in summary["early_stops"]}
    assert {("settled", "the vote is settled"), ("unsettled", "the budget is spent")} <= reasons


def test_the_reducer_elects_as_a_tally_does(run: dict[str, Any]) -> None:
    for name, reduced in run["reduced"].items():
        assert reduced["answer"] == samples(run)[name]["answer"]
        assert reduced["metadata"]["suffice"]["votes"] == samples(run)[name]["votes"]
    assert run["reduced"]["settled"]["value"] in ("C", "I")
    assert run["reduced"]["unsettled"]["value"] == "C", "of a tie, the first to get there, which is the target"


def test_logs_of_both_formats_become_the_same_pool(run: dict[str, Any]) -> None:
    pools = [suffice.import_pool(log) for log in run["logs"]]
    for made in pools:
        questions = {question.id: question for question in made.pool.questions}
        assert set(questions["settled"].answers) == {"0.5"} and questions["settled"].gold == "0.5"
        assert sorted(filter(None, questions["unsettled"].answers)) == ["1"] * 4 + ["2"] * 4
        assert set(questions["unsettled"].tokens or ()) == set(range(10, 18))
        assert made.dropped == {"ended in an error": 2}
    texts = suffice.import_pool(run["logs"][0], answer="auto").pool
    assert {question.id: set(question.answers) for question in texts.questions}["settled"] == {"0.5"}


def test_the_task_of_the_docs_runs(run: dict[str, Any]) -> None:
    (sample,) = run["documented"]["samples"].values()
    assert sample == {"answer": "42", "votes": {"42": 4}, "epochs": 4, "rounds": 1}


def scored(answer: str) -> Any:
    """An epoch's scores."""
    return {"scorer": SimpleNamespace(score=SimpleNamespace(answer=answer))}


def test_rounds_are_as_the_controller_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without Inspect: the epochs that are admitted before any is in are the first round."""
    monkeypatch.setitem(sys.modules, "inspect_ai", ModuleType("inspect_ai"))
    monkeypatch.setitem(sys.modules, "inspect_ai.util", SimpleNamespace(EarlyStop=SimpleNamespace))
    manager: Any = early_stopping("esc:window=3", budget=6)
    events: list[str] = []

    async def epoch(number: int) -> None:
        stopped = await manager.schedule_sample("a", number)
        if stopped:
            assert (stopped.id, stopped.epoch, stopped.reason) == ("a", number, "the budget is spent")
            assert stopped.metadata == {"answer": "x"}
            return
        events.append(f"{number} begins")
        await anyio.sleep(0)
        events.append(f"{number} ends")
        await manager.complete_sample("a", number, scored("x" if number != 2 else "y"))

    async def main() -> dict[str, Any]:
        task = SimpleNamespace(config=SimpleNamespace(retry_on_error=None))
        await manager.start_task(task, [SimpleNamespace(id="a")], 9)
        async with anyio.create_task_group() as group:
            for number in range(1, 10):
                group.start_soon(epoch, number)
        told: dict[str, Any] = await manager.complete_task()
        return told

    told = anyio.run(main)
    assert [event for event in events if "begins" in event] == [f"{number} begins" for number in range(1, 7)]
    ends = [events.index(f"{number} ends") for number in (1, 2, 3)]
    assert events.index("4 begins") > max(ends), "three are one round, and over before the next"
    assert (told["epochs_run"], told["epochs_stopped"]) == (6, 3)
    assert told["samples"]["a"] == {"answer": "x", "votes": {"x": 5, "y": 1}, "epochs": 6, "rounds": 2}


def test_what_is_no_budget_is_refused() -> None:
    with pytest.raises(suffice.OptionError, match="budget must be"):
        early_stopping(budget=0)
    with pytest.raises(suffice.ControllerError):
        early_stopping("no-such")
