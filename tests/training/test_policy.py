"""Acting by NumPy, and which network of a run is kept."""

from itertools import count
from typing import Any

import numpy as np
import pytest
import torch
from helpers.pools import make_pool

from suffice.training import learner
from suffice.training.learner import QuickPolicy
from suffice.training.runs import train
from suffice.training.setting import TrainingJob


def quick_policy(seed: int) -> QuickPolicy:
    """The policy of the paper's preset, with weights that have moved away from the start."""
    job = TrainingJob((make_pool("ab" * 20),), preset="paper", seed=seed)
    policy = learner.new_model(job, learner.PRESETS["paper"]).policy
    assert isinstance(policy, QuickPolicy)
    return policy


@pytest.mark.parametrize("seed", [0, 1])
def test_log_probabilities_and_values_are_torch_s_before_and_after_the_optimiser_moves(seed: int) -> None:
    policy = quick_policy(seed)
    states = torch.rand(200, 7, generator=torch.Generator().manual_seed(seed))
    for _ in range(2):
        with torch.no_grad():
            actions, values, logs = policy(states)
            theirs, their_logs, _ = policy.evaluate_actions(states, actions)
            best, _, _ = policy(states, deterministic=True)
        np.testing.assert_allclose(values, theirs, atol=1e-5)
        np.testing.assert_allclose(logs, their_logs, atol=1e-5)
        np.testing.assert_array_equal(best, policy.get_distribution(states).mode())
        optimizer: Any = policy.optimizer
        loss: Any = policy.evaluate_actions(states, actions)[1].sum() + policy.predict_values(states).sum()
        loss.backward()
        for group in optimizer.param_groups:
            group["lr"] = 0.05
        optimizer.step()


def test_actions_come_as_often_as_their_probabilities_say() -> None:
    policy = quick_policy(3)
    states = torch.tensor([[0.1, 0.05, 0, 0, 0, 0.15, 0.4]]).repeat(20_000, 1)
    with torch.no_grad():
        actions, _, _ = policy(states)
        choice: Any = policy.get_distribution(states[:1]).distribution
    shares = np.bincount(actions, minlength=4) / len(states)
    np.testing.assert_allclose(shares, choice.probs[0], atol=0.015)


def test_the_last_network_is_the_one_at_the_end_and_the_best_is_that_of_the_looks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every look seems worse than the one before: so the first stays best."""
    made: list[Any] = []
    new_model, falling = learner.new_model, count(0, -1)

    def watched(*arguments: Any) -> Any:
        made.append(new_model(*arguments))
        return made[-1]

    monkeypatch.setattr(learner, "new_model", watched)
    monkeypatch.setattr(learner, "mean_over_pools", lambda results, metric: float(next(falling)))
    start: list[Any] = []
    end: list[Any] = []
    for keep, layers in (("best", start), ("last", end)):
        (kept,) = train(TrainingJob((make_pool("a" * 40),), preset="paper", steps=1), keep=keep)
        assert kept.controller.card["best_after_steps"] == 0
        layers += kept.controller.layers
    for (weights, bias), (ours, own), (first, _) in zip(learner.network(made[1]), end, start, strict=True):
        np.testing.assert_array_equal(weights, ours)
        np.testing.assert_array_equal(bias, own)
        assert (weights != first).any()
