"""Plans and confidences for large budgets, on small ones, where what is exact is known."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from helpers.pools import make_pool
from helpers.tallies import tally_by_votes, tally_of

from suffice import Penalties, Plan, Tally, confidence, get_controller
from suffice.planning import UNIVERSAL, Prior, confidences
from suffice.planning.approximate import confidence_table, plan_table, simulate
from suffice.planning.budgets import expected_means, follow, for_mean_samples
from suffice.planning.model import Model, build_model, cached
from suffice.planning.tables import SIZE_KEYS, Table
from suffice.planning.values import Policy, plan
from suffice.replay import learn_prior
from suffice.tally import FloatArray, Standings

SMALL, LARGE = 24, 56
ACTIONS = (1, 2, 3, 4, 6, 8, 12, 16)
FITTED = Prior(tuple(np.random.default_rng(0).dirichlet(np.full(220, 0.1)).tolist()))


def chances(model: Model) -> list[FloatArray]:
    """How likely each partition is, level by level."""
    found: list[FloatArray] = [np.ones(1)]
    for level, probabilities, after in zip(model.levels, model.probabilities, model.levels[1:], strict=False):
        steps = found[-1][level.parent] * probabilities
        found.append(np.bincount(level.child, steps, minlength=len(after.parts)).astype(float))
    return found


def by_partition(table: Table, column: str, model: Model, draws: int) -> FloatArray:
    level = model.levels[draws]
    return table.find_states(column, level.keys, level.parts[:, :3].astype(int), draws)


def value_of(table: Table, model: Model, penalties: Penalties) -> float:
    """The exact value of a plan: what it asks for is followed through all partitions."""
    asked = [by_partition(table, "asked", model, draws).astype(int) for draws in range(model.budget + 1)]
    means = follow(model, Policy(asked, asked, []))
    return 2 * means.agreement - 1 - penalties.draw * means.samples - penalties.round * means.rounds


@pytest.mark.parametrize("prior", [UNIVERSAL, FITTED])
@pytest.mark.parametrize("penalties", [Penalties(0.0075, 0.005), Penalties(0.0075, 0.0), Penalties(0.002, 0.01)])
def test_the_approximate_plan_loses_next_to_nothing(prior: Prior, penalties: Penalties) -> None:
    model = build_model(SMALL, prior)
    best = plan(model, penalties, ACTIONS).value[0][0]
    found = value_of(plan_table(SMALL, prior, penalties, ACTIONS), model, penalties)
    assert best - 0.002 < found <= best + 1e-9


@pytest.mark.parametrize("prior", [UNIVERSAL, FITTED])
def test_the_approximate_confidence_is_near_the_exact_one(prior: Prior) -> None:
    model = build_model(SMALL, prior)
    table = confidence_table(SMALL, prior)
    for draws, likely in enumerate(chances(model)):
        off = by_partition(table, "confidence", model, draws) - model.confidence[draws]
        assert abs(likely @ off) < 0.005
        assert likely @ abs(off) < 0.015


def test_episodes_are_the_process_s() -> None:
    model = build_model(8)
    for step, likely, level in zip(simulate(UNIVERSAL, 8, 100_000), chances(model)[1:], model.levels[1:], strict=True):
        times = np.bincount(np.searchsorted(level.keys, step.keys), minlength=len(likely))
        np.testing.assert_allclose(times / 100_000, likely, atol=0.006)
        (row,) = np.flatnonzero(level.keys == step.keys[0])
        assert (level.parts[row, :3] == step.top[:, 0]).all()


def test_no_two_partitions_share_a_key() -> None:
    for level in build_model(SMALL).levels:
        assert len(set(SIZE_KEYS[level.parts].sum(axis=1, dtype=np.uint64).tolist())) == len(level.parts)


def voted(*votes: int, none: int = 0) -> Tally:
    return tally_by_votes(*votes, none=none, budget=LARGE)


def test_what_is_settled_is_certain_and_stops() -> None:
    for tally in (voted(29, 16), voted(30, 2), voted(28, 28), voted(20, 2, none=17)):
        assert tally.top(1)[0] >= tally.top(2)[1] + tally.left
        assert confidence(tally) == pytest.approx(1)
        assert get_controller("plan").decide(tally) == 0


def test_it_draws_on_where_it_is_close_or_nothing_is_there() -> None:
    assert get_controller("plan").decide(voted(17, 17)) > 0
    assert get_controller("plan").decide(voted(none=40)) > 0
    assert confidence(voted(none=40)) == 0 and confidence(voted(none=LARGE)) == 1


def test_actions_are_those_that_were_chosen() -> None:
    answers = np.random.default_rng(0).integers(0, 3, (200, LARGE))
    chosen = Plan(0.001, 0.0, (3, 5))
    for draws in (0, 7, 33, 40, LARGE - 4):
        asked = chosen.decide_many(Standings(answers).at(np.arange(200), np.full(200, draws)))
        assert set(asked.tolist()) <= {0, 3, min(5, LARGE - draws)}


def test_one_at_a_time_and_many_at_once_are_the_same() -> None:
    answers = np.random.default_rng(1).integers(-1, 3, (60, LARGE))
    rows, standings = np.arange(60), Standings(answers)
    for draws in (5, 32, 33, 50, LARGE):
        tallies = standings.at(rows, np.full(60, draws))
        asked, sure = Plan().decide_many(tallies), confidences(tallies)
        for row in rows:
            tally = tally_of((None if code < 0 else str(code) for code in answers[row, :draws]), LARGE)
            assert Plan().decide(tally) == asked[row]
            assert confidence(tally) == pytest.approx(sure[row])


def test_a_mean_of_samples_is_met() -> None:
    found = for_mean_samples(Plan(), 20, expected_means(LARGE))
    assert found.means.samples == pytest.approx(20, abs=1e-6)
    assert all(0.005 < plan.penalty_draw < 0.1 for plan in found.mixture.plans)


def test_the_oldest_files_are_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("suffice.planning.model.MOST_BYTES", 3000)
    for number in range(5):
        cached(lambda: {"zeros": np.zeros(100)}, "test", number)
        time = 1_000_000_000 + number
        for file in (tmp_path / "suffice").iterdir():
            if file.stat().st_mtime > 1_500_000_000:
                os.utime(file, (time, time))
    assert sorted(int(file.stat().st_mtime) for file in (tmp_path / "suffice").iterdir()) == [1000000003, 1000000004]


def test_a_fitted_prior_serves_large_budgets() -> None:
    prior = learn_prior(make_pool(*["a" * 30] * 20), budget=8)
    assert Plan(prior=prior).decide(voted(2)) == 0 < Plan().decide(voted(2))


def test_it_says_that_it_is_approximate() -> None:
    assert "approximate up to 512" in repr(Plan())
    assert "approximate" in json.dumps(dict(Plan().card))
    assert get_controller(str(Plan(0.01, 0.0))) == Plan(0.01, 0.0)
