"""Plain responses: the output of OpenAI's batches, and tables with a row a response."""

import csv
import importlib
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from suffice.errors import OptionError, PoolError
from suffice.importing.rows import Dropped, ImportedRow, Rows, count, json_lines, wanted
from suffice.jsonl import quoted, read_unpacked
from suffice.response import Response

OK = 200


@dataclass(frozen=True)
class TableColumns:
    """What the columns of a table are called; tokens and gold may be missing unless they are named.

    >>> TableColumns(answer="prediction").answer
    'prediction'
    """

    question: str = "question"
    answer: str = "answer"
    tokens: str | None = None
    gold: str | None = None


def batch_output(path: Path, suffix: str | None) -> Rows:
    """Responses of a batch; with a suffix, a custom id is that of the question, the suffix, and the draw."""
    for number, record in json_lines(path, "custom_id and response"):
        place = f"{path}, line {number}"
        custom = str(wanted(record, "custom_id", place))
        identity = custom.rpartition(suffix)[0] if suffix else custom
        if not identity:
            raise PoolError(f"{place}: there is no {quoted(suffix)} in the custom id {quoted(custom)}")
        reply = record.get("response") or {}
        body = reply.get("body")
        if record.get("error") or reply.get("status_code", OK) != OK or not isinstance(body, dict):
            yield Dropped("failed at the server")
            continue
        said = list(_said(body))
        if not said:
            yield Dropped("no output")
        usage = body.get("usage") or {}
        # Of several choices only the sum is known.
        tokens = usage.get("completion_tokens", usage.get("output_tokens")) if len(said) == 1 else None
        for text, reason in said:
            yield ImportedRow(identity, Response(text, reason, count(tokens, place)))


def _said(body: Mapping[str, Any]) -> Iterator[tuple[str, str | None]]:
    """The text and finish reason of each choice of a chat completion, or of a Response."""
    for choice in body.get("choices") or []:
        yield (choice.get("message") or {}).get("content") or "", choice.get("finish_reason")
    if "output" in body:
        parts = [part for item in body["output"] for part in item.get("content") or []]
        cut = body.get("status") == "incomplete"
        yield "".join(part.get("text") or "" for part in parts), "length" if cut else "stop"


def csv_table(path: Path, columns: TableColumns) -> Rows:
    """Responses of a CSV file with a header."""
    try:
        text = read_unpacked(path, PoolError).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise PoolError(f"{path}: not UTF-8 text; save the file as UTF-8") from None
    reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    try:
        yield from _table(_whole_rows(path, reader), columns)
    except csv.Error as error:
        raise PoolError(f"{path}, line {reader.line_num}: {error}") from None


def _whole_rows(path: Path, reader: "csv.DictReader[str]") -> Iterator[tuple[str, dict[str, Any]]]:
    """The rows, with where they are; PoolError where they don't fit the header."""
    names = list(reader.fieldnames or [])
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise PoolError(f"{path}, line 1: there are two columns {quoted(twice)}; rename one of them")
    for row in reader:
        place = f"{path}, line {reader.line_num}"
        if None in row or None in row.values():
            raise PoolError(f"{place}: it has not {len(names)} fields, as the header has; quote what has commas in it")
        yield place, row


def parquet_table(path: Path, columns: TableColumns) -> Rows:
    """Responses of a Parquet file."""
    try:
        parquet = importlib.import_module("pyarrow.parquet")
    except ModuleNotFoundError:
        raise OptionError(f"{path}: Parquet needs pyarrow: pip install pyarrow") from None
    try:
        rows = parquet.read_table(path).to_pylist()
    except (OSError, ValueError) as error:
        raise PoolError(f"{path}: it is no Parquet file that can be read: {str(error).split('. ')[0]}") from None
    yield from _table(((f"{path}, row {number}", row) for number, row in enumerate(rows, 1)), columns)


def _table(rows: Iterator[tuple[str, dict[str, Any]]], columns: TableColumns) -> Rows:
    needed = {what: name for what, name in vars(columns).items() if name is not None}
    for place, row in rows:
        for what, name in needed.items():
            if name not in row:
                there = ", ".join(map(str, row))
                raise PoolError(
                    f"{place}: there is no column {quoted(name)}; there are {there}: name one by --{what}-column"
                )
        question, answer = row[columns.question], row[columns.answer]
        if question is None or str(question) == "":
            yield Dropped("no question named")
            continue
        text = "" if answer is None else str(answer)
        gold = row.get(columns.gold or "gold")
        tokens = count(row.get(columns.tokens or "tokens"), place)
        response = Response(text, None, tokens)
        yield ImportedRow(str(question), response, text or None, True, None if gold in (None, "") else str(gold))
