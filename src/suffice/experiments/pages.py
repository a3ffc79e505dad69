"""What experiments leave: a page of Markdown each, tables as CSV, pictures, and a report."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

from suffice.experiments import EXPERIMENTS, Bench
from suffice.experiments.bench import names_of
from suffice.experiments.main import LEARNED
from suffice.paths import write_whole
from suffice.report.files import table_csv
from suffice.report.html import Report, Section, figures, table, words
from suffice.report.markdown import Page
from suffice.report.questions import MOST_QUESTIONS, questions_section, votes_in_pool


def write_page(name: str, page: Page, bench: Bench) -> None:
    from suffice.report.figures import draw_plots

    bench.out.mkdir(parents=True, exist_ok=True)
    title = EXPERIMENTS[name].title
    write_whole(bench.out / f"{name}.md", f"## {title}\n\n{_how(name, bench)}\n\n{page.text}\n".encode())
    for file, plots in page.pictures.items():
        draw_plots(plots, bench.out / file)
    for file, rows in {name: page.rows, f"{name}_differences": page.differences}.items():
        if rows:
            write_whole(bench.out / f"{file}.csv", table_csv(rows).encode())


def _how(name: str, bench: Bench) -> str:
    """The setting in a sentence."""
    how = f"on {names_of(bench.train)}"
    if bench.leave_one_out:
        how = "for each, on the same model's other benchmarks"
    elif len(bench.models()) > 1:
        how += ", of the tested model where there are any"
    parts = [f"Trained {how}", f"tested on {names_of(bench.test)}", *bench.changes]
    if EXPERIMENTS[name].jobs:
        kept = ", the last network" if bench.keep == "last" else ""
        parts.append(f"preset {bench.preset}, {bench.steps:,} steps{kept}")
    return "; ".join([*parts, f"{bench.repeats} repeats."])


def write_index(names: Iterable[str], bench: Bench) -> None:
    pages = [(bench.out / f"{name}.md").read_text() for name in names]
    write_whole(bench.out / "index.md", "\n".join(["# The paper's experiments\n", *pages]).encode())


def experiments_report(pages: Mapping[str, Page], bench: Bench, settings: dict[str, Any]) -> Report:
    found = {name: page for name, page in pages.items() if page.rows}  # others can't be run on these pools
    sections: list[Section] = []
    for name, page in found.items():
        title = EXPERIMENTS[name].title
        sections += [{**plot, "title": plot["title"] or title} for plot in page.plots]
        sections.append(_table(title, page.rows))
    most = MOST_QUESTIONS // len(bench.test)
    questions = [votes_in_pool(pool, question) for pool in bench.test for question in pool.questions[:most]]
    votes = questions_section(questions, sum(len(pool.questions) for pool in bench.test), ["most divided"])
    title = "The paper's experiments" if len(pages) > 1 else EXPERIMENTS[next(iter(pages))].title
    sentence = _sentence(found["main"].rows) if "main" in found else ""
    return Report(title, sentence, [*sections, votes], settings, [pool.name for pool in bench.test])


def _sentence(rows: Sequence[Mapping[str, Any]]) -> str:
    full = rows[0]["method"]
    own = [row for row in rows if row["method"] == LEARNED]
    samples, rounds, agreement = (fmean(row[metric] for row in own) for metric in ("samples", "rounds", "agreement"))
    share = samples / fmean(row["samples"] for row in rows if row["method"] == full)
    fewer = f"{100 * (1 - share):.0f} % fewer samples than {full}"
    return f"{LEARNED}: {fewer} in {rounds:.1f} rounds, {agreement:.1f} % the same answers"


def _table(title: str, rows: Sequence[Mapping[str, Any]]) -> Section:
    """All columns that have figures, a panel a pool."""
    shown = [key for key in rows[0] if any(row[key] is not None for row in rows)]
    places = {"reward": 4, "entropy": 4, "penalty_draw": 4, "seeds": 0}
    columns = []
    for key in shown:
        label = key.replace("_std", " ±").replace("_", " ")
        is_figure = any(isinstance(row[key], int | float) for row in rows)
        columns.append(figures(label, places.get(key, 2)) if is_figure else words(label))
    lines = {"": list(rows)}
    for row in rows:
        if "pool" in row:
            lines.setdefault(row["pool"], []).append(row)
    panels = [{"name": name, "rows": [[row[key] for key in shown] for row in some]} for name, some in lines.items()]
    return table(f"{title}: the figures", columns, panels)
