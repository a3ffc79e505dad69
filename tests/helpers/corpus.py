"""The corpus: requests of many kinds, varied responses to each, and what a person takes each to answer."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).parents[1] / "corpus"


@dataclass(frozen=True)
class Kind:
    """A kind of request, the right answer to it or none, and each response with the answer that it gives."""

    name: str
    messages: list[dict[str, Any]]
    answer: str | None
    responses: list[tuple[str, str | None]]


PRINCIPLES = ("slots", "options", "short", "conclusions")
"""What shows the answers of the kinds in each file; "texts" have none."""


def kinds(file: str) -> Iterator[Kind]:
    """The kinds in a file of the corpus."""
    for line in (_FOLDER / f"{file}.jsonl").read_text(encoding="utf-8").splitlines():
        kind = json.loads(line)
        responses = [(response["text"], response["answer"]) for response in kind["responses"]]
        yield Kind(kind["kind"], kind["messages"], kind["answer"], responses)
