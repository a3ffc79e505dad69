"""What all formats come to: a row for each response, or the reason why one can't be taken."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from suffice.errors import PoolError
from suffice.jsonl import json_object, lines, quoted, read_unpacked
from suffice.response import Response


@dataclass(frozen=True)
class ImportedRow:
    """One response as a file has it."""

    question: str
    response: Response
    given: str | None = None
    """The answer where the file has one already."""
    has_given: bool = False
    """Whether the file says what the answer is, if only that there is none."""
    gold: str | None = None


@dataclass(frozen=True)
class Dropped:
    """Something that is no response, and why."""

    why: str


Rows = Iterator[ImportedRow | Dropped]


def json_lines(path: Path, fields: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a file, with their lines."""
    for number, text in lines(path, read_unpacked(path, PoolError), PoolError):
        try:
            yield number, json_object(text, fields)
        except ValueError as error:
            raise PoolError(f"{path}, line {number}: {error}") from None


def wanted(record: Mapping[str, Any], field: str, place: str) -> Any:
    """A field that must be there."""
    if field not in record:
        raise PoolError(f"{place}: the field {quoted(field)} is missing")
    return record[field]


def count(value: object, place: str) -> int | None:
    """A number of tokens, as JSON, CSV and Parquet may have it; None where there is none."""
    if value is None or value == "" or value != value:
        return None
    try:
        number = float(str(value))
    except ValueError:
        number = -1
    if number < 0 or not number.is_integer():
        raise PoolError(f"{place}: tokens must be a whole number, 0 or more, not {quoted(str(value))}")
    return int(number)
