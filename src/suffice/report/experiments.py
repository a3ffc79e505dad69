"""The paper's experiments: each trains and replays what it needs and writes Markdown, CSV and PNG."""

import csv
from collections.abc import Callable, Iterable, Sequence
from io import StringIO
from statistics import fmean, stdev
from typing import Any

import numpy as np
from scipy.special import entr
from scipy.stats import spearmanr

from suffice.controllers import Controller, LearnedController
from suffice.paths import write_whole
from suffice.planning import Plan
from suffice.pools import Pool
from suffice.replay import Result, mean_over_pools
from suffice.report.bench import Bench, benchmark_of, model_of
from suffice.report.figures import Curves, Point, draw_explanation, draw_scaling, draw_transfer, point
from suffice.training import TARGETS, Job, Setting

PENALTIES = (0.001, 0.005, 0.0075, 0.015, 0.02, 0.03)
THRESHOLDS = (0.6, 0.65, 0.75, 0.8, 0.87, 0.92, 0.95, 0.98, 0.99)
WINDOWS = (2, 3, 5, 7)
SIZES = (1, 2, 4, 8, 12, 16, 20, 24, 28, 32)
DEFAULT_PENALTY = 0.0075
RULES = {"SC@32": "sc", "ASC": "asc", "ESC": "esc"}

SAMPLES = {"accuracy": "acc. %", "rounds": "rounds", "samples": "samples"}
TOKENS = {"accuracy": "acc. %", "sequential_tokens": "seq. tokens", "total_tokens": "total tokens"}

Measured = dict[str, dict[str, list[Result]]]
"""By test pool and method: one result, or one for each seed."""


def reproduce_main(bench: Bench) -> None:
    """Tables 1 and 5: rules and the learned controller, in samples and rounds and in tokens."""
    measured = _with_seeds(bench, {"RL-guided": "running"}, RULES)
    text = "\n".join(
        f"{table}\n" for columns in (SAMPLES, TOKENS) for table in _paper_tables(bench.test, measured, columns, "SC@32")
    )
    methods = {**RULES, "RL-guided": "rl"}
    panels = {
        pool: {method: [point("", results[name])] for name, method in methods.items()}
        for pool, results in measured.items()
    }
    draw_scaling(panels, ("rounds", "samples"), "agreement", bench.out / "main.png")
    text += f"{_regret(bench, measured)}\n{_pictures(['main.png'])}"
    _write(bench, "main", "SC, ASC, ESC and the learned controller", text, _long_rows(measured))


def _regret(bench: Bench, measured: Measured) -> str:
    """What the learned controllers leave on the table, in a sentence."""
    planner = Plan(DEFAULT_PENALTY, 0.0, Setting().actions)
    best = [bench.evaluate(pool, [planner])[0].reward for pool in bench.test]
    own = [mean_over_pools(measured[pool.name]["RL-guided"], "reward") or 0.0 for pool in bench.test]
    return (
        f"Mean reward: RL-guided {fmean(own):.4f}, the exact planner with the same actions and penalties "
        f"{fmean(best):.4f}: a regret of {fmean(best) - fmean(own):.4f}.\n"
    )


def reproduce_ablation(bench: Bench) -> None:
    """Table 2: what counts as right in training."""
    targets = {target: target for target in TARGETS}
    if any(question.gold is None for pool in bench.test for p in bench.training_for(pool) for question in p.questions):
        targets.pop("gold")
    measured = _with_seeds(bench, targets, {})
    text = "\n".join(_paper_tables(bench.test, measured, SAMPLES, "running"))
    _write(
        bench, "ablation", "Reward targets: running majority, full majority, gold answer", text, _long_rows(measured)
    )


def reproduce_scaling(bench: Bench) -> None:
    """Figures 2, 4 and 7: sweeps of each method's parameter."""
    _draw_sweeps(
        bench,
        "scaling",
        "Scaling curves",
        ("sc", "asc", "esc", "rl"),
        (
            ("samples", ("rounds", "samples"), "accuracy"),
            ("tokens", ("sequential_tokens", "total_tokens"), "accuracy"),
            ("agreement", ("rounds", "samples"), "agreement"),
        ),
    )


def reproduce_frontier(bench: Bench) -> None:
    """Beyond the paper: the same sweeps, with the exact planner's as the frontier."""
    pictures = tuple((quality, ("rounds", "samples"), quality) for quality in ("agreement", "accuracy"))
    _draw_sweeps(bench, "frontier", "The planner's frontier", ("sc", "asc", "esc", "rl", "plan"), pictures)


def _draw_sweeps(
    bench: Bench,
    name: str,
    title: str,
    methods: Sequence[str],
    pictures: Sequence[tuple[str, Sequence[str], str]],
) -> None:
    """Sweep the methods' parameters on every test pool; draw, for each model, each picture's costs and quality."""
    panels = {pool.name: _sweeps(bench, pool, methods) for pool in bench.test}
    files = []
    for model, pools in _by_model(bench.test).items():
        part = {pool.name: panels[pool.name] for pool in pools}
        for suffix, costs, quality in pictures:
            files.append(f"{name}_{model}_{suffix}.png")
            draw_scaling(part, costs, quality, bench.out / files[-1])
    rows = [
        {"pool": pool, "method": method, "parameter": p.parameter, **p.figures}
        for pool, curves in panels.items()
        for method, points in curves.items()
        for p in points
    ]
    _write(bench, name, title, _pictures(files), rows)


def _sweeps(bench: Bench, pool: Pool, methods: Sequence[str]) -> Curves:
    """The curve of each method on one pool."""
    # All pools' jobs at once keep all cores busy; after the first pool they are all there.
    jobs = [bench.job(bench.training_for(other), penalty) for other in bench.test for penalty in PENALTIES]
    learned = bench.learned(jobs)[bench.test.index(pool) * len(PENALTIES) :]
    sweeps: dict[str, dict[str, str | Controller]] = {
        "sc": {f"draws={size}": f"sc:draws={size}" for size in SIZES},
        "asc": {f"threshold={threshold}": f"asc:threshold={threshold}" for threshold in THRESHOLDS},
        "esc": {f"window={window}": f"esc:window={window}" for window in WINDOWS},
        "rl": {f"penalty_draw={penalty}": learned[number] for number, penalty in enumerate(PENALTIES)},
        "plan": {f"penalty_draw={penalty}": f"plan:penalty_draw={penalty}" for penalty in PENALTIES},
    }
    return {
        method: [
            point(parameter, [result])
            for parameter, result in zip(
                sweeps[method], bench.evaluate(pool, list(sweeps[method].values())), strict=True
            )
        ]
        for method in methods
    }


def reproduce_explain(bench: Bench) -> None:
    """Figures 3 and 6: where the samples go."""
    learned = bench.learned([bench.job(bench.training_for(pool)) for pool in bench.test])
    panels, rows, lines = {}, [], []
    for pool, controller in zip(bench.test, learned, strict=True):
        (result,) = bench.evaluate(pool, [controller])
        samples = result.by_question["samples"]
        points = [(_entropy(q.codes), _share_right(q), n) for q, n in zip(pool.questions, samples, strict=True)]
        rows += [
            {"pool": pool.name, "question": question.id, "entropy": entropy, "accuracy": right, "samples": drawn}
            for question, (entropy, right, drawn) in zip(pool.questions, points, strict=True)
        ]
        known = [(right, drawn) for _, right, drawn in points if right is not None]
        panels[pool.name] = {"answer entropy (nats)": [(entropy, drawn) for entropy, _, drawn in points]}
        correlations = [_rank_correlation(panels[pool.name]["answer entropy (nats)"])]
        if known:
            panels[pool.name]["answer accuracy (share of responses right)"] = known
            correlations.append(_rank_correlation(known))
        texts = ["–" if np.isnan(value) else f"{value:+.2f}" for value in correlations]
        lines.append([pool.name, *texts, *["–"] * (2 - len(texts))])
    if len({len(plots) for plots in panels.values()}) > 1:  # some pools have no gold answers
        panels = {name: dict(list(plots.items())[:1]) for name, plots in panels.items()}
    draw_explanation(panels, bench.out / "explain.png")
    table = _markdown(["pool", "with entropy", "with accuracy"], lines)
    text = f"Rank correlation (Spearman) of the samples drawn for a question:\n\n{table}\n{_pictures(['explain.png'])}"
    _write(bench, "explain", "Where the samples go", text, rows)


def reproduce_transfer(bench: Bench) -> None:
    """Figure 5: controllers trained on one model's pools, tested on another's."""
    sources, tested = bench.models(), list(dict.fromkeys(map(model_of, bench.test)))
    if len({*sources, *tested}) < 2:
        text = "Skipped: it needs pools of two models, named MODEL__BENCHMARK, and there are of one only."
        print(f"transfer: {text}")
        _write(bench, "transfer", "Transfer between models", text, [])
        return
    jobs = {
        (source, pool.name, penalty): bench.job(training, penalty)
        for source in sources
        for pool in bench.test
        if (training := bench.training_for(pool, source))
        for penalty in PENALTIES
    }
    learned = dict(zip(jobs, bench.learned(list(jobs.values())), strict=True))
    results = {key: bench.evaluate(_named(bench.test, key[1]), [controller])[0] for key, controller in learned.items()}

    def curve(source: str, target: str) -> list[Point]:
        names = [pool.name for pool in bench.test if model_of(pool) == target]
        return [point(f"{penalty}", [results[source, name, penalty] for name in names]) for penalty in PENALTIES]

    panels = {target: {source: curve(source, target) for source in sources} for target in tested}
    draw_transfer(panels, bench.out / "transfer.png")
    default = PENALTIES.index(DEFAULT_PENALTY)
    cells = {(source, target): panels[target][source][default].figures for source in sources for target in tested}
    matrix = [
        [source]
        + [
            f"{_text(cells[source, target]['accuracy'])} / {_text(cells[source, target]['agreement'])} / "
            f"{_text(cells[source, target]['samples'])} / {_text(cells[source, target]['rounds'])}"
            for target in tested
        ]
        for source in sources
    ]
    table = _markdown(["trained on", *(f"tested on {target}" for target in tested)], matrix)
    rows = [
        {"trained": source, "tested": target, "penalty_draw": p.parameter, **p.figures}
        for target, curves in panels.items()
        for source, points in curves.items()
        for p in points
    ]
    text = f"Accuracy % / agreement % / samples / rounds, at a penalty of {DEFAULT_PENALTY}:\n\n{table}\n"
    _write(bench, "transfer", "Transfer between models", text + _pictures(["transfer.png"]), rows)


EXPERIMENTS: dict[str, Callable[[Bench], None]] = {
    "main": reproduce_main,
    "scaling": reproduce_scaling,
    "frontier": reproduce_frontier,
    "ablation": reproduce_ablation,
    "explain": reproduce_explain,
    "transfer": reproduce_transfer,
}


def reproduce(what: str, bench: Bench) -> None:
    """Run one experiment, or all of them with a page that shows them together."""
    bench.out.mkdir(parents=True, exist_ok=True)
    if what != "all":
        EXPERIMENTS[what](bench)
        return
    for experiment in EXPERIMENTS.values():
        experiment(bench)
    pages = [(bench.out / f"{name}.md").read_text() for name in EXPERIMENTS]
    write_whole(bench.out / "index.md", "\n".join(["# The paper's experiments\n", *pages]).encode())


def _with_seeds(bench: Bench, targets: dict[str, str], rules: dict[str, str]) -> Measured:
    """Rules and, under the names of `targets`, controllers of all seeds, on every test pool."""
    jobs: dict[tuple[str, str, int], Job] = {
        (pool.name, name, seed): bench.job(bench.training_for(pool), target=target, seed=seed)
        for pool in bench.test
        for name, target in targets.items()
        for seed in range(bench.seeds)
    }
    learned = dict(zip(jobs, bench.learned(list(jobs.values())), strict=True))
    measured: Measured = {}
    for pool in bench.test:
        methods: list[tuple[str, str | LearnedController]] = [
            *rules.items(),
            *((name, controller) for (tested, name, _), controller in learned.items() if tested == pool.name),
        ]
        measured[pool.name] = {name: [] for name, _ in methods}
        for (name, _), result in zip(methods, bench.evaluate(pool, [one for _, one in methods]), strict=True):
            measured[pool.name][name].append(result)
    return measured


def _paper_tables(pools: Sequence[Pool], measured: Measured, columns: dict[str, str], base: str) -> list[str]:
    """A table a model: a row a method, a group of columns a benchmark, and the averages with changes against a base."""
    tables = []
    for model, group in _by_model(pools).items():
        names = [pool.name for pool in group]
        heads = [f"{benchmark_of(_named(pools, name))} {label}" for name in names for label in columns.values()]
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


def _entropy(codes: Any) -> float:
    counts = np.bincount(codes[codes >= 0])
    return float(entr(counts / max(counts.sum(), 1)).sum())


def _share_right(question: Any) -> float | None:
    return None if question.gold is None else float((question.codes == question.code(question.gold)).mean())


def _rank_correlation(points: Sequence[tuple[float, float]]) -> float:
    return float(spearmanr(points).statistic) if len(points) > 2 else float("nan")


def _named(pools: Iterable[Pool], name: str) -> Pool:
    return next(pool for pool in pools if pool.name == name)


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


def _write(bench: Bench, name: str, title: str, text: str, rows: Sequence[dict[str, Any]]) -> None:
    how = "for each, on the same model's other benchmarks" if bench.leave_one_out else "on " + _listed(bench.train)
    setting = (
        f"Trained {how}; tested on {_listed(bench.test)}; preset {bench.preset}, {bench.steps:,} steps; "
        f"{bench.repeats} repeats."
    )
    write_whole(bench.out / f"{name}.md", f"## {title}\n\n{setting}\n\n{text}\n".encode())
    if rows:
        table = StringIO()
        writer = csv.DictWriter(table, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        write_whole(bench.out / f"{name}.csv", table.getvalue().encode())


def _listed(pools: Sequence[Pool]) -> str:
    return ", ".join(pool.name for pool in pools)
