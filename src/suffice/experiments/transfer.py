"""Figure 5 of the paper: controllers trained on one model's pools, tested on another's."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from suffice.experiments.bench import NOTHING, Bench, Experiment, model_of
from suffice.experiments.main import COMPARED, mean_result
from suffice.experiments.scaling import Curves, SweepPoint, by_axes, curves_plot, draw_penalties, point, seeds_told
from suffice.replay import Difference, Result, difference
from suffice.report.markdown import Page, gap_columns, gap_text, markdown_table, pictures, with_spread
from suffice.report.style import looks
from suffice.training.setting import TrainingJob

SKIPPED = "Skipped: it needs pools of two models, named MODEL__BENCHMARK, and there are of one only."


@dataclass(frozen=True)
class Transfer:
    """By tested model, the curve of each model trained on: a point a penalty.

    `differences` are those between another model's controllers and the tested model's own at the bench's penalty, by
    tested model and model trained on.
    """

    curves: Mapping[str, Curves]
    differences: Mapping[tuple[str, str], Mapping[str, Difference | None]] = field(default_factory=dict)


def transfer_jobs(bench: Bench) -> dict[tuple[str, tuple[str, float], int], TrainingJob]:
    """By test pool, model trained on and penalty, and seed; none where there is one model only."""
    if len({*bench.models(), *map(model_of, bench.test)}) < 2:
        return {}
    return {
        (pool.name, (source, draw), seed): bench.job(training, replace(bench.setting.penalties, draw=draw), seed=seed)
        for source in bench.models()
        for pool in bench.test
        if (training := bench.training_for(pool, source))
        for draw in draw_penalties(bench)
        for seed in range(bench.seeds)
    }


def transfer(bench: Bench) -> Transfer | None:
    """Train on each model, test on each; None where there is one model only."""
    sources, tested = bench.models(), list(dict.fromkeys(map(model_of, bench.test)))
    if not (jobs := transfer_jobs(bench)):
        return None
    measured = bench.measure(jobs, {})

    def runs(source: str, target: str, penalty: float) -> list[list[Result]]:
        """For each seed the results over the target's pools."""
        pools = [measured[pool.name] for pool in bench.test if model_of(pool) == target]
        return [list(run) for run in zip(*(found.get((source, penalty), []) for found in pools), strict=False)]

    def curve(source: str, target: str) -> list[SweepPoint]:
        found = [(penalty, runs(source, target, penalty)) for penalty in draw_penalties(bench)]
        return [point(f"{penalty}", some) for penalty, some in found if some]

    def compared(source: str, target: str) -> dict[str, Difference | None]:
        ours, theirs = (
            [mean_result(seeds) for seeds in zip(*runs(trained, target, bench.setting.penalties.draw), strict=True)]
            for trained in (source, target)
        )
        return {metric: difference(ours, theirs, metric) for metric in COMPARED} if ours and theirs else {}

    return Transfer(
        {target: {source: curve(source, target) for source in sources} for target in tested},
        {(target, source): compared(source, target) for target in tested for source in sources if source != target},
    )


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
        source: (f"trained on {source}", colour, marker)
        for source, (colour, marker) in zip(bench.models(), looks(bench.models()), strict=True)
    }
    panels = {f"tested on {tested}": some for tested, some in curves.items()}
    section = curves_plot(TITLE, panels, styles)
    drawn = by_axes(section, ("rounds", "samples"), "accuracy", list(panels))
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
        {"trained": source, "tested": target, "penalty_draw": float(p["parameter"])}
        | {name: value for name, value in p.items() if name != "parameter"}
        for target, some in curves.items()
        for source, points in some.items()
        for p in points
    ]
    more = [{"trained": source, "tested": target, **gap_columns(gaps)} for source, target, gaps in compared]
    every = [p for some in curves.values() for points in some.values() for p in points]
    text = (
        f"{seeds_told(every, 'All')} Accuracy % / agreement % / samples / rounds, at a penalty of {penalty}:\n\n"
        f"{table}\n"
        "Against controllers trained on the tested model, with 95 % intervals over questions (paired bootstrap):\n\n"
        f"{gaps_table}\n"
    )
    return Page(text + pictures(["transfer.png"]), rows, {"differences": more}, [section], {"transfer.png": drawn})


def _transferred(points: Sequence[SweepPoint], penalty: str) -> str:
    """The figures at one penalty, with their deviations over the seeds."""
    found = next((p for p in points if p["parameter"] == penalty), None)
    if found is None:
        return "–"
    metrics = ("accuracy", "agreement", "samples", "rounds")
    return " / ".join(with_spread(found[metric], found[f"{metric}_std"], metric) for metric in metrics)


TITLE = "Transfer between models"
EXPERIMENT = Experiment(TITLE, transfer, transfer_page, transfer_jobs)
