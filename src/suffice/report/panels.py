"""How a panel's replay is shown: a table, sentences, JSON and a plot of the frontier."""

import json
from collections.abc import Sequence
from typing import Any

from suffice.panel import PanelComparison, PanelResult
from suffice.report.html import Axis, Point, Section, apart, panel, percent, plot
from suffice.report.layout import Columns
from suffice.report.markdown import gap_text


def panel_table(compared: PanelComparison) -> Columns:
    base = compared.baseline
    figures = {"accuracy\n%": ".1f", "agreement\n%": ".1f", "cost": ".4g", f"cost, % of\n{base.name}": ".1f"}
    title = f"{compared.questions} questions; samples by voter: {', '.join(compared.voters)}"
    shown = Columns(title, "controller", figures | {"rounds": ".1f", "samples": ""})
    for voter in (*compared.voters, None):
        shown.add_title(f"{voter} alone" if voter else "the panel")
        for one in (one for one in compared.results if one.voter == voter):
            samples = " + ".join(f"{number:.1f}" for number in one.samples.values() if voter is None or number)
            cost = (one.cost, 100 * one.cost / base.cost)
            shown.add_row(one.controller, one.accuracy, one.agreement, *cost, one.rounds, samples)
    return shown


def panel_sentences(compared: PanelComparison) -> list[str]:
    """Each of the panel's controllers beside the better voter's full vote and the best for the money."""
    base, told = compared.baseline, []
    for one in (one for one in compared.results if one.voter is None):
        gap, alone = one.difference(base), compared.best_alone(one.cost)
        points = "" if gap is None else f"{gap_text(gap, 'accuracy')} points to {base.name} "
        sentence = f"{one.controller}: {points}at {100 * one.cost / base.cost:.1f} % of its cost"
        if alone and alone.accuracy is not None:
            sentence += f"; the best alone for no more money, {alone.name}, has {alone.accuracy:.1f} %"
        told.append(sentence)
    return told


def panel_json(compared: PanelComparison, **settings: Any) -> str:
    """Each result beside the full vote of the better voter."""
    base = compared.baseline
    about = {"voters": compared.voters, "weights": compared.weights, "questions": compared.questions}
    rows = []
    for one in compared.results:
        told, gap = {name: value for name, value in vars(one).items() if name != "by_question"}, one.difference(base)
        beside = {"cost_of_baseline": 100 * one.cost / base.cost, "accuracy_difference": gap and vars(gap)}
        rows.append(told | beside)
    return json.dumps({**settings, **about, "baseline": base.name, "results": rows}, indent=2) + "\n"


def panel_plot(compared: PanelComparison) -> Section:
    base, series = compared.baseline, dict[str, list[PanelResult]]()
    for one in compared.results:
        kind = one.controller.partition(":")[0]
        own = one.controller if kind == "file" else kind
        name = own if one.voter is None else f"{one.voter}: {'plan' if kind == 'plan' else 'once and sc'}"
        series.setdefault(name, []).append(one)
    points: dict[str, Sequence[Point]] = {
        name: [
            [one.controller, 100 * one.cost / base.cost, one.cost, one.rounds, one.accuracy, one.agreement]
            for one in sorted(some, key=lambda one: one.cost)
        ]
        for name, some in series.items()
    }
    x = [Axis(f"cost, % of {base.name}", log=True), Axis("cost a question", 5, log=True), Axis("rounds")]
    y = [percent("accuracy", 5, 2), percent("agreement with the panel's full vote", places=2)]
    return plot("The frontier", x, y, [panel("", points, line=True)], "Up and to the left is better.")


def pictured(compared: PanelComparison) -> list[Section]:
    """Accuracy, or without gold answers agreement, against the share of the cost."""
    accuracy, agreement, *_ = apart(panel_plot(compared))
    return [agreement if compared.baseline.accuracy is None else accuracy]
