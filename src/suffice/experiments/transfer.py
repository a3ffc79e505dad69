"""Figure 5 of the paper: controllers trained on one model's pools, tested on another's."""

from collections.abc import Mapping
from dataclasses import dataclass

from suffice.experiments.bench import Bench, model_of
from suffice.experiments.sweeps import PENALTIES, Curves, Point, point


@dataclass(frozen=True)
class Transfer:
    """By tested model, the curve of each model trained on: a point a penalty."""

    curves: Mapping[str, Curves]


def transfer(bench: Bench) -> Transfer | None:
    """Train on each model, test on each; None where there is one model only."""
    sources, tested = bench.models(), list(dict.fromkeys(map(model_of, bench.test)))
    if len({*sources, *tested}) < 2:
        return None
    pools = {pool.name: pool for pool in bench.test}
    jobs = {
        (source, pool.name, penalty): bench.job(training, penalty)
        for source in sources
        for pool in bench.test
        if (training := bench.training_for(pool, source))
        for penalty in PENALTIES
    }
    learned = dict(zip(jobs, bench.learned(list(jobs.values())), strict=True))
    results = {key: bench.evaluate(pools[key[1]], [controller])[0] for key, controller in learned.items()}

    def curve(source: str, target: str) -> list[Point]:
        names = [name for name, pool in pools.items() if model_of(pool) == target]
        return [point(f"{penalty}", [results[source, name, penalty] for name in names]) for penalty in PENALTIES]

    return Transfer({target: {source: curve(source, target) for source in sources} for target in tested})
