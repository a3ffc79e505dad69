"""PPO on the process of a panel: as a Gymnasium environment, as arrays for training, and a run (extra: train)."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import gymnasium
import numpy as np

from suffice.controllers.files import tensors_of
from suffice.errors import whole_number
from suffice.executors import AnyExecutor, Link, Task, get_executor
from suffice.panel.episodes import run_panel
from suffice.panel.fitted import LearnedPanel, card_of
from suffice.panel.process import PanelProcess, features, panel_process
from suffice.panel.voters import PoolVoter
from suffice.tally import DEFAULT_BUDGET, FloatArray, IntArray
from suffice.training.env import BoolArray, Copies
from suffice.training.learner import PRESETS, WATCH_SEED, WATCHES, PolicyWatcher, Watched, model_in, network


class PanelEnv(gymnasium.Env[FloatArray, np.int64]):
    """One question at a time: action 0 stops, each other asks a voter; rewards are parts of the value of an answer.

    `reset(options={"row": r})` plays a given episode.
    """

    def __init__(self, process: PanelProcess) -> None:
        self.process = process
        self.observation_space = gymnasium.spaces.Box(-10, 10, (features(len(process.weights)),), np.float32)
        self.action_space = gymnasium.spaces.Discrete(1 + len(process.weights))

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[FloatArray, dict[str, Any]]:
        """Take an episode of which nothing has been drawn."""
        super().reset(seed=seed)
        given = (options or {}).get("row")
        self.row = self.process.some(1, self.np_random) if given is None else np.array([given])
        self.made: IntArray = np.zeros((1, len(self.process.weights)), np.intp)
        return self.process.observe(self.row, self.made)[0], {}

    def step(self, action: np.int64) -> tuple[FloatArray, float, bool, bool, dict[str, Any]]:
        """Stop, or let a voter make its next step."""
        self.made, won, ended = self.process.play(self.row, self.made, np.array([action]))
        seen = self.process.observe(self.row, self.made)[0]
        return seen, float(won[0] / self.process.value), bool(ended[0]), False, {}


class PanelVecEnv(Copies):
    """Many episodes of the same process in step."""

    def __init__(self, process: PanelProcess, copies: int, seed: int) -> None:
        self.process = process
        self._random = np.random.default_rng(seed)
        super().__init__(copies, PanelEnv(process).observation_space, 1 + len(process.weights))

    def reset(self) -> FloatArray:
        """Begin an episode in every copy."""
        self._rows = self.process.some(self.num_envs, self._random)
        self._made: IntArray = np.zeros((self.num_envs, len(self.process.weights)), np.intp)
        return self.process.observe(self._rows, self._made)

    def step_async(self, actions: IntArray) -> None:
        """Keep the actions for `step_wait`."""
        self._actions = actions

    def step_wait(self) -> tuple[FloatArray, FloatArray, BoolArray, list[dict[str, Any]]]:
        """Take the actions; a copy whose episode ended is already in its next one."""
        self._made, won, ended = self.process.play(self._rows, self._made, self._actions)
        self._rows[ended] = self.process.some(int(ended.sum()), self._random)
        self._made[ended] = 0
        rewards = (won / self.process.value).astype(np.float32)
        return self.process.observe(self._rows, self._made), rewards, ended, self._infos


@dataclass(frozen=True)
class PanelJob:
    """Everything that decides what a run gives."""

    voters: tuple[PoolVoter, ...]
    value: float
    budget: int = DEFAULT_BUDGET
    steps: int = 1_000_000
    seed: int = 0


class _PanelWatcher(PolicyWatcher):
    """Keeps the policy that wins most on draws of its own."""

    def __init__(self, job: PanelJob, link: Link, entropy: float) -> None:
        super().__init__(job.steps, link, entropy)
        self._process = panel_process(job.voters, job.value, job.budget, True, WATCH_SEED)
        self._seed = job.seed

    def consider(self, model: Any) -> Watched:
        """Measure the present policy and keep it if it is the best."""
        self.next_look = model.num_timesteps + self.steps // WATCHES
        process = self._process
        about = process.episodes.voters, process.weights, tensors_of(network(model)), card_of(process, "ppo")
        controller = LearnedPanel(*about, process.episodes.budget)
        ended = run_panel(process.episodes, controller)
        won = (process.worth(ended.answer, np.arange(len(process.counts))) - ended.cost) / process.value
        figures = [np.average(one, weights=process.counts) for one in (won, ended.draws.sum(axis=1), ended.rounds)]
        reward, samples, rounds = map(float, figures)
        if reward > self.best_reward:
            told = {"seed": self._seed, "reward": reward, "samples": samples, "rounds": rounds}
            self.best, self.best_reward = replace(controller, card={**controller.card, **told}), reward
        return Watched(model.num_timesteps, reward, samples, rounds)


def learn_panel(job: PanelJob, link: Link | None = None) -> LearnedPanel:
    """Train one controller and keep its best moment; an interrupt, or the link's stop, keeps the best so far."""
    process = panel_process(job.voters, job.value, job.budget, True, job.seed)
    # As for one model, but that what is seen of a panel needs no sharpening.
    preset = replace(PRESETS["ppo", "fast"], sharpness=1.0)
    watcher = _PanelWatcher(job, link or Link(), preset.entropy)
    model = model_in(PanelVecEnv(process, preset.copies, job.seed), "ppo", preset, job.seed)
    watcher.watch(model)
    return replace(watcher.best, card={**watcher.best.card, "steps": model.num_timesteps})


def train_panel(
    job: PanelJob,
    seeds: int = 1,
    watch: Callable[[int, Watched], None] = lambda number, watched: None,
    executor: AnyExecutor = "processes",
) -> list[LearnedPanel]:
    """Train with `seeds` seeds from the job's on; the best on its own voters comes first."""
    whole_number("steps", job.steps)
    numbers = range(job.seed, job.seed + whole_number("seeds", seeds))
    tasks: list[Task[LearnedPanel]] = [(learn_panel, (replace(job, seed=one),)) for one in numbers]
    return sorted((one for _, one in get_executor(executor).run(tasks, watch)), key=lambda one: -one.card["reward"])
