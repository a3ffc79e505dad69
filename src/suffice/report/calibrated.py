"""What a calibration is worth, as tables and plots: reliability, and risk against coverage."""

from collections.abc import Mapping
from json import dumps
from typing import Any

from rich.text import Text

from suffice.planning.right import Calibration
from suffice.replay.calibrating import BINS, RISKS, Judged, binned, expected_error
from suffice.report.html import Axis, Point, Section, panel, percent, plot
from suffice.report.layout import Columns

CONFIDENCE = 0.9


def summary_sentence(judged: Judged) -> str:
    """The figures of one line."""
    certainty = expected_error(judged.certainties, judged.truths)
    told_apart = "–" if judged.auroc is None else f"{judged.auroc:.3f}"
    return (
        f"{len(judged.truths)} labels, {judged.accuracy:.1%} right: AUROC {told_apart}, Brier score {judged.brier:.3f} "
        f"(the mean alone: {judged.brier_of_mean:.3f}), off by {judged.calibration_error:.3f} in the mean "
        f"(certainty: {certainty:.3f})."
    )


def promised(calibration: Calibration, judged: Judged) -> list[tuple[float, float | None, float, float | None]]:
    """For each risk: the threshold that promises it, the share that it answers, and which part of that is wrong."""
    thresholds = [(risk, calibration.threshold(risk, CONFIDENCE)) for risk in RISKS]
    return [(risk, least, *judged.answered(least)) for risk, least in thresholds]


def calibration_tables(calibration: Calibration, judged: Judged) -> list[Columns]:
    """Reliability by fifths, risk by coverage, and what can be promised."""
    reliability = Columns("Reliability", "fifth", ["probability\n%", "right\n%"])
    for number, (said, true) in enumerate(binned(judged.right, judged.truths), 1):
        reliability.add_row(Text(f"{number} of {BINS}"), f"{100 * said:.1f}", f"{100 * true:.1f}")
    risks = Columns(
        "Risk and coverage: only the surest are answered", "answered", ["from a\nprobability of", "wrong\n%"]
    )
    for share, least, risk in judged.risks():
        risks.add_row(Text(f"{share:.0%}"), f"{least:.3f}", f"{100 * risk:.1f}")
    promises = Columns(f"Promised with {CONFIDENCE:.0%} confidence", "risk", ["threshold", "answered\n%", "wrong\n%"])
    for risk, threshold, share, wrong in promised(calibration, judged):
        cells = ("none", "–", "–") if threshold is None else (f"{threshold:.3f}", f"{100 * share:.0f}", _percent(wrong))
        promises.add_row(Text(f"{risk:g}"), *cells)
    return [reliability, risks, promises]


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f}"


def calibration_json(calibration: Calibration, judged: Judged, card: Mapping[str, Any]) -> str:
    """The same for machines."""
    names = ("risk", "threshold", "coverage", "wrong")
    page = {
        **card,
        **_figures(judged),
        "brier_of_mean": judged.brier_of_mean,
        "risks": [dict(zip(("coverage", "probability", "wrong"), row, strict=True)) for row in judged.risks()],
        "promises": [dict(zip(names, row, strict=True)) for row in promised(calibration, judged)],
    }
    return dumps(page, indent=1) + "\n"


def _figures(judged: Judged) -> dict[str, float | None]:
    return {name: getattr(judged, name) for name in ("accuracy", "auroc", "brier", "calibration_error")}


def calibration_plots(judged: Judged) -> list[Section]:
    """What is said against what is right, beside the certainty; and risk against coverage."""
    said: dict[str, list[Point]] = {
        f"{name} (error {100 * expected_error(some, judged.truths):.1f} points)": [
            ["", 100 * one, 100 * true] for one, true in binned(some, judged.truths)
        ]
        for name, some in {"right": judged.right, "certainty": judged.certainties}.items()
    }
    x, y, note = percent(1, "said", 100), percent(2, "right", 100), "By fifths of the labels, each by the others."
    risks: dict[str, list[Point]] = {"right": [["", 100 * share, 100 * risk] for share, _, risk in judged.risks()]}
    answered, wrong = Axis(1, "answered (%)", zero=True), Axis(2, "wrong among the answered (%)", zero=True)
    return [
        plot("Reliability", [x], [y], [panel("", said, line=True)], note, diagonal=True),
        plot("Risk and coverage", [answered], [wrong], [panel("", risks, line=True)]),
    ]


def judged_table(calibration: Calibration, judged: Mapping[str, Judged], risk: float | None) -> Columns:
    """How true a calibration is on pools, and what it answers at a risk."""
    answered = ["answered\n%", "wrong\n%"] if risk is not None else []
    title = f"How often it is right, by the calibration: votes by {calibration.card.get('controller', 'plan')}"
    table = Columns(title, "pool", ["right\n%", "AUROC", "Brier", "error", *answered])
    for name, row in judged_json(calibration, judged, risk).items():
        shares = [row[key] for key in ("coverage", "wrong") if key in row]
        figures = [row[key] for key in ("auroc", "brier", "calibration_error")]
        shown = ["–" if figure is None else f"{figure:.3f}" for figure in figures]
        table.add_row(Text(name), f"{100 * row['accuracy']:.1f}", *shown, *map(_percent, shares))
    return table


def judged_json(
    calibration: Calibration, judged: Mapping[str, Judged], risk: float | None
) -> dict[str, dict[str, Any]]:
    """The same as JSON, by pool."""
    least = None if risk is None else calibration.threshold(risk, CONFIDENCE)
    found = {}
    for name, one in judged.items():
        share, wrong = one.answered(least)
        promise = {} if risk is None else {"risk": risk, "threshold": least, "coverage": share, "wrong": wrong}
        found[name] = _figures(one) | promise
    return found
