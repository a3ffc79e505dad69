"""Training and the paper's experiments as a user meets them, on toys."""

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.commands import POOL, fails, interrupted, suffice, works
from helpers.toys import shrink, train_here

from suffice.experiments.budgets import WAYS

Write = Callable[..., Path]

pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def toys(write_pool: Write) -> list[Path]:
    """Pools of two models on two benchmarks, with questions of their own."""
    paths = []
    for model in ("alpha", "beta"):
        for benchmark in ("one", "two"):
            lines = [
                {"id": f"{benchmark}/{number}", "gold": "a", "answers": list(answers), "tokens": [7] * 36}
                for number, answers in enumerate(["a" * 36, "ab" * 18, "aabc" * 9])
            ]
            paths.append(write_pool(*lines, name=f"{model}__{benchmark}.jsonl"))
    return paths


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """What would run in processes runs in this one, which has loaded torch, on few copies; Ctrl-C below is real."""
    train_here(monkeypatch)


@pytest.mark.usefixtures("here")
def test_train_makes_a_controller_that_can_be_used(toys: list[Path], tmp_path: Path) -> None:
    out, figures = tmp_path / "c.safetensors", tmp_path / "c.json"
    options: list[str | Path] = ["--steps", "5000", "--seeds", "2", "--keep", "last"]
    done = suffice("train", toys[0], "--out", out, *options, "--json", figures)
    assert done.returncode == 0, done.stderr
    assert "mean ± std" in done.stdout and f"file:{out}" in done.stdout
    written = json.loads(figures.read_text())
    assert {row["seed"] for row in written["seeds"]} == {0, 1}
    assert written["kept"] == written["seeds"][0]["seed"] == written["card"]["seed"]
    rewards = [row["reward"] for row in written["seeds"]]
    assert written["mean"]["reward"] == pytest.approx(sum(rewards) / 2)
    card = json.loads(suffice("controllers", out).stdout)
    assert card == written["card"]
    used = suffice("evaluate", toys[1], "--controller", f"file:{out}", "--json", tmp_path / "r.json")
    assert used.returncode == 0
    (result,) = json.loads((tmp_path / "r.json").read_text())["results"]
    assert result["controller"] == f"file:{out}"
    assert "can't serve a budget of 16" in fails("evaluate", toys[1], "--controller", f"file:{out}", "--budget", "16")


def test_a_controller_that_learned_nothing_is_said_to(toys: list[Path], tmp_path: Path) -> None:
    done = suffice(
        "train", toys[0], "--out", tmp_path / "c.safetensors", "--steps", "1", "--seeds", "1", "--preset", "paper"
    )
    assert done.returncode == 0
    assert "WARNING: on its own training pools this controller is no better than" in done.stderr


def test_means_that_were_missed_are_said_to_be(toys: list[Path], tmp_path: Path) -> None:
    means = ["--mean-samples", "31"]
    done = suffice("train", toys[0], "--out", tmp_path / "c.safetensors", "--steps", "1", "--seeds", "1", *means)
    assert done.returncode == 0
    assert "WARNING: the means were missed by more than 5 %" in done.stderr
    samples = json.loads(suffice("controllers", tmp_path / "c.safetensors").stdout)["samples"]
    assert samples < 0.95 * 31, "too few are as much of a miss as too many"


@pytest.mark.slow
def test_ctrl_c_keeps_the_best_so_far(toys: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "c.safetensors"
    long = ["--steps", "2000000", "--seeds", "2"]
    code, output, errors = interrupted("train", toys[0], "--out", out, *long, after=["run 1 of 2", "run 2 of 2"])
    assert code == 0, errors
    assert "Traceback" not in errors and "best so far" in errors
    assert 0 < json.loads(suffice("controllers", out).stdout)["steps"] < 2_000_000
    assert "use it as" in output


def test_bad_training_options_get_one_sentence(toys: list[Path], tmp_path: Path) -> None:
    out: list[str | Path] = ["--out", tmp_path / "c.safetensors"]
    assert "--actions" in fails("train", toys[0], *out, "--actions", "1;2")
    assert "--preset must be fast or paper" in fails("train", toys[0], *out, "--preset", "slow")
    assert "fewer than the budget" in fails("train", toys[0], *out, "--budget", "64")
    assert "can't be written" in fails("train", toys[0], "--out", tmp_path / "no" / "c.safetensors")
    assert "WHAT must be one of" in fails("reproduce", "everything")
    assert "share 3 questions" in fails(
        "reproduce", "main", "--train", toys[0], "--test", toys[2], "--out", tmp_path / "r"
    )
    assert "nothing to train on" in fails(
        "reproduce", "main", "--leave-one-out", "--test", toys[0], "--out", tmp_path / "r"
    )
    assert "two pools of the name" in fails("reproduce", "main", "--test", toys[0], toys[0], "--out", tmp_path / "r")
    assert "repeats" in fails("reproduce", "main", "--repeats", "0", "--out", tmp_path / "r")
    assert "can't be made a folder" in fails("reproduce", "main", "--out", toys[0])
    assert "no such controller file" in fails("controllers", tmp_path / "none")
    assert "is a rule" in fails("controllers", "asc")
    (tmp_path / "foreign").write_text("hello")
    assert "not a whole controller file" in fails("controllers", tmp_path / "foreign")


@pytest.mark.slow
def test_reproduce_writes_pages_tables_and_pictures_and_goes_on_where_it_was(
    toys: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shrink(monkeypatch)
    out = tmp_path / "r"
    pools: list[str | Path] = ["--train", toys[0], toys[2], "--test", toys[1], toys[3]]
    options: list[str | Path] = [*pools, "--out", out, "--steps", "1", "--repeats", "5"]
    told = suffice("reproduce", "main", "--seeds", "2", *options).stderr
    assert told.startswith("4 controllers are to be trained.")
    assert "WARNING: the controller of seed 0 (on alpha__one, penalties 0.0075 and 0," in told
    assert "learned nothing: it is no better than asc" in told
    trained = {path: path.stat().st_mtime_ns for path in (out / "controllers").iterdir()}
    assert len(trained) == 8, "for each model and seed the best network and the last"
    rows = read_csv(out / "main.csv")
    assert {row["seeds"] for row in rows if row["method"] == "RL-guided"} == {"2"}
    report = tmp_path / "report.html"
    options += ["--seeds", "1", "--report", report, "--price", "alpha=1", "--price", "beta=2"]
    assert "The paper's experiments" in works("reproduce", "all", *options)
    titles = "Scaling curves, Transfer between models: the figures, Budgets on average, The frontier on two"
    for title in titles.split(", "):
        assert f'"title":"{title}"' in report.read_text()
    assert re.search(r"RL-guided: -?\d+ % fewer samples than SC@32 in [\d.]+ rounds", report.read_text())
    assert '"id":"two/2"' in report.read_text(), "each question's votes"
    assert all(path.stat().st_mtime_ns == made for path, made in trained.items())
    pictures = {path.name for path in out.glob("*.png")}
    drawn = ("main", "explain", "transfer", "budgets", "scaling_alpha_samples", "scaling_beta_tokens")
    assert {f"{name}.png" for name in drawn} <= pictures
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in out.glob("*.png"))
    index = (out / "index.md").read_text()
    told = "RL-guided, alpha, beta, running, gold, with entropy, trained on, intervals, PPO-Lagrangian"
    for words in told.split(", "):
        assert words in index
    rows = read_csv(out / "main.csv")
    assert {row["method"] for row in rows} == {"SC@32", "ASC", "ESC", "RL-guided"}
    sc = next(row for row in rows if row["method"] == "SC@32")
    assert (float(sc["samples"]), float(sc["total_tokens"])) == (32, 32 * 7)
    curves = {row["method"] for row in read_csv(out / "scaling.csv")}
    assert curves == {"sc", "asc", "esc", "rl", "rl_rounds"}
    kept = read_csv(out / "budgets.csv")
    assert {(row["samples_limit"], row["way"]) for row in kept} == {("12.0", way) for way in WAYS}
    assert {(row["trained"], row["tested"]) for row in read_csv(out / "transfer.csv")} == {
        (source, target) for source in ("alpha", "beta") for target in ("alpha", "beta")
    }


@pytest.mark.usefixtures("here")
def test_reproduce_trains_as_train_does(toys: list[Path], tmp_path: Path) -> None:
    options: list[str | Path] = ["--train", toys[0], "--test", toys[1], "--out", tmp_path / "r", "--repeats", "2"]
    setting = ["--penalty-draw", "0.02", "--penalty-round", "0.03", "--actions", "2,6", "--first", "3"]
    setting += ["--budget", "16"]
    shown = works("reproduce", "explain", *options, *setting, "--steps", "1", "--keep", "last")
    assert "penalty for a round 0.03; actions 2, 6; first round 3; budget 16; preset fast" in shown
    card = json.loads(works("controllers", next((tmp_path / "r" / "controllers").glob("*-last.safetensors"))))
    assert card["penalties"] == {"draw": 0.02, "round": 0.03}
    assert (card["actions"], card["first"], card["budget"]) == ([2, 6], 3, 16)
    assert "--first must be below the budget" in fails("reproduce", "explain", *options, "--first", "32")
    assert '--keep must be best or last, not "first"' in fails("reproduce", "explain", *options, "--keep", "first")


@pytest.mark.usefixtures("here")
def test_leave_one_out_trains_on_the_same_model_s_other_benchmarks(toys: list[Path], tmp_path: Path) -> None:
    options: list[str | Path] = ["--leave-one-out", "--out", tmp_path / "r", "--steps", "1", "--seeds", "1"]
    done = suffice("reproduce", "explain", "--test", *toys[:3], "--repeats", "2", *options)
    assert (done.returncode, "beta__one: there is nothing to train on" in done.stderr) == (2, True)
    done = suffice("reproduce", "explain", "--test", *toys[:2], "--repeats", "2", *options)
    assert done.returncode == 0, done.stderr
    best = [path for path in (tmp_path / "r" / "controllers").iterdir() if "-last" not in path.name]
    cards = [json.loads(suffice("controllers", path).stdout) for path in best]
    assert sorted(pool["name"] for card in cards for pool in card["pools"]) == ["alpha__one", "alpha__two"]
    assert {row["pool"] for row in read_csv(tmp_path / "r" / "explain.csv")} == {"alpha__one", "alpha__two"}


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open() as lines:
        return list(csv.DictReader(lines))


@pytest.mark.usefixtures("here")
def test_transfer_is_skipped_with_a_sentence_where_there_is_one_model(toys: list[Path], tmp_path: Path) -> None:
    options: list[str | Path] = ["--train", toys[0], "--test", toys[1], "--out", tmp_path / "r", "--steps", "1"]
    done = suffice("reproduce", "transfer", *options)
    assert done.stderr == "", "nothing is trained"
    assert (done.returncode, "needs pools of two models" in done.stdout) == (0, True)


def test_the_shipped_controller_is_listed_and_serves_its_range(tmp_path: Path) -> None:
    listed = works("controllers")
    assert "2–256" in listed and "0.001–0.03" in listed and "0–0.05" in listed
    names = [f"rl:penalty_draw={draw}" for draw in (0.001, 0.01, 0.03)]
    chosen = [option for name in ["rl", *names, "asc"] for option in ("--controller", name)]
    works("evaluate", POOL, *chosen, "--budget", "16", "--repeats", "10", "--json", tmp_path / "r.json")
    results = {row["controller"]: row for row in json.loads((tmp_path / "r.json").read_text())["results"]}
    sweep = [results[name]["samples"] for name in names]
    assert sweep == sorted(sweep, reverse=True), "dearer draws, fewer samples"
    assert results["rl"]["rounds"] < results["asc"]["rounds"] / 2
    refused = fails("evaluate", POOL, "--controller", "rl:penalty_draw=0.5")
    assert "penalty_draw must be between 0.001 and 0.03, not 0.5" in refused
