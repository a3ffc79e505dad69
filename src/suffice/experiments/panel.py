"""Ours: a panel of all models that answered a benchmark, beside each model alone."""

import re
from collections.abc import Sequence
from statistics import fmean
from typing import Any

from suffice.experiments.bench import Bench, Experiment, benchmark_of, model_of
from suffice.panel import PanelComparison, PanelController, PoolVoter, evaluate_panel, fit_panel
from suffice.panel.voters import joined
from suffice.pools import Pool
from suffice.report.markdown import Page, gap_columns, gap_text, markdown_table, pictures, text_of
from suffice.report.panels import panel_plot, pictured
from suffice.tally import DEFAULT_BUDGET

VALUES = (0.2, 0.5, 1, 2, 3, 5, 7, 10, 20, 50)
"""What an answer is worth by default: full votes of the dearest voter."""


def price_in_name(model: str) -> float | None:
    """Billions of active parameters, or of all, as a price; None where a name has none.

    >>> price_in_name("qwen3-30b-a3b"), price_in_name("qwen2.5-coder-1.5b"), price_in_name("phi-4-reasoning")
    (3.0, 1.5, None)
    """
    found = re.search(r"\ba(\d+(?:\.\d+)?)b\b", model) or re.search(r"\b(\d+(?:\.\d+)?)b\b", model)
    return float(found[1]) if found else None


def panels(bench: Bench) -> dict[str, PanelComparison]:
    """A panel for each benchmark on which models with a price answered the same questions."""
    found = {}
    for benchmark in dict.fromkeys(map(benchmark_of, bench.test)):
        pools = {model_of(pool): pool for pool in bench.test if benchmark_of(pool) == benchmark}
        voters = [
            (tested, trained)
            for model, pool in pools.items()
            if (tested := _voter(bench, model, [pool]))
            and (trained := _voter(bench, model, bench.training_for(pool, model)))
        ]
        if len(voters) > 1 and all(map(_common, zip(*voters, strict=True))):
            found[benchmark] = _panel(bench, benchmark, *zip(*voters, strict=True))
    return found


def _voter(bench: Bench, model: str, pools: Sequence[Pool]) -> PoolVoter | None:
    price = bench.prices.get(model) or price_in_name(model)
    counted = all(question.tokens and None not in question.tokens for pool in pools for question in pool)
    return PoolVoter(model, price, joined(model, pools)) if price and pools and counted else None


def _common(voters: Sequence[PoolVoter]) -> bool:
    return bool(set.intersection(*({question.id for question in voter.pool} for voter in voters)))


def _panel(bench: Bench, benchmark: str, tested: Sequence[PoolVoter], trained: Sequence[PoolVoter]) -> PanelComparison:
    dearest = max(map(_full_vote, trained))
    values = [bench.value] if bench.value else [number * dearest for number in VALUES]
    fitted = [fit_panel(trained, float(f"{value:.2g}"), budget=bench.budget, seed=bench.seed) for value in values]
    controllers: list[str | PanelController] = ["cascade", *fitted]
    with bench.bar(f"replay of {benchmark}", 1) as advance:
        return evaluate_panel(tested, controllers, **bench.draws, progress=advance)


def _full_vote(voter: PoolVoter) -> float:
    counts = [fmean(filter(None, question.tokens or ())) for question in voter.pool if any(question.tokens or ())]
    return voter.price * DEFAULT_BUDGET * fmean(counts) / 1_000_000


def panel(bench: Bench) -> Page:
    if not (found := panels(bench)):
        return Page(
            "Skipped: it needs pools of two models on the same questions, with counts of tokens, named "
            "MODEL__BENCHMARK, and a price for each: --price MODEL=P.",
            [],
        )
    files = {f"panel_{benchmark}.png": pictured(compared) for benchmark, compared in found.items()}
    text = [_text(*one) + pictures([file]) for one, file in zip(found.items(), files, strict=True)]
    plots = [{**panel_plot(compared), "title": f"The frontier on {name}"} for name, compared in found.items()]
    return Page("\n".join(text), [row for one in found.items() for row in _rows(*one)], (), plots, files)


def _text(benchmark: str, compared: PanelComparison) -> str:
    """Full votes alone, and controllers beside the best alone for the money."""
    base, lines = compared.baseline, []
    for one in compared.results:
        if one.voter and one.controller != "sc":
            continue
        alone = None if one.voter else compared.best_alone(one.cost)
        share = f"{text_of(one.accuracy)} %", f"{100 * one.cost / base.cost:.1f} %"
        beside = "" if alone is None else f"{alone.name}, {text_of(alone.accuracy)} %"
        above = "" if alone is None else gap_text(one.difference(alone), "accuracy")
        samples = " + ".join(f"{number:.1f}" for number in one.samples.values())
        to_base = "" if one is base else gap_text(one.difference(base), "accuracy")
        lines.append([one.name, *share, to_base, beside, above, f"{one.rounds:.1f}", samples])
    heads = ["", "accuracy", f"cost of {base.name}", "points to it", "the best alone for no more money"]
    heads += ["points to that", "rounds", f"samples: {' + '.join(compared.voters)}"]
    table = markdown_table(heads, lines)
    return f"**{benchmark}**: {compared.questions} questions\n\n{table}"


def _rows(benchmark: str, compared: PanelComparison) -> list[dict[str, Any]]:
    """The same for machines, with all that voters do alone."""
    base = compared.baseline
    return [
        {"pool": benchmark, "method": one.voter or "panel", "parameter": one.controller}
        | {"accuracy": one.accuracy, "agreement": one.agreement, "cost": one.cost}
        | {"cost_share": 100 * one.cost / base.cost, "rounds": one.rounds, "samples": sum(one.samples.values())}
        | {f"samples {name}": number for name, number in one.samples.items()}
        | gap_columns({"difference": one.difference(base)})
        for one in compared.results
    ]


EXPERIMENT = Experiment("A panel of all models: the rule, and what is fitted", panel)
