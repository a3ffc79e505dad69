"""Budgets on average: what keeps to them, and how it is chosen."""

from dataclasses import replace

import pytest
from helpers.toys import budgets, put

from suffice import Pool, evaluate, load_pool
from suffice.experiments import Bench
from suffice.experiments.budgets import SLACK, WAYS, budgets_jobs, kept, kept_row
from suffice.report.markdown import Row


def part(name: str, start: int) -> Pool:
    """Every twelfth question of a real pool."""
    whole = load_pool("qwen2.5-coder-1.5b__gsm8k")
    return replace(whole, name=name, questions=whole.questions[start::12])


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> list[Row]:
    """Plans on their own training pool, by budget the one that is searched for and the best fixed one."""
    pool, out = part("model__train", 0), tmp_path_factory.mktemp("r")
    bench = Bench((pool,), (replace(pool, name="model__test"),), out, seeds=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(budgets, "GRID", ((8.0, 2.5), (16.0, 8.0), (6.0, 1.1)))
        put(out / "controllers", budgets_jobs(bench).values())
        return [row for row in kept(bench) if row["way"] in WAYS[2:]]


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
    (result,) = evaluate(part("model__test", 0), "once", repeats=1)
    over = replace(result, rounds=1.06)
    row = kept_row((1.0, 1.0), WAYS[0], "model__test", [[result], [over], [result]])
    assert (row["seeds"], row["kept"]) == (3, 2)
