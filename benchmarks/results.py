"""Runs the paper's experiments and writes docs/results.md from them; it says how long it will take, and can be stopped.

    python benchmarks/results.py [POOLS] [--cache DIR]… [--only-cached] [--pages bundled/main qwen3/scaling …]

POOLS is a folder with the pools qwen3-0.6b and qwen3-1.7b on aime24, aime25 and hmmt25; without it what an earlier run
left of them is shown. Trained controllers are looked for in all caches and kept in the first, by default with the
pages; stopped, it goes on where it was. --only-cached trains nothing: rows say of how many seeds they are. With --pages
the others stay as an earlier run left them.
"""

import argparse
import csv
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from suffice import get_controller, load_pool
from suffice.cli.reproduce import TEST_POOLS, TRAINING_POOLS
from suffice.experiments import EXPERIMENTS, JOBS, Bench, forecast
from suffice.report.experiments import write_page
from suffice.report.figures import draw_surface
from suffice.report.markdown import markdown_table
from suffice.report.progress import progress_bar, training_bar

DOCS = Path(__file__).parents[1] / "docs"
OUT = DOCS / "results"
POOLS = Path(__file__).parents[2] / "shared" / "pools"
MODELS = ("qwen3-0.6b", "qwen3-1.7b")
BENCHMARKS = ("aime24", "aime25", "hmmt25")

QWEN3 = ("main", "scaling", "frontier", "explain", "transfer")
"""The experiments of the second half, with the preset fast; with the preset paper, main alone."""

PRESETS = {
    "qwen3": "`fast`, best network",
    "qwen3-paper-best": "`paper`, best network",
    "qwen3-paper-last": "`paper`, last network",
}

HEAD = """# Results

All of this page down to [every budget](#every-budget) is made by `python benchmarks/results.py`, which tells beforehand
how long it takes; pictures and CSV files are beside it.

- `suffice reproduce all` trains on the two bundled training pools and tests on the five others;
- `suffice reproduce WHAT --leave-one-out --test POOL…` trains for each of six Qwen3 pools on the same model's other two
  benchmarks. The pools are the paper's samplers and benchmarks, drawn again by others.

Rows and curves of learned controllers are means over as many seeds as they say, ± the standard deviation over these.
Intervals are over questions: resampled within each pool, the same for both sides.
"""

BESIDE = """## The paper's figures beside ours

On [a page of their own](paper.md), with which of the paper's claims hold, and why others don't.
"""

PRESET = """## The paper's hyperparameters beside `fast`

Accuracy % / agreement % / rounds / samples / reward on each pool, trained on the same model's other two benchmarks. The
paper keeps the network at the end of a training; the best is that of 25 looks at the training pools. `fast` was chosen
among about a dozen variants, by one or two runs each on the bundled pools with the test pools' figures in view: the
last digit of its lead should not be leaned on.

{table}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pools", nargs="?", type=Path, default=POOLS)
    parser.add_argument("--cache", type=Path, action="append", default=[])
    parser.add_argument("--only-cached", action="store_true")
    parser.add_argument("--pages", nargs="+", metavar="FOLDER/WHAT")
    options = parser.parse_args()
    runs = [
        (bench, what)
        for bench, experiments in _benches(options)
        for what in experiments
        if options.pages is None or f"{bench.out.name}/{what}" in options.pages
    ]
    print(forecast((bench, JOBS[what](bench).values()) for bench, what in runs), flush=True)
    for bench, what in runs:
        write_page(what, EXPERIMENTS[what](bench), bench)
        print(f"{bench.out.name}/{what}", flush=True)
    surfaces = {"plan": get_controller("plan"), "rl": get_controller("rl")}
    draw_surface(surfaces, 32, OUT / "surface.png")
    _write_page()


def _benches(options: argparse.Namespace) -> list[tuple[Bench, Sequence[str]]]:
    """What is run, and which experiments on it."""

    def bench(out: str, test: Sequence[str | Path], train: Sequence[str] = (), **how: str) -> Bench:
        return Bench(
            train=tuple(map(load_pool, train)),
            test=tuple(map(load_pool, test)),
            out=OUT / out,
            leave_one_out=not train,
            cache=options.cache or OUT / "bundled" / "controllers",
            only_cached=options.only_cached,
            progress=training_bar,
            bar=progress_bar,
            **how,  # type: ignore[arg-type]
        )

    benches: list[tuple[Bench, Sequence[str]]] = [(bench("bundled", TEST_POOLS, TRAINING_POOLS), list(JOBS))]
    if options.pools.is_dir():
        qwen3 = [options.pools / f"{model}__{name}.jsonl" for model in MODELS for name in BENCHMARKS]
        benches.append((bench("qwen3", qwen3), QWEN3))
        benches += [
            (bench(f"qwen3-paper-{keep}", qwen3, preset="paper", keep=keep), ["main"]) for keep in ("best", "last")
        ]
    return benches


def _write_page() -> None:
    parts = [
        HEAD,
        _section("The bundled pools", "bundled", JOBS),
        _section("Qwen3 on AIME and HMMT, leaving one benchmark out", "qwen3", QWEN3),
        BESIDE,
        _presets(),
        (OUT / "budgets" / "budgets.md").read_text(),  # from benchmarks/budgets.py
    ]
    page = DOCS / "results.md"
    written_by_hand = page.read_text().partition("\n## The gateway\n")  # from what benchmarks/gateway.py prints
    page.write_text("\n".join(parts) + "".join(written_by_hand[1:]))


def _section(title: str, folder: str, experiments: Iterable[str]) -> str:
    """The pages of experiments under a title, their pictures found from where this page is."""
    pages = [(OUT / folder / f"{name}.md").read_text() for name in experiments]
    page = re.sub(r"^## ", "### ", "\n".join(pages), flags=re.MULTILINE).replace("](", f"](results/{folder}/")
    return f"## {title}\n\n{page}"


def _rows(folder: str) -> dict[tuple[str, str], dict[str, str]]:
    """What the main experiment measured, by pool and method."""
    path = OUT / folder / "main.csv"
    if not path.exists():
        return {}
    with path.open() as lines:
        return {(row["pool"], row["method"]): row for row in csv.DictReader(lines)}


def _presets() -> str:
    """The paper's hyperparameters and `fast`."""
    found = {label: _rows(folder) for folder, label in PRESETS.items()}
    metrics = ("accuracy", "agreement", "rounds", "samples", "reward")
    lines = []
    for model in MODELS:
        for benchmark in BENCHMARKS:
            pool = f"{model}__{benchmark}"
            for label, rows in found.items():
                if row := rows.get((pool, "RL-guided")):
                    lines.append([pool, label, row["seeds"], _figures(row, metrics)])
    return PRESET.format(table=markdown_table(["pool", "controllers", "seeds", " / ".join(metrics)], lines))


def _figures(row: dict[str, str], metrics: Sequence[str]) -> str:
    """Means, with their deviations over the seeds where there are several."""
    cells = []
    for metric in metrics:
        places = 4 if metric == "reward" else 1
        spread = row[f"{metric}_std"]
        cells.append(f"{float(row[metric]):.{places}f}" + (f" ±{float(spread):.{max(places, 2)}f}" if spread else ""))
    return " / ".join(cells)


if __name__ == "__main__":
    main()
