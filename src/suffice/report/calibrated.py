"""What a calibration is worth, as tables and plots: reliability, and risk against coverage."""

from collections.abc import Mapping
from json import dumps
from typing import Any

from suffice.planning.right import Calibration
from suffice.replay.calibrating import BINS, RISKS, Judged, binned, expected_error
from suffice.report.html import Axis, Point, Section, panel, percent, plot
from suffice.report.layout import Columns

CONFIDENCE = 0.9


def summary_sentence(judged: Judged) -> str:
    certainty = expected_error(judged.certainties, judged.truths)
    told_apart = "–" if judged.auroc is None else f"{judged.auroc:.3f}"
    return (
        f"{len(judged.truths)} labels, {judged.accuracy:.1%} right: AUROC {told_apart}, Brier score {judged.brier:.3f} "
        f"(the mean alone: {judged.brier_of_mean:.3f}), off by {judged.calibration_error:.3f} in the mean "
        f"(certainty: {certainty:.3f})."
    )


def promised(calibration: Calibration, judged: Judged) -> list[tuple[float, float | None, float, float | None]]:
    """By risk: the threshold that promises it, the share that it answers, and how much of that is wrong."""
    thresholds = [(risk, calibration.threshold(risk, CONFIDENCE)) for risk in RISKS]
    return [(risk, least, *judged.answered(least)) for risk, least in thresholds]


def calibration_tables(calibration: Calibration, judged: Judged) -> list[Columns]:
    reliability = Columns("Reliability", "fifth", {"probability\n%": ".1f", "right\n%": ".1f"})
    for number, (said, true) in enumerate(binned(judged.right, judged.truths), 1):
        reliability.add_row(f"{number} of {BINS}", 100 * said, 100 * true)
    title = "Risk and coverage: only the surest are answered"
    risks = Columns(title, "answered", {"from a\nprobability of": ".3f", "wrong\n%": ".1f"})
    for share, least, risk in judged.risks():
        risks.add_row(f"{share:.0%}", least, 100 * risk)
    title = f"Promised with {CONFIDENCE:.0%} confidence"
    promises = Columns(title, "risk", {"threshold": ".3f", "answered\n%": ".0f", "wrong\n%": ".1f"})
    for risk, threshold, share, wrong in promised(calibration, judged):
        answered = None if threshold is None else 100 * share
        promises.add_row(f"{risk:g}", "none" if threshold is None else threshold, answered, _percent(wrong))
    return [reliability, risks, promises]


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share


def calibration_json(calibration: Calibration, judged: Judged, card: Mapping[str, Any]) -> str:
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
    said: dict[str, list[Point]] = {
        f"{name} (error {100 * expected_error(some, judged.truths):.1f} points)": [
            ["", 100 * one, 100 * true] for one, true in binned(some, judged.truths)
        ]
        for name, some in {"right": judged.right, "certainty": judged.certainties}.items()
    }
    x, y, note = percent("said", 100), percent("right", 100), "By fifths of the labels, each by the others."
    risks: dict[str, list[Point]] = {"right": [["", 100 * share, 100 * risk] for share, _, risk in judged.risks()]}
    answered, wrong = Axis("answered (%)", zero=True), Axis("wrong among the answered (%)", zero=True)
    return [
        plot("Reliability", [x], [y], [panel("", said, line=True)], note, diagonal=True),
        plot("Risk and coverage", [answered], [wrong], [panel("", risks, line=True)]),
    ]


def judged_table(calibration: Calibration, judged: Mapping[str, Judged], risk: float | None) -> Columns:
    figures = {"right\n%": ".1f", "AUROC": ".3f", "Brier": ".3f", "error": ".3f"}
    if risk is not None:
        figures |= {"answered\n%": ".1f", "wrong\n%": ".1f"}
    title = f"How often it is right, by the calibration: votes by {calibration.card.get('controller', 'plan')}"
    table = Columns(title, "pool", figures)
    for name, row in judged_json(calibration, judged, risk).items():
        shares = [_percent(row[key]) for key in ("coverage", "wrong") if key in row]
        scores = [row[key] for key in ("auroc", "brier", "calibration_error")]
        table.add_row(name, _percent(row["accuracy"]), *scores, *shares)
    return table


def judged_json(calibration: Calibration, judged: Mapping[str, Judged], risk: float | None) -> dict[str, Any]:
    least = None if risk is None else calibration.threshold(risk, CONFIDENCE)
    found = {}
    for name, one in judged.items():
        share, wrong = one.answered(least)
        promise = {} if risk is None else {"risk": risk, "threshold": least, "coverage": share, "wrong": wrong}
        found[name] = _figures(one) | promise
    return found
