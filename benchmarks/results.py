"""Runs the paper's experiments and writes docs/results.md from them; it can be stopped.

    python benchmarks/results.py [POOLS] [--cache DIR]… [--only-cached] [--pages bundled/main qwen3/scaling …]

POOLS is a folder with the pools qwen3-0.6b, qwen3-1.7b and qwen3-4b on aime24, aime25 and hmmt25; without it what an
earlier run left of them is shown. Trained controllers are looked for in all caches and kept in the first, by default
with the pages; stopped, it goes on where it was. --only-cached trains nothing: a page whose controllers are not all in
a cache stays as an earlier run left it. With --pages the others stay.
"""

import argparse
import csv
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pictures import draw_surface

from suffice import get_controller, load_pool
from suffice.cli.commands.reproduce import TEST_POOLS, TRAINING_POOLS
from suffice.experiments import EXPERIMENTS, Bench
from suffice.experiments.pages import write_page
from suffice.report.markdown import markdown_table

DOCS = Path(__file__).parents[1] / "docs"
OUT = DOCS / "results"
POOLS = Path(__file__).parents[2] / "shared" / "pools"
MODELS = ("qwen3-0.6b", "qwen3-1.7b", "qwen3-4b")
BENCHMARKS = ("aime24", "aime25", "hmmt25")

TRAINING = [name for name, experiment in EXPERIMENTS.items() if experiment.jobs]

QWEN3 = ("main", "scaling", "frontier", "explain", "transfer")
QWEN3_4B = ("main", "ablation", "scaling", "frontier", "explain", "transfer")
"""The experiments with the preset fast: transfer of the second is between all three models."""

PRESETS = {
    "`fast`, best network": ("qwen3", "qwen3-4b"),
    "`paper`, best network": ("qwen3-paper-best", "qwen3-0.6b-paper-best", "qwen3-4b-paper-best"),
    "`paper`, last network": ("qwen3-paper-last", "qwen3-0.6b-paper-last", "qwen3-4b-paper-last"),
}
"""The folders with the main experiment of each training; of a pool in several the last counts."""

HEAD = Path(__file__).with_suffix(".md").read_text()

PRESET = """## The paper's hyperparameters beside `fast`

Accuracy % / agreement % / rounds / samples / reward on each pool, trained on the same model's other two benchmarks. The
paper keeps the network at the end of a training; the best is that of 25 looks at the training pools. `fast` was chosen
among about a dozen variants, by one or two runs each on the bundled pools with the test pools' figures in view: the
last digit of its lead should not be leaned on. The networks of `paper` on Qwen3-1.7B were trained one by one, those on
Qwen3-0.6B and Qwen3-4B side by side (`benchmarks/together.py`), by the same algorithm.

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
    for bench, what in runs:
        jobs = EXPERIMENTS[what].jobs
        missing = bench.missing(jobs(bench).values()) if jobs else []
        if options.only_cached and missing:
            print(f"{bench.out.name}/{what} stays: {len(missing)} of its controllers are in no cache", flush=True)
            continue
        write_page(what, EXPERIMENTS[what].run(bench), bench)
        print(f"{bench.out.name}/{what}", flush=True)
    surfaces = {"plan": get_controller("plan"), "rl": get_controller("rl")}
    draw_surface(surfaces, 32, OUT / "surface.png")
    _write_page()


def _benches(options: argparse.Namespace) -> list[tuple[Bench, Sequence[str]]]:
    """What is run, and which experiments on it."""

    def bench(out: str, test: Sequence[str | Path], train: Sequence[str] = (), **how: Any) -> Bench:
        return Bench(
            train=tuple(map(load_pool, train)),
            test=tuple(map(load_pool, test)),
            out=OUT / out,
            leave_one_out=not train,
            cache=options.cache or [OUT / "bundled" / "controllers"],
            **how,
        )

    benches: list[tuple[Bench, Sequence[str]]] = [(bench("bundled", TEST_POOLS, TRAINING_POOLS), TRAINING)]
    if options.pools.is_dir():
        small, middle, large = ([options.pools / f"{model}__{name}.jsonl" for name in BENCHMARKS] for model in MODELS)
        benches.append((bench("qwen3", [*small, *middle]), QWEN3))
        benches.append((bench("qwen3-4b", large), QWEN3_4B[:-1]))
        benches.append((bench("qwen3-4b", [*small, *middle, *large], seeds=3), QWEN3_4B[-1:]))
        for keep in ("best", "last"):
            paper = {"preset": "paper", "keep": keep}
            benches.append((bench(f"qwen3-paper-{keep}", middle, **paper), ["main"]))
            benches.append((bench(f"qwen3-0.6b-paper-{keep}", small, **paper, seeds=3), ["main"]))
            benches.append((bench(f"qwen3-4b-paper-{keep}", large, **paper, seeds=3), ["main", "ablation"]))
    return benches


def _read(path: Path) -> list[dict[str, Any]]:
    """The rows of a table; none where it was not made."""
    if not path.exists():
        return []
    with path.open(newline="") as lines:
        return list(csv.DictReader(lines))


def _write_page() -> None:
    parts = [
        HEAD,
        _section("The bundled pools", "bundled", TRAINING),
        _section("Qwen3 on AIME and HMMT, leaving one benchmark out", "qwen3", QWEN3),
        _section("Qwen3-4B, leaving one benchmark out", "qwen3-4b", QWEN3_4B),
        _presets(),
        (OUT / "budgets" / "budgets.md").read_text(),  # from benchmarks/budgets.py
    ]
    page = DOCS / "results.md"
    written_by_hand = page.read_text().partition("\n## The gateway\n")  # from what benchmarks/gateway.py prints
    page.write_text("\n".join(parts) + "".join(written_by_hand[1:]))


def _section(title: str, folder: str, experiments: Iterable[str]) -> str:
    """The pages of experiments under a title, their pictures found from where this page is."""
    pages = [path.read_text() for name in experiments if (path := OUT / folder / f"{name}.md").exists()]
    page = re.sub(r"^## ", "### ", "\n".join(pages), flags=re.MULTILINE).replace("](", f"](results/{folder}/")
    return f"## {title}\n\n{page}"


def _rows(folders: Iterable[str]) -> dict[tuple[str, str], dict[str, str]]:
    """What the main experiment measured, by pool and method."""
    return {(row["pool"], row["method"]): row for folder in folders for row in _read(OUT / folder / "main.csv")}


def _presets() -> str:
    """The paper's hyperparameters and `fast`."""
    found = {label: _rows(folders) for label, folders in PRESETS.items()}
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
