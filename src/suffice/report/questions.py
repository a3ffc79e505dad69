"""The part of a report that shows each question's votes."""

from collections.abc import Mapping, Sequence
from typing import Any

from suffice.report.html import Section

MOST_QUESTIONS = 2000
MOST_ANSWERS = 12
LONGEST_TOLD = 30
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


def short(answer: str | None) -> str:
    """An answer in one line."""
    text = "none" if answer is None else " ".join(answer.split())
    return text if len(text) <= LONGEST_TOLD else text[: LONGEST_TOLD - 1] + "…"
