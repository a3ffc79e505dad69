"""What stands for pools, and comparisons and advice for users of the library."""

from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.pools import make_pool

import suffice
from suffice import Flow, OptionError, PoolError, evaluate, load_pool
from suffice.replay import compare
from suffice.replay.targets import meet

POOL = "smollm2-135m__arithmetic"


def test_a_pool_may_be_a_name_a_path_or_a_pool_and_there_may_be_several(write_pool: Callable[..., Path]) -> None:
    path = write_pool({"id": "q", "gold": "1", "answers": ["1"] * 32, "tokens": [3] * 32}, name="mine.jsonl")
    results = evaluate([POOL, path, str(path), make_pool("a" * 32)], ["sc", "asc"], repeats=2)
    assert [(result.pool, result.controller) for result in results] == [
        (pool, controller) for pool in (POOL, "mine", "mine", "toy") for controller in ("sc", "asc")
    ]
    assert evaluate(POOL, "asc", repeats=2)[0].samples == evaluate(load_pool(POOL), "asc", repeats=2)[0].samples
    assert suffice.summarise(path).questions == 1
    assert compare(path, ["asc"], repeats=2)[0].results[0].samples == 4
    with pytest.raises(PoolError, match="no such file"):
        evaluate("no-such-pool", "sc")


@pytest.mark.parametrize("budget", [2.5, "8", None, 0])
def test_a_budget_must_be_a_whole_number(budget: object) -> None:
    for call in (evaluate, compare):
        with pytest.raises(OptionError, match=rf"^budget must be a whole number, at least 1, not {budget}$"):
            call(POOL, ["sc"], budget=budget)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match=r"^budget must be a whole number"):
        meet(suffice.Plan(), budget, [], 2, None, None)  # type: ignore[arg-type]


def test_slots_count_in_flow_too() -> None:
    pool = make_pool("abab" * 8)
    (free,) = evaluate(pool, "plan", repeats=5, flow=Flow(extra=4))
    (one,) = evaluate(pool, "plan", repeats=5, flow=Flow(extra=4), slots=1)
    assert one.latency_tokens == one.spent_tokens, "one slot is always busy"
    assert free.latency_tokens is not None and one.latency_tokens is not None
    assert free.latency_tokens < one.latency_tokens
    with pytest.raises(OptionError, match=r"^slots must be a whole number, at least 1, not 0$"):
        evaluate(pool, "plan", slots=0)


def test_errors_name_the_argument() -> None:
    for make, words in (
        (lambda: Flow("size"), "order must be launch, arrival or auto"),
        (lambda: Flow(extra=-1), "extra must be a whole number, at least 0, not -1"),
        (lambda: suffice.Penalties(draw=-1), "penalty_draw must be between 0 and 1000"),
        (lambda: suffice.Costs(value_of_an_answer=0), "value_of_an_answer must be above 0"),
        (lambda: suffice.advise(POOL), "max_latency must be given, or max_tokens"),
    ):
        with pytest.raises(OptionError, match=f"^{words}"):
            make()


def test_compare_has_the_baseline_the_planner_and_checkpoints() -> None:
    one, two = compare([POOL, make_pool("ab" * 16)], ["asc", "rl"], repeats=4)
    assert (one.baseline.pool, two.baseline.pool, one.baseline.controller) == (POOL, "toy", "sc")
    assert [result.controller for result in one.results] == ["asc", "rl"]
    asc, rl = one.results
    assert one.regret(asc) is None
    assert one.regret(rl) == one.ceilings["rl"].reward - rl.reward
    assert [result.samples for result in one.checkpoints] == [4, 8, 16, 24]
    (small,) = compare(POOL, ["asc"], repeats=2, budget=8)
    assert [result.samples for result in small.checkpoints] == [4]


def test_what_flow_is_compared_with_is_in_rounds() -> None:
    (found,) = compare(POOL, ["plan"], baseline="plan", repeats=2, flow=Flow("launch", 4))
    assert found.results[0].launched > found.results[0].samples
    assert found.baseline.launched == found.baseline.samples
    (same,) = compare(POOL, ["plan", "asc"], baseline="plan", repeats=2)
    assert same.baseline is same.results[0]


def test_advice_tries_all_that_suits_and_its_front_is_beaten_in_nothing() -> None:
    tried = ["plan:penalty_draw=0.003", "plan:penalty_draw=0.015", "esc"]
    told: list[float] = []
    quick = suffice.advise(POOL, tried, max_latency=120, min_agreement=80, repeats=1, progress=told.append)
    assert sum(told) == pytest.approx(1)
    assert quick.chosen in quick.front and quick.chosen.agreement >= 80
    assert {one.controller for one in quick.choices} == set(tried)
    assert [one.flow for one in quick.choices if one.controller == "esc"] == [None], "it means whole rounds"
    for ours, others in zip(quick.front, quick.front[1:], strict=False):
        assert ours.latency < others.latency and ours.tokens > others.tokens
    with pytest.raises(OptionError, match=r"^min_agreement of 100\.5 is more than anything in the sweep has"):
        suffice.advise(POOL, ["sc:draws=1"], max_tokens=1e9, min_agreement=100.5, repeats=1)
    with pytest.raises(OptionError, match=r"^pools must tell the tokens"):
        suffice.advise(make_pool("a" * 32, tokens=None), ["sc"], max_tokens=1, repeats=1)
