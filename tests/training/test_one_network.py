"""Toys of the one network for all budgets and penalties."""

import numpy as np
import pytest
from helpers.pools import make_pool

from suffice import ConditionedController, Controller, OptionError, Penalties, Plan, Pool, evaluate
from suffice.controllers.conditioned import Range
from suffice.planning.approximate import simulate
from suffice.planning.model import UNIVERSAL
from suffice.replay import mean_over_pools
from suffice.training import imitation
from suffice.training.imitation import _without_answers, planner_examples
from suffice.training.learner import Trained, Watched
from suffice.training.runs import train
from suffice.training.setting import Setting, TrainingJob

POOL = make_pool("a" * 12, "ab" * 6, "aab" * 4, "abcd" * 3)
SMALL = Range(budgets=(6, 8), draw=(0.005, 0.01), round=(0.0, 0.01))
SETTING = Setting(budget=8)


def toy(**options: object) -> TrainingJob:
    return TrainingJob((POOL,), **{"setting": SETTING, "ranges": SMALL, "lessons": 2, **options})  # type: ignore[arg-type]


def tiny(**options: object) -> TrainingJob:
    """With one budget alone."""
    return toy(lessons=1, setting=Setting(budget=6), ranges=Range(budgets=(6, 6)), **options)


def simulated(responses: int, questions: int, seed: int) -> Pool:
    """Questions whose answers follow the model."""
    answers = np.stack([step.answer for step in simulate(UNIVERSAL, responses, questions, seed)], axis=1)
    return make_pool(*(tuple(map(str, row)) for row in answers.tolist()))


@pytest.fixture(scope="module")
def trained() -> Trained:
    return train(toy(), executor="here")[0]


def test_one_network_is_near_the_exact_plan_at_every_budget_and_price(trained: Trained) -> None:
    model = simulated(8, 400, seed=5)
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


def test_the_card_tells_ranges_and_figures(trained: Trained) -> None:
    card = trained.controller.card
    assert card["ranges"] == {"budget": (6, 8), "penalty_draw": (0.005, 0.01), "penalty_round": (0.0, 0.01)}
    assert (card["algorithm"], card["lessons"]) == ("imitation", 2) and card["steps"] > 1000
    assert card["reward"] == pytest.approx(trained.results[0].reward)


def test_seeds_make_it_repeatable() -> None:
    first, again, other = (train(tiny(seed=seed), executor="here")[0].controller.tensors() for seed in (0, 0, 1))
    for name, weights in first.items():
        np.testing.assert_array_equal(weights, again[name])
    assert any((weights != other[name]).any() for name, weights in first.items())


def test_it_tells_what_it_is_at_and_can_be_interrupted() -> None:
    told: list[str] = []

    def interrupt(number: int, watched: Watched) -> None:
        told.append(watched.note)
        if "imitating" in watched.note:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(tiny(), watch=interrupt, executor="here")
    assert told[0] == "planning at a budget of 6" and told[-1] == "imitating the planner, 1 of 16"


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


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"steps": 9000}, "has no preset, steps, target or means"),
        ({"setting": Setting(budget=8, top=3)}, "top must be 5"),
        ({"lessons": 0}, "lessons must be a whole number, at least 1"),
        ({"setting": Setting(Penalties(0.5), budget=8)}, "penalty_draw must be between 0.005 and 0.01"),
    ],
)
def test_what_cannot_be_trained_is_refused(options: dict[str, object], words: str) -> None:
    with pytest.raises(Exception, match=words):
        train(toy(**options))
    with pytest.raises(OptionError, match="budgets must rise, to 256 at the most"):
        Range((2, 300))
