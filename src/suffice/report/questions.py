"""Each question's votes in a report, and the report of `suffice run`: what each took, and how sure its answer is."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from suffice.notebook import short
from suffice.pools import Pool, Question
from suffice.report.html import Axis, Point, Report, Section, figures, panel, percent, plot, words
from suffice.report.layout import Columns

MOST_QUESTIONS = 2000
MOST_ANSWERS = 12
LONGEST_SHOWN = 30
LONGEST_ANSWER = 200
LONGEST_QUESTION = 1000
"""What a report shows of questions: it stays a file that a browser opens at once."""


def votes(pool: str, name: str, text: Any, gold: str | None, counts: Mapping[str | None, int]) -> Section:
    """A question and its votes, cut where there are too many."""
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


def votes_in_pool(pool: Pool, question: Question) -> Section:
    text, counts = question.extra.get("question"), Counter(question.answers)
    made = votes(pool.name, question.id, text, question.gold, counts)
    leader = [f"{short(answer, LONGEST_SHOWN)} ({leader_share(question):.0f} %)" for answer, _ in made["votes"][:1]]
    return {**made, "summary": "".join(leader), "order": [question.entropy], "rows": []}


def leader_share(question: Question) -> float:
    """The leader's share of a question's responses, in percent."""
    counts = np.bincount(question.codes[question.codes >= 0], minlength=1)
    return 100 * float(counts.max()) / max(len(question.codes), 1)


def questions_section(
    found: Sequence[Section], total: int, orders: Sequence[str], columns: Sequence[Section] = (), where: str = "pool"
) -> Section:
    cut = f" These are {len(found):,} of {total:,}: more would make this file too large." * (len(found) < total)
    return {
        "kind": "questions",
        "title": "Each question's votes",
        "note": f"The answers in the {where}; the right one is green where it is known.{cut}",
        "orders": [{"label": label, "place": place} for place, label in enumerate(orders)],
        "columns": columns,
        "questions": found,
    }


KEPT = ("id", "gold", "votes", "confidence", "certainty", "answer")
"""What a report needs of a line of `suffice run` beside the summary's figures."""


def outcomes_report(lines: Sequence[Mapping[str, Any]], total: int, sentence: str, settings: dict[str, Any]) -> Report:
    """The outcomes of a file of questions, of which these are the first."""
    kinds: dict[str, list[Point]] = {}
    found = []
    for line in lines:
        kind = {True: "right", False: "wrong", None: "no gold answer"}[line["right"]]
        sure, certain = (None if line[name] is None else 100 * line[name] for name in ("confidence", "certainty"))
        row = [line["samples"], line["rounds"], line["tokens"], line["seconds"], line["stop_reason"]]
        kinds.setdefault(kind, []).append([line["id"], sure, certain, line["rounds"], line["tokens"], line["samples"]])
        counts = dict(line["votes"] or {})
        none = max(line["samples"] - sum(counts.values()), 0)
        made = votes("", line["id"], line["question"], line["gold"], {**counts, None: none})
        answer = "none" if line["answer"] is None else short(line["answer"], LONGEST_SHOWN)
        summary = f"{answer}: {line['samples']} samples" + ("" if sure is None else f", {sure:.1f} % sure")
        order = [line["samples"], -(sure or 0), line["seconds"]]
        found.append({**made, "summary": summary, "order": order, "rows": [row]})
    x = [percent("confidence", 100), percent("certainty", 100), Axis("rounds"), Axis("tokens", 0, log=True)]
    took = plot("What each question took", x, [Axis("samples", 0, zero=True)], [panel("", kinds)])
    stops = Columns("Why they stopped", "stopped by", {"questions": ","})
    for reason, count in Counter(str(line["stop_reason"]) for line in lines).most_common():
        stops.add_row(reason, count)
    columns = [*(figures(name, 0) for name in ("samples", "rounds", "tokens")), figures("seconds"), words("stopped by")]
    orders = ("most samples", "least sure", "slowest")
    shown = questions_section(found, total, orders, columns, "responses that were drawn")
    return Report("Questions answered", sentence, [took, stops.section(), shown], settings)
