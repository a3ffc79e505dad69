"""The ground of the paper's experiments: which pools train and test, and the controllers trained on them."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, cast

from suffice.controllers import Controller, LearnedController, load_controller, save_controller
from suffice.errors import ControllerError, OptionError, PoolError, whole_number
from suffice.executors import AnyExecutor
from suffice.jsonl import quoted
from suffice.penalties import Penalties
from suffice.pools import Pool, get_pools
from suffice.replay import DEFAULT_REPEATS, Result, evaluate, executor_for
from suffice.tally import DEFAULT_BUDGET
from suffice.training.setting import Job, Setting

if TYPE_CHECKING:
    from suffice.training import Trained, Watched

KEPT = ("best", "last")

Training = tuple[Pool, ...]

Progress = Callable[[int, int], "AbstractContextManager[Callable[[int, Watched], None]]"]
"""From a number of runs and their steps to what is told how each stands while they last."""


@contextmanager
def silent(runs: int, steps: int) -> Iterator[Callable[[int, "Watched"], None]]:
    """Tell nobody."""
    yield lambda run, watched: None


def model_of(pool: Pool) -> str:
    """The model in a pool's name, MODEL__BENCHMARK."""
    return pool.name.split("__")[0]


def benchmark_of(pool: Pool) -> str:
    """The benchmark in a pool's name, MODEL__BENCHMARK."""
    return pool.name.split("__")[-1]


@dataclass(frozen=True)
class Bench:
    """Pools to train and test on, how, and where.

    Trained controllers are kept in `cache`, by default in `out`, and used again from there. Without an executor all
    cores are used where it is worth it.
    """

    train: Training
    test: Training
    out: Path
    leave_one_out: bool = False
    steps: int = Job.steps
    seeds: int = 5
    repeats: int = DEFAULT_REPEATS
    seed: int = 0
    budget: int = DEFAULT_BUDGET
    preset: str = Job.preset
    keep: str = "best"
    """Of each run: the best of the looks, or the last network, as the paper does."""
    progress: Progress = silent
    warn: Callable[[str], None] = lambda message: None
    cache: Path | None = None
    executor: AnyExecutor | None = None
    used: list[LearnedController] = field(default_factory=list, compare=False)
    """The learned controllers of the experiments so far."""

    def __post_init__(self) -> None:
        for name in ("train", "test"):
            object.__setattr__(self, name, tuple(get_pools(getattr(self, name))))

    def check(self, allow_overlap: bool) -> None:
        """Refuse what can't be run, and pools that share questions between training and test."""
        for name, value in (("seeds", self.seeds), ("repeats", self.repeats), ("steps", self.steps)):
            whole_number(name, value)
        if self.keep not in KEPT:
            raise OptionError(f'must be best or last, not "{self.keep}"', "keep")
        for pools in (self.train, self.test):
            names = [pool.name for pool in pools]
            if twice := next((name for name in names if names.count(name) > 1), None):
                raise PoolError(f"there are two pools of the name {twice}: give one of them another")
        for pool in self.test:
            pool.check_budget(self.budget)
            if not self.training_for(pool):
                raise OptionError(
                    f"{pool.name}: there is nothing to train on; leaving one out needs other benchmarks of the same "
                    "model, with pools named MODEL__BENCHMARK"
                )
            for model in self.models():
                for other in self.training_for(pool, model):
                    other.check_budget(self.budget)
                    if not allow_overlap:
                        _check_overlap(other, pool)

    def training_for(self, tested: Pool, model: str | None = None) -> Training:
        """The pools that a controller for this test pool is trained on, of one model where that is asked for."""
        if self.leave_one_out:
            model = model or model_of(tested)
            return tuple(p for p in self.test if model_of(p) == model and benchmark_of(p) != benchmark_of(tested))
        return tuple(p for p in self.train if model in (None, model_of(p)))

    def models(self) -> list[str]:
        """The models that there are training pools of."""
        return list(dict.fromkeys(map(model_of, self.test if self.leave_one_out else self.train)))

    def job(
        self, training: Training, penalty: float = Penalties.draw, target: str = Setting.target, seed: int = 0
    ) -> Job:
        """A training run on these pools, otherwise as in the paper."""
        setting = Setting(Penalties(penalty), target=target, budget=self.budget)
        return Job(training, setting, preset=self.preset, steps=self.steps, seed=self.seed + seed)

    def learned(self, jobs: Sequence[Job]) -> list[LearnedController]:
        """The controllers of these jobs, in order: trained on all cores, or taken from an earlier run."""
        from suffice.training import learn_each

        folder = self.cache or self.out / "controllers"
        folder.mkdir(parents=True, exist_ok=True)
        paths = [_path(folder, job, self.keep) for job in jobs]
        missing = [job for path, job in zip(paths, jobs, strict=True) if not _is_whole(path)]
        with self.progress(len(missing), self.steps) as watch:
            for number, trained in learn_each(missing, watch, self.executor or "processes"):
                if trained.controller.card["steps"] >= self.steps:
                    save_trained(trained, missing[number], folder)
                    for rule in trained.controller.no_better_than():
                        self.warn(f"a controller learned nothing: it is no better than {rule}")
        if not all(path.exists() for path in paths):
            raise KeyboardInterrupt
        learned = [cast(LearnedController, load_controller(path)) for path in paths]
        self.used.extend(learned)
        return learned

    def evaluate(self, pool: Pool, controllers: Sequence[str | Controller]) -> list[Result]:
        """Replay over a test pool."""
        executor = self.executor or executor_for([pool], len(controllers), self.repeats)
        return evaluate(pool, controllers, budget=self.budget, repeats=self.repeats, seed=self.seed, executor=executor)


def _check_overlap(training: Pool, tested: Pool) -> None:
    ids = {question.id for question in tested.questions}
    shared = [question.id for question in training.questions if question.id in ids]
    if shared:
        raise PoolError(
            f"{training.name} and {tested.name} share {len(shared)} questions, {quoted(shared[0])} for one; "
            "train on others, or allow the overlap"
        )


def save_trained(trained: "Trained", job: Job, folder: Path) -> None:
    """Keep both the best network of a run and its last one, for a bench to find."""
    for keep, controller in zip(KEPT, (trained.controller, trained.last), strict=True):
        save_controller(cast(LearnedController, controller), _path(folder, job, keep))


def _path(folder: Path, job: Job, keep: str) -> Path:
    return folder / f"{_key(job)}{'-last' if keep == 'last' else ''}.safetensors"


def _is_whole(path: Path) -> bool:
    """Whether a controller is there from an earlier run, and can be read."""
    try:
        load_controller(path)
    except ControllerError:
        return False
    return True


def _key(job: Job) -> str:
    """What tells one training run from another, for a file name."""
    told = [(pool.name, pool.sha256) for pool in job.pools], job.setting, job.algorithm, job.preset, job.steps, job.seed
    return hashlib.sha256(repr(told).encode()).hexdigest()[:16]
