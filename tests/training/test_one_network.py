"""Toys of the one network for all budgets and penalties."""

import numpy as np
import pytest
from helpers.pools import make_pool

from suffice import ConditionedController, Controller, OptionError, Penalties, Plan, evaluate
from suffice.controllers.conditioned import Range
from suffice.replay import mean_over_pools
from suffice.training import imitation
from suffice.training.conditioned import simulated_pool
from suffice.training.imitation import _without_answers, planner_examples
from suffice.training.learner import Trained, Watched
from suffice.training.mixed import ConditionedSupply, ConditionedVecEnv
from suffice.training.runs import train
from suffice.training.setting import Setting, TrainingJob

POOL = make_pool("a" * 12, "ab" * 6, "aab" * 4, "abcd" * 3)
SMALL = Range(budgets=(6, 8), draw=(0.005, 0.01), round=(0.0, 0.01))
SETTING = Setting(budget=8)


def toy(steps: int = 9000, **options: object) -> TrainingJob:
    return TrainingJob((POOL,), **{"setting": SETTING, "steps": steps, "ranges": SMALL, "lessons": 2, **options})  # type: ignore[arg-type]


def tiny(steps: int = 1, **options: object) -> TrainingJob:
    """With one budget alone."""
    return toy(steps, lessons=1, setting=Setting(budget=6), ranges=Range(budgets=(6, 6)), **options)


@pytest.fixture(scope="module")
def trained() -> Trained:
    return train(toy(), executor="here")[0]


def test_one_network_is_near_the_exact_plan_at_every_budget_and_price(trained: Trained) -> None:
    model = simulated_pool(8, 400, seed=5)
    for budget in (6, 7, 8):
        for penalties in (Penalties(0.005), Penalties(0.01, 0.01)):
            assert isinstance(trained.controller, ConditionedController)
            ways: list[str | Controller] = [
                trained.controller.at(penalties),
                Plan(penalties.draw, penalties.round, (1, 2, 4)),
                "sc",
            ]
            found = evaluate(model, ways, budget=budget, repeats=1, penalties=penalties, confidence=False)
            ours, best, everything = (mean_over_pools([result], "reward") or 0.0 for result in found)
            assert ours > best - 0.03
            assert ours >= everything - 0.03


def test_the_card_tells_ranges_and_what_imitation_and_ppo_gave(trained: Trained) -> None:
    card = trained.controller.card
    assert card["ranges"] == {"budget": (6, 8), "penalty_draw": (0.005, 0.01), "penalty_round": (0.0, 0.01)}
    assert card["steps"] >= 9000 and card["lessons"] == 2
    assert card["target_reward"] >= card["imitation_reward"] > 0
    assert card["reward"] == pytest.approx(trained.results[0].reward)


def test_seeds_make_it_repeatable() -> None:
    first, again, other = (train(tiny(seed=seed), executor="here")[0].controller.tensors() for seed in (0, 0, 1))
    for name, weights in first.items():
        np.testing.assert_array_equal(weights, again[name])
    assert any((weights != other[name]).any() for name, weights in first.items())


def test_an_interrupted_run_keeps_its_best_so_far() -> None:
    told: list[Watched] = []

    def interrupt(number: int, watched: Watched) -> None:
        told.append(watched)
        if watched.steps > 8000:
            raise KeyboardInterrupt

    (kept,) = train(tiny(200_000), watch=interrupt, executor="here")
    assert 8000 < kept.controller.card["steps"] < 200_000
    assert told[0].note == "planning at a budget of 6" and any("imitating" in one.note for one in told)


def test_being_like_the_planner_counts_for_less_and_less(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[float] = []

    def likeness(share: float) -> float:
        done.append(share)
        return 0.0

    monkeypatch.setattr(imitation, "likeness_after", likeness)
    monkeypatch.setattr(imitation, "BATCH", 64)
    monkeypatch.setattr(imitation, "EPOCHS", 3)
    _, lessons = next(iter(planner_examples(Range((6, 6)), (1, 2, 4), 0.0, prices=1, seed=0)))
    imitation.imitate(lessons, 0, lambda said: None)
    np.testing.assert_allclose(done, np.arange(len(done)) / len(done))
    assert len(done) == 3 * (len(lessons.inputs) // 64) > 30


def test_lessons_are_what_the_planner_holds() -> None:
    rng = np.random.default_rng(0)
    for budget, lessons in planner_examples(Range((4, 6)), (1, 2, 4), 0.0, prices=1, seed=0):
        assert len(lessons.inputs) == len(lessons.worths) > 100
        assert (lessons.worths.max(axis=1) <= 1).all() and budget in (4, 5, 6)
        start = lessons.inputs[:, 4] == 0  # no draws yet: one state, and the same worths for all
        assert np.ptp(lessons.worths[start], axis=0).max() < 1e-6
    top = np.array([[3, 1, 1, 1, 0], [1, 1, 0, 0, 0]] * 200)
    changed = _without_answers(top, rng)
    assert (changed[:, 0] == top[:, 0]).all() and (changed <= top).all() and (changed < top).any()
    assert (np.diff(changed, axis=1) <= 0).all()


@pytest.mark.parametrize("budgets", [(2, 8), (20, 40)])
def test_episodes_have_budgets_and_penalties_of_their_own(budgets: tuple[int, int]) -> None:
    """The second are larger than the pool: they come from the model."""
    env = ConditionedVecEnv(ConditionedSupply((POOL,), Range(budgets), seed=0), SETTING, copies=50, least_round=3e-4)
    env.reset()
    rng = np.random.default_rng(0)
    for _ in range(60):
        before, now = env._draws.copy(), env._now[np.arange(50)]
        actions = rng.integers(0, 4, 50)
        asked = np.minimum(np.array([0, 1, 2, 4])[actions], now.budget - before)
        seen, rewards, ended, _ = env.step(actions)
        assert ((asked == 0) | (before + asked == now.budget)).tolist() == ended.tolist()
        after = now.right[np.arange(50), before + asked]
        costs = now.draw * asked + np.maximum(now.round, 3e-4) * (asked > 0)
        np.testing.assert_allclose(rewards, np.where(ended, np.where(after, 1, -1), 0) - costs, atol=1e-6)
        assert budgets[0] <= now.budget.min() and now.budget.max() <= budgets[1]
        assert np.isfinite(np.asarray(seen)).all() and np.asarray(seen).max() < 4
        full = now.right[np.arange(50), now.budget]
        assert full.all(), "whoever draws the full budget agrees with it"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"algorithm": "dqn"}, "is trained by PPO"),
        ({"setting": Setting(budget=8, top=3)}, "top must be 5"),
        ({"lessons": -1}, "lessons must be a whole number, at least 0"),
        ({"setting": Setting(Penalties(0.5), budget=8)}, "penalty_draw must be between 0.005 and 0.01"),
    ],
)
def test_what_cannot_be_trained_is_refused(options: dict[str, object], words: str) -> None:
    with pytest.raises(Exception, match=words):
        train(toy(**options))  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="budgets must rise, to 256 at the most"):
        Range((2, 300))
