"""PPO on a panel: the process as environments, networks that learn, and the experiment that compares them."""

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from helpers.commands import fails, works
from helpers.panels import made_voter, small_and_large, written
from helpers.toys import train_here

from suffice import OptionError
from suffice.experiments import Bench
from suffice.experiments.panels import panels
from suffice.panel import LearnedPanel, load_panel, save_panel
from suffice.panel.episodes import run_panel
from suffice.panel.learned import PanelEnv, PanelJob, PanelVecEnv, learn_panel, train_panel
from suffice.panel.process import PanelProcess, panel_process
from suffice.pools import Pool
from suffice.training.setting import Setting

BUDGET = 4


@pytest.fixture(autouse=True)
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("suffice.panel.process.EPISODES", 600)
    train_here(monkeypatch)


def process(value: float = 0.05) -> PanelProcess:
    return panel_process(small_and_large(), value, BUDGET, True, 0)


@pytest.mark.filterwarnings("ignore:.*render modes.*")
def test_gymnasium_s_checker_passes() -> None:
    check_env(PanelEnv(process()))


def test_a_game_by_hand() -> None:
    played = process()
    env = PanelEnv(played)
    row = 5
    env.reset(options={"row": row})
    seen, reward, ended, _, _ = env.step(np.int64(2))  # the large voter's first response
    assert reward == pytest.approx(-played.episodes.money[row, 1, 1] / played.value) and not ended
    assert seen.tolist() == played.observe(np.array([row]), np.array([[0, 1]]))[0].tolist()
    _, reward, ended, _, _ = env.step(np.int64(0))
    answer = played.episodes.answers[[row], 1, 0]
    assert reward == pytest.approx(played.worth(answer, np.array([row]))[0] / played.value) and ended


def test_who_asks_everybody_for_all_comes_to_the_end_and_has_paid_for_all() -> None:
    played = process()
    env, won = PanelEnv(played), 0.0
    env.reset(options={"row": 0})
    for action in [1] * BUDGET + [2] * BUDGET:
        _, reward, ended, _, _ = env.step(np.int64(action))
        won += reward
    all_of_it = played.episodes.spent(np.array([0]), np.array([[BUDGET, BUDGET]]))
    worth = played.worth(played.episodes.full_vote(played.weights)[:1], np.array([0]))
    assert ended and won == pytest.approx(float((worth - all_of_it)[0] / played.value))


def test_both_environments_give_the_same_game() -> None:
    played, copies = process(), 8
    many, one = PanelVecEnv(played, copies, seed=3), PanelEnv(played)
    many.reset()
    actions = np.random.default_rng(0).integers(0, 3, (12, copies))
    rows, ended = many._rows.copy(), np.ones(copies, bool)
    starts: dict[int, tuple[int, list[np.int64]]] = {}
    for step in actions:
        for copy in np.flatnonzero(ended).tolist():
            starts[copy] = rows[copy], []
        for copy in range(copies):
            starts[copy][1].append(step[copy])
        _, rewards, ended, _ = many.step(step)
        for copy in range(copies):
            row, made = starts[copy]
            one.reset(options={"row": row})
            *_, (_, reward, over, _, _) = [one.step(action) for action in made]
            assert reward == pytest.approx(rewards[copy], abs=1e-6) and over == ended[copy]
        rows = many._rows.copy()


def test_a_network_learns_whom_to_ask(tmp_path: Path) -> None:
    """Where answers are worth much, one draw of the small voter is not the best that can be done."""
    job = PanelJob(tuple(small_and_large()), 0.05, BUDGET, steps=8_000)
    trained, short = learn_panel(job), learn_panel(replace(job, steps=1))
    assert trained.card["reward"] > short.card["reward"] and trained.card["steps"] >= 8_000
    save_panel(trained, tmp_path / "panel.safetensors")
    loaded = load_panel(tmp_path / "panel.safetensors")
    assert isinstance(loaded, LearnedPanel)
    episodes = process().episodes
    ends = [run_panel(episodes, replace(one, budget=BUDGET)) for one in (trained, loaded)]
    assert np.array_equal(ends[0].draws, ends[1].draws) and ends[0].draws.sum(axis=0).min() > 0


def test_seeds_are_repeatable_and_the_best_comes_first() -> None:
    job = PanelJob(tuple(small_and_large()), 0.05, BUDGET, steps=600)
    first, second = (train_panel(job, seeds=2) for _ in range(2))
    assert [one.card for one in first] == [one.card for one in second]
    assert first[0].card["reward"] >= first[1].card["reward"]
    with pytest.raises(OptionError, match="value_of_an_answer"):
        learn_panel(replace(job, value=0))


def test_train_takes_voters(tmp_path: Path) -> None:
    voters = [part for voter in small_and_large() for part in ("--voter", written(voter, tmp_path))]
    out, told = tmp_path / "panel.safetensors", tmp_path / "told.json"
    usual: list[str | Path] = [*voters, "--out", out, "--steps", "600", "--budget", f"{BUDGET}", "--seeds", "2"]
    shown = works("train", *usual, "--value-of-an-answer", "0.05", "--json", told)
    assert "seed 1: " in shown and f"file:{out}" in shown
    assert len(json.loads(told.read_text())["seeds"]) == 2
    assert "large alone" in works("panel", "evaluate", *voters, "--controller", f"file:{out}", "--budget", f"{BUDGET}")
    assert "--value-of-an-answer must be given" in fails("train", *usual)
    assert "--top is not for a panel" in fails("train", *usual, "--value-of-an-answer", "1", "--top", "3")
    assert "give pools to train on, or voters" in fails("train", "--out", out)
    assert "give pools to train on, or voters" in fails("train", "smollm2-135m__arithmetic", *usual)


def test_reproduce_compares_rule_fitted_and_network(tmp_path: Path) -> None:
    pools = []
    for name, price, right in (("small-1b", 1, 0.3), ("large-20b", 20, 0.85)):
        made = made_voter(name, price, right, questions=30)
        for benchmark in ("one", "two"):
            renamed = tuple(replace(one, id=f"{benchmark}/{one.id}") for one in made.pool)
            pool = replace(made, name=f"{name}__{benchmark}", pool=Pool(name, renamed))
            pools.append(written(pool, tmp_path).partition("=")[2].rpartition(",")[0])
    usual = ("--leave-one-out", "--test", *pools, "--budget", "6", "--repeats", "2", "--seeds", "2", "--steps", "600")
    out = tmp_path / "out"
    shown = works("reproduce", "panel", *usual, "--value-of-an-answer", "0.01", "--out", out)
    assert "The network is the mean over 2 seeds" in shown and (out / "panel_one.png").exists()
    with (out / "panel.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["pool"] == "two" and row["method"] == "panel"]
    assert [row["parameter"] for row in rows] == ["cascade", "fitted:value=0.01", "ppo:value=0.01"]
    cached = sorted((out / "controllers").iterdir())
    assert len(cached) == 4
    again = works("reproduce", "panel", *usual, "--value-of-an-answer", "0.01", "--out", out)
    assert again == shown and sorted((out / "controllers").iterdir()) == cached
    assert "--price must be MODEL=P" in fails("reproduce", "panel", *usual, "--price", "small", "--out", out)


def test_models_without_a_price_or_a_question_in_common_make_no_panel(tmp_path: Path) -> None:
    small, large = (replace(one.pool, name=f"{one.name}__one") for one in small_and_large())
    others = tuple(
        Pool(pool.name.replace("one", "two"), tuple(replace(one, id=f"other {one.id}") for one in pool.questions))
        for pool in (small, large)
    )
    bench = Bench(others, (small, large), tmp_path, repeats=1, seeds=1, only_cached=True, setting=Setting(budget=6))
    priced = replace(bench, prices={"small": 1, "large": 20})
    assert panels(bench) == [] == panels(replace(priced, train=others[:1]))
    assert panels(replace(priced, test=(small, replace(others[1], name="large__one")))) == []
    (found,) = panels(priced)
    assert found.seeds == {} and found.compared.voters == ("small", "large")
