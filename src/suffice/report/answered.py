"""The report of answered questions: what each took, how sure it is, and its votes."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from suffice.report.html import Axis, Point, Report, figures, panel, percent, plot, table, words
from suffice.report.questions import questions_section, short, votes

TOLD = ("id", "gold", "votes", "confidence", "certainty", "answer")
"""What a report needs of a question's line beside what the summary is made of."""


def outcomes_report(
    lines: Sequence[Mapping[str, Any]], total: int, budget: int, sentence: str, settings: Mapping[str, Any]
) -> Report:
    """A file of questions and their outcomes, of which these are the first."""
    kinds: dict[str, list[Point]] = {}
    for line in lines:
        kind = {True: "right", False: "wrong", None: "no gold answer"}[line["right"]]
        shares = (_percent(line[name]) for name in ("confidence", "certainty"))
        kinds.setdefault(kind, []).append([line["id"], line["samples"], *shares, line["rounds"], line["tokens"]])
    x = [percent(2, "confidence", 100), percent(3, "certainty", 100), Axis(4, "rounds"), Axis(5, "tokens", 0, log=True)]
    samples = Axis(1, f"samples, of {budget}", 0, zero=True)
    stops = Counter(line["stop_reason"] for line in lines)
    found = []
    for line in lines:
        counts = dict(line["votes"] or {})
        missing = line["samples"] - sum(counts.values())
        made = votes("", line["id"], line["question"], line["gold"], {**counts, None: max(missing, 0)})
        sure = "" if line["confidence"] is None else f", {line['confidence']:.1%} sure"
        told = f"{short(line['answer'])}: {line['samples']} samples{sure}"
        unsure = 1 - (line["confidence"] or 0)
        row = [line["samples"], line["rounds"], line["tokens"], line["seconds"], line["stop_reason"]]
        found.append({**made, "told": told, "order": [line["samples"], unsure, line["seconds"]], "rows": [row]})
    columns = [
        figures("samples", 0),
        figures("rounds", 0),
        figures("tokens", 0),
        figures("seconds"),
        words("stopped by"),
    ]
    sections = [
        plot("What each question took", x, [samples], [panel("", kinds)], "A mark for each question."),
        table(
            "Why they stopped",
            [words("stopped by"), figures("questions", 0)],
            [{"name": "", "rows": [list(one) for one in stops.most_common()]}],
        ),
        questions_section(
            found, total, ("most samples", "least sure", "slowest"), columns, "of the responses that were drawn"
        ),
    ]
    return Report("Questions answered", sentence, sections, dict(settings))


def told_of(line: Mapping[str, Any], question: str) -> dict[str, Any]:
    """What a report keeps of a question and its line."""
    return {"question": question} | {name: line.get(name) for name in TOLD}


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share
