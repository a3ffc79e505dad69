"""The tables of `evaluate`, figure by figure."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.commands import works

from suffice import Plan, evaluate, load_pool

Write = Callable[..., Path]


def tables(*arguments: str | Path) -> dict[str, dict[str, list[str]]]:
    """What `evaluate` prints: by the beginning of a table's title, by the name of a row, its cells."""
    found: dict[str, dict[str, list[str]]] = {}
    shown: dict[str, list[str]] = {}
    for line in works("evaluate", *arguments).splitlines():
        cells = re.split(r"\s{2,}", line.strip())
        if line[:1].strip():  # a title stands at the very left
            shown = found[re.split(r"[;,]| of ", cells[0])[0]] = {}
        else:
            shown[cells[0]] = cells[1:]
    return found


@pytest.fixture
def settled(write_pool: Write) -> Path:
    """One question on which all agree, in responses of 10 tokens."""
    return write_pool({"id": "q", "gold": "1", "answers": ["1"] * 32, "tokens": [10] * 32})


def test_the_figures_of_a_settled_question(settled: Path) -> None:
    chosen = ["--controller", "asc", "--controller", "esc", "--controller", "sc"]
    shown = tables(settled, *chosen, "--penalty-draw", "0.01", "--tokens-per-second", "4")
    assert shown["Samples and rounds"]["asc"] == ["100.0", "100.0", "4.0 (+300 %)", "4.0 (-88 %)", "0.960"]
    assert shown["Samples and rounds"]["esc"] == ["100.0", "100.0", "1.0 (+0 %)", "5.0 (-84 %)", "0.950"]
    assert shown["Samples and rounds"]["sc"] == ["100.0", "100.0", "1.0", "32.0", "0.680"]
    assert shown["Tokens"]["asc"] == ["100.0", "40 (+300 %)", "40 (-88 %)"]
    assert shown["Tokens"]["sc"] == ["100.0", "10", "320"]
    assert shown["Differences to sc"]["esc"] == [
        "+0.00 [+0.00, +0.00]",
        "-27.00 [-27.00, -27.00]",
        "+0.270 [+0.270, +0.270]",
    ]
    assert "sc" not in shown["Differences to sc"]
    assert shown["Reliability"]["asc, at its stop"][1] == "100.0"
    assert shown["The clock"]["asc, toy"] == ["40", "10.0", "40", "4.0", "4.0"]
    assert shown["The clock"]["esc, toy"] == ["10", "2.5", "50", "5.0", "5.0"]
    assert shown["The clock"]["sc, toy"] == ["10", "2.5", "320", "32.0", "32.0"]


def test_what_is_not_known_is_left_open(write_pool: Write) -> None:
    path = write_pool({"id": "q", "gold": None, "answers": ["1"] * 32, "tokens": None})
    shown = tables(path, "--controller", "asc", "--tokens-per-second", "4")
    assert shown["Samples and rounds"]["asc"][0] == "–"
    assert shown["Tokens"]["asc"] == ["–", "–", "–"]
    assert shown["Differences to sc"]["asc"][0] == "–"
    assert shown["The clock"]["asc, toy"] == ["4.0", "4.0"], "no latency, no seconds, no tokens"


def test_regret_is_what_the_planner_has_more(settled: Path) -> None:
    name = "smollm2-135m__arithmetic"
    shown = tables(name, "--controller", "rl", "--controller", "asc", "--repeats", "5")["Samples and rounds"]
    rl, planner = evaluate(load_pool(name), ["rl", Plan(0.0075, 0.0, (1, 2, 4))], repeats=5)
    assert shown["rl"][-1] == f"{planner.reward - rl.reward:+.4f}" != "+0.0000"
    assert len(shown["asc"]) == 5, "a rule has no regret"
    assert "regret" not in works("evaluate", settled, "--controller", "asc")


def test_several_pools_have_an_average(settled: Path, write_pool: Write) -> None:
    split = {"id": "q", "gold": "2", "answers": ["1"] * 32, "tokens": [30] * 32}
    shown = tables(settled, write_pool(split, name="other.jsonl"), "--controller", "esc")
    assert shown["Tokens"]["esc"] == ["50.0", "20 (+0 %)", "100 (-84 %)"], "the last block is the average"
    assert {"toy", "other", "average"} <= set(shown["Tokens"])


def test_slots_make_responses_wait(write_pool: Write) -> None:
    path = write_pool({"id": "q", "gold": "1", "answers": ["1"] * 32, "tokens": [10] * 32})
    latencies = [
        tables(path, "--controller", "esc", "--slots", slots)["The clock"]["esc, toy"][0] for slots in ("1", "2", "5")
    ]
    assert latencies == ["50", "30", "10"]
