"""The formats that are read: each comes to a row for each response, or the reason why one can't be taken."""

import csv
import importlib
import io
import json
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from suffice.errors import OptionError, PoolError
from suffice.jsonl import decoded, json_lines, quoted
from suffice.response import Response

NOT_FOUND = "[invalid]"
"""What the harness's filters say where they find no answer."""


@dataclass(frozen=True)
class ImportedRow:
    """One response as a file has it."""

    question: str
    response: Response
    given: str | None = None
    """The answer, where the file has it already: empty where it says that there is none."""
    gold: str | None = None


Rows = Iterator[ImportedRow | str]
"""What is a response; and of what is none, the reason."""


@dataclass(frozen=True)
class TableColumns:
    """What the columns of a table are called; tokens and gold may be missing unless they are named."""

    question: str = "question"
    answer: str = "answer"
    tokens: str | None = None
    gold: str | None = None


def wanted(record: Mapping[str, Any], field: str, place: str) -> Any:
    if field not in record:
        raise PoolError(f"{place}: the field {quoted(field)} is missing")
    return record[field]


def count(value: object, place: str) -> int | None:
    """The number of tokens, as any format has it; None where there is none."""
    if value is None or value == "" or value != value:
        return None
    with suppress(ValueError):
        number = float(str(value))
        if number >= 0 and number.is_integer():
            return int(number)
    raise PoolError(f"{place}: tokens must be a whole number, 0 or more, not {quoted(str(value))}")


def inspect_log(path: Path, data: bytes) -> Rows:
    """Read an Inspect log; answers are those of the first scorer."""
    for place, sample in _samples(path, data):
        identity = str(wanted(sample, "id", place))
        output = sample.get("output") or {}
        choices = output.get("choices") or []
        if sample.get("error") or not choices:
            yield "ended in an error" if sample.get("error") else "no output"
            continue
        reason = {"max_tokens": "length"}.get(choices[0].get("stop_reason"), choices[0].get("stop_reason"))
        tokens = (output.get("usage") or {}).get("output_tokens")
        scores = list((sample.get("scores") or {}).values())
        given = scores[0].get("answer") if scores else None
        response = Response(output.get("completion") or "", reason, tokens)
        yield ImportedRow(identity, response, given, _one_target(sample.get("target")))


def _one_target(target: Any) -> str | None:
    """The gold answer; where any of several will do there is not one."""
    if isinstance(target, list):
        target = target[0] if len(target) == 1 else None
    return str(target) if target not in (None, "") else None


def _samples(path: Path, data: bytes) -> Iterator[tuple[str, dict[str, Any]]]:
    if not zipfile.is_zipfile(path):
        try:
            samples = json.loads(data)["samples"]
        except (ValueError, KeyError, TypeError):
            raise PoolError(f"{path}: it is no Inspect log, or one without samples") from None
        yield from ((f"{path}, sample {number}", sample) for number, sample in enumerate(samples or [], 1))
        return
    with suppress(ModuleNotFoundError):
        importlib.import_module("zipfile_zstd")  # newer logs are packed by Zstandard, which this teaches zipfile
    try:
        with zipfile.ZipFile(path) as log:
            names = [name for name in log.namelist() if name.startswith("samples/")]
            for name in sorted(names, key=_by_epoch):
                yield f"{path}, {name}", json.loads(log.read(name))
    except NotImplementedError:
        raise OptionError(
            f"{path}: this log is packed by Zstandard, which needs zipfile-zstd: pip install 'suffice[inspect]'"
        ) from None
    except (zipfile.BadZipFile, ValueError):
        raise PoolError(f"{path}: it is no whole Inspect log; copy it again") from None


def _by_epoch(name: str) -> tuple[str, int]:
    identity, _, epoch = name.removesuffix(".json").rpartition("_epoch_")
    return identity, int(epoch)


def harness_samples(path: Path, data: bytes) -> Rows:
    """Read the harness's --log_samples; of several filters the first counts."""
    filters: dict[str, str] = {}
    for place, record in json_lines(path, data, PoolError, "doc_id, target, resps and filtered_resps"):
        identity = str(wanted(record, "doc_id", place))
        used = str(record.get("filter"))
        texts, given = _flat(wanted(record, "resps", place)), _flat(record.get("filtered_resps"))
        if filters.setdefault(identity, used) != used:
            yield from ["there again by another filter"] * len(texts)
            continue
        # A filter that takes the first, or the majority, leaves fewer than there were: then the texts are read.
        each = given if len(given) == len(texts) else [None] * len(texts)
        for text, answer in zip(texts, each, strict=True):
            if not isinstance(text, str):
                yield "no text but a likelihood"
                continue
            found = answer if isinstance(answer, str) and answer != NOT_FOUND else ""
            gold = _one_target(record.get("target"))
            # A worked solution of GSM8K ends in #### and the answer.
            gold = gold.rpartition("####")[2].strip() if gold else None
            yield ImportedRow(identity, Response(text), None if answer is None else found, gold)


def _flat(responses: Any) -> list[Any]:
    """The repeats, in however many lists; a likelihood is a list too, and stays whole."""
    if not isinstance(responses, list):
        return [] if responses is None else [responses]
    if responses and isinstance(responses[0], int | float):
        return [responses]
    return [one for part in responses for one in _flat(part)]


def batch_output(path: Path, data: bytes, suffix: str | None) -> Rows:
    """Read a batch; with a suffix, a custom id is the question's id, the suffix, and the draw."""
    for place, record in json_lines(path, data, PoolError, "custom_id and response"):
        custom = str(wanted(record, "custom_id", place))
        identity = custom.rpartition(suffix)[0] if suffix else custom
        if not identity:
            raise PoolError(f"{place}: there is no {quoted(suffix)} in the custom id {quoted(custom)}")
        reply = record.get("response") or {}
        body = reply.get("body")
        if record.get("error") or reply.get("status_code", 200) != 200 or not isinstance(body, dict):
            yield "failed at the server"
            continue
        said = list(_said(body))
        if not said:
            yield "no output"
        usage = body.get("usage") or {}
        # Of several choices only the sum is known.
        tokens = usage.get("completion_tokens", usage.get("output_tokens")) if len(said) == 1 else None
        for text, reason in said:
            yield ImportedRow(identity, Response(text, reason, count(tokens, place)))


def _said(body: Mapping[str, Any]) -> Iterator[tuple[str, str | None]]:
    """The text and finish reason of each choice, or of a Response."""
    for choice in body.get("choices") or []:
        yield (choice.get("message") or {}).get("content") or "", choice.get("finish_reason")
    if "output" in body:
        parts = [part for item in body["output"] for part in item.get("content") or []]
        cut = body.get("status") == "incomplete"
        yield "".join(part.get("text") or "" for part in parts), "length" if cut else "stop"


def csv_table(path: Path, data: bytes, columns: TableColumns) -> Rows:
    reader = csv.DictReader(io.StringIO(decoded(path, data, PoolError), newline=""), strict=True)

    def rows() -> Iterator[tuple[str, dict[str, Any]]]:
        names = list(reader.fieldnames or [])
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise PoolError(f"{path}, line 1: there are two columns {quoted(twice)}; rename one of them")
        for row in reader:
            place = f"{path}, line {reader.line_num}"
            if None in row or None in row.values():
                raise PoolError(
                    f"{place}: it has not {len(names)} fields, as the header has; quote what has commas in it"
                )
            yield place, row

    try:
        yield from _table(rows(), columns)
    except csv.Error as error:
        raise PoolError(f"{path}, line {reader.line_num}: {error}") from None


def parquet_table(path: Path, columns: TableColumns) -> Rows:
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
            yield "no question named"
            continue
        text = "" if answer is None else str(answer)
        gold = row.get(columns.gold or "gold")
        tokens = count(row.get(columns.tokens or "tokens"), place)
        response = Response(text, None, tokens)
        yield ImportedRow(str(question), response, text, None if gold in (None, "") else str(gold))
