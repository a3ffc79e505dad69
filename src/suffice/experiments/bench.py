"""What experiments stand on: pools to train and test on, and the controllers trained on them."""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from suffice import settings
from suffice.controllers import Controller, LearnedController, load_controller, save_controller
from suffice.errors import ControllerError, OptionError, PoolError, whole_number
from suffice.executors import Executor
from suffice.jsonl import quoted
from suffice.pools import Pool
from suffice.replay import DEFAULT_REPEATS, Result, evaluate
from suffice.replay.evaluate import executor_for
from suffice.report.markdown import Page
from suffice.report.progress import progress_bar, training_bar
from suffice.training.setting import KEPT, Setting, TrainingJob, check_keep

if TYPE_CHECKING:
    from suffice.training.learner import Trained

Training = tuple[Pool, ...]

Jobs = Mapping[tuple[str, Any, int], TrainingJob]  # by test pool, kind and seed
Measured = Mapping[str, Mapping[Any, Sequence[Result]]]
"""By test pool and kind: a result, or one a seed."""


def model_of(pool: Pool) -> str:
    """The model in a pool's name, MODEL__BENCHMARK."""
    return pool.name.split("__")[0]


def benchmark_of(pool: Pool) -> str:
    """The benchmark in a pool's name, MODEL__BENCHMARK."""
    return pool.name.split("__")[-1]


def names_of(pools: Sequence[Pool]) -> str:
    return ", ".join(pool.name for pool in pools)


def by_model(pools: Sequence[Pool]) -> dict[str, list[Pool]]:
    return {model: [pool for pool in pools if model_of(pool) == model] for model in map(model_of, pools)}


@dataclass(frozen=True)
class Bench:
    """Pools to train and test on, how, and where.

    Controllers are looked for in all folders of `cache`, by default one in `out`, and new ones kept in the first.
    Without an executor all cores are used where it is worth it.
    """

    train: Training
    test: Training
    out: Path
    leave_one_out: bool = settings.setting(False, "Train for each test pool on the same model's others.")
    setting: Setting = Setting()
    """What controllers are trained for and measured by, where an experiment doesn't change it."""
    preset: str = settings.setting(TrainingJob.preset, "How PPO is run.", "fast|paper")
    steps: int = settings.setting(TrainingJob.steps, "Decisions to learn from, for each controller.")
    seeds: int = settings.setting(5, "How many controllers rows and curves are means of.")
    repeats: int = settings.setting(DEFAULT_REPEATS, "How often each question is replayed.")
    seed: int = settings.setting(0, "The first seed.")
    keep: str = settings.setting(
        "best", "The best network of each training, or the last, as in the paper.", "best|last"
    )
    warn: Callable[[str], None] = lambda message: None
    cache: Sequence[Path] = ()
    prices: Mapping[str, float] = field(default_factory=dict)
    """Of a panel's models, for a million tokens."""
    value: float | None = None
    """What a right answer is worth to a panel, in the money of the prices."""
    executor: Executor | None = None

    @property
    def budget(self) -> int:
        return self.setting.budget

    @property
    def draws(self) -> dict[str, Any]:
        return {"budget": self.budget, "repeats": self.repeats, "seed": self.seed}

    @property
    def changes(self) -> list[str]:
        """What of the setting is not the paper's."""
        own, paper = (
            {
                "penalty for a draw": setting.penalties.draw,
                "penalty for a round": setting.penalties.round,
                "actions": ", ".join(map(str, setting.actions)),
                "first round": setting.first,
                "budget": setting.budget,
            }
            for setting in (self.setting, Setting())
        )
        return [f"{name} {value}" for name, value in own.items() if value != paper[name]]

    @property
    def _folders(self) -> Sequence[Path]:
        return self.cache or [self.out / "controllers"]

    def bar(self, title: str, total: float) -> AbstractContextManager[Callable[..., None]]:
        return progress_bar(title, total, self.executor)

    def check(self, allow_overlap: bool) -> None:
        """Refuse what can't be run, and training on a test's questions."""
        for name in ("seeds", "repeats", "steps"):
            whole_number(name, getattr(self, name))
        check_keep(self.keep)
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
        """Those of this model; else of the tested one, or all where it has none."""
        if self.leave_one_out:
            model = model or model_of(tested)
            return tuple(p for p in self.test if model_of(p) == model and benchmark_of(p) != benchmark_of(tested))
        chosen = tuple(p for p in self.train if model_of(p) == (model or model_of(tested)))
        return chosen if chosen or model else self.train

    def models(self) -> list[str]:
        """The models that there are training pools of."""
        return list(dict.fromkeys(map(model_of, self.test if self.leave_one_out else self.train)))

    def job(
        self,
        tested: Pool,
        seed: int = 0,
        model: str | None = None,
        means: tuple[float | None, float | None] = (None, None),
        **changes: Any,
    ) -> TrainingJob:
        """Train for a test pool, maybe on another model; `means` are of samples and rounds."""
        training, setting = self.training_for(tested, model), replace(self.setting, **changes)
        return TrainingJob(training, setting, self.preset, self.steps, self.seed + seed, *means)

    def jobs(self, kinds: Mapping[Any, Mapping[str, Any]], seeds: int | None = None) -> Jobs:
        """By kinds, which have arguments of `job`, for every test pool and seed."""
        return {
            (pool.name, kind, seed): self.job(pool, seed, **how)
            for pool in self.test
            for kind, how in kinds.items()
            for seed in range(seeds or self.seeds)
        }

    def missing(self, jobs: Iterable[TrainingJob]) -> list[TrainingJob]:
        """The jobs without a controller, each once."""
        return [job for job in {job_key(job): job for job in jobs}.values() if self._find(job) is None]

    def learned(self, jobs: Jobs) -> dict[tuple[str, Any, int], LearnedController]:
        """The controllers of these jobs: of earlier runs, or trained now."""
        if missing := self.missing(jobs.values()):
            self._train(missing)
        each = {job_key(job): job for job in jobs.values()}
        found = {key: self._find(job) for key, job in each.items()}
        learned = {name: one for name, job in jobs.items() if (one := found[job_key(job)])}
        if len(learned) < len(jobs):
            raise KeyboardInterrupt
        return learned

    def _train(self, jobs: Sequence[TrainingJob]) -> None:
        from suffice.training.runs import learn_each

        folder = self._folders[0]
        folder.mkdir(parents=True, exist_ok=True)
        with training_bar(len(jobs), self.steps, self.executor) as watch:
            for number, trained in learn_each(jobs, watch, self.executor or "processes"):
                if trained.controller.card["steps"] >= self.steps:
                    save_trained(trained, jobs[number], folder)
                    for rule in trained.controller.no_better_than():
                        self.warn(f"{_named(jobs[number])} learned nothing: it is no better than {rule}")

    def _find(self, job: TrainingJob) -> LearnedController | None:
        for folder in self._folders:
            try:
                return cast(LearnedController, load_controller(_path(folder, job, self.keep)))
            except ControllerError:
                continue
        return None

    def measure(self, jobs: Jobs, rules: Mapping[Any, str | Controller]) -> Measured:
        """Replay rules, and the controllers of these jobs, on every test pool."""
        learned = self.learned(jobs)
        measured: dict[str, dict[Any, list[Result]]] = {}
        for pool in self.test:
            own: list[tuple[Any, str | Controller]] = [*rules.items()]
            own += [(kind, one) for (tested, kind, _), one in learned.items() if tested == pool.name]
            found = measured[pool.name] = {}
            for (kind, _), result in zip(own, self.evaluate(pool, [one for _, one in own]), strict=True):
                found.setdefault(kind, []).append(result)
        return measured

    def evaluate(self, pool: Pool, controllers: Sequence[str | Controller]) -> list[Result]:
        with self.bar(f"replay of {pool.name}", len(pool.questions) * len(controllers)) as advance:
            executor = self.executor or executor_for([pool], len(controllers), self.repeats)
            penalties = self.setting.penalties
            return evaluate(pool, controllers, **self.draws, penalties=penalties, progress=advance, executor=executor)


def _check_overlap(training: Pool, tested: Pool) -> None:
    ids = {question.id for question in tested.questions}
    shared = [question.id for question in training.questions if question.id in ids]
    if shared:
        raise PoolError(
            f"{training.name} and {tested.name} share {len(shared)} questions, {quoted(shared[0])} for one; "
            "train on others, or allow it by --allow-overlap"
        )


def save_trained(trained: "Trained", job: TrainingJob, folder: Path) -> None:
    """Keep a run's best and last network for a bench to find."""
    for keep, one in zip(KEPT, (trained, trained.last or trained), strict=True):
        save_controller(one.controller, _path(folder, job, keep))


def _path(folder: Path, job: TrainingJob, keep: str) -> Path:
    return folder / f"{job_key(job)}{'-last' if keep == 'last' else ''}.safetensors"


def job_key(job: TrainingJob) -> str:
    """What tells one training run from another, for a file name."""
    pools = [(pool.name, pool.sha256) for pool in job.pools]
    identity: tuple[Any, ...] = (pools, job.setting, "ppo", job.preset, job.steps, job.seed)
    if job.mean_samples or job.mean_rounds:
        identity = (*identity, job.mean_samples, job.mean_rounds)
    return hashlib.sha256(repr(identity).encode()).hexdigest()[:16]


def _named(job: TrainingJob) -> str:
    setting = job.setting
    actions = "+".join(map(str, setting.actions))
    return (
        f"the controller of seed {job.seed} (on {names_of(job.pools)}, penalties {setting.penalties.draw:g} and "
        f"{setting.penalties.round:g}, actions {actions}, budget {setting.budget})"
    )


@dataclass(frozen=True)
class Experiment:
    """An experiment of `suffice reproduce`, and the trainings that it needs."""

    title: str
    run: Callable[[Bench], Page]
    jobs: Callable[[Bench], Jobs] | None = None
