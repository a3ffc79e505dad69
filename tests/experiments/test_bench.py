"""Which pools train for which, which controllers are found again, and what is said before it starts."""

import csv
import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from helpers.pools import make_pool

from suffice import OptionError, Penalties, Pool, PoolError, save_controller
from suffice.controllers import LearnedController
from suffice.experiments import EXPERIMENTS, Bench
from suffice.experiments.ablation import ablation
from suffice.experiments.bench import job_key
from suffice.experiments.main import main
from suffice.experiments.scaling import scaling
from suffice.experiments.transfer import transfer
from suffice.planning import budgets as planning_budgets
from suffice.training.runs import train
from suffice.training.setting import Setting, TrainingJob


def pool(name: str) -> Pool:
    """Questions that are the benchmark's own, one of them easy."""
    made = make_pool(*["a" * 36, "ab" * 18, "aabc" * 9] * 4)
    return Pool(name, tuple(replace(one, id=f"{name.split('__')[-1]}/{one.id}") for one in made.questions), name)


sweeps, budgets, panels = (
    importlib.import_module(f"suffice.experiments.{name}") for name in ("scaling", "budgets", "panel")
)

ALPHA, BETA = (tuple(pool(f"{model}__{name}") for name in ("one", "two")) for model in ("alpha", "beta"))


def bench(tmp_path: Path, **options: object) -> Bench:
    """Trains on each model's first benchmark, and tests on its second."""
    given = {"train": (ALPHA[0], BETA[0]), "test": (ALPHA[1], BETA[1]), "out": tmp_path, "repeats": 3, "seeds": 2}
    return Bench(**(given | options))  # type: ignore[arg-type]


@cache
def controller() -> LearnedController:
    """One that has learned nothing."""
    (trained,) = train(TrainingJob((ALPHA[0],), steps=1))
    assert isinstance(trained.controller, LearnedController)
    return trained.controller


def put(where: Path, *jobs: TrainingJob, scale: float = 1.0) -> None:
    """Leave a controller for each job, as an earlier run would have."""
    where.mkdir(exist_ok=True)
    (weights, bias), *layers = controller().layers
    left = LearnedController([(weights * scale, bias), *layers], controller().card)
    for job in jobs:
        save_controller(left, where / f"{job_key(job)}.safetensors")


def test_controllers_of_the_same_model_train_for_a_pool_and_all_where_there_are_none(tmp_path: Path) -> None:
    own = bench(tmp_path)
    assert own.training_for(ALPHA[1]) == (ALPHA[0],)
    assert own.training_for(ALPHA[1], "beta") == (BETA[0],)
    assert own.training_for(pool("gamma__one")) == (ALPHA[0], BETA[0])
    out = bench(tmp_path, train=(), test=(*ALPHA, BETA[0]), leave_one_out=True)
    assert out.training_for(ALPHA[1]) == (ALPHA[0],)
    with pytest.raises(OptionError, match="beta__one: there is nothing to train on"):
        out.check(allow_overlap=False)
    with pytest.raises(PoolError, match=r"alpha__one and alpha__one share 12 questions.*--allow-overlap"):
        bench(tmp_path, test=(ALPHA[0],)).check(allow_overlap=False)


def test_a_run_is_found_again_by_what_it_was_and_the_paper_s_runs_by_their_old_names(tmp_path: Path) -> None:
    """Trained controllers are kept by these names for years: they must not change."""
    made = replace(ALPHA[0], name="model__name", sha256="0123")
    assert job_key(TrainingJob((made,))) == "ca3b14bc35abff89"
    own = bench(tmp_path, setting=Setting(Penalties(0.01), actions=(2, 8), first=6, budget=36))
    told = own.job((ALPHA[0],), seed=1)
    assert (told.setting, told.seed) == (own.setting, 1)
    others = [
        own.job((ALPHA[0],)),
        own.job((ALPHA[0],), Penalties(0.01, 0.02)),
        own.job((ALPHA[0],), target="gold"),
        own.job((ALPHA[0],), mean_samples=9),
        own.job((ALPHA[0],), mean_samples=9, mean_rounds=3),
        own.job((BETA[0],)),
    ]
    assert len({job_key(job) for job in [told, *others]}) == 7


def test_controllers_are_looked_for_in_all_folders_and_nothing_is_trained_where_that_is_asked_for(
    tmp_path: Path,
) -> None:
    folders = tmp_path / "new", tmp_path / "old"
    own = bench(tmp_path, cache=folders, only_cached=True)
    alpha, beta = (own.job(own.training_for(tested)) for tested in own.test)
    put(folders[0], alpha)
    put(folders[1], beta)
    (folders[0] / f"{job_key(beta)}.safetensors").write_bytes(b"broken")
    assert list(own.missing([alpha, beta, own.job(ALPHA, seed=1)])) == [job_key(own.job(ALPHA, seed=1))]
    found = main(own)
    assert {tested: len(methods["RL-guided"]) for tested, methods in found.measured.items()} == {
        "alpha__two": 1,
        "beta__two": 1,
    }, "of two seeds there is one"
    with pytest.raises(OptionError, match="keep must be best or last"):
        replace(own, keep="first").check(allow_overlap=False)
    assert replace(own, keep="last").missing([alpha]), "the last network isn't there"


def test_what_is_missing_is_counted_each_controller_once(tmp_path: Path) -> None:
    own = bench(tmp_path, test=(ALPHA[1], pool("alpha__three")))
    jobs = list(EXPERIMENTS["main"].jobs(own).values())
    assert (len(jobs), len(own.missing(jobs))) == (4, 2), "both pools share theirs"
    put(tmp_path / "controllers", *jobs)
    assert not own.missing(jobs)


def test_rows_and_curves_are_means_over_seeds_with_deviations_and_pairs_have_intervals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("THRESHOLDS", "WINDOWS", "SIZES"):
        monkeypatch.setattr(sweeps, name, getattr(sweeps, name)[-1:])
    own = bench(tmp_path, only_cached=True, test=(ALPHA[1], BETA[1]))
    for seed, scale in enumerate((1.0, -3.0)):
        for penalty in (0.0075, 0.03):
            jobs = [own.job((trained,), Penalties(penalty), seed=seed) for trained in own.train]
            put(tmp_path / "controllers", *jobs, scale=scale)
    curves = scaling(own)["alpha__two"]
    assert "rl_rounds" not in curves, "there is none that was trained with a price for rounds"
    first = curves["rl"][0]
    assert (first["parameter"], first["seeds"]) == ("penalty_draw=0.0075", 2)
    measured = main(own)
    results = measured.measured["alpha__two"]["RL-guided"]
    samples = [result.samples for result in results]
    assert first["samples"] == pytest.approx(sum(samples) / 2)
    assert first["samples_std"] == pytest.approx(abs(samples[0] - samples[1]) / 2**0.5) != 0
    assert curves["sc"][0]["samples_std"] is None
    gaps = measured.differences(["alpha__two", "beta__two"])["RL-guided", "SC@32"]["samples"]
    assert gaps is not None and gaps.low is not None and gaps.high is not None
    assert gaps.low <= gaps.mean <= gaps.high < 0
    found = transfer(own)
    assert found is not None and found.curves["beta"]["alpha"][0]["seeds"] == 2
    moved = found.differences["beta", "alpha"]["samples"]
    assert moved is not None and moved.mean == 0, "the same networks were left for both"
    assert ablation(own).differences(["alpha__two"]) == {}, "the other targets aren't there"


def test_the_curves_that_are_published_are_of_these_settings() -> None:
    folder = Path(__file__).parents[2] / "docs" / "results" / "bundled"
    with (folder / "scaling.csv").open(newline="") as file:
        published = {(row["method"], row["parameter"]) for row in csv.DictReader(file)}
    swept = {"sc": ("draws", sweeps.SIZES), "asc": ("threshold", sweeps.THRESHOLDS), "esc": ("window", sweeps.WINDOWS)}
    swept |= dict.fromkeys(("rl", "rl_rounds"), ("penalty_draw", sweeps.PENALTIES))
    assert f"Those with {sweeps.ROUND_PENALTY} for a round" in (folder / "scaling.md").read_text()
    for method, (name, values) in swept.items():
        assert {(method, f"{name}={value}") for value in values} == {one for one in published if one[0] == method}


def test_rewards_and_the_planner_are_by_the_bench_s_penalties_and_budget(tmp_path: Path) -> None:
    free, dear = (
        main(bench(tmp_path, only_cached=True, setting=Setting(Penalties(draw), budget=16))) for draw in (0.0, 0.01)
    )
    rewards = [found.measured["alpha__two"]["SC@16"][0].reward for found in (free, dear)]
    assert rewards[0] - rewards[1] == pytest.approx(0.16)
    assert free.ceilings["alpha__two"].agreement == 100
    assert free.ceilings["alpha__two"].samples > dear.ceilings["alpha__two"].samples
    large = bench(tmp_path, only_cached=True, setting=Setting(budget=36), test=(ALPHA[1],))
    assert main(large).rewards is None, "nothing was learned at this budget"


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_all_that_lasts_after_training_has_a_bar_that_comes_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    for swept in ("THRESHOLDS", "WINDOWS", "SIZES", "PENALTIES"):
        monkeypatch.setattr(sweeps, swept, getattr(sweeps, swept)[-1:])
    monkeypatch.setattr(budgets, "GRID", budgets.GRID[:1])
    monkeypatch.setattr(budgets, "FIXED_PENALTIES", budgets.FIXED_PENALTIES[:1])
    monkeypatch.setattr(planning_budgets, "COLUMNS", 6)
    monkeypatch.setattr(panels, "VALUES", (1,))
    monkeypatch.setattr("suffice.panel.fitted.EPISODES", 60)
    told: dict[str, float] = {}

    @contextmanager
    def bar(title: str, total: float) -> Iterator[Callable[[float], None]]:
        steps: list[float] = []
        yield steps.append
        told[title] = sum(steps) / total

    own = bench(tmp_path, only_cached=True, bar=bar, prices={"alpha": 1, "beta": 2})
    put(tmp_path / "controllers", *EXPERIMENTS[name].jobs(own).values())
    EXPERIMENTS[name].run(own)
    replays = {"replay of alpha__two", "replay of beta__two"}
    others = {"elections": {"elections"}, "budgets": {*replays, "penalties for budgets"}, "panel": {"replay of two"}}
    assert told.keys() == others.get(name, replays)
    assert list(told.values()) == pytest.approx([1] * len(told))
