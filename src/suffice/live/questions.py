"""Files of questions: a JSON line each, with id, question and, if known, gold."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from suffice.answers.structure import spelled
from suffice.errors import OptionError
from suffice.jsonl import json_object, lines, quoted, read_unpacked


@dataclass(frozen=True)
class Asked:
    """A question to be put to a model."""

    id: str
    question: str
    gold: str | None = None

    @property
    def digest(self) -> str:
        """What tells whether it is still the same question."""
        return hashlib.sha256(self.question.encode()).hexdigest()[:16]


def load_questions(path: Path) -> list[Asked]:
    """Load questions from a .jsonl or .jsonl.gz file."""
    data = read_unpacked(path, OptionError)
    found: dict[str, Asked] = {}
    for line, text in lines(path, data, OptionError):
        try:
            one = _asked(json_object(text, "id and question"))
            if one.id in found:
                raise ValueError(f"the id {quoted(one.id)} was used before; ids must differ")
        except ValueError as error:
            raise OptionError(f"{path}, line {line}: {error}") from None
        found[one.id] = one
    if not found:
        raise OptionError(f"{path}: there are no questions in it; it has a JSON line a question")
    return list(found.values())


def _asked(record: dict[str, Any]) -> Asked:
    for name in ("id", "question"):
        if name not in record:
            raise ValueError(f'the field "{name}" is missing')
    identity, question, gold = record["id"], record["question"], record.get("gold")
    if not isinstance(question, str) or not question.strip():
        raise ValueError(f'"question" must be a text, not {quoted(question)}')
    for name, value in (("id", identity), ("question", question), ("gold", gold)):
        if isinstance(value, str) and not _is_whole(value):
            raise ValueError(f'"{name}" has half a character in it, {quoted(value)}')
        structured = name == "gold" and isinstance(value, dict | list)
        if isinstance(value, bool) or not (structured or isinstance(value, str | int | float | None)):
            raise ValueError(f'"{name}" must be a string or a number, not {quoted(value)}')
    if identity is None:
        raise ValueError('"id" must be a string or a number, not null')
    if isinstance(gold, dict | list):
        gold = spelled(gold)
    return Asked(str(identity), question, None if gold is None else str(gold))


def _is_whole(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
