"""Figure 5 of the paper: controllers trained on one model's pools, tested on another's."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from suffice.experiments.bench import Bench, model_of
from suffice.experiments.methods import COMPARED, mean_result
from suffice.experiments.sweeps import Curves, SweepPoint, draw_penalties, point
from suffice.replay import Difference, Result, difference
from suffice.training.setting import TrainingJob


@dataclass(frozen=True)
class Transfer:
    """By tested model, the curve of each model trained on: a point a penalty.

    `differences` are those between another model's controllers and the tested model's own at the bench's penalty, by
    tested model and model trained on.
    """

    curves: Mapping[str, Curves]
    differences: Mapping[tuple[str, str], Mapping[str, Difference | None]] = field(default_factory=dict)


def transfer_jobs(bench: Bench) -> dict[tuple[str, str, float, int], TrainingJob]:
    """By model trained on, test pool, penalty and seed; none where there is one model only."""
    if len({*bench.models(), *map(model_of, bench.test)}) < 2:
        return {}
    return {
        (source, pool.name, draw, seed): bench.job(training, replace(bench.setting.penalties, draw=draw), seed=seed)
        for source in bench.models()
        for pool in bench.test
        if (training := bench.training_for(pool, source))
        for draw in draw_penalties(bench)
        for seed in range(bench.seeds)
    }


def transfer(bench: Bench) -> Transfer | None:
    """Train on each model, test on each; None where there is one model only."""
    sources, tested = bench.models(), list(dict.fromkeys(map(model_of, bench.test)))
    jobs = transfer_jobs(bench)
    if not jobs:
        return None
    learned = bench.learned(jobs)
    results: dict[tuple[str, str, float, int], Result] = {}
    for pool in bench.test:
        mine = [key for key in learned if key[1] == pool.name]
        results |= zip(mine, bench.evaluate(pool, [learned[key] for key in mine]), strict=True)

    def runs(source: str, target: str, penalty: float) -> list[list[Result]]:
        """A list of results over the target's pools, for each seed that all of them have."""
        names = [pool.name for pool in bench.test if model_of(pool) == target]
        found = [[results.get((source, name, penalty, seed)) for name in names] for seed in range(bench.seeds)]
        return [[one for one in run if one] for run in found if None not in run]

    def curve(source: str, target: str) -> list[SweepPoint]:
        found = [(penalty, runs(source, target, penalty)) for penalty in draw_penalties(bench)]
        return [point(f"{penalty}", some) for penalty, some in found if some]

    def compared(source: str, target: str) -> dict[str, Difference | None]:
        ours, theirs = (
            [mean_result(seeds) for seeds in zip(*runs(trained, target, bench.setting.penalties.draw), strict=True)]
            for trained in (source, target)
        )
        return {metric: difference(ours, theirs, metric) for metric in COMPARED} if ours and theirs else {}

    return Transfer(
        {target: {source: curve(source, target) for source in sources} for target in tested},
        {(target, source): compared(source, target) for target in tested for source in sources if source != target},
    )
