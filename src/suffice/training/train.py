"""Several training runs with different seeds, on all cores; the best on the training pools is kept."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from suffice.errors import OptionError
from suffice.replay import mean_over_pools
from suffice.training.learner import ALGORITHMS, PRESETS, Job, Trained, Watched, learn

Watch = Callable[[int, Watched], None]
"""Is told how the policy of a run stands, with the number of its job."""

_queue: Any = None
_stop: Any = None


def check_job(job: Job) -> None:
    """Refuse what can't be trained, before any work."""
    if job.algorithm not in ALGORITHMS:
        raise OptionError(f'algorithm must be one of {", ".join(ALGORITHMS)}, not "{job.algorithm}"')
    if (job.algorithm, job.preset) not in PRESETS:
        raise OptionError(f'preset must be fast or paper, not "{job.preset}"')
    if job.steps < 1:
        raise OptionError(f"steps must be at least 1, not {job.steps}")
    if job.seed < 0:
        raise OptionError(f"seed must be at least 0, not {job.seed}")
    setting = job.setting
    if job.mean_samples is not None and not setting.first < job.mean_samples < setting.budget:
        raise OptionError(
            f"mean samples must lie between the first round's {setting.first} and the budget of {setting.budget}, "
            f"not {job.mean_samples:g}"
        )
    if job.mean_rounds is not None and not 1 < job.mean_rounds < setting.budget:
        raise OptionError(f"mean rounds must lie between 1 and the budget of {setting.budget}, not {job.mean_rounds:g}")
    setting.check(job.pools)


def train(job: Job, seeds: int = 1, watch: Watch = lambda number, watched: None) -> list[Trained]:
    """Train with `seeds` seeds from the job's on; the best comes first. An interrupt keeps what each has so far."""
    if seeds < 1:
        raise OptionError(f"seeds must be at least 1, not {seeds}")
    jobs = [replace(job, seed=job.seed + number) for number in range(seeds)]
    return sorted((trained for _, trained in learn_each(jobs, watch)), key=lambda one: -_merit(job, one))


def _merit(job: Job, trained: Trained) -> float:
    """What seeds are compared by: the reward, or where means are asked for, whose penalties differ, the agreement."""
    if job.mean_samples is None and job.mean_rounds is None:
        return trained.reward
    return mean_over_pools(trained.results, "agreement") or 0.0


def learn_each(jobs: Sequence[Job], watch: Watch = lambda number, watched: None) -> Iterator[tuple[int, Trained]]:
    """Run jobs side by side, as many as there are cores; each comes with its number as it is done.

    An interrupt ends them all with what they have so far: their cards say after how many steps.
    """
    for job in jobs:
        check_job(job)
    if len(jobs) <= 1:
        yield from ((0, learn(job, partial(watch, 0))) for job in jobs)
        return
    spawn = multiprocessing.get_context("spawn")
    queue, stop = spawn.Queue(), spawn.Event()
    pool = ProcessPoolExecutor(min(len(jobs), os.cpu_count() or 1), spawn, _begin_worker, (queue, stop))
    try:
        with _deaf_to_interrupts():
            numbers = {pool.submit(_learn, number, job): number for number, job in enumerate(jobs)}
        running = set(numbers)
        while running:
            try:
                while not queue.empty():
                    watch(*queue.get())
                done, _ = wait(running, timeout=0.2, return_when=FIRST_COMPLETED)
            except KeyboardInterrupt:
                stop.set()
                running = {future for future in running if not future.cancel()}
                continue
            for future in done:
                running.remove(future)
                trained = future.result()
                if trained.controller.card["steps"]:  # else it was interrupted before it began
                    yield numbers[future], trained
    finally:
        stop.set()
        pool.shutdown(cancel_futures=True)


def _begin_worker(queue: Any, stop: Any) -> None:
    global _queue, _stop
    _queue, _stop = queue, stop


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Processes started here inherit deafness: they leave interrupts to the parent, which tells them to stop."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _learn(number: int, job: Job) -> Trained:
    return learn(job, lambda watched: _queue.put((number, watched)), _stop.is_set)
