"""Figure 5 of the paper: controllers trained on one model's pools, tested on another's."""

from dataclasses import replace
from itertools import product

from suffice.experiments.bench import Bench, Experiment, Jobs, by_model, model_of
from suffice.experiments.main import COMPARED, seeds_gaps
from suffice.experiments.scaling import FIGURES, by_axes, curves_plot, draw_penalties, seeds_told
from suffice.report.markdown import Page, Row, cell, gap_columns, gap_text, markdown_table, pictures, spreads


def transfer_jobs(bench: Bench) -> Jobs:
    """None where there is one model only."""
    if len({*bench.models(), *map(model_of, bench.test)}) < 2:
        return {}
    kinds = product(bench.models(), draw_penalties(bench))
    own = bench.setting.penalties
    return bench.jobs({(model, draw): {"model": model, "penalties": replace(own, draw=draw)} for model, draw in kinds})


def transfer(bench: Bench) -> Page:
    if not (jobs := transfer_jobs(bench)):
        return Page("Skipped: it needs pools of two models, named MODEL__BENCHMARK, and there are of one only.", [])
    measured = bench.measure(jobs, {})
    sources, targets = bench.models(), by_model(bench.test)
    rows: list[Row] = []
    for (target, pools), source, draw in product(targets.items(), sources, draw_penalties(bench)):
        runs = list(zip(*(measured[pool.name][source, draw] for pool in pools), strict=True))
        rows.append({"trained": source, "tested": target, "penalty_draw": draw} | spreads(runs, FIGURES))
    usual = bench.setting.penalties.draw
    lines, gap_rows = [], []
    for (target, pools), source in product(targets.items(), sources):
        if target in sources and source != target:
            gaps = seeds_gaps(measured, pools, (source, usual), (target, usual))
            lines.append([source, target, *(gap_text(gap, metric) for metric, gap in gaps.items())])
            gap_rows.append({"trained": source, "tested": target, **gap_columns(gaps)})
    points = [
        row | {"pool": f"tested on {row['tested']}", "method": row["trained"], "parameter": f"{row['penalty_draw']}"}
        for row in rows
    ]
    section = curves_plot(points, {source: f"trained on {source}" for source in sources})
    drawn = by_axes(section, ("rounds", "samples"), "accuracy", [f"tested on {target}" for target in targets])
    matrix = [
        [source, *(_figures(row) for row in rows if (row["trained"], row["penalty_draw"]) == (source, usual))]
        for source in sources
    ]
    text = (
        f"{seeds_told(bench, 'All')} Accuracy % / agreement % / samples / rounds, at a penalty of {usual}:\n\n"
        f"{markdown_table(['trained on', *(f'tested on {target}' for target in targets)], matrix)}\n"
        "Against controllers trained on the tested model, with 95 % intervals over questions (paired bootstrap):\n\n"
        f"{markdown_table(['trained on', 'tested on', *COMPARED], lines)}\n"
    )
    return Page(text + pictures(["transfer.png"]), rows, gap_rows, [section], {"transfer.png": drawn})


def _figures(row: Row) -> str:
    return " / ".join(cell(row, metric) for metric in ("accuracy", "agreement", "samples", "rounds"))


EXPERIMENT = Experiment("Transfer between models", transfer, transfer_jobs)
