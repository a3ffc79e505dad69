"""The command line as a user meets it: real processes, their output, files and exit codes."""

import csv
import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.batches import sums
from helpers.commands import POOL, SUFFICE, fails, interrupted, process, suffice


def test_pools_lists_the_bundled_ones() -> None:
    output = process("pools").stdout
    for name in ("train", "dapo", "gsm8k", "math500"):
        assert f"qwen2.5-coder-1.5b__{name}" in output


def test_pools_describes_any_pool(write_pool: Callable[..., Path]) -> None:
    path = write_pool({"id": "q", "gold": "1", "answers": ["1", None], "tokens": [3, 5]}, name="mine.jsonl")
    (row,) = [line for line in suffice("pools", path).stdout.splitlines() if "mine" in line]
    assert row.split() == ["mine", "1", "2", "50.0", "100.0", "0.00", "50.0", "4", "5"]


def test_evaluate_prints_a_row_a_controller_and_a_block_a_pool() -> None:
    done = suffice("evaluate", POOL, "qwen2.5-coder-1.5b__math500", "--repeats", "5")
    lines = done.stdout.splitlines()
    for controller in ("once", "sc", "asc", "esc", "rl", "plan"):
        rows = [line for line in lines if line.split()[:1] == [controller]]
        # Two pools and their average, in samples and tokens; the baseline has no differences to itself.
        assert len(rows) == (6 if controller == "sc" else 9)
    assert done.stderr == ""
    both = r"an independent SC@32 agrees with plan in \d\d\.\d %, with SC@32 in \d\d\.\d %"
    assert re.fullmatch(both, lines[-3])
    saved = r"tokens \(prompts not counted\) that plan saves: \d,\d+ of \d\d,\d+ a question \(\d\d %\)"
    assert re.fullmatch(saved, lines[-2])
    assert re.fullmatch(
        r"plan: \d+ % fewer samples than SC@32 in \d\.\d rounds, \d+\.\d % the same answers, over 2 pools", lines[-1]
    )


def test_evaluate_writes_json_and_csv(tmp_path: Path) -> None:
    files: list[str | Path] = ["--json", tmp_path / "r.json", "--csv", tmp_path / "r.csv"]
    done = suffice("evaluate", POOL, "--repeats", "5", "--seed", "7", "--controller", "asc:threshold=0.9", *files)
    assert done.returncode == 0
    written = json.loads((tmp_path / "r.json").read_text())
    assert (written["budget"], written["repeats"], written["seed"]) == (32, 5, 7)
    (result,) = written["results"]
    assert (result["pool"], result["controller"], result["questions"]) == (POOL, "asc:threshold=0.9", 100)
    reward = 2 * result["agreement"] / 100 - 1 - 0.0075 * result["samples"]
    assert result["reward"] == pytest.approx(reward)
    gap = result["differences"]["samples"]
    assert gap["low"] < gap["mean"] < gap["high"]
    assert gap["mean"] == pytest.approx(result["samples"] - 32)
    with (tmp_path / "r.csv").open() as lines:
        (row,) = csv.DictReader(lines)
    assert {name: row[name] for name in ("pool", "samples")} == {"pool": POOL, "samples": str(result["samples"])}
    assert list(tmp_path.glob(".*")) == []


def test_what_a_pool_cannot_tell_is_null(write_pool: Callable[..., Path], tmp_path: Path) -> None:
    path = write_pool({"id": "q", "gold": None, "answers": ["1"] * 32, "tokens": None})
    suffice("evaluate", path, "--json", tmp_path / "r.json", "--csv", tmp_path / "r.csv")
    for result in json.loads((tmp_path / "r.json").read_text())["results"]:
        assert [result[name] for name in ("accuracy", "total_tokens", "sequential_tokens")] == [None, None, None]
        assert result["differences"]["accuracy"] is None


def test_a_user_s_own_controller_has_a_name_on_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import suffice\n\n@suffice.register('mine')\nclass Mine(suffice.Controller):\n"
        "    def decide(self, tally):\n        return 3 if tally.draws < 9 else 0\n"
    )
    options: list[str | Path] = ["--repeats", "2", "--controller", "mine", "--json", tmp_path / "r.json"]
    assert process("--import", tmp_path / "mine.py", "evaluate", POOL, *options).returncode == 0
    (result,) = json.loads((tmp_path / "r.json").read_text())["results"]
    assert (result["samples"], result["rounds"]) == (9, 3)


def test_bad_input_gets_one_sentence_and_exit_code_2(write_pool: Callable[..., Path], tmp_path: Path) -> None:
    assert "did you mean" in fails("evaluate", "qwen2.5-coder-1.5b_gsm8k")
    assert "line 1" in fails("pools", write_pool("{"))
    assert "there are asc" in fails("evaluate", POOL, "--controller", "best")
    assert "has 128 answers" in fails("evaluate", POOL, "--budget", "200")
    assert "repeats" in fails("evaluate", POOL, "--repeats", "0")
    assert "penalty" in fails("evaluate", POOL, "--penalty-draw", "-1")
    assert "can't be written" in fails("evaluate", POOL, "--json", tmp_path / "no" / "r.json")
    assert "--import nothing" in fails("--import", "nothing", "pools")
    assert "--import no.py" in fails("--import", "no.py", "pools")
    assert "too many" in fails("evaluate", POOL, "--repeats", "99999999")
    assert "between 0 and 1000" in fails("evaluate", POOL, "--penalty-draw", "1e308")
    assert "no such file" in fails("pools", "x" * 5000)
    assert "did you mean" in fails("pools", "gsm8k")
    assert "no such controller file" in fails("evaluate", POOL, "--controller", f"file:{tmp_path}/none.safetensors")
    assert "--budget" in fails("evaluate", POOL, "--budget", "many")
    assert "--slots must be a whole number, at least 1, not 0" in fails("evaluate", POOL, "--slots", "0")
    assert "extra must be a whole number, at least 0" in fails("evaluate", POOL, "--flow", "extra=-1")
    assert "POOL" in fails("evaluate")


NOWHERE = ["--base-url", "http://127.0.0.1:1/v1", "--model", "m"]
ASK = ["ask", "Q", *NOWHERE]
PRICED = [*ASK, "--price-per-million-tokens", "1"]


@pytest.mark.parametrize(
    ("command", "option"),
    [
        ([*ASK, "--top-p", "nan"], "--top-p"),
        ([*ASK, "--top-p", "inf"], "--top-p"),
        ([*ASK, "--top-p", "-1"], "--top-p"),
        ([*ASK, "--price-per-million-tokens", "-1"], "--price-per-million-tokens"),
        ([*PRICED, "--tokens-per-sample", "0"], "--tokens-per-sample"),
        ([*PRICED, "--value-of-an-answer", "0"], "--value-of-an-answer"),
        (["plan", "--budget", "0"], "--budget"),
        (["plan", "--budget", "9999"], "up to a budget of 512"),
        (["evaluate", POOL, "--tokens-per-second", "0"], "--tokens-per-second"),
        (["evaluate", POOL, "--tokens-per-second", "nan"], "--tokens-per-second"),
    ],
)
def test_numbers_out_of_range_are_refused(command: list[str], option: str) -> None:
    assert option in fails(*command)


@pytest.mark.parametrize("limit", ["--max-tokens-total", "--max-cost"])
def test_a_limit_on_spending_is_no_less_than_nothing(limit: str, tmp_path: Path) -> None:
    questions = sums(tmp_path, 1)
    options = [*NOWHERE, "--price-per-million-tokens", "1", limit, "-5"]
    said = fails("run", questions, "--out", tmp_path / "out.jsonl", *options)
    assert f"{limit} must be 0 or more, not -5" in said
    assert list(tmp_path.iterdir()) == [questions]


def test_names_with_markup_are_printed_as_they_are(write_pool: Callable[..., Path]) -> None:
    path = write_pool({"id": "q", "gold": "1", "answers": ["1"] * 32, "tokens": None}, name="[bold]x:smile:.jsonl")
    for command in ("pools", "evaluate"):
        assert "[bold]x:smile:" in suffice(command, path).stdout


def test_a_narrow_terminal_loses_nothing() -> None:
    narrow = {**os.environ, "COLUMNS": "60"}
    output = subprocess.run([SUFFICE, "pools"], capture_output=True, text=True, env=narrow).stdout
    assert "95th pct" in output and "1536" in output


def test_results_are_on_disk_before_anyone_stops_reading(tmp_path: Path) -> None:
    command = f"{SUFFICE} evaluate {POOL} --repeats 2 --json {tmp_path}/r.json | true"
    errors = subprocess.run(command, shell=True, capture_output=True, text=True).stderr
    assert json.loads((tmp_path / "r.json").read_text())["repeats"] == 2
    assert "Traceback" not in errors
    full = subprocess.run(f"{SUFFICE} pools > /dev/full", shell=True, capture_output=True, text=True)
    assert (full.returncode, "can't be written" in full.stderr) == (2, True)


def test_interrupting_leaves_the_old_file_and_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text("old")
    many = [POOL] * 50
    code, _, errors = interrupted("evaluate", *many, "--repeats", "500", "--json", tmp_path / "r.json", after=["%"])
    assert code == 130
    assert "Traceback" not in errors
    assert [path.name for path in tmp_path.iterdir()] == ["r.json"]
    assert (tmp_path / "r.json").read_text() == "old"


def test_evaluate_replays_flow_and_tells_the_clock(tmp_path: Path) -> None:
    out = tmp_path / "r.json"
    options: list[str | Path] = ["--repeats", "2", "--controller", "plan", "--json", out]
    done = suffice("evaluate", POOL, *options, "--flow", "extra=4", "--tokens-per-second", "100")
    assert done.returncode == 0, done.stderr
    assert "The clock" in done.stdout
    page = json.loads(out.read_text())
    assert page["flow"] == "order=launch,extra=4"
    flow = page["results"][0]
    assert flow["launched"] > flow["samples"]
    suffice("evaluate", POOL, *options)
    rounds = json.loads(out.read_text())["results"][0]
    assert rounds["latency_tokens"] > flow["latency_tokens"] and rounds["spent_tokens"] == rounds["total_tokens"]
    assert "whole rounds" in fails("evaluate", POOL, "--flow", "--controller", "esc")
    assert "--flow" in fails("evaluate", POOL, "--flow", "speed=2")
    assert "--flow" in fails("evaluate", POOL, "--flow", "order=size")


def test_advise_honours_what_it_takes(tmp_path: Path) -> None:
    pool, written, table = "smollm2-135m__arithmetic", tmp_path / "a.json", tmp_path / "a.csv"
    options: list[str | Path] = ["--repeats", "2", "--budget", "16", "--seed", "3", "--min-agreement", "80"]
    tried = ["--controller", "asc", "--controller", "esc", "--slots", "4"]
    files: list[str | Path] = ["--json", written, "--csv", table, "--figure", tmp_path / "front.png"]
    done = suffice("advise", pool, *options, *tried, "--max-mean-tokens", "1000000", *files)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].startswith("Use --")
    page = json.loads(written.read_text())
    settings = ("budget", "repeats", "seed", "slots", "min_agreement")
    assert [page[name] for name in settings] == [16, 2, 3, 4, 80]
    assert {choice["controller"] for choice in page["choices"]} == {"asc", "esc"}
    assert page["chosen"]["controller"] in done.stdout.splitlines()[-1]
    assert page["chosen"] in [choice for choice in page["choices"] if choice["front"]]
    with table.open() as lines:
        rows = list(csv.DictReader(lines))
    assert [float(row["latency_tokens"]) for row in rows] == [one["latency_tokens"] for one in page["choices"]]
    assert (tmp_path / "front.png").read_bytes().startswith(b"\x89PNG")
    assert "one of the two" in fails("advise", pool, *options)
    assert "one of the two" in fails("advise", pool, *options, "--max-mean-tokens", "9", "--max-latency", "9")
    one: list[str | Path] = [pool, "--repeats", "1", "--controller", "asc"]
    assert "--min-agreement of 101" in fails("advise", *one, "--max-mean-tokens", "9", "--min-agreement", "101")
    low: list[str | Path] = [*one, "--min-agreement", "50"]
    assert "--max-latency of 1: the quickest in the sweep" in fails("advise", *low, "--max-latency", "1")
    assert "--max-mean-tokens of 1: the cheapest in the sweep" in fails("advise", *low, "--max-mean-tokens", "1")


@pytest.mark.parametrize("command", [["evaluate", POOL], ["advise", POOL, "--max-mean-tokens", "9"], ["train", POOL]])
def test_two_outputs_in_one_file_are_refused(tmp_path: Path, command: list[str]) -> None:
    second = "--out" if command[0] == "train" else "--csv"
    path = tmp_path / "r"
    message = fails(*command, "--json", path, second, tmp_path / "." / "r")
    assert "only one of the outputs can go there" in message and not path.exists()
