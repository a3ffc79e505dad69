"""The pages of experiments: each from its figures to Markdown, CSV and PNG."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from functools import partial
from statistics import fmean
from typing import Any

from suffice.experiments import EXPERIMENTS, Bench
from suffice.experiments.bench import benchmark_of, model_of
from suffice.experiments.budgets import SLACK, WAYS, Kept
from suffice.experiments.explain import Explained, rank_correlation
from suffice.experiments.methods import COMPARED, LEARNED, LEARNED_METHODS, Measured, Methods
from suffice.experiments.panels import PanelFound
from suffice.experiments.sweeps import ROUND_PENALTY, Curves, SweepPoint, point
from suffice.experiments.transfer import Transfer
from suffice.paths import write_whole
from suffice.pools import Pool
from suffice.replay import mean_over_pools
from suffice.report.elected import elections_page
from suffice.report.figures import draw_budgets, draw_plots, draw_scaling
from suffice.report.files import table_csv
from suffice.report.html import Axis, Section, apart, panel, percent, plot
from suffice.report.markdown import (
    Page,
    cell,
    gap_columns,
    gap_text,
    markdown_table,
    pictures,
    spread_columns,
    text_of,
    with_spread,
)
from suffice.report.panels import found_rows, found_text, pictured
from suffice.report.style import looks

SAMPLES = {"accuracy": "acc. %", "rounds": "rounds", "samples": "samples"}
TOKENS = {"accuracy": "acc. %", "sequential_tokens": "seq. tokens", "total_tokens": "total tokens"}
METHODS_OF_ROWS = {"ASC": "asc", "ESC": "esc", LEARNED: "rl"}
NOTHING = "There are no controllers for it yet."
SKIPPED = "Skipped: it needs pools of two models, named MODEL__BENCHMARK, and there are of one only."

NO_PANEL = (
    "Skipped: it needs pools of two models on the same questions, with counts of tokens, named MODEL__BENCHMARK, and a "
    "price for each: --price MODEL=P."
)


def write_page(name: str, found: Any, bench: Bench) -> Page:
    """Write what an experiment found on a bench into its folder: a page, a table and pictures."""
    bench.out.mkdir(parents=True, exist_ok=True)
    page = PAGES[name](found, bench)
    write_whole(
        bench.out / f"{name}.md", f"## {EXPERIMENTS[name].title}\n\n{_how(name, bench)}\n\n{page.text}\n".encode()
    )
    for suffix, rows in {"": page.rows, **{f"_{suffix}": rows for suffix, rows in page.more.items()}}.items():
        if rows:
            write_whole(bench.out / f"{name}{suffix}.csv", table_csv(rows).encode())
    return page


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


def main_page(found: Methods, bench: Bench) -> Page:
    """Tables 1 and 5."""
    tables = [
        f"{table}\n"
        for columns in (SAMPLES, TOKENS)
        for table in _paper_tables(bench.test, found.measured, columns, found.base)
    ]
    panels = {
        pool: {
            METHODS_OF_ROWS.get(name, "sc"): [point("", [[result] for result in seeds])]
            for name, seeds in methods.items()
        }
        for pool, methods in found.measured.items()
    }
    for pool, planned in found.ceilings.items():
        panels[pool]["plan"] = [point("", [[planned]])]
    draw_scaling(panels, ("rounds", "samples"), "agreement", bench.out / "main.png")
    regret = ""
    if rewards := found.rewards:
        own, best = rewards
        regret = (
            f"Mean reward: {LEARNED} {own:.4f}, the exact planner with the same actions and penalties {best:.4f}: "
            f"a regret of {best - own:.4f}.\n\n"
        )
    differences, rows = _differences(found, bench.test)
    text = "\n".join(tables) + f"{regret}{differences}{pictures(['main.png'])}"
    return Page(text, _long_rows(found.measured), {"differences": rows})


def ablation_page(found: Methods, bench: Bench) -> Page:
    """Table 2."""
    differences, rows = _differences(found, bench.test)
    text = "\n".join([*_paper_tables(bench.test, found.measured, SAMPLES, found.base), differences])
    return Page(text, _long_rows(found.measured), {"differences": rows})


def _differences(found: Methods, pools: Sequence[Pool]) -> tuple[str, list[dict[str, Any]]]:
    """The differences between methods over each model's pools, as Markdown and as rows."""
    lines, rows = [], []
    for model, group in _by_model(pools).items():
        for (ours, theirs), gaps in found.differences([pool.name for pool in group]).items():
            lines.append([model, f"{ours} − {theirs}", *(gap_text(gaps[metric], metric) for metric in COMPARED)])
            rows.append({"model": model, "method": ours, "against": theirs, **gap_columns(gaps)})
    if not lines:
        return "", []
    table = markdown_table(["model", "difference", *COMPARED], lines)
    return f"Differences, with 95 % intervals over questions (paired bootstrap):\n\n{table}\n", rows


SWEPT = {
    "scaling": {
        "samples": (("rounds", "samples"), "accuracy"),
        "tokens": (("sequential_tokens", "total_tokens"), "accuracy"),
        "agreement": (("rounds", "samples"), "agreement"),
    },
    "frontier": {quality: (("rounds", "samples"), quality) for quality in ("agreement", "accuracy")},
}
"""The pictures of sweeps: what is in the file's name, the costs, and the quality."""


def sweeps_page(name: str, found: dict[str, Curves], bench: Bench) -> Page:
    """Figures 2, 4 and 7, and what a price for rounds does; or the same with the exact planner's frontier."""
    files = []
    for model, pools in _by_model(bench.test).items():
        panels = {pool.name: found[pool.name] for pool in pools}
        for suffix, (costs, quality) in SWEPT[name].items():
            files.append(f"{name}_{model}_{suffix}.png")
            draw_scaling(panels, costs, quality, bench.out / files[-1])
    rows = [
        {"pool": pool, "method": method, "parameter": p.parameter, "seeds": p.seeds, **p.row}
        for pool, curves in found.items()
        for method, points in curves.items()
        for p in points
    ]
    learned = {
        method: [p for curves in found.values() for p in curves.get(method, [])] for method in ("rl", "rl_rounds")
    }
    caption = _seeds(learned["rl"], "Learned controllers")
    if learned["rl_rounds"]:
        caption += f" {_seeds(learned['rl_rounds'], f'Those with {ROUND_PENALTY} for a round')}"
    return Page(f"{caption}\n{pictures(files)}", rows)


def _seeds(points: Sequence[SweepPoint], which: str) -> str:
    """How many seeds the points of learned controllers are means of."""
    counts = sorted({p.seeds for p in points})
    if not counts:
        return f"{which}: there are none."
    if counts == [1]:
        return f"{which} are of one seed."
    many = f"{counts[0]} to {counts[-1]}" if len(counts) > 1 else f"{counts[0]}"
    return f"{which} are means over {many} seeds; bands and bars are ± one standard deviation over these."


def explain_page(found: list[Explained], bench: Bench) -> Page:
    """Figures 3 and 6."""
    if not found:
        return Page(NOTHING, [])
    lines = []
    for pool in found:
        correlations = [rank_correlation(pool.by_entropy), rank_correlation(pool.by_accuracy)]
        lines.append([pool.pool, *("–" if value is None else f"{value:+.2f}" for value in correlations)])
    plotted = _explained(found)
    every = all(pool.by_accuracy for pool in found)  # else some pools have no gold answers
    draw_plots(apart(plotted)[: None if every else 1], bench.out / "explain.png")
    table = markdown_table(["pool", "with entropy", "with accuracy"], lines)
    rows = [{"pool": pool.pool, **asdict(effort)} for pool in found for effort in pool.efforts]
    text = f"Rank correlation (Spearman) of the samples drawn for a question:\n\n{table}\n{pictures(['explain.png'])}"
    return Page(text, rows, plot=plotted)


def _explained(found: Sequence[Explained]) -> Section:
    """A point a question: the samples drawn against how divided its answers are, and how many are right."""
    x = [Axis(1, "how divided the answers are (entropy, nats)", 2, zero=True), percent(2, "responses that are right")]
    panels = {
        pool.pool: [
            [one.question, one.entropy, None if one.accuracy is None else 100 * one.accuracy, one.samples]
            for one in pool.efforts
        ]
        for pool in found
    }
    shown = [panel(pool, {"rl": points}) for pool, points in panels.items()]
    return plot(EXPERIMENTS["explain"].title, x, [Axis(3, "samples", zero=True)], shown)


def transfer_page(found: Transfer | None, bench: Bench) -> Page:
    """Figure 5."""
    if found is None:
        return Page(SKIPPED, [])
    curves = {
        tested: {name: points for name, points in some.items() if points} for tested, some in found.curves.items()
    }
    if not any(curves.values()):
        return Page(NOTHING, [])
    styles = {
        source: {"label": f"trained on {source}", "color": colour, "marker": marker}
        for source, (colour, marker) in zip(bench.models(), looks(bench.models()), strict=True)
    }
    panels = {f"tested on {tested}": some for tested, some in curves.items()}
    draw_scaling(panels, ("rounds", "samples"), "accuracy", bench.out / "transfer.png", styles)
    penalty = f"{bench.setting.penalties.draw}"
    matrix = [
        [source, *(_transferred(some.get(source, []), penalty) for some in curves.values())]
        for source in bench.models()
    ]
    table = markdown_table(["trained on", *(f"tested on {target}" for target in curves)], matrix)
    compared = [(source, target, gaps) for (target, source), gaps in found.differences.items() if gaps]
    lines = [[source, target, *(gap_text(gaps[one], one) for one in COMPARED)] for source, target, gaps in compared]
    gaps_table = markdown_table(["trained on", "tested on", *COMPARED], lines)
    rows = [
        {"trained": source, "tested": target, "penalty_draw": float(p.parameter), "seeds": p.seeds, **p.row}
        for target, some in curves.items()
        for source, points in some.items()
        for p in points
    ]
    more = [{"trained": source, "tested": target, **gap_columns(gaps)} for source, target, gaps in compared]
    every = [p for some in curves.values() for points in some.values() for p in points]
    text = (
        f"{_seeds(every, 'All')} Accuracy % / agreement % / samples / rounds, at a penalty of {penalty}:\n\n{table}\n"
        "Against controllers trained on the tested model, with 95 % intervals over questions (paired bootstrap):\n\n"
        f"{gaps_table}\n"
    )
    return Page(text + pictures(["transfer.png"]), rows, {"differences": more})


def _transferred(points: Sequence[SweepPoint], penalty: str) -> str:
    """The figures at one penalty, with their deviations over the seeds."""
    found = next((p for p in points if p.parameter == penalty), None)
    if found is None:
        return "–"
    metrics = ("accuracy", "agreement", "samples", "rounds")
    return " / ".join(with_spread(found.figures[metric], found.deviations.get(metric), metric) for metric in metrics)


def budgets_page(found: Sequence[Kept], bench: Bench) -> Page:
    """The proposition: whether budgets on average are kept out of sample, and how often the answers agree."""
    draw_budgets(found, bench.out / "budgets.png")
    text = (
        "Penalties are found, or chosen among fixed ones, on the training pools, so that there are so many samples and "
        "rounds on average. On test pools: samples in rounds, agreement with the full vote; **bold** where neither "
        f"mean is over its budget by more than {100 * SLACK:g} %, and how many of the seeds keep to it where there are "
        "several. Pools that are harder than the training pools take more than the mean, others less.\n"
    )
    for model, group in _by_model(bench.test).items():
        columns = [model, *(pool.name for pool in group)] if len(group) > 1 else [group[0].name]
        cells: dict[tuple[tuple[float, float], str], dict[str, str]] = {}
        for kept in found:
            if kept.pool in columns:
                row = cells.setdefault((kept.limits, kept.way), {})
                row[kept.pool] = _kept_cell(kept)
                row["way"] = kept.way + (f" of {kept.among}" if kept.among else "")
                row["seeds"] = f"{len(kept.results)}" if "PPO" in kept.way else ""
        lines = [
            [f"{samples:g} in {rounds:g}", *(row.get(column, "–") for column in ("way", "seeds", *columns))]
            for ((samples, rounds), _), row in sorted(cells.items(), key=lambda one: (one[0][0], WAYS.index(one[0][1])))
        ]
        heads = ["mean" if name == model else name.removeprefix(f"{model}__") for name in columns]
        text += f"\n**{model}**\n\n" + markdown_table(["samples in rounds", "", "seeds", *heads], lines)
    rows = [
        {"samples_limit": kept.limits[0], "rounds_limit": kept.limits[1], "way": kept.way, "pool": kept.pool}
        | {"seeds": len(kept.results), "among": kept.among, "kept": kept.met}
        | spread_columns(kept.results, ("samples", "rounds", "agreement", "accuracy"))
        for kept in found
    ]
    return Page(text + pictures(["budgets.png"]), rows)


def _kept_cell(kept: Kept) -> str:
    samples, rounds, agreement = (cell(metric, kept.results) for metric in ("samples", "rounds", "agreement"))
    seeds = f" ({kept.met} of {len(kept.results)})" if len(kept.results) > 1 else ""
    mark = "**" if kept.met == len(kept.results) else ""
    return f"{mark}{samples} in {rounds}{mark}, {agreement} %{seeds}"


def panel_page(found: Sequence[PanelFound], bench: Bench) -> Page:
    """Ours: what a second model to ask is worth."""
    if not found:
        return Page(NO_PANEL, [])
    files = {one.benchmark: f"panel_{one.benchmark}.png" for one in found}
    for one in found:
        draw_plots(pictured(one.compared), bench.out / files[one.benchmark])
    text = "\n".join(found_text(one) + pictures([files[one.benchmark]]) for one in found)
    return Page(text, [row for one in found for row in found_rows(one)])


PAGES: dict[str, Callable[[Any, Bench], Page]] = {
    "main": main_page,
    "scaling": partial(sweeps_page, "scaling"),
    "frontier": partial(sweeps_page, "frontier"),
    "ablation": ablation_page,
    "explain": explain_page,
    "transfer": transfer_page,
    "budgets": budgets_page,
    "elections": elections_page,
    "panel": panel_page,
}


def _paper_tables(pools: Sequence[Pool], measured: Measured, columns: dict[str, str], base: str) -> list[str]:
    """A table a model: a row a method, a group of columns a benchmark, and the averages with changes against a base."""
    tables = []
    for model, group in _by_model(pools).items():
        names = [pool.name for pool in group]
        heads = [f"{benchmark_of(pool)} {label}" for pool in group for label in columns.values()]
        heads += [f"avg. {label}" for label in columns.values()]
        rows = []
        for method in dict.fromkeys(method for name in names for method in measured[name]):
            if not all(method in measured[name] for name in names):
                continue  # not trained yet for all of them
            counts = list(dict.fromkeys(str(len(measured[name][method])) for name in names))
            seeds = "" if counts == ["1"] and method not in LEARNED_METHODS else ", ".join(counts)
            cells = [cell(metric, measured[name][method]) for name in names for metric in columns]
            for metric in columns:
                value = _average(measured, names, method, metric)
                against = _average(measured, names, base, metric)
                changes = metric != "accuracy" and method != base and value is not None and against
                change = f" ({100 * ((value or 0) / (against or 1) - 1):+.0f} %)" if changes else ""
                cells.append(text_of(value, metric) + change)
            rows.append([method, seeds, *cells])
        tables.append(f"**{model}**\n\n" + markdown_table(["", "seeds", *heads], rows))
    return tables


def _by_model(pools: Sequence[Pool]) -> dict[str, list[Pool]]:
    return {model: [pool for pool in pools if model_of(pool) == model] for model in map(model_of, pools)}


def _average(measured: Measured, names: Sequence[str], method: str, metric: str) -> float | None:
    means = [mean_over_pools(measured[name][method], metric) for name in names]
    return None if None in means else fmean(mean or 0.0 for mean in means)


def _long_rows(measured: Measured) -> list[dict[str, Any]]:
    """A row for each pool and method: means and deviations over the seeds."""
    return [
        {"pool": pool, "method": method, "seeds": len(results), **spread_columns(results, results[0].by_question)}
        for pool, methods in measured.items()
        for method, results in methods.items()
    ]


def _listed(pools: Sequence[Pool]) -> str:
    return ", ".join(pool.name for pool in pools)
