"""The README's picture: samples, rounds and agreement of all methods, on typical pools and on the bundled hard ones.

The pools of other models are not part of the project; their figures are, and `--pools` measures them again.
"""

import argparse
import csv
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

from suffice import Pool, evaluate, load_pool
from suffice.report.figures import draw_headline
from suffice.report.files import table_csv

DOCS = Path(__file__).resolve().parents[1] / "docs"
TYPICAL = DOCS / "results" / "typical.csv"
HARD = [f"qwen2.5-coder-1.5b__{name}" for name in ("dapo", "gsm8k", "math500")]
CONTROLLERS = ["sc", "asc", "esc", "rl", "plan"]
METRICS = ("accuracy", "agreement", "samples", "rounds", "total_tokens")

Means = dict[str, dict[str, float]]


def measure(pools: Sequence[str | Pool]) -> list[dict[str, str | float]]:
    """A row for each pool and controller."""
    results = evaluate(list(pools), CONTROLLERS, executor="processes")
    return [
        {"pool": one.pool, "controller": one.controller, **{metric: getattr(one, metric) for metric in METRICS}}
        for one in results
    ]


def means(rows: Sequence[dict[str, str | float]]) -> Means:
    """The mean over the pools."""
    return {
        name: {metric: fmean(float(row[metric]) for row in rows if row["controller"] == name) for metric in METRICS}
        for name in CONTROLLERS
    }


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--pools", type=Path, nargs="*", help="measure these as the typical ones")
    chosen = options.parse_args()
    if chosen.pools:
        TYPICAL.write_text(table_csv(measure([load_pool(path) for path in chosen.pools])))
    with TYPICAL.open(newline="") as file:
        typical: list[dict[str, str | float]] = list(csv.DictReader(file))
    groups = {
        f"{len(typical) // len(CONTROLLERS)} public pools of five models": means(typical),
        "3 bundled pools, hard for their model": means(measure(HARD)),
    }
    for title, figures in groups.items():
        print(title)
        for name, known in figures.items():
            print(f"  {name}: " + ", ".join(f"{metric} {value:.1f}" for metric, value in known.items()))
    draw_headline(groups, DOCS / "headline.png")


if __name__ == "__main__":
    main()
