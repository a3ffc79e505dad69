"""Figures 2, 4 and 7 of the paper: sweeps of each method's parameter, and beyond it the exact planner's frontier."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from suffice.controllers import Controller
from suffice.experiments.bench import Bench
from suffice.pools import Pool
from suffice.replay import Result, mean_over_pools

PENALTIES = (0.001, 0.005, 0.0075, 0.015, 0.02, 0.03)
THRESHOLDS = (0.6, 0.65, 0.75, 0.8, 0.87, 0.92, 0.95, 0.98, 0.99)
WINDOWS = (2, 3, 5, 7)
SIZES = (1, 2, 4, 8, 12, 16, 20, 24, 28, 32)
FIGURES = ("accuracy", "agreement", "rounds", "samples", "sequential_tokens", "total_tokens")


@dataclass(frozen=True)
class Point:
    """One setting of a method: its parameter, and its figures."""

    parameter: str
    figures: Mapping[str, float | None]


Curves = Mapping[str, Sequence[Point]]
"""The sweep of each method."""


def point(parameter: str, results: Sequence[Result]) -> Point:
    """A setting's figures, averaged over results."""
    return Point(parameter, {metric: mean_over_pools(results, metric) for metric in FIGURES})


def scaling(bench: Bench) -> dict[str, Curves]:
    """Sweeps of each method's parameter, by test pool."""
    return _swept(bench, ("sc", "asc", "esc", "rl"))


def frontier(bench: Bench) -> dict[str, Curves]:
    """The same sweeps, and the exact planner's."""
    return _swept(bench, ("sc", "asc", "esc", "rl", "plan"))


def _swept(bench: Bench, methods: Sequence[str]) -> dict[str, Curves]:
    # All pools' jobs at once keep all cores busy.
    jobs = [bench.job(bench.training_for(pool), penalty) for pool in bench.test for penalty in PENALTIES]
    learned = iter(bench.learned(jobs))
    return {pool.name: _sweeps(bench, pool, list(islice(learned, len(PENALTIES))), methods) for pool in bench.test}


def _sweeps(bench: Bench, pool: Pool, learned: Sequence[Controller], methods: Sequence[str]) -> Curves:
    """The curve of each method on one pool."""
    sizes = sorted({max(1, round(size * bench.budget / SIZES[-1])) for size in SIZES})
    sweeps: dict[str, dict[str, str | Controller]] = {
        "sc": {f"draws={size}": f"sc:draws={size}" for size in sizes},
        "asc": {f"threshold={threshold}": f"asc:threshold={threshold}" for threshold in THRESHOLDS},
        "esc": {f"window={window}": f"esc:window={window}" for window in WINDOWS},
        "rl": {f"penalty_draw={penalty}": learned[number] for number, penalty in enumerate(PENALTIES)},
        "plan": {f"penalty_draw={penalty}": f"plan:penalty_draw={penalty}" for penalty in PENALTIES},
    }
    settings = [(method, *setting) for method in methods for setting in sweeps[method].items()]
    results = bench.evaluate(pool, [controller for _, _, controller in settings])
    curves: dict[str, list[Point]] = {method: [] for method in methods}
    for (method, parameter, _), result in zip(settings, results, strict=True):
        curves[method].append(point(parameter, [result]))
    return curves
