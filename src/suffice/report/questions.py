"""Each question's votes in a report, and the report of questions that were answered: what each took, how sure it is."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from suffice.notebook import short
from suffice.report.html import Axis, Point, Report, Section, figures, panel, percent, plot, table, words

MOST_QUESTIONS = 2000
MOST_ANSWERS = 12
LONGEST_SHOWN = 30
LONGEST_ANSWER = 200
LONGEST_QUESTION = 1000
"""A report shows so many questions, and of each so much: it stays a file that a browser opens at once."""


def votes(pool: str, name: str, text: Any, gold: str | None, counts: Mapping[str | None, int]) -> Section:
    """A question and its votes, the most first, cut where there are too many."""
    answers = sorted(((one, count) for one, count in counts.items() if one is not None), key=lambda pair: -pair[1])
    return {
        "pool": pool,
        "id": name,
        "question": text[:LONGEST_QUESTION] if isinstance(text, str) else None,
        "gold": gold and gold[:LONGEST_ANSWER],
        "votes": [(answer[:LONGEST_ANSWER], count) for answer, count in answers[:MOST_ANSWERS]],
        "others": sum(count for _, count in answers[MOST_ANSWERS:]),
        "none": counts.get(None, 0),
    }


def questions_section(
    found: Sequence[Section], total: int, orders: Sequence[str], columns: Sequence[Section], where: str
) -> Section:
    """The questions to search through and to open."""
    cut = f" These are {len(found):,} of {total:,}: more would make this file too large." * (len(found) < total)
    return {
        "kind": "questions",
        "title": "Each question's votes",
        "note": f"The answers {where}; the right one is green where it is known.{cut}",
        "orders": [{"label": label, "place": place} for place, label in enumerate(orders)],
        "columns": columns,
        "questions": found,
    }


def shortened(answer: str | None) -> str:
    """An answer in one line."""
    return "none" if answer is None else short(answer, LONGEST_SHOWN)


KEPT = ("id", "gold", "votes", "confidence", "certainty", "answer")
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
        summary = f"{shortened(line['answer'])}: {line['samples']} samples{sure}"
        unsure = 1 - (line["confidence"] or 0)
        row = [line["samples"], line["rounds"], line["tokens"], line["seconds"], line["stop_reason"]]
        found.append({**made, "summary": summary, "order": [line["samples"], unsure, line["seconds"]], "rows": [row]})
    columns = [*(figures(name, 0) for name in ("samples", "rounds", "tokens")), figures("seconds"), words("stopped by")]
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


def report_line(line: Mapping[str, Any], question: str) -> dict[str, Any]:
    """What a report keeps of a question and of the line that tells its outcome."""
    return {"question": question} | {name: line.get(name) for name in KEPT}


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share
