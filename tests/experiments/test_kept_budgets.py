"""Budgets on average: what keeps to them, and how it is chosen."""

import importlib
from dataclasses import replace

import pytest

from suffice import Pool, load_pool
from suffice.experiments import Bench
from suffice.experiments.budgets import SLACK, WAYS, Kept, budgets

module = importlib.import_module("suffice.experiments.budgets")


def part(name: str, start: int) -> Pool:
    """Every twelfth question of a real pool."""
    whole = load_pool("qwen2.5-coder-1.5b__gsm8k")
    return replace(whole, name=name, questions=whole.questions[start::12])


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> list[Kept]:
    """Plans on their own training pool: nothing is trained."""
    pool = part("model__train", 0)
    bench = Bench((pool,), (replace(pool, name="model__test"),), tmp_path_factory.mktemp("r"), only_cached=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "GRID", ((8.0, 2.5), (16.0, 8.0), (6.0, 1.1)))
        return budgets(bench)


def test_plans_keep_to_budgets_on_the_pool_that_they_are_settled_on(found: list[Kept]) -> None:
    assert {kept.way for kept in found} == set(WAYS[2:]), "nothing was learned"
    for kept in found[:4]:
        (result,) = kept.results
        assert result.samples <= kept.limits[0] * (1 + SLACK)
        assert result.rounds <= kept.limits[1] * (1 + SLACK)
        assert kept.met == 1


def test_the_dual_search_agrees_at_least_as_often_as_the_best_fixed_penalties(found: list[Kept]) -> None:
    for dual, fixed in zip(found[0:4:2], found[1:4:2], strict=True):
        assert (dual.way, fixed.way, dual.limits) == (*WAYS[2:], fixed.limits)
        assert dual.results[0].agreement >= fixed.results[0].agreement - 0.5


def test_a_budget_that_nobody_can_keep_is_missed_by_as_little_as_can_be(found: list[Kept]) -> None:
    *_, fixed = found
    assert (fixed.limits, fixed.met) == ((6.0, 1.1), 0)
    others = [kept.results[0].rounds for kept in found if kept.way == fixed.way]
    assert fixed.results[0].rounds == min(others)


def test_seeds_are_counted_one_by_one(found: list[Kept]) -> None:
    result = found[0].results[0]
    over = replace(result, rounds=found[0].limits[1] * 1.06)
    assert replace(found[0], results=[result, over, result]).met == 2
