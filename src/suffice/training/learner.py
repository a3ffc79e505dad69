"""One training run: a Stable-Baselines3 algorithm on the array environment, watched by replays."""

import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from typing import Any

import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.policies import ActorCriticPolicy

from suffice.controllers.base import Controller
from suffice.controllers.files import FORMAT
from suffice.controllers.learned import Layers, LearnedController, outputs
from suffice.executors import Link
from suffice.penalties import Penalties
from suffice.replay import Result, evaluate, mean_over_pools
from suffice.training.env import SamplingVecEnv, Supply
from suffice.training.setting import TrainingJob

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


class QuickPolicy(ActorCriticPolicy):
    """The usual policy, acting by NumPy while a run collects: for one state most of torch's work is overhead."""

    _layers: tuple[Layers, Layers] | None = None

    def forward(self, obs: Any, deterministic: bool = False) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        if self._layers is None:
            extractor = self.mlp_extractor
            self._layers = views(extractor.policy_net, self.action_net), views(extractor.value_net, self.value_net)
            self._chance = np.random.default_rng(torch.initial_seed())
        logits, values = (outputs(layers, obs.numpy()) for layers in self._layers)
        logits -= logits.max(axis=1, keepdims=True)
        logs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
        actions = (logs if deterministic else logs + self._chance.gumbel(size=logs.shape)).argmax(axis=1)
        chosen = np.take_along_axis(logs, actions[:, None], axis=1)[:, 0]
        return torch.from_numpy(actions), torch.from_numpy(values), torch.from_numpy(chosen)


def views(hidden: torch.nn.Sequential, last: torch.nn.Module) -> Layers:
    """A network's weights as arrays in the same memory: what the optimiser changes is changed in them."""
    linear: Any = [module for module in [*hidden, last] if isinstance(module, torch.nn.Linear)]
    return [(module.weight.detach().numpy(), module.bias.detach().numpy()) for module in linear]


@dataclass(frozen=True)
class Preset:
    """How PPO is run: environments side by side, and its own options."""

    copies: int
    options: dict[str, Any]
    entropy: float = 0.0
    """The bonus for trying all actions at the start; it falls to 0 with the steps."""
    annealed: bool = False
    """Whether the learning rate falls to 0 with the steps."""
    sharpness: float = 1.0
    """A factor on the first layer's weights at the start: one vote moves a state by 1/budget only."""
    policy: type[ActorCriticPolicy] = ActorCriticPolicy
    optimizer: dict[str, Any] | None = None
    """Options of Adam, in place of those of Stable-Baselines3."""


PRESETS = {
    "paper": Preset(1, {"learning_rate": 1e-5}, policy=QuickPolicy, optimizer={"fused": True}),
    "fast": Preset(
        256,
        {"learning_rate": 1e-3, "n_steps": 64, "batch_size": 4096},
        entropy=0.02,
        annealed=True,
        sharpness=4.0,
    ),
}


@dataclass(frozen=True)
class Watched:
    """What the present policy does on the training pools, after so many steps."""

    steps: int
    reward: float
    samples: float
    rounds: float


@dataclass(frozen=True)
class Trained:
    """A controller and its figures on the training pools, a result a pool.

    The controller is the best of the looks; `last` is the same of the network at the end of the run.
    """

    controller: LearnedController
    results: list[Result]
    last: "Trained | None" = None

    @property
    def seed(self) -> int:
        return int(self.controller.card["seed"])

    @property
    def reward(self) -> float:
        """The mean reward over the training pools where the job's target is what counts as right."""
        return float(self.controller.card["target_reward"])


def learn(job: TrainingJob, link: Link | None = None) -> Trained:
    """Train one controller and keep its best moment; an interrupt, or the link's stop, keeps the best so far.

    The link is told how the policy stands, as `Watched`.
    """
    preset = PRESETS[job.preset]
    watcher = Watcher(job, preset, link or Link())
    watcher.watch(new_model(job, preset))
    return watcher.trained()


def measure(
    controller: str | Controller, job: TrainingJob, seed: int = FINAL_SEED, repeats: int = FINAL_REPEATS
) -> list[Result]:
    """Replay a controller over the training pools."""
    budget, penalties = job.setting.budget, job.setting.penalties
    return evaluate(
        job.pools, controller, budget=budget, repeats=repeats, seed=seed, penalties=penalties, confidence=False
    )


def figures(results: Sequence[Result]) -> dict[str, float | None]:
    """What a card tells of replays."""
    return {metric: mean_over_pools(results, metric) for metric in ("reward", "samples", "rounds")}


def target_reward(
    results: Sequence[Result], controller: LearnedController, job: TrainingJob, seed: int, repeats: int
) -> float:
    """The mean reward of a replay where the job's target is what counts as right."""
    if job.setting.target == "running":
        return mean_over_pools(results, "reward") or 0.0
    if job.setting.target == "full":
        job = replace(job, pools=tuple(pool.with_majorities() for pool in job.pools))
    penalties = job.setting.penalties
    rewards = [
        2 * (result.accuracy or 0) / 100 - 1 - penalties.draw * result.samples - penalties.round * result.rounds
        for result in measure(controller, job, seed, repeats)
    ]
    return float(np.mean(rewards))


def new_model(job: TrainingJob, preset: Preset) -> PPO:
    """PPO at its start, on the job's process."""
    setting = job.setting
    setting = replace(setting, penalties=Penalties(setting.penalties.draw, _round_penalty(job)))
    env = SamplingVecEnv(Supply(job.pools, setting, job.seed), preset.copies)
    options = dict(preset.options)
    if preset.annealed:
        rate = options["learning_rate"]
        # The last round of steps may pass the end, where what remains is below 0.
        options["learning_rate"] = lambda remaining: rate * max(remaining, 0)
    torch.set_num_threads(1)  # the network is so small that threads only get into each other's way
    model = PPO(
        preset.policy,
        env,
        gamma=GAMMA,
        gae_lambda=GAE_LAMBDA,
        policy_kwargs={"net_arch": list(HIDDEN), "optimizer_kwargs": preset.optimizer},
        seed=job.seed,
        device="cpu",
        **options,
    )
    extractor: Any = model.policy.mlp_extractor
    with torch.no_grad():
        for first, *_ in (extractor.policy_net, extractor.value_net):
            first.weight *= preset.sharpness
    return model


def _round_penalty(job: TrainingJob) -> float:
    given = job.setting.penalties.round
    return max(given, LEAST_ROUND_PENALTY) if job.preset == "fast" else given


@dataclass(frozen=True)
class Look:
    """The policy at one moment, measured at the penalties that it learned with; its worth is by the job's target."""

    controller: LearnedController
    job: TrainingJob
    stands: Watched
    worth: float

    def trained(self, about: dict[str, Any]) -> Trained:
        """The controller with its final figures on its card, and what is given about the run."""
        results = measure(self.controller, self.job)
        card = {
            **self.controller.card,
            **about,
            **figures(results),
            "target_reward": target_reward(results, self.controller, self.job, FINAL_SEED, FINAL_REPEATS),
            "rules": {rule: figures(measure(rule, self.job)) for rule in RULES},
        }
        return Trained(LearnedController(self.controller.layers, card), results)


class Watcher(BaseCallback):
    """Measures the present policy now and then, and tells the link of it."""

    def __init__(self, job: TrainingJob, preset: Preset, link: Link) -> None:
        super().__init__()
        self.job = job
        """Its penalties change on the way where means are asked for."""
        self.least_round = _round_penalty(job)
        self.entropy = preset.entropy
        self.link = link
        self.next_look = 0
        self.looks: list[Look] = []

    def watch(self, model: PPO) -> None:
        """Let the model learn its steps, measured before, on the way and after; an interrupt ends it there."""
        self.consider(model)
        try:
            model.learn(self.job.steps, callback=self)
        except KeyboardInterrupt:
            self.link.stop.set()  # no other run begins
        self.consider(model)

    def trained(self) -> Trained:
        """The best look, the first where several are, and the last."""
        best, last = max(self.looks, key=lambda look: look.worth), self.looks[-1]
        stands = [look.stands for look in self.looks]
        about = {
            "steps": last.stands.steps,
            "best_after_steps": best.stands.steps,
            "curve": [(now.steps, round(now.reward, 5), round(now.samples, 3), round(now.rounds, 3)) for now in stands],
        }
        trained = best.trained(about)
        return replace(trained, last=trained if last is best else last.trained(about))

    def _on_step(self) -> bool:
        return not self.link.stop.is_set()

    def _on_rollout_start(self) -> None:
        model: Any = self.model
        if self.entropy:
            model.ent_coef = self.entropy * max(model._current_progress_remaining, 0)
        if self.num_timesteps >= self.next_look:
            self.link.tell(self.consider(model))

    def consider(self, model: PPO) -> Watched:
        """Measure the present policy, and mend the penalties if means are asked for."""
        job = self.job
        for_means = job.mean_samples or job.mean_rounds
        self.next_look = model.num_timesteps + job.steps // (WATCHES_FOR_MEANS if for_means else WATCHES)
        controller = LearnedController(network(model), _card(job))
        repeats = max(5, WATCH_EPISODES // sum(len(pool.questions) for pool in job.pools))
        results = measure(controller, job, WATCH_SEED, repeats)
        metrics = ("reward", "samples", "rounds", "agreement")
        reward, samples, rounds, agreement = (mean_over_pools(results, metric) or 0.0 for metric in metrics)
        if for_means:
            over = job.excess(samples, rounds)
            worth = agreement / 100 - WEIGHT_OF_MEANS * max(0, abs(over[0]) - NEAR, over[1] - NEAR)
            self._mend_penalties(model, over)
        else:
            worth = target_reward(results, controller, job, WATCH_SEED, repeats)
        stands = Watched(model.num_timesteps, reward, samples, rounds)
        self.looks.append(Look(controller, job, stands, worth))
        return stands

    def _mend_penalties(self, model: PPO, over: tuple[float, float]) -> None:
        """The dual step: what is drawn too often gets dearer, what is drawn too seldom cheaper."""
        floors = (LEAST_DRAW_PENALTY, LEAST_ROUND_PENALTY)
        setting = self.job.setting
        now = (setting.penalties.draw, setting.penalties.round)
        draw, round_ = (
            penalty if excess == 0 else float(np.clip(max(penalty, floor) * np.exp(DUAL_RATE * excess), floor, 1))
            for penalty, floor, excess in zip(now, floors, over, strict=True)
        )
        self.job = replace(self.job, setting=replace(setting, penalties=Penalties(draw, round_)))
        env: Any = model.get_env()
        env.penalties = Penalties(draw, max(round_, self.least_round))


def network(model: PPO) -> Layers:
    """The layers that choose the action."""
    policy: Any = model.policy
    layers = views(policy.mlp_extractor.policy_net, policy.action_net)
    return [(weights.copy(), bias.copy()) for weights, bias in layers]


def _card(job: TrainingJob) -> dict[str, Any]:
    setting = job.setting
    packages = ("suffice", "numpy", "torch", "gymnasium", "stable-baselines3")
    return {
        "kind": "learned",
        "budget": setting.budget,
        "top": setting.top,
        "penalties": asdict(setting.penalties),
        "training_round_penalty": _round_penalty(job),
        "means": {"samples": job.mean_samples, "rounds": job.mean_rounds},
        "preset": job.preset,
        "algorithm": "ppo",
        "activation": "tanh",
        "format": FORMAT,
        "actions": list(setting.actions),
        "first": setting.first,
        "target": setting.target,
        "seed": job.seed,
        "pools": [{"name": pool.name, "sha256": pool.sha256} for pool in job.pools],
        "versions": {"python": platform.python_version(), **{name: version(name) for name in packages}},
    }
