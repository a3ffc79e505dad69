"""Writing what experiments found: a page of Markdown each, tables as CSV, and an index of the pages."""

from collections.abc import Iterable, Sequence
from typing import Any

from suffice.experiments import EXPERIMENTS, Bench
from suffice.paths import write_whole
from suffice.pools import Pool
from suffice.report.files import table_csv


def write_page(name: str, found: Any, bench: Bench) -> None:
    """Write what an experiment found on a bench into its folder: a page, a table and pictures."""
    bench.out.mkdir(parents=True, exist_ok=True)
    page = EXPERIMENTS[name].page(found, bench)
    write_whole(
        bench.out / f"{name}.md", f"## {EXPERIMENTS[name].title}\n\n{_how(name, bench)}\n\n{page.text}\n".encode()
    )
    for suffix, rows in {"": page.rows, **{f"_{suffix}": rows for suffix, rows in page.more.items()}}.items():
        if rows:
            write_whole(bench.out / f"{name}{suffix}.csv", table_csv(rows).encode())


def _how(name: str, bench: Bench) -> str:
    """The setting of an experiment, in a sentence: where it is the paper's, in few words."""
    how = (
        "on " + _listed(bench.train) + (", of the tested model where there are any" if len(bench.models()) > 1 else "")
    )
    if bench.leave_one_out:
        how = "for each, on the same model's other benchmarks"
    kept = ", the last network" if bench.keep == "last" else ""
    networks = f"preset {bench.preset}, {bench.steps:,} steps{kept}; " if EXPERIMENTS[name].trains else ""
    return (
        f"Trained {how}; tested on {_listed(bench.test)}; "
        + "".join(f"{change}; " for change in bench.changes)
        + f"{networks}{bench.repeats} repeats."
    )


def write_index(names: Iterable[str], bench: Bench) -> None:
    """Write a page that shows several together."""
    pages = [(bench.out / f"{name}.md").read_text() for name in names]
    write_whole(bench.out / "index.md", "\n".join(["# The paper's experiments\n", *pages]).encode())


def _listed(pools: Sequence[Pool]) -> str:
    return ", ".join(pool.name for pool in pools)
