"""How long training will take, before it begins."""

from collections.abc import Iterable
from dataclasses import dataclass

from suffice.executors import get_executor
from suffice.experiments.bench import Bench, job_key
from suffice.training.setting import Job


@dataclass(frozen=True)
class Forecast:
    """How many controllers experiments need, how many of them are yet to be trained, so many at once, and how long.

    >>> print(Forecast(needed=30, missing=0, workers=2, seconds=0))
    All 30 controllers are there from earlier runs: the replays take minutes.
    >>> print(Forecast(needed=30, missing=24, workers=2, seconds=1080))
    Training 24 of 30 controllers, 2 at once, takes about 18 minutes; the replays come on top.
    """

    needed: int
    missing: int
    workers: int
    seconds: float

    def __str__(self) -> str:
        if not self.missing:
            return f"All {self.needed} controllers are there from earlier runs: the replays take minutes."
        return (
            f"Training {self.missing} of {self.needed} controllers, {self.workers} at once, takes about "
            f"{_spoken(self.seconds)}; the replays come on top."
        )


def forecast(wanted: Iterable[tuple[Bench, Iterable[Job]]]) -> Forecast:
    """What jobs on benches take together: told from a second or two of each kind of training, on this machine."""
    from suffice.training import check_job
    from suffice.training.speed import seconds_for

    needed: set[str] = set()
    missing: dict[str, Job] = {}
    workers = 1
    for bench, some in wanted:
        jobs = list(some)
        absent = bench.missing(jobs)
        needed |= {job_key(job) for job in jobs}
        if bench.only_cached:
            needed -= set(absent)
        else:
            missing |= absent
        workers = get_executor(bench.executor or "processes").workers
    kinds: dict[tuple[str, str, bool], list[Job]] = {}
    for job in missing.values():
        kinds.setdefault((job.algorithm, job.preset, bool(job.mean_samples)), []).append(job)
    seconds = 0.0
    for jobs in kinds.values():
        check_job(jobs[0])
        seconds += -(-len(jobs) // workers) * seconds_for(jobs[0])
    return Forecast(len(needed), len(missing), workers, seconds)


def _spoken(seconds: float) -> str:
    """A time in the unit that suits it."""
    if seconds < 90:
        return f"{max(seconds, 2):.0f} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 90 * 60 else f"{seconds / 3600:.1f} hours"
