"""Which pools train for which, which controllers are found again, what rows are, and what keeps to a budget."""

import csv
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from helpers.pools import make_pool
from helpers.toys import budgets, put, shrink, sweeps

from suffice import OptionError, Penalties, Pool, PoolError, evaluate, load_pool
from suffice.experiments import EXPERIMENTS, Bench
from suffice.experiments.bench import job_key
from suffice.experiments.budgets import SLACK, WAYS, budgets_jobs, kept, kept_row
from suffice.experiments.main import LEARNED, seeds_gaps
from suffice.report.markdown import Row
from suffice.training.setting import Setting, TrainingJob


def pool(name: str) -> Pool:
    """Questions that are the benchmark's own, one of them easy."""
    made = make_pool(*["a" * 36, "ab" * 18, "aabc" * 9] * 4)
    return Pool(name, tuple(replace(one, id=f"{name.split('__')[-1]}/{one.id}") for one in made.questions), name)


ALPHA, BETA = (tuple(pool(f"{model}__{name}") for name in ("one", "two")) for model in ("alpha", "beta"))


def bench(tmp_path: Path, **options: object) -> Bench:
    """Trains on each model's first benchmark, and tests on its second."""
    given = {"train": (ALPHA[0], BETA[0]), "test": (ALPHA[1], BETA[1]), "out": tmp_path, "repeats": 3, "seeds": 2}
    return Bench(**(given | options))  # type: ignore[arg-type]


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
    told = own.job(ALPHA[1], seed=1)
    assert (told.setting, told.seed) == (own.setting, 1)
    others = [
        own.job(ALPHA[1]),
        own.job(ALPHA[1], penalties=Penalties(0.01, 0.02)),
        own.job(ALPHA[1], target="gold"),
        own.job(ALPHA[1], means=(9, None)),
        own.job(ALPHA[1], means=(9, 3)),
        own.job(BETA[1]),
    ]
    assert len({job_key(job) for job in [told, *others]}) == 7


def test_controllers_are_looked_for_in_all_folders(tmp_path: Path) -> None:
    folders = tmp_path / "new", tmp_path / "old"
    own = bench(tmp_path, cache=folders)
    alpha, beta = map(own.job, own.test)
    put(folders[0], [alpha])
    put(folders[1], [beta], scale=2.0)
    (folders[0] / f"{job_key(beta)}.safetensors").write_bytes(b"broken")
    other = own.job(ALPHA[1], seed=1)
    assert own.missing([alpha, beta, other]) == [other]
    left, right = own.learned(replace(own, seeds=1).jobs({LEARNED: {}})).values()
    assert (right.layers[0][0] == 2 * left.layers[0][0]).all()
    with pytest.raises(OptionError, match="keep must be best or last"):
        replace(own, keep="first").check(allow_overlap=False)
    assert replace(own, keep="last").missing([alpha]), "the last network isn't there"


def test_what_is_missing_is_counted_each_controller_once(tmp_path: Path) -> None:
    own = bench(tmp_path, test=(ALPHA[1], pool("alpha__three")))
    jobs = own.jobs({LEARNED: {}}).values()
    assert (len(jobs), len(own.missing(jobs))) == (4, 2), "both pools share theirs"


def test_rows_and_curves_are_means_over_seeds_with_deviations_and_pairs_have_intervals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shrink(monkeypatch)
    own = bench(tmp_path)
    scaling, transfer = EXPERIMENTS["scaling"], EXPERIMENTS["transfer"]
    assert scaling.jobs and transfer.jobs
    jobs = {**scaling.jobs(own), **transfer.jobs(own)}
    for seed, scale in enumerate((1.0, -3.0)):
        put(tmp_path / "controllers", [job for (*_, number), job in jobs.items() if number == seed], scale)
    curves = {row["method"]: row for row in reversed(scaling.run(own).rows) if row["pool"] == "alpha__two"}
    first = curves["rl"]
    assert (first["parameter"], first["seeds"]) == ("penalty_draw=0.0075", 2)
    measured = own.measure(own.jobs({LEARNED: {}}), {"SC@32": "sc"})
    samples = [result.samples for result in measured["alpha__two"][LEARNED]]
    assert first["samples"] == pytest.approx(sum(samples) / 2)
    assert first["samples_std"] == pytest.approx(abs(samples[0] - samples[1]) / 2**0.5) != 0
    assert curves["sc"]["samples_std"] is None
    gap = seeds_gaps(measured, own.test, LEARNED, "SC@32")["samples"]
    assert gap is not None and gap.low is not None and gap.high is not None
    assert gap.low <= gap.mean <= gap.high < 0
    page = transfer.run(own)
    assert {(row["trained"], row["tested"], row["seeds"]) for row in page.rows} >= {("alpha", "beta", 2)}
    moved = {(row["trained"], row["tested"]): row["samples"] for row in page.differences}
    assert moved == {("beta", "alpha"): 0, ("alpha", "beta"): 0}, "the same networks were left for both"


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
    rewards, plans = [], []
    for draw in (0.0, 0.01):
        own = bench(tmp_path, setting=Setting(Penalties(draw), budget=16), seeds=1)
        put(tmp_path / "controllers", own.jobs({LEARNED: {}}).values())
        page = EXPERIMENTS["main"].run(own)
        rewards.append(page.rows[0]["reward"])
        panel = next(panel for panel in page.plots[0]["panels"] if panel["name"] == "alpha__two")
        plans += [series["points"][0] for series in panel["series"] if series["name"] == "exact plan"]
    assert page.rows[0]["method"] == "SC@16"
    assert rewards[0] - rewards[1] == pytest.approx(0.16)
    (_, _, samples, *_, agreement), dear = plans
    assert agreement == 100
    assert samples > dear[2]


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_all_that_lasts_after_training_has_a_bar_that_comes_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    shrink(monkeypatch)
    told: dict[str, float] = {}

    @contextmanager
    def bar(own: Bench, title: str, total: float) -> Iterator[Callable[[float], None]]:
        steps: list[float] = []
        yield steps.append
        told[title] = sum(steps) / total

    monkeypatch.setattr(Bench, "bar", bar)
    own = bench(tmp_path, prices={"alpha": 1, "beta": 2})
    if jobs := EXPERIMENTS[name].jobs:
        put(tmp_path / "controllers", jobs(own).values())
    EXPERIMENTS[name].run(own)
    replays = {"replay of alpha__two", "replay of beta__two"}
    others = {"elections": {"elections"}, "budgets": {*replays, "penalties for budgets"}, "panel": {"replay of two"}}
    assert told.keys() == others.get(name, replays)
    assert list(told.values()) == pytest.approx([1] * len(told))


def part(name: str) -> Pool:
    """Every twelfth question of a real pool."""
    whole = load_pool("qwen2.5-coder-1.5b__gsm8k")
    return replace(whole, name=name, questions=whole.questions[::12])


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> list[Row]:
    """Plans on their own training pool, by budget the one that is searched for and the best fixed one."""
    own = bench(
        tmp_path_factory.mktemp("r"), train=(part("model__train"),), test=(part("model__test"),), seeds=1, repeats=100
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(budgets, "GRID", ((8.0, 2.5), (16.0, 8.0), (6.0, 1.1)))
        put(own.out / "controllers", budgets_jobs(own).values())
        return [row for row in kept(own) if row["way"] in WAYS[2:]]


def test_plans_keep_to_budgets_on_the_pool_that_they_are_settled_on(found: list[Row]) -> None:
    for row in found[:4]:
        assert row["samples"] <= row["samples_limit"] * (1 + SLACK)
        assert row["rounds"] <= row["rounds_limit"] * (1 + SLACK)
        assert row["kept"] == 1


def test_the_dual_search_agrees_at_least_as_often_as_the_best_fixed_penalties(found: list[Row]) -> None:
    for dual, fixed in zip(found[0:4:2], found[1:4:2], strict=True):
        assert (dual["way"], fixed["way"], dual["rounds_limit"]) == (*WAYS[2:], fixed["rounds_limit"])
        assert dual["agreement"] >= fixed["agreement"] - 0.5


def test_a_budget_that_nobody_can_keep_is_missed_by_as_little_as_can_be(found: list[Row]) -> None:
    *_, fixed = found
    assert (fixed["samples_limit"], fixed["rounds_limit"], fixed["kept"]) == (6.0, 1.1, 0)
    assert fixed["rounds"] == min(row["rounds"] for row in found if row["way"] == fixed["way"])


def test_seeds_are_counted_one_by_one() -> None:
    (result,) = evaluate(part("model__test"), "once", repeats=1)
    over = replace(result, rounds=1.06)
    row = kept_row((1.0, 1.0), WAYS[0], "model__test", [[result], [over], [result]])
    assert (row["seeds"], row["kept"]) == (3, 2)
