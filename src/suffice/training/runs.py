"""Several training runs with different seeds, on all cores; the best on the training pools is kept."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from suffice.errors import OptionError, whole_number
from suffice.executors import AnyExecutor, Task, get_executor
from suffice.executors.base import Watch, ignore
from suffice.replay import mean_over_pools
from suffice.training.learner import PRESETS, Trained, learn
from suffice.training.setting import TrainingJob, check_keep


def check_job(job: TrainingJob) -> None:
    """Refuse what can't be trained, before any work."""
    if job.preset not in PRESETS:
        raise OptionError(f'must be fast or paper, not "{job.preset}"', "preset")
    whole_number("steps", job.steps)
    whole_number("seed", job.seed, least=0)
    first, budget = job.setting.first, job.setting.budget
    if job.mean_samples is not None and not first < job.mean_samples < budget:
        between = f"the first round's {first} and the budget of {budget}"
        raise OptionError(f"must lie between {between}, not {job.mean_samples:g}", "mean_samples")
    if job.mean_rounds is not None and not 1 < job.mean_rounds < budget:
        raise OptionError(f"must lie between 1 and the budget of {budget}, not {job.mean_rounds:g}", "mean_rounds")
    job.setting.check(job.pools)


def train(
    job: TrainingJob, seeds: int = 1, watch: Watch = ignore, executor: AnyExecutor = "processes", keep: str = "best"
) -> list[Trained]:
    """Train with `seeds` seeds from the job's on; the best comes first. An interrupt keeps what each has so far.

    Of each run the best moment is kept, or with `keep="last"` its end.
    """
    check_keep(keep)
    jobs = [replace(job, seed=job.seed + number) for number in range(whole_number("seeds", seeds))]
    runs = (trained for _, trained in learn_each(jobs, watch, executor))
    kept = [trained.last if keep == "last" and trained.last else trained for trained in runs]
    return sorted(kept, key=lambda one: -_merit(job, one))


def _merit(job: TrainingJob, trained: Trained) -> float:
    """What seeds are compared by: the reward, or where means are asked for, whose penalties differ, the agreement."""
    if job.mean_samples is None and job.mean_rounds is None:
        return trained.reward
    return mean_over_pools(trained.results, "agreement") or 0.0


def learn_each(
    jobs: Sequence[TrainingJob], watch: Watch = ignore, executor: AnyExecutor = "processes"
) -> Iterator[tuple[int, Trained]]:
    """Run jobs, by default side by side on all cores; each comes with its number as it is done.

    `watch` is told how the policy of a run stands, as `Watched`, with the number of its job.
    An interrupt ends them all with what they have so far: their cards say after how many steps.
    """
    for job in jobs:
        check_job(job)
    tasks: list[Task[Trained]] = [(_learn, (replace(job, pools=()), *job.pools)) for job in jobs]
    for number, trained in get_executor(executor).run(tasks, watch):
        if trained.controller.card["steps"]:  # else it was interrupted before it began
            yield number, trained


def _learn(job: TrainingJob, *pools_and_link: Any) -> Trained:
    """A task of a job: its pools are arguments of their own, so that an executor sends those that jobs share once."""
    *pools, link = pools_and_link
    return learn(replace(job, pools=tuple(pools)), link)
