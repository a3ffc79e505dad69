"""The tables of `evaluate`, figure by figure."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.commands import suffice, works

from suffice import Plan, evaluate, load_pool, save_controller, shipped_controllers

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
    assert shown["Samples and rounds"]["asc"] == ["100.0", "100.0", "–", "4.0 (+300 %)", "4.0 (-88 %)"]
    assert shown["Samples and rounds"]["esc"] == ["100.0", "100.0", "–", "1.0 (+0 %)", "5.0 (-84 %)"]
    assert shown["Samples and rounds"]["sc"] == ["100.0", "100.0", "–", "1.0", "32.0"]
    assert shown["Tokens and reward"]["asc"] == ["40 (+300 %)", "40 (-88 %)", "0.960"]
    assert shown["Tokens and reward"]["esc"][-1] == "0.950"
    assert shown["Tokens and reward"]["sc"] == ["10", "320", "0.680"]
    assert shown["Differences to sc"]["esc"] == ["+0.00", "-27.00", "+0.270"], "one question has no interval"
    assert "sc" not in shown["Differences to sc"]
    assert "Differences to sc, without intervals" in works("evaluate", settled, "--controller", "esc")
    assert shown["Reliability"]["asc, at its stop"][1] == "100.0"
    assert shown["The clock"]["asc, toy"] == ["40", "10.0", "40", "4.0", "4.0"]
    assert shown["The clock"]["esc, toy"] == ["10", "2.5", "50", "5.0", "5.0"]
    assert shown["The clock"]["sc, toy"] == ["10", "2.5", "320", "32.0", "32.0"]


def test_what_is_not_known_is_left_open(write_pool: Write) -> None:
    path = write_pool({"id": "q", "gold": None, "answers": ["1"] * 32, "tokens": None})
    shown = tables(path, "--controller", "asc", "--tokens-per-second", "4")
    assert shown["Samples and rounds"]["asc"][0] == "–"
    assert shown["Tokens and reward"]["asc"][:2] == ["–", "–"]
    assert shown["Differences to sc"]["asc"][0] == "–"
    assert shown["The clock"]["asc, toy"] == ["4.0", "4.0"], "no latency, no seconds, no tokens"


def test_regret_is_what_the_planner_has_more(settled: Path) -> None:
    name = "smollm2-135m__arithmetic"
    shown = tables(name, "--controller", "rl", "--controller", "asc", "--repeats", "5")["Tokens and reward"]
    rl, planner = evaluate(load_pool(name), ["rl", Plan(0.0075, 0.0, (1, 2, 4))], repeats=5)
    assert shown["rl"][-1] == f"{planner.reward - rl.reward:+.4f}" != "+0.0000"
    assert len(shown["asc"]) == 3, "a rule has no regret"
    assert "regret" not in works("evaluate", settled, "--controller", "asc")


def test_several_pools_have_an_average(settled: Path, write_pool: Write) -> None:
    split = {"id": "q", "gold": "2", "answers": ["1"] * 32, "tokens": [30] * 32}
    shown = tables(settled, write_pool(split, name="other.jsonl"), "--controller", "esc")
    assert shown["Samples and rounds"]["esc"][0] == "50.0", "the last block is the average"
    assert shown["Tokens and reward"]["esc"][:2] == ["20 (+0 %)", "100 (-84 %)"]
    assert {"toy", "other", "average"} <= set(shown["Tokens and reward"])


def test_a_long_name_stands_on_one_line_of_every_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = Path("trained-on-the-tickets-of-november.safetensors")
    save_controller(shipped_controllers()[0.0075, 0.0], path)
    said = works("evaluate", "smollm2-135m__arithmetic", "--repeats", "2", "--controller", f"file:{path}", "once")
    names = [line for line in said.splitlines() if f"file:{path}" in line]
    assert len(names) >= 4


def test_a_pool_that_a_controller_was_trained_on_is_named() -> None:
    done = suffice("evaluate", "qwen2.5-coder-1.5b__train", "--repeats", "1", "--controller", "rl", "sc")
    assert done.stderr.startswith("WARNING: rl was trained on qwen2.5-coder-1.5b__train")
    assert done.stderr.count("WARNING") == 1


@pytest.mark.parametrize(
    ("learn", "option"),
    [
        (["fit", "--out", "plan.safetensors"], ["--controller", "file:plan.safetensors"]),
        (["weigh", "--force", "--out", "w.safetensors"], ["--controller", "sc", "--elect", "file:w.safetensors"]),
        (["calibrate", "--out", "right.json"], ["--controller", "sc", "--right", "right.json"]),
    ],
)
def test_a_pool_that_anything_was_learned_from_is_named(
    learn: list[str], option: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    pool = "smollm2-135m__arithmetic"
    works(*learn, pool)
    done = suffice("evaluate", pool, "--repeats", "2", *option)
    assert f"WARNING: {option[-1]} was trained on {pool}: its figures" in done.stderr


def test_slots_make_responses_wait(write_pool: Write) -> None:
    path = write_pool({"id": "q", "gold": "1", "answers": ["1"] * 32, "tokens": [10] * 32})
    latencies = [
        tables(path, "--controller", "esc", "--slots", slots)["The clock"]["esc, toy"][0] for slots in ("1", "2", "5")
    ]
    assert latencies == ["50", "30", "10"]


def test_a_pool_without_answers_says_so(write_pool: Write) -> None:
    pool = write_pool({"id": "q", "gold": None, "answers": [None] * 32, "tokens": [10] * 32}, name="mute.jsonl")
    said = works("evaluate", pool, "--controller", "sc", "--controller", "plan")
    assert "no response in mute has an answer: there is nothing to vote on" in said.splitlines()[-1]
    assert "saves" not in said and "same answers" not in said
