import inspect
import re
from pathlib import Path

import numpy as np
import pytest
from helpers.commands import POOL, fails, suffice
from helpers.pools import make_pool
from scipy.optimize import linprog

from suffice import (
    ControllerError,
    Plan,
    Tally,
    evaluate,
    get_controller,
    load_controller,
    load_pool,
    save_controller,
)
from suffice.planning.budgets import (
    expected_means,
    for_agreement,
    for_mean_samples,
    for_mean_samples_and_rounds,
)
from suffice.planning.controller import Mixture
from suffice.replay.targets import HELD_OUT_SEED, meet

MEASURE = expected_means(20)


def test_expected_means_of_plans_that_are_known() -> None:
    everything = MEASURE(Plan(0.0, 0.0))
    assert everything.agreement == pytest.approx(1)
    least = MEASURE(Plan(5.0, 0.005))
    assert (least.samples, least.rounds) == (1, 1)


@pytest.mark.parametrize("samples", [3.3, 8, 13.7])
def test_a_mean_of_samples_is_met_by_two_neighbours_at_most(samples: float) -> None:
    found = for_mean_samples(Plan(), samples, MEASURE)
    assert found.met and found.means.samples == pytest.approx(samples, abs=1e-6)
    assert len(found.mixture.plans) <= 2
    penalties = [plan.penalty_draw for plan in found.mixture.plans]
    assert max(penalties) / min(penalties) < 1.001


@pytest.mark.parametrize(("samples", "rounds"), [(8, 1.5), (12, 2.5), (14, 1.2)])
def test_two_means_are_met_by_three_plans_at_most(samples: float, rounds: float) -> None:
    found = for_mean_samples_and_rounds(Plan(), samples, rounds, MEASURE)
    assert found.met
    assert found.means.samples <= samples + 1e-6 and found.means.rounds <= rounds + 1e-6
    assert len(found.mixture.plans) <= 3
    # More rounds can only help.
    freer = for_mean_samples_and_rounds(Plan(), samples, rounds + 1, MEASURE)
    assert freer.means.agreement >= found.means.agreement - 1e-9


def test_an_agreement_is_met_with_few_samples() -> None:
    found = for_agreement(Plan(), 0.98, MEASURE)
    assert found.means.agreement == pytest.approx(0.98, abs=1e-6)
    assert found.means.samples < MEASURE(Plan(0.001)).samples


def test_what_cannot_be_met_is_said_with_the_nearest() -> None:
    base = Plan(actions=(4, 8))
    for found in (for_mean_samples(base, 2, MEASURE), for_mean_samples_and_rounds(base, 2, 1, MEASURE)):
        assert not found.met
        assert found.means.samples == pytest.approx(4)


@pytest.mark.parametrize(("samples", "rounds"), [(10, None), (10, 2)])
def test_on_pools_the_means_hold_on_other_draws(samples: float, rounds: float | None) -> None:
    pools = [load_pool(f"qwen2.5-coder-1.5b__{name}") for name in ("gsm8k", "math500")]
    met = meet(Plan(), 32, pools, samples, rounds, None)
    results = [evaluate(pool, met.controller, seed=HELD_OUT_SEED)[0] for pool in pools]
    assert np.mean([result.samples for result in results]) == pytest.approx(samples, rel=0.05)
    if rounds:
        assert np.mean([result.rounds for result in results]) == pytest.approx(rounds, rel=0.05)


def test_a_mixture_holds_one_plan_a_question_and_repeats_under_a_seed(tmp_path: Path) -> None:
    few, many = Plan(5.0), Plan(0.0)
    mixture = Mixture((few, many), (0.25, 0.75))
    random = np.random.default_rng(0)
    assert {mixture.for_question(random) for _ in range(50)} == {few, many}
    assert get_controller("asc").for_question(random) == get_controller("asc")
    pool = load_pool(POOL)
    low, high, mixed, again = evaluate(pool, [few, many, mixture, mixture])
    assert mixed.samples == again.samples == pytest.approx(0.25 * low.samples + 0.75 * high.samples, rel=0.03)
    assert mixture.decide(Tally(32)) == many.decide(Tally(32))


def test_budgets_on_the_command_line(tmp_path: Path) -> None:
    out = tmp_path / "p.safetensors"
    done = suffice("plan", POOL, "--mean-samples", "9", "--mean-rounds", "2", "--out", out)
    assert done.returncode == 0, done.stderr
    (samples,) = re.findall(rf"{POOL}: ([\d.]+) samples", done.stdout)
    assert float(samples) == pytest.approx(9, rel=0.05)
    assert isinstance(get_controller(f"file:{out}"), Mixture)
    assert "can't be met" in suffice("plan", "--mean-samples", "0.5").stdout
    assert "99.50 % agreement" in suffice("plan", "--min-agreement", "99.5").stdout
    assert "--mean-rounds must be above 0" in fails("plan", "--mean-rounds", "-1")
    assert "at most 100" in fails("plan", "--min-agreement", "995")


def test_costs_become_penalties_everywhere(tmp_path: Path) -> None:
    costs = ["--price-per-million-tokens", "10", "--value-of-an-answer", "2", "--seconds-per-round", "30"]
    costs += ["--value-of-a-second", "0.001"]
    done = suffice("evaluate", POOL, "--controller", "sc", "--repeats", "2", *costs)
    # The pool's mean of 316 tokens: 2 · 10 · 316 / 10⁶ / 2 a draw, and 2 · 0.03 / 2 a round.
    assert "Penalties: 0.00316 a draw, 0.03 a round." in done.stdout
    assert "penalty_round=0.03" in suffice("plan", "--tokens-per-sample", "100", *costs).stdout
    assert "--tokens-per-sample must be given" in fails("plan", *costs)
    assert "--value-of-an-answer must be given" in fails("plan", *costs[:2])
    assert "must be above 0" in fails("plan", "--value-of-an-answer", "0")
    assert "--value-of-a-second must be 0 or more" in fails("plan", "--value-of-a-second", "-1", *costs[2:4])


@pytest.mark.parametrize(("samples", "rounds"), [(8, 1.5), (12, 2.5)])
def test_no_mixture_of_a_grid_of_plans_agrees_more_often(samples: float, rounds: float) -> None:
    found = for_mean_samples_and_rounds(Plan(), samples, rounds, MEASURE)
    penalties = [0.0, 0.001, 0.002, 0.004, 0.0075, 0.015, 0.03, 0.06, 0.12]
    means = [MEASURE(Plan(draw, wait)) for draw in penalties for wait in penalties]
    table = np.array([(one.samples, one.rounds, one.agreement) for one in means])
    best = linprog(-table[:, 2], table[:, :2].T, [samples, rounds], np.ones((1, len(table))), [1])
    assert best.status == 0 and found.means.agreement >= -best.fun - 1e-7


def test_what_is_reported_is_on_other_draws_than_the_search() -> None:
    assert inspect.signature(evaluate).parameters["seed"].default != HELD_OUT_SEED


@pytest.mark.parametrize("shares", [(0.5, 0.4), (1.5, -0.5), (0.5, 0.6)])
def test_a_file_whose_shares_are_none_is_refused(tmp_path: Path, shares: tuple[float, float]) -> None:
    save_controller(Mixture((Plan(0.01), Plan(0.02)), shares), tmp_path / "m.safetensors")
    with pytest.raises(ControllerError, match="not a whole controller file"):
        load_controller(tmp_path / "m.safetensors")


def test_which_plan_serves_a_question_depends_on_the_seed() -> None:
    pool = make_pool(*["a" * 32] * 10)  # whatever is drawn is the same: what differs is the plan
    mixture = Mixture((Plan(5.0), Plan(0.0)), (0.5, 0.5))
    one, again, other = (evaluate(pool, mixture, repeats=5, seed=seed)[0].by_question["samples"] for seed in (1, 1, 2))
    assert (one == again).all() and (one != other).any()
    assert len(set(one)) > 1, "and on the question and the repeat"
