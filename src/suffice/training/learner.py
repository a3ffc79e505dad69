"""One training run: a Stable-Baselines3 algorithm on the array environment, watched by replays."""

import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from typing import Any

import numpy as np
import torch
from stable_baselines3 import A2C, DQN, PPO
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.policies import ActorCriticPolicy

from suffice.controllers.base import Controller
from suffice.controllers.conditioned import ConditionedController
from suffice.controllers.files import FORMAT
from suffice.controllers.learned import LearnedController
from suffice.executors import Link
from suffice.penalties import Penalties
from suffice.pools import Pool
from suffice.replay import Result, evaluate, mean_over_pools
from suffice.tally import FloatArray
from suffice.training.env import SamplingVecEnv, Supply, majority
from suffice.training.policy import QuickPolicy
from suffice.training.setting import Job, Setting

HIDDEN = (32, 64, 64, 32)
GAMMA = 1.0
GAE_LAMBDA = 0.95
LEAST_ROUND_PENALTY = 3e-4
"""What a round costs in fast training even where rounds are free: else single draws are never worse than several."""

RULES = ("sc", "asc")
"""A controller that is no better than these on its own training pools has learned nothing."""

WATCHES = 25
"""How often a run is measured by replay on its training pools."""

WATCHES_FOR_MEANS = 100
DUAL_RATE = 1.0
LEAST_DRAW_PENALTY = 1e-4
NEAR = 0.01
WEIGHT_OF_MEANS = 10.0
"""Training for means: looks, and the step of a penalty at each; within NEAR of the means agreement alone counts."""

WATCH_EPISODES = 6000
WATCH_SEED = 1_000_000
FINAL_SEED = 2_000_000
FINAL_REPEATS = 100
"""Training episodes, the choice of the best moment and the reported figures are each on draws of their own."""


@dataclass(frozen=True)
class Preset:
    """How an algorithm is run: environments side by side, and its own options."""

    copies: int
    options: dict[str, Any]
    entropy: float = 0.0
    """The bonus for trying all actions at the start; it falls to 0 with the steps."""
    annealed: bool = False
    """Whether the learning rate falls to 0 with the steps."""
    sharpness: float = 1.0
    """A factor on the first layer's weights at the start: one vote moves a state by 1/budget only."""
    policy: str | type[ActorCriticPolicy] = "MlpPolicy"
    policy_options: dict[str, Any] = field(default_factory=dict)


_PAPER = {"learning_rate": 1e-5}
PRESETS = {
    ("ppo", "paper"): Preset(1, _PAPER, policy=QuickPolicy, policy_options={"optimizer_kwargs": {"fused": True}}),
    ("a2c", "paper"): Preset(1, _PAPER, policy=QuickPolicy),
    ("dqn", "paper"): Preset(1, _PAPER),
    ("ppo", "fast"): Preset(
        256,
        {"learning_rate": 1e-3, "n_steps": 64, "batch_size": 4096},
        entropy=0.02,
        annealed=True,
        sharpness=4.0,
    ),
    ("a2c", "fast"): Preset(
        256,
        {"learning_rate": 1e-3, "n_steps": 16, "normalize_advantage": True},
        entropy=0.02,
        annealed=True,
        sharpness=4.0,
    ),
    ("dqn", "fast"): Preset(
        64,
        {
            "learning_rate": 1e-3,
            "buffer_size": 200_000,
            "batch_size": 1024,
            "learning_starts": 10_000,
            "train_freq": 4,
            "gradient_steps": 2,
            "target_update_interval": 8192,
            "exploration_fraction": 0.3,
        },
        annealed=True,
    ),
}
ALGORITHMS: dict[str, type[BaseAlgorithm]] = {"ppo": PPO, "dqn": DQN, "a2c": A2C}


@dataclass(frozen=True)
class Watched:
    """What the present policy does on the training pools, after so many steps."""

    steps: int
    reward: float
    samples: float
    rounds: float
    note: str = ""
    """What is under way, where there are no steps yet."""


@dataclass(frozen=True)
class Trained:
    """A controller and its figures on the training pools, a result a pool.

    The controller is the best of the looks; `last` is the same of the network at the end of the run.
    """

    controller: LearnedController | ConditionedController
    results: list[Result]
    last: "Trained | None" = None

    @property
    def seed(self) -> int:
        """The seed of its run."""
        return int(self.controller.card["seed"])

    @property
    def reward(self) -> float:
        """The mean reward over the training pools where the job's target is what counts as right."""
        return float(self.controller.card["target_reward"])


def learn(job: Job, link: Link | None = None) -> Trained:
    """Train one controller and keep its best moment; an interrupt, or the link's stop, keeps the best so far.

    The link is told how the policy stands, as `Watched`.
    """
    link = link or Link()
    torch.set_num_threads(1)  # the network is so small that threads only get into each other's way
    preset = PRESETS[job.algorithm, job.preset]
    watcher = Watcher(job, preset, link)
    model = new_model(job, preset)
    watcher.consider(model)
    try:
        model.learn(job.steps, callback=watcher)
    except KeyboardInterrupt:
        link.stop.set()  # no other run begins
    watcher.consider(model)
    best = replace(job, setting=replace(job.setting, penalties=watcher.best_penalties))
    told = {"steps": model.num_timesteps, "best_after_steps": watcher.best_steps, "curve": watcher.curve}
    trained = _finished(watcher.best, best, told)
    if watcher.last is watcher.best:
        return replace(trained, last=trained)
    last = replace(job, setting=replace(job.setting, penalties=watcher.last_penalties))
    return replace(trained, last=_finished(watcher.last, last, told))


def _finished(controller: LearnedController, job: Job, told: dict[str, Any]) -> Trained:
    """A controller with the figures that its card tells, of the job with the penalties that it has by then."""
    results = measure(controller, job.pools, job.setting, FINAL_SEED, repeats=FINAL_REPEATS)
    card = {
        **controller.card,
        "penalties": asdict(job.setting.penalties),
        **told,
        **figures(results),
        "target_reward": target_reward(controller, job, FINAL_SEED, repeats=FINAL_REPEATS),
        "rules": {
            rule: figures(measure(rule, job.pools, job.setting, FINAL_SEED, repeats=FINAL_REPEATS)) for rule in RULES
        },
    }
    return Trained(LearnedController(controller.layers, card), results)


def figures(results: Sequence[Result]) -> dict[str, float | None]:
    """What a card tells of replays."""
    return {metric: mean_over_pools(results, metric) for metric in ("reward", "samples", "rounds")}


def measure(
    controller: str | Controller, pools: Sequence[Pool], setting: Setting, seed: int, repeats: int
) -> list[Result]:
    """Replay a controller over the training pools."""
    return evaluate(
        pools,
        controller,
        budget=setting.budget,
        repeats=repeats,
        seed=seed,
        penalties=setting.penalties,
        confidence=False,
    )


def target_reward(controller: LearnedController, job: Job, seed: int, repeats: int) -> float:
    """The mean reward over the training pools where the job's target is what counts as right."""
    if job.setting.target == "running":
        return mean_over_pools(measure(controller, job.pools, job.setting, seed, repeats), "reward") or 0.0
    pools = [_judged(pool) for pool in job.pools] if job.setting.target == "full" else job.pools
    penalties = job.setting.penalties
    rewards = [
        2 * (result.accuracy or 0) / 100 - 1 - penalties.draw * result.samples - penalties.round * result.rounds
        for result in measure(controller, pools, job.setting, seed, repeats)
    ]
    return float(np.mean(rewards))


def _judged(pool: Pool) -> Pool:
    """The pool with its own majorities for gold answers."""
    return replace(pool, questions=tuple(replace(one, gold=majority(one.answers)) for one in pool.questions))


def new_model(job: Job, preset: Preset) -> BaseAlgorithm:
    """An algorithm at its start, on the job's process."""
    setting = job.setting
    setting = replace(setting, penalties=Penalties(setting.penalties.draw, _round_penalty(job)))
    options = dict(preset.options)
    if job.algorithm != "dqn":
        options["gae_lambda"] = GAE_LAMBDA
    if preset.annealed:
        rate = options["learning_rate"]
        # The last round of steps may pass the end, where what remains is below 0.
        options["learning_rate"] = lambda remaining: rate * max(remaining, 0)
    algorithm: Any = ALGORITHMS[job.algorithm]
    model: BaseAlgorithm = algorithm(
        preset.policy,
        SamplingVecEnv(Supply(job.pools, setting, job.seed), preset.copies),
        gamma=GAMMA,
        policy_kwargs={"net_arch": list(HIDDEN), **preset.policy_options},
        seed=job.seed,
        device="cpu",
        **options,
    )
    if preset.sharpness != 1:
        extractor: Any = model.policy.mlp_extractor
        with torch.no_grad():
            for first, *_ in (extractor.policy_net, extractor.value_net):
                first.weight *= preset.sharpness
    return model


def _round_penalty(job: Job) -> float:
    """What a round costs in training."""
    given = job.setting.penalties.round
    return max(given, LEAST_ROUND_PENALTY) if job.preset == "fast" else given


class Watcher(BaseCallback):
    """Measures the present policy now and then, and keeps the one that does best by the job's own target."""

    def __init__(self, job: Job, preset: Preset, link: Link) -> None:
        super().__init__()
        self.job = job
        self.preset = preset
        self.link = link
        self.next_look = 0
        self.best_reward = -np.inf
        self.penalties = job.setting.penalties
        self.best_penalties = self.penalties
        self.curve: list[tuple[int, float, float, float]] = []

    def _on_step(self) -> bool:
        return not self.link.stop.is_set()

    def _on_rollout_start(self) -> None:
        if self.preset.entropy:
            model: Any = self.model
            model.ent_coef = self.preset.entropy * max(model._current_progress_remaining, 0)
        if self.num_timesteps >= self.next_look:
            self.link.tell(self.consider(self.model))

    def consider(self, model: BaseAlgorithm) -> Watched:
        """Measure the present policy, keep it if it is the best, and mend the penalties if means are asked for."""
        job = replace(self.job, setting=replace(self.job.setting, penalties=self.penalties))
        for_means = job.mean_samples or job.mean_rounds
        self.next_look = model.num_timesteps + job.steps // (WATCHES_FOR_MEANS if for_means else WATCHES)
        controller = LearnedController(network(model), _card(job, model))
        repeats = max(5, WATCH_EPISODES // number_of_questions(job))
        results = measure(controller, job.pools, job.setting, WATCH_SEED, repeats)
        metrics = ("reward", "samples", "rounds", "agreement")
        reward, samples, rounds, agreement = (mean_over_pools(results, metric) or 0.0 for metric in metrics)
        if for_means:
            over = job.excess(samples, rounds)
            own = agreement / 100 - WEIGHT_OF_MEANS * max(0, abs(over[0]) - NEAR, over[1] - NEAR)
        else:
            own = reward if job.setting.target == "running" else target_reward(controller, job, WATCH_SEED, repeats)
        self.last, self.last_penalties = controller, self.penalties
        if own > self.best_reward:
            self.best, self.best_reward, self.best_steps = controller, own, model.num_timesteps
            self.best_penalties = self.penalties
        if for_means:
            self._mend_penalties(model, over)
        self.curve.append((model.num_timesteps, round(reward, 5), round(samples, 3), round(rounds, 3)))
        return Watched(model.num_timesteps, reward, samples, rounds)

    def _mend_penalties(self, model: BaseAlgorithm, over: tuple[float, float]) -> None:
        """The dual step: what is drawn too often gets dearer, what is drawn too seldom cheaper."""
        floors = (LEAST_DRAW_PENALTY, LEAST_ROUND_PENALTY)
        now = (self.penalties.draw, self.penalties.round)
        draw, round_ = (
            penalty if excess == 0 else float(np.clip(max(penalty, floor) * np.exp(DUAL_RATE * excess), floor, 1))
            for penalty, floor, excess in zip(now, floors, over, strict=True)
        )
        self.penalties = Penalties(draw, round_)
        env: Any = model.get_env()
        env.penalties = Penalties(draw, max(round_, _round_penalty(self.job)))


def number_of_questions(job: Job) -> int:
    """Of all training pools."""
    return sum(len(pool.questions) for pool in job.pools)


def network(model: BaseAlgorithm) -> list[tuple[FloatArray, FloatArray]]:
    """The layers that choose the action."""
    policy: Any = model.policy
    modules = policy.q_net.q_net if isinstance(model, DQN) else [*policy.mlp_extractor.policy_net, policy.action_net]
    return [
        (module.weight.detach().numpy().copy(), module.bias.detach().numpy().copy())
        for module in modules
        if isinstance(module, torch.nn.Linear)
    ]


def _card(job: Job, model: BaseAlgorithm) -> dict[str, Any]:
    setting = job.setting
    return {
        "kind": "learned",
        "format": FORMAT,
        "budget": setting.budget,
        "top": setting.top,
        "actions": list(setting.actions),
        "first": setting.first,
        "penalties": {"draw": setting.penalties.draw, "round": setting.penalties.round},
        "training_round_penalty": _round_penalty(job),
        "means": {"samples": job.mean_samples, "rounds": job.mean_rounds},
        "target": setting.target,
        "algorithm": job.algorithm,
        "preset": job.preset,
        "activation": "relu" if isinstance(model, DQN) else "tanh",
        "seed": job.seed,
        "pools": [{"name": pool.name, "sha256": pool.sha256} for pool in job.pools],
        "versions": versions(),
    }


def versions() -> dict[str, str]:
    """What a controller was trained with."""
    names = ("suffice", "numpy", "torch", "gymnasium", "stable-baselines3")
    return {"python": platform.python_version(), **{name: version(name) for name in names}}
