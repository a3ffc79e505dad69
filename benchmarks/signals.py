"""PPO with signals in its state against PPO without: the paper's named future work, tried.

Beside the seven numbers of the counts, a state here has for each signal how far the leader's responses lie above the
others', in deviations of the question's responses so far, and how the mean of all of them compares with the training
pool's. Both kinds are trained alike, on the same pool and for the same reward, and tested on other questions.

python benchmarks/signals.py [SEEDS [STEPS]]
"""

import sys
import time
from collections.abc import Iterator
from statistics import fmean, stdev
from typing import Any

import gymnasium
import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback

from suffice import Pool, load_pool
from suffice.elections.election import standardised
from suffice.pools import Episodes, draw_episodes
from suffice.tally import NONE, FloatArray, IntArray
from suffice.training.env import BoolArray, SamplingVecEnv, Supply, episode_tables
from suffice.training.learner import GAE_LAMBDA, GAMMA, HIDDEN, LEAST_ROUND_PENALTY, PRESETS
from suffice.training.setting import Setting

TRAINING = "qwen2.5-coder-0.5b__train"
TESTS = ("qwen2.5-coder-0.5b__gsm8k", "qwen2.5-coder-0.5b__math500")
SIGNALS = ("logprob", "confidence", "tail", "lowest", "length")
REPEATS = 40
SETTING = Setting()
FIGURES = ("reward", "agreement", "accuracy", "samples", "rounds")
Usual = dict[str, tuple[float, float]]
"""The mean and the deviation of each signal over the training pool's responses."""


def usual_of(pool: Pool) -> Usual:
    columns = {
        name: np.concatenate(
            [question.lengths if name == "length" else question.signal_values[name] for question in pool.questions]
        )
        for name in SIGNALS
    }
    return {name: (float(values.mean()), float(values.std())) for name, values in columns.items()}


def signal_states(episodes: Episodes, usual: Usual) -> FloatArray:
    """What signals add to the state of each episode after each number of draws: two numbers a signal, from 0 to 1."""
    answers, leader = episodes.answers, episodes.standings.leader
    values = {name: episodes.lengths if name == "length" else episodes.signal(name) for name in SIGNALS}
    states = np.full((len(answers), SETTING.budget + 1, 2 * len(SIGNALS)), 0.5, np.float32)
    for draws in range(SETTING.first, SETTING.budget + 1):
        given = answers[:, :draws]
        voted = given != NONE
        leads = voted & (given == leader[draws][:, None])
        for place, name in enumerate(SIGNALS):
            drawn = np.where(voted, values[name][:, :draws], np.nan)
            scores = standardised(drawn)
            gap = mean_of(scores, leads) - mean_of(scores, voted & ~leads)
            level = (mean_of(values[name][:, :draws], np.ones_like(voted)) - usual[name][0]) / usual[name][1]
            states[:, draws, 2 * place] = 0.5 + gap / 6
            states[:, draws, 2 * place + 1] = 0.5 + level / 6
    return np.clip(states, 0, 1)


def mean_of(values: FloatArray, chosen: BoolArray) -> FloatArray:
    """The mean of those that are chosen in each row; 0 where none is."""
    means: FloatArray = np.where(chosen, values, 0).sum(axis=1) / np.maximum(chosen.sum(axis=1), 1)
    return means


def tables(episodes: Episodes, usual: Usual | None) -> tuple[FloatArray, BoolArray]:
    """States and rights, as in training; with signals where it is told what is usual of them."""
    states, right = episode_tables(episodes, SETTING)
    return (states if usual is None else np.concatenate([states, signal_states(episodes, usual)], axis=2)), right


class SignalSupply(Supply):
    """Fresh episodes, with wider states."""

    def __init__(self, pool: Pool, seed: int, usual: Usual | None) -> None:
        self.usual = usual
        super().__init__(pool, SETTING, seed)

    def _draw(self) -> tuple[FloatArray, BoolArray]:
        seed = int(self._random.integers(2**63))
        parts = [
            tables(episodes, self.usual)
            for episodes in draw_episodes(self._pools[0], SETTING.budget, self._repeats, seed)
        ]
        states, right = (np.concatenate(part) for part in zip(*parts, strict=True))
        order = self._random.permutation(len(states))
        return states[order], right[order]


class Annealed(BaseCallback):
    """The bonus for trying all actions falls to 0 with the steps, as in the preset."""

    def _on_step(self) -> bool:
        model: Any = self.model
        model.ent_coef = PRESETS["fast"].entropy * max(model._current_progress_remaining, 0)
        return True


def trained(pool: Pool, usual: Usual | None, seed: int, steps: int) -> PPO:
    """The last network of a run of the fast preset."""
    preset = PRESETS["fast"]
    env = SamplingVecEnv(SignalSupply(pool, seed, usual), preset.copies)
    width = SETTING.top + 2 + (2 * len(SIGNALS) if usual else 0)
    env.observation_space = gymnasium.spaces.Box(0, 1, (width,), np.float32)
    env.penalties = type(env.penalties)(env.penalties.draw, LEAST_ROUND_PENALTY)
    rate = preset.options["learning_rate"]
    options = {**preset.options, "learning_rate": lambda remaining: rate * max(remaining, 0)}
    network = {"net_arch": list(HIDDEN)}
    model = PPO(
        "MlpPolicy", env, gamma=GAMMA, gae_lambda=GAE_LAMBDA, policy_kwargs=network, seed=seed, device="cpu", **options
    )
    extractor: Any = model.policy.mlp_extractor
    with torch.no_grad():
        for first, *_ in (extractor.policy_net, extractor.value_net):
            first.weight *= preset.sharpness
    return model.learn(steps, callback=Annealed())


def tested(model: PPO, pool: Pool, usual: Usual | None) -> dict[str, float]:
    """What the likeliest actions do on a pool."""
    found: dict[str, list[FloatArray]] = {name: [] for name in FIGURES}
    for episodes in draw_episodes(pool, SETTING.budget, REPEATS, seed=0):
        states, right = tables(episodes, usual)
        draws, rounds = played(model, states)
        rows = np.arange(len(draws))
        agrees = right[rows, draws]
        answer = episodes.standings.leader[draws, rows]
        accurate = answer == episodes.codes(question.gold for question in episodes.questions)
        reward = 2.0 * agrees - 1 - SETTING.penalties.draw * draws - SETTING.penalties.round * rounds
        for name, values in zip(FIGURES, (reward, 100 * agrees, 100 * accurate, draws, rounds), strict=True):
            found[name].append(values.astype(float))
    return {name: float(np.concatenate(parts).mean()) for name, parts in found.items()}


def played(model: PPO, states: FloatArray) -> tuple[IntArray, IntArray]:
    """The draws and rounds of each episode."""
    draws = np.full(len(states), SETTING.first)
    rounds = np.ones(len(states), np.int64)
    running = np.arange(len(states))
    while running.size:
        actions, _ = model.predict(states[running, draws[running]], deterministic=True)
        asked = np.minimum(np.array([0, *SETTING.actions])[actions], SETTING.budget - draws[running])
        running, asked = running[asked > 0], asked[asked > 0]
        draws[running] += asked
        rounds[running] += 1
        running = running[draws[running] < SETTING.budget]
    return draws, rounds


def runs(seeds: int, steps: int) -> Iterator[tuple[str, str, dict[str, float]]]:
    pool = load_pool(TRAINING)
    for seed in range(seeds):
        for name, usual in (("counts", None), ("counts and signals", usual_of(pool))):
            model = trained(pool, usual, seed, steps)
            for test in (TRAINING, *TESTS):
                figures = tested(model, load_pool(test), usual)
                spent = f"{time.process_time() / 60:.1f} core-minutes so far"
                print(f"seed {seed}, {name}, {test}: {figures}; {spent}", file=sys.stderr, flush=True)
                yield name, test, figures


def main() -> None:
    seeds, steps = (int(value) for value in (*sys.argv[1:], *("3", "300000")[len(sys.argv) - 1 :]))
    torch.set_num_threads(1)
    found: dict[tuple[str, str], list[dict[str, float]]] = {}
    for name, test, figures in runs(seeds, steps):
        found.setdefault((test, name), []).append(figures)
    print(f"{seeds} seeds, {steps:,} steps each\n\n| pool | state | {' | '.join(FIGURES)} |")
    print(f"|{'---|' * (2 + len(FIGURES))}")
    for (test, name), each in found.items():
        cells = []
        for figure in FIGURES:
            values = [figures[figure] for figures in each]
            places = 4 if figure == "reward" else 2
            cells.append(f"{fmean(values):.{places}f} ± {stdev(values) if len(values) > 1 else 0:.{places}f}")
        print(f"| {test} | {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
