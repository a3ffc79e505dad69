"""How long a training run will take on this machine, from a moment of it."""

import time

import torch

from suffice.executors import Link
from suffice.training.learner import (
    FINAL_REPEATS,
    PRESETS,
    WATCH_EPISODES,
    WATCHES,
    WATCHES_FOR_MEANS,
    Watcher,
    new_model,
    number_of_questions,
)
from suffice.training.setting import Job

PROBE_STEPS = 2000
FINAL_REPLAYS = 8
"""Best and last network are each replayed twice at the end, and two rules beside them."""


def seconds_for(job: Job) -> float:
    """About how long a run takes: a round of its steps and a look at the policy are timed, which takes a second or two.

    The first of each is not: it brings what is loaded late.
    """
    torch.set_num_threads(1)
    preset = PRESETS[job.algorithm, job.preset]
    model = new_model(job, preset)
    if job.algorithm == "dqn":
        model.learning_starts = 0  # type: ignore[attr-defined]
    watcher = Watcher(job, preset, Link())
    for _ in range(2):
        before = model.num_timesteps
        begun = time.perf_counter()
        model.learn(PROBE_STEPS, reset_num_timesteps=False)
        stepped = time.perf_counter()
        watcher.consider(model)
        looked = time.perf_counter()
    looks = WATCHES_FOR_MEANS if job.mean_samples or job.mean_rounds else WATCHES
    looks += round(FINAL_REPLAYS * FINAL_REPEATS * number_of_questions(job) / WATCH_EPISODES)
    return job.steps * (stepped - begun) / (model.num_timesteps - before) + looks * (looked - stepped)
