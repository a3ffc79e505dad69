"""Toys: real training is measured by `make bench`."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from helpers.pools import make_pool

from suffice import OptionError, Penalties, evaluate, load_pool
from suffice.executors import Link
from suffice.training import learner
from suffice.training.learner import FINAL_SEED, PRESETS, WATCH_SEED, Watched, Watcher, new_model
from suffice.training.runs import train
from suffice.training.setting import Setting, TrainingJob


def toy(steps: int = 40_000, **options: object) -> TrainingJob:
    return TrainingJob((make_pool("a" * 40, "ab" * 20, "aab" * 14),), steps=steps, **options)  # type: ignore[arg-type]


def test_seeds_make_training_repeatable(monkeypatch: pytest.MonkeyPatch) -> None:
    """The steps are enough for an update or two."""
    monkeypatch.setattr(learner, "WATCHES", 4)
    first, again, other = (train(toy(20_000, seed=seed))[0].controller for seed in (1, 1, 2))
    for (ours, _), (theirs, _), (others, _) in zip(first.layers, again.layers, other.layers, strict=True):
        np.testing.assert_array_equal(ours, theirs)
        assert (ours != others).any()


def test_the_paper_s_preset_runs_and_the_card_has_the_rules_to_compare_with() -> None:
    (trained,) = train(toy(1, preset="paper"))
    assert trained.controller.card["preset"] == "paper"
    shapes = [weights.shape for weights, _ in trained.controller.layers]
    assert shapes == [(32, 7), (64, 32), (64, 64), (32, 64), (4, 32)]
    # It learned nothing, and the card has the rules to compare with.
    assert trained.controller.card["rules"]["sc"]["reward"] == pytest.approx(0.76)
    assert any("asc" in rule for rule in trained.controller.no_better_than())


def test_it_learns_to_stop_at_once_where_all_answers_are_alike() -> None:
    pool = make_pool("a" * 40)
    (trained,) = train(TrainingJob((pool,), steps=24_000))
    (result,) = evaluate(pool, [trained.controller], repeats=20)
    assert (result.samples, result.rounds, result.agreement) == (4, 1, 100)


def test_it_never_stops_before_the_vote_is_settled_where_answers_split_evenly_and_draws_are_free() -> None:
    pool = make_pool("ab" * 20)
    (trained,) = train(TrainingJob((pool,), Setting(Penalties(draw=0)), steps=60_000))
    (result,) = evaluate(pool, [trained.controller], repeats=500, penalties=Penalties(draw=0))
    assert result.agreement == 100


def test_several_seeds_are_tried_and_the_best_comes_first() -> None:
    told: list[tuple[int, Watched]] = []
    few = toy(20_000)
    trained = train(few, seeds=2, watch=lambda number, watched: told.append((number, watched)), executor="here")
    assert {one.seed for one in trained} == {0, 1}
    assert trained[0].reward >= trained[1].reward
    assert {number for number, _ in told} == {0, 1}
    assert all(watched.steps <= 20_000 for _, watched in told)
    alone = train(replace(few, seed=trained[0].seed))[0]
    assert alone.reward == trained[0].reward


def test_the_card_tells_what_was_done() -> None:
    job = toy(5000, setting=Setting(Penalties(0.01, 0.002), actions=(2, 6), first=3), seed=7)
    (trained,) = train(job)
    card = trained.controller.card
    told = {"kind": "learned", "budget": 32, "top": 5, "actions": [2, 6], "first": 3, "target": "running"}
    told |= {"algorithm": "ppo", "seed": 7, "penalties": {"draw": 0.01, "round": 0.002}, "format": 1}
    assert {key: card[key] for key in told} == told
    assert card["steps"] >= 5000
    assert card["pools"][0]["name"] == "toy"
    assert card["versions"]["torch"].startswith("2.")
    # The reward on the card is the replay's, every draw and round counted.
    assert card["reward"] == pytest.approx(trained.results[0].reward)


def test_figures_are_on_other_draws_than_those_by_which_the_best_moment_was_chosen() -> None:
    (trained,) = train(toy(1))
    again = [evaluate(toy().pools[0], trained.controller, seed=seed)[0] for seed in (FINAL_SEED, WATCH_SEED)]
    assert trained.results[0].agreement == again[0].agreement != again[1].agreement


def test_an_interrupted_run_keeps_its_best_so_far() -> None:
    def interrupt(number: int, watched: Watched) -> None:
        if watched.steps > 20_000:
            raise KeyboardInterrupt

    (trained,) = train(toy(1_000_000), watch=interrupt)
    assert 20_000 < trained.controller.card["steps"] < 200_000
    assert trained.reward > 0.5


@pytest.mark.parametrize("target", ["full", "gold"])
def test_the_best_moment_is_chosen_by_the_target(target: str) -> None:
    """Where the full vote is wrong, a controller that is paid for the truth should not buy agreement."""
    pool = make_pool("b" * 30 + "a" * 10, "b" * 40, gold="a")
    (trained,) = train(TrainingJob((pool,), Setting(target=target), steps=40_000))
    card = trained.controller.card
    assert card["best_after_steps"] > 0
    if target == "gold":
        assert card["target_reward"] < -0.8 < card["reward"]
        assert trained.results[0].samples < 8


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"preset": "slow"}, "preset must be fast or paper"),
        ({"steps": 0}, "steps must be a whole number, at least 1"),
        ({"seed": -1}, "seed must be a whole number, at least 0"),
        ({"mean_samples": 3}, "between the first round's 4 and the budget"),
        ({"mean_rounds": 1}, "mean_rounds must lie between"),
    ],
)
def test_what_cannot_be_trained_is_refused(options: dict[str, object], words: str) -> None:
    with pytest.raises(OptionError, match=words):
        train(toy(**options))  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="seeds must be a whole number, at least 1"):
        train(toy(), seeds=0)


@pytest.mark.parametrize(("samples", "rounds"), [(9, None), (10, 2.8)])
def test_means_are_met_by_finding_penalties(
    samples: float, rounds: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On few copies there are as many looks, each with a step of the penalties, as in a long run."""
    fast = PRESETS["fast"]
    monkeypatch.setitem(PRESETS, "fast", replace(fast, copies=32, options=fast.options | {"batch_size": 1024}))
    whole = load_pool("qwen2.5-coder-1.5b__gsm8k")
    pool = replace(whole, questions=whole.questions[::8])
    (trained,) = train(TrainingJob((pool,), steps=80_000, mean_samples=samples, mean_rounds=rounds))
    (result,) = evaluate(pool, trained.controller, seed=5)
    assert result.samples == pytest.approx(samples, rel=0.05)
    assert rounds is None or result.rounds <= 1.05 * rounds
    card = trained.controller.card
    assert card["means"] == {"samples": samples, "rounds": rounds}
    assert card["penalties"]["draw"] != 0.0075
    assert result.agreement > 90


def test_the_best_moment_is_kept() -> None:
    told: list[Watched] = []
    job = toy(60_000)
    (trained,) = train(job, watch=lambda number, watched: told.append(watched))
    (kept,) = evaluate(job.pools[0], trained.controller, seed=WATCH_SEED, repeats=2000, confidence=False)
    assert len(told) >= 3 and kept.reward >= max(watched.reward for watched in told) - 1e-9
    assert trained.controller.card["best_after_steps"] < trained.controller.card["steps"], "it was not the last one"


def test_the_bonus_for_trying_all_actions_falls_to_nothing() -> None:
    job = toy(80_000)
    preset = PRESETS["fast"]
    model: Any = new_model(job, preset)
    bonus: list[float] = []
    model.learn(job.steps, callback=Watcher(job, preset, Link(lambda watched: bonus.append(model.ent_coef))))
    assert bonus[0] == preset.entropy > 0 and bonus == sorted(bonus, reverse=True) and len(bonus) > 3
    assert bonus[-1] < preset.entropy / 4
