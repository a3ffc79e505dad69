"""The pages of experiments: each from its figures to Markdown, CSV and PNG."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, stdev
from typing import Any

from suffice.experiments import Bench, Curves, Explained, Measured, Methods, Transfer, benchmark_of, model_of
from suffice.experiments.explain import rank_correlation
from suffice.experiments.methods import LEARNED, RULES
from suffice.experiments.sweeps import PENALTIES, point
from suffice.paths import write_whole
from suffice.penalties import Penalties
from suffice.pools import Pool
from suffice.replay import Result, mean_over_pools
from suffice.report.figures import draw_explanation, draw_scaling, draw_transfer
from suffice.report.files import table_csv

SAMPLES = {"accuracy": "acc. %", "rounds": "rounds", "samples": "samples"}
TOKENS = {"accuracy": "acc. %", "sequential_tokens": "seq. tokens", "total_tokens": "total tokens"}
SKIPPED = "Skipped: it needs pools of two models, named MODEL__BENCHMARK, and there are of one only."


@dataclass(frozen=True)
class Page:
    """An experiment to be read: a title, Markdown, and a table for machines."""

    title: str
    text: str
    rows: list[dict[str, Any]]


def write_page(name: str, found: Any, bench: Bench) -> None:
    """Write what an experiment found on a bench into its folder: a page, a table and pictures."""
    bench.out.mkdir(parents=True, exist_ok=True)
    page = PAGES[name](found, bench)
    how = "for each, on the same model's other benchmarks" if bench.leave_one_out else "on " + _listed(bench.train)
    setting = (
        f"Trained {how}; tested on {_listed(bench.test)}; preset {bench.preset}, {bench.steps:,} steps; "
        f"{bench.repeats} repeats."
    )
    write_whole(bench.out / f"{name}.md", f"## {page.title}\n\n{setting}\n\n{page.text}\n".encode())
    if page.rows:
        write_whole(bench.out / f"{name}.csv", table_csv(page.rows).encode())


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
    methods = {**RULES, LEARNED: "rl"}
    panels = {
        pool: {method: [point("", results[name])] for name, method in methods.items()}
        for pool, results in found.measured.items()
    }
    draw_scaling(panels, ("rounds", "samples"), "agreement", bench.out / "main.png")
    own, best = found.rewards
    regret = (
        f"Mean reward: {LEARNED} {own:.4f}, the exact planner with the same actions and penalties {best:.4f}: "
        f"a regret of {best - own:.4f}.\n"
    )
    text = "\n".join(tables) + f"{regret}\n{_pictures(['main.png'])}"
    return Page("SC, ASC, ESC and the learned controller", text, _long_rows(found.measured))


def ablation_page(found: Methods, bench: Bench) -> Page:
    """Table 2."""
    text = "\n".join(_paper_tables(bench.test, found.measured, SAMPLES, found.base))
    return Page("Reward targets: running majority, full majority, gold answer", text, _long_rows(found.measured))


def scaling_page(found: dict[str, Curves], bench: Bench) -> Page:
    """Figures 2, 4 and 7."""
    pictures = (
        ("samples", ("rounds", "samples"), "accuracy"),
        ("tokens", ("sequential_tokens", "total_tokens"), "accuracy"),
        ("agreement", ("rounds", "samples"), "agreement"),
    )
    return _sweeps_page(found, bench, "scaling", "Scaling curves", pictures)


def frontier_page(found: dict[str, Curves], bench: Bench) -> Page:
    """The same sweeps, with the exact planner's as the frontier."""
    pictures = tuple((quality, ("rounds", "samples"), quality) for quality in ("agreement", "accuracy"))
    return _sweeps_page(found, bench, "frontier", "The planner's frontier", pictures)


def _sweeps_page(
    found: dict[str, Curves], bench: Bench, name: str, title: str, pictures: Sequence[tuple[str, Sequence[str], str]]
) -> Page:
    """For each model, each picture's costs and quality."""
    files = []
    for model, pools in _by_model(bench.test).items():
        panels = {pool.name: found[pool.name] for pool in pools}
        for suffix, costs, quality in pictures:
            files.append(f"{name}_{model}_{suffix}.png")
            draw_scaling(panels, costs, quality, bench.out / files[-1])
    rows = [
        {"pool": pool, "method": method, "parameter": p.parameter, **p.figures}
        for pool, curves in found.items()
        for method, points in curves.items()
        for p in points
    ]
    return Page(title, _pictures(files), rows)


def explain_page(found: list[Explained], bench: Bench) -> Page:
    """Figures 3 and 6."""
    lines = []
    for pool in found:
        correlations = [rank_correlation(pool.by_entropy), rank_correlation(pool.by_accuracy)]
        lines.append([pool.pool, *("–" if value is None else f"{value:+.2f}" for value in correlations)])
    panels = {pool.pool: {"answer entropy (nats)": pool.by_entropy} for pool in found}
    if all(pool.by_accuracy for pool in found):  # else some pools have no gold answers
        for pool in found:
            panels[pool.pool]["answer accuracy (share of responses right)"] = pool.by_accuracy
    draw_explanation(panels, bench.out / "explain.png")
    table = _markdown(["pool", "with entropy", "with accuracy"], lines)
    rows = [{"pool": pool.pool, **asdict(effort)} for pool in found for effort in pool.efforts]
    text = f"Rank correlation (Spearman) of the samples drawn for a question:\n\n{table}\n{_pictures(['explain.png'])}"
    return Page("Where the samples go", text, rows)


def transfer_page(found: Transfer | None, bench: Bench) -> Page:
    """Figure 5."""
    title = "Transfer between models"
    if found is None:
        return Page(title, SKIPPED, [])
    draw_transfer(found.curves, bench.out / "transfer.png")
    default = PENALTIES.index(Penalties.draw)
    sources = next(iter(found.curves.values()))
    matrix = [
        [source, *(_transferred(curves[source][default].figures) for curves in found.curves.values())]
        for source in sources
    ]
    table = _markdown(["trained on", *(f"tested on {target}" for target in found.curves)], matrix)
    rows = [
        {"trained": source, "tested": target, "penalty_draw": p.parameter, **p.figures}
        for target, curves in found.curves.items()
        for source, points in curves.items()
        for p in points
    ]
    text = f"Accuracy % / agreement % / samples / rounds, at a penalty of {Penalties.draw}:\n\n{table}\n"
    return Page(title, text + _pictures(["transfer.png"]), rows)


def _transferred(figures: Mapping[str, float | None]) -> str:
    return " / ".join(_text(figures[metric]) for metric in ("accuracy", "agreement", "samples", "rounds"))


PAGES: dict[str, Callable[[Any, Bench], Page]] = {
    "main": main_page,
    "scaling": scaling_page,
    "frontier": frontier_page,
    "ablation": ablation_page,
    "explain": explain_page,
    "transfer": transfer_page,
}


def _paper_tables(pools: Sequence[Pool], measured: Measured, columns: dict[str, str], base: str) -> list[str]:
    """A table a model: a row a method, a group of columns a benchmark, and the averages with changes against a base."""
    tables = []
    for model, group in _by_model(pools).items():
        names = [pool.name for pool in group]
        heads = [f"{benchmark_of(pool)} {label}" for pool in group for label in columns.values()]
        heads += [f"avg. {label}" for label in columns.values()]
        rows = []
        for method in measured[names[0]]:
            cells = [_cell(metric, measured[name][method]) for name in names for metric in columns]
            for metric in columns:
                value = _average(measured, names, method, metric)
                against = _average(measured, names, base, metric)
                changes = metric != "accuracy" and method != base and value is not None and against
                change = f" ({100 * ((value or 0) / (against or 1) - 1):+.0f} %)" if changes else ""
                cells.append(_text(value, metric) + change)
            rows.append([method, *cells])
        tables.append(f"**{model}**\n\n" + _markdown(["", *heads], rows))
    return tables


def _by_model(pools: Sequence[Pool]) -> dict[str, list[Pool]]:
    return {model: [pool for pool in pools if model_of(pool) == model] for model in map(model_of, pools)}


def _average(measured: Measured, names: Sequence[str], method: str, metric: str) -> float | None:
    return mean_over_pools([result for name in names for result in measured[name][method]], metric)


def _cell(metric: str, results: Sequence[Result]) -> str:
    """The mean over the seeds, with the deviation of accuracy where there are several."""
    text = _text(mean_over_pools(results, metric), metric)
    values = [getattr(result, metric) for result in results]
    return f"{text} ±{stdev(values):.2f}" if metric == "accuracy" and len(values) > 1 and None not in values else text


def _long_rows(measured: Measured) -> list[dict[str, Any]]:
    """A row for each pool and method: means and deviations over the seeds."""
    rows = []
    for pool, methods in measured.items():
        for method, results in methods.items():
            row: dict[str, Any] = {"pool": pool, "method": method, "seeds": len(results)}
            for metric in results[0].by_question:
                values = [getattr(result, metric) for result in results]
                known = None not in values
                row[metric] = fmean(values) if known else None
                row[f"{metric}_std"] = stdev(values) if known and len(values) > 1 else None
            rows.append(row)
    return rows


def _text(value: float | None, metric: str = "") -> str:
    if value is None:
        return "–"
    if metric.endswith("tokens"):
        return f"{value:.0f}" if value < 1000 else f"{value / 1000:.1f}k"
    return f"{value:.1f}"


def _markdown(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def _pictures(names: Iterable[str]) -> str:
    return "".join(f"\n![{name}]({name})\n" for name in names)


def _listed(pools: Sequence[Pool]) -> str:
    return ", ".join(pool.name for pool in pools)
