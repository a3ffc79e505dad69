"""Trains many controllers at once, as `suffice reproduce` would one by one: PPO in NumPy, for the caches of results.py.

    python benchmarks/together.py CACHE MODEL [POOLS] --preset paper --targets running gold --seeds 0 1 2

The process, the networks at the start, the hyperparameters and the looks are the trainer's own, and the algorithm is
Stable-Baselines3's PPO, written for networks side by side: a network of this size spends nine tenths of its time in
torch's overhead. Rounding and the order of chance differ, so that a seed gives another controller of the same kind.
"""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from suffice import Penalties, load_pool
from suffice.executors import Link
from suffice.experiments import Bench
from suffice.experiments.bench import save_trained
from suffice.training.learner import GAE_LAMBDA, PRESETS, Trained, Watcher, new_model
from suffice.training.setting import TrainingJob

POOLS = Path(__file__).parents[2] / "shared" / "pools"
BENCHMARKS = ("aime24", "aime25", "hmmt25")
EPOCHS, CLIP, VALUE_WEIGHT, MOST_GRADIENT = 10, 0.2, 0.5, 0.5
BETAS = (0.9, 0.999)

Floats = NDArray[np.float32]
Rollout = Sequence[NDArray[Any]]
"""States, actions, their log probabilities, advantages and returns: a row a run."""


class Networks:
    """The same layers of several runs, as views of one array of numbers that the optimiser changes."""

    def __init__(self, modules: Sequence[Sequence[Any]]) -> None:
        """Take the weights of each run's linear modules."""
        self.modules = modules
        self.shapes = [(one.in_features, one.out_features) for one in modules[0]]
        self.size = sum((inputs + 1) * outputs for inputs, outputs in self.shapes)

    def views(self, numbers: Floats) -> list[tuple[Floats, Floats]]:
        """Weights and biases of each layer, of all runs."""
        found, start = [], 0
        for inputs, outputs in self.shapes:
            weights = numbers[:, start : start + inputs * outputs].reshape(-1, inputs, outputs)
            start += inputs * outputs
            found.append((weights, numbers[:, None, start : start + outputs]))
            start += outputs
        return found

    def read(self, layers: Sequence[tuple[Floats, Floats]]) -> None:
        """From the modules into the array."""
        for place, (weights, bias) in enumerate(layers):
            for run, modules in enumerate(self.modules):
                weights[run] = modules[place].weight.detach().numpy().T
                bias[run, 0] = modules[place].bias.detach().numpy()

    def write(self, layers: Sequence[tuple[Floats, Floats]]) -> None:
        """From the array into the modules."""
        with torch.no_grad():
            for place, (weights, bias) in enumerate(layers):
                for run, modules in enumerate(self.modules):
                    modules[place].weight.copy_(torch.from_numpy(weights[run].T.copy()))
                    modules[place].bias.copy_(torch.from_numpy(bias[run, 0].copy()))


def forward(layers: Sequence[tuple[Floats, Floats]], states: Floats) -> list[Floats]:
    """What goes into each layer, and what comes out of the last."""
    seen = [states]
    for place, (weights, bias) in enumerate(layers):
        out = np.matmul(seen[-1], weights)
        out += bias
        seen.append(np.tanh(out, out) if place < len(layers) - 1 else out)
    return seen


def backward(
    layers: Sequence[tuple[Floats, Floats]],
    seen: Sequence[Floats],
    slopes: Floats,
    gradients: Sequence[tuple[Floats, Floats]],
) -> None:
    """The gradients of all layers, from those of what came out."""
    for place in range(len(layers) - 1, -1, -1):
        weights, bias = gradients[place]
        np.matmul(seen[place].swapaxes(1, 2), slopes, out=weights)
        slopes.sum(axis=1, keepdims=True, out=bias)
        if place:
            slopes = np.matmul(slopes, layers[place][0].swapaxes(1, 2))
            slopes *= 1 - np.square(seen[place])


class Runs:
    """Several training runs in step, with one preset."""

    def __init__(self, jobs: Sequence[TrainingJob]) -> None:
        self.jobs = jobs
        self.preset = PRESETS[jobs[0].preset]
        self.models: list[Any] = [new_model(job, self.preset) for job in jobs]
        self.watchers = [Watcher(job, self.preset, Link()) for job in jobs]
        self.random = [np.random.default_rng([job.seed, 7]) for job in jobs]
        first = self.models[0]
        self.copies, self.horizon, self.batch = first.n_envs, first.n_steps, first.batch_size
        policies = [model.policy for model in self.models]
        self.epsilon = policies[0].optimizer.param_groups[0]["eps"]
        self.actor, self.critic = (
            Networks([_linear([*getattr(policy.mlp_extractor, hidden), getattr(policy, last)]) for policy in policies])
            for hidden, last in (("policy_net", "action_net"), ("value_net", "value_net"))
        )
        numbers, self.gradient, self.mean, self.square = (
            np.zeros((len(jobs), self.actor.size + self.critic.size), np.float32) for _ in range(4)
        )
        self.numbers, self.updates, self.steps = numbers, 0, 0
        cut = self.actor.size
        self.acting, self.valuing = self.actor.views(numbers[:, :cut]), self.critic.views(numbers[:, cut:])
        self.acting_slopes = self.actor.views(self.gradient[:, :cut])
        self.valuing_slopes = self.critic.views(self.gradient[:, cut:])
        self.actor.read(self.acting)
        self.critic.read(self.valuing)
        self._begin()

    def learn(self) -> list[Trained]:
        """Train all runs to their end."""
        total = self.jobs[0].steps
        self._look()
        remaining = 1.0
        while self.steps < total:
            if self.steps >= self.watchers[0].next_look:
                self._look()
            entropy = self.preset.entropy * max(remaining, 0)
            rollout = self._collect()
            remaining = 1 - self.steps / total
            rate = self.preset.options["learning_rate"] * (max(remaining, 0) if self.preset.annealed else 1)
            self._update(rollout, rate, entropy)
        self._look()
        return [watcher.trained() for watcher in self.watchers]

    def _look(self) -> None:
        self.actor.write(self.acting)
        for model, watcher in zip(self.models, self.watchers, strict=True):
            model.num_timesteps = self.steps
            watcher.consider(model)

    def _begin(self) -> None:
        """An episode in every copy of every run."""
        envs = [model.get_env() for model in self.models]
        self.supplies = [env._supply for env in envs]
        taken = [supply.take(self.copies) for supply in self.supplies]
        self.states, self.right = (np.stack(part) for part in zip(*taken, strict=True))
        setting = self.jobs[0].setting
        self.first, self.budget = setting.first, setting.budget
        self.draws = np.full(self.right.shape[:2], self.first)
        self.costs = np.array([[env.penalties.draw, env.penalties.round] for env in envs], np.float32)
        self.asks = np.array([0, *setting.actions])
        self.places = np.indices(self.draws.shape)

    def _collect(self) -> Rollout:
        """Play as many steps as an update takes."""
        shape = (len(self.jobs), self.horizon + 1, self.copies)
        seen = np.empty((*shape, self.states.shape[-1]), np.float32)
        actions = np.empty(shape, np.intp)
        logs, values, rewards, ends = (np.zeros(shape, np.float32) for _ in range(4))
        chance = np.stack(
            [random.gumbel(size=(self.horizon, self.copies, len(self.asks))) for random in self.random],
            dtype=np.float32,
        )
        for step in range(self.horizon):
            seen[:, step] = state = self.states[(*self.places, self.draws)]
            log = _log_softmax(forward(self.acting, state)[-1])
            values[:, step] = forward(self.valuing, state)[-1][..., 0]
            actions[:, step] = chosen = (log + chance[:, step]).argmax(axis=-1)
            logs[:, step] = log[(*self.places, chosen)]
            rewards[:, step], ends[:, step] = self._step(chosen)
        state = self.states[(*self.places, self.draws)]
        values[:, -1] = forward(self.valuing, state)[-1][..., 0]
        self.steps += self.horizon * self.copies
        advantages, last = np.empty(shape, np.float32)[:, :-1], np.zeros(self.draws.shape, np.float32)
        for step in range(self.horizon - 1, -1, -1):
            goes_on = 1 - ends[:, step]
            error = rewards[:, step] + values[:, step + 1] * goes_on - values[:, step]  # the discount is 1
            advantages[:, step] = last = error + GAE_LAMBDA * goes_on * last
        returns = advantages + values[:, :-1]
        rows = (len(self.jobs), self.horizon * self.copies)
        return [
            seen[:, :-1].reshape(*rows, -1),
            *(one.reshape(rows) for one in (actions[:, :-1], logs[:, :-1], advantages, returns)),
        ]

    def _step(self, actions: NDArray[np.intp]) -> tuple[Floats, Floats]:
        """Rewards, and which episodes ended: these are in their next one already."""
        asked = np.minimum(self.asks[actions], self.budget - self.draws)
        self.draws += asked
        ended = (asked == 0) | (self.draws == self.budget)
        final = np.where(self.right[(*self.places, self.draws)], 1.0, -1.0)
        rewards = ended * final - asked * self.costs[:, :1] - (asked > 0) * self.costs[:, 1:]
        for run in np.flatnonzero(ended.any(axis=1)):
            rows = np.flatnonzero(ended[run])
            self.states[run, rows], self.right[run, rows] = self.supplies[run].take(len(rows))
        self.draws[ended] = self.first
        return rewards.astype(np.float32), ended.astype(np.float32)

    def _update(self, rollout: Rollout, rate: float, entropy: float) -> None:
        rows = rollout[0].shape[1]
        for _ in range(EPOCHS):
            order = np.stack([random.permutation(rows) for random in self.random])
            mixed = [np.take_along_axis(one, order[..., None] if one.ndim > 2 else order, axis=1) for one in rollout]
            for start in range(0, rows, self.batch):
                self._minibatch([one[:, start : start + self.batch] for one in mixed], rate, entropy)

    def _minibatch(self, batch: Rollout, rate: float, entropy: float) -> None:
        states, actions, old, advantages, returns = batch
        many = states.shape[1]
        advantages = advantages - advantages.mean(axis=1, keepdims=True)
        advantages /= advantages.std(axis=1, keepdims=True, ddof=1) + 1e-8
        seen = forward(self.acting, states)
        log = _log_softmax(seen[-1])
        chances = np.exp(log)
        index = actions[..., None]
        ratio = np.exp(np.take_along_axis(log, index, axis=-1)[..., 0] - old)
        kept = np.where(advantages > 0, ratio <= 1 + CLIP, ratio >= 1 - CLIP)  # where the clipped term is not smaller
        weight = -advantages * ratio * kept / many
        slopes = -chances * weight[..., None]
        np.put_along_axis(slopes, index, np.take_along_axis(slopes, index, axis=-1) + weight[..., None], axis=-1)
        if entropy:
            mean_log = (chances * log).sum(axis=-1, keepdims=True)
            slopes += entropy / many * chances * (log - mean_log)
        backward(self.acting, seen, slopes, self.acting_slopes)
        seen = forward(self.valuing, states)
        slopes = (2 * VALUE_WEIGHT / many) * (seen[-1] - returns[..., None])
        backward(self.valuing, seen, slopes, self.valuing_slopes)
        self._adam(rate)

    def _adam(self, rate: float) -> None:
        gradient, (first, second) = self.gradient, BETAS
        norms = np.sqrt(np.einsum("ij,ij->i", gradient, gradient))
        gradient *= np.minimum(1, MOST_GRADIENT / (norms + 1e-6)).astype(np.float32)[:, None]
        self.updates += 1
        self.mean *= first
        self.mean += (1 - first) * gradient
        self.square *= second
        self.square += (1 - second) * np.square(gradient)
        spread = np.sqrt(self.square / (1 - second**self.updates))
        spread += self.epsilon
        self.numbers -= (rate / (1 - first**self.updates)) * self.mean / spread


def _linear(modules: Sequence[Any]) -> list[Any]:
    return [module for module in modules if isinstance(module, torch.nn.Linear)]


def _log_softmax(logits: Floats) -> Floats:
    logits = logits - logits.max(axis=-1, keepdims=True)
    found: Floats = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cache", type=Path)
    parser.add_argument("model")
    parser.add_argument("pools", nargs="?", type=Path, default=POOLS)
    parser.add_argument("--preset", default="paper")
    parser.add_argument("--targets", nargs="+", default=["running"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--penalties", nargs="+", type=float, default=[Penalties.draw])
    given = parser.parse_args()
    tested = tuple(load_pool(given.pools / f"{given.model}__{name}.jsonl") for name in BENCHMARKS)
    bench = Bench((), tested, given.cache, leave_one_out=True, preset=given.preset, cache=[given.cache])
    jobs = [
        bench.job(pool, seed, penalties=Penalties(penalty), target=target)
        for target in given.targets
        for seed in given.seeds
        for penalty in given.penalties
        for pool in tested
    ]
    missing = bench.missing(jobs)
    print(f"{len(missing)} of {len(jobs)} to train", flush=True)
    given.cache.mkdir(parents=True, exist_ok=True)
    for trained, job in zip(Runs(missing).learn() if missing else [], missing, strict=True):
        save_trained(trained, replace(job), given.cache)


if __name__ == "__main__":
    main()
