"""The README's table and picture: all methods on typical pools and on the bundled hard ones, over several seeds.

    python benchmarks/headline.py [--pools FILE…] [--seeds N]

The pools of other models are not part of the project; their figures are (docs/results/typical.csv), and `--pools`
measures them again. The bundled ones are measured anew into docs/results/headline.csv, whose rows the README shows.
"""

import argparse
import csv
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean

from pictures import draw_headline

from suffice import Pool, difference, evaluate, load_pool
from suffice.experiments.main import mean_result
from suffice.replay import Result, mean_over_pools
from suffice.report.files import table_csv

RESULTS = Path(__file__).resolve().parents[1] / "docs" / "results"
TYPICAL, HEADLINE = RESULTS / "typical.csv", RESULTS / "headline.csv"
HARD = [f"qwen2.5-coder-1.5b__{name}" for name in ("dapo", "gsm8k", "math500")]
CONTROLLERS = [
    *("once", "sc", "asc", "asc:threshold=0.9", "esc", "esc:window=4"),
    *("doubling", "boinf", "rl", "plan"),
]
PICTURED = ["sc", "asc", "esc", "rl", "plan"]
METRICS = ("accuracy", "agreement", "agreement_independent", "samples", "rounds", "total_tokens")

Row = dict[str, str | float | None]


def measure(pools: Sequence[str | Pool], seeds: int) -> list[list[Result]]:
    """By controller, a result a pool: the means over the seeds."""
    runs = [evaluate(list(pools), CONTROLLERS, seed=seed, confidence=False) for seed in range(seeds)]
    means = [_mean([run[place] for run in runs]) for place in range(len(runs[0]))]
    return [means[place :: len(CONTROLLERS)] for place in range(len(CONTROLLERS))]


def _mean(results: Sequence[Result]) -> Result:
    """The figures of a controller on a pool, over seeds."""
    known = {metric: [getattr(one, metric) for one in results] for metric in METRICS}
    figures = {metric: None if None in values else fmean(values) for metric, values in known.items()}
    return replace(mean_result(results), **figures)  # type: ignore[arg-type]


def row(results: Sequence[Result], full: Sequence[Result], **names: str | float) -> Row:
    """A controller's figures over these pools; what its accuracy is over the full vote's, with the interval."""
    gap = difference(results, full, "accuracy")
    assert gap
    figures = {metric: mean_over_pools(results, metric) for metric in METRICS}
    over = {"accuracy_over_sc": gap.mean, "low": gap.low, "high": gap.high}
    return {**names, "controller": results[0].controller, **figures, **over}


def pictured(rows: Sequence[dict[str, str]]) -> dict[str, dict[str, float]]:
    """The means over the pools that know a figure."""
    return {
        name: {
            metric: fmean(float(one[metric]) for one in rows if one["controller"] == name and one[metric])
            for metric in METRICS
        }
        for name in PICTURED
    }


def read(path: Path) -> list[dict[str, str]]:
    """The rows of a table."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--pools", type=Path, nargs="*", help="measure these as the typical ones")
    options.add_argument("--seeds", type=int, default=24)
    given = options.parse_args()
    if given.pools:
        typical = measure([load_pool(path) for path in given.pools], given.seeds)
        full = typical[CONTROLLERS.index("sc")]
        rows = [
            row([one], [base], pool=one.pool, seeds=given.seeds)
            for place, base in enumerate(full)
            for one in (results[place] for results in typical)
        ]
        TYPICAL.write_text(table_csv(rows))
    hard = measure(HARD, given.seeds)
    full = hard[CONTROLLERS.index("sc")]
    HEADLINE.write_text(table_csv([row(results, full, pools=len(HARD), seeds=given.seeds) for results in hard]))
    known = read(TYPICAL)
    groups = {
        f"{len({one['pool'] for one in known})} public pools of five models": pictured(known),
        "3 bundled pools, hard for their model": pictured(read(HEADLINE)),
    }
    for title, figures in groups.items():
        print(title)
        for name, values in figures.items():
            print(f"  {name}: " + ", ".join(f"{metric} {value:.1f}" for metric, value in values.items()))
    draw_headline(groups, RESULTS.parent / "headline.png")


if __name__ == "__main__":
    main()
