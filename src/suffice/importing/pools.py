"""From files of any format to a pool: which format it is, and what was taken and dropped."""

import hashlib
import json
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from suffice.answers import Extractor, Keys, Read, get_extractor
from suffice.errors import OptionError, PoolError, whole_number
from suffice.importing import formats
from suffice.importing.formats import ImportedRow, Rows, TableColumns, wanted
from suffice.jsonl import json_lines, read_unpacked
from suffice.paths import is_there
from suffice.pools import Pool, Question

_READERS: dict[str, Callable[[Path, bytes, str | None, TableColumns], Rows]] = {
    "inspect": lambda path, data, suffix, columns: formats.inspect_log(path, data),
    "lm-eval": lambda path, data, suffix, columns: formats.harness_samples(path, data),
    "openai-batch": lambda path, data, suffix, columns: formats.batch_output(path, data, suffix),
    "csv": lambda path, data, suffix, columns: formats.csv_table(path, data, columns),
    "parquet": lambda path, data, suffix, columns: formats.parquet_table(path, columns),
}
FORMATS = tuple(_READERS)


@dataclass(frozen=True)
class Imported:
    """A pool, how many responses it was made of, and how many were dropped, by the reason.

    >>> Imported(Pool("mine", (Question("q1", "7", ("7", "8"), None),)), 2, {"failed at the server": 1}).taken
    2
    """

    pool: Pool
    taken: int
    dropped: Mapping[str, int]

    def lines(self) -> Iterator[dict[str, Any]]:
        """The pool as its file has it."""
        for one in self.pool.questions:
            yield {
                "id": one.id,
                "gold": one.gold,
                "answers": list(one.answers),
                "tokens": one.tokens and list(one.tokens),
            }


def import_pool(
    paths: str | Path | Iterable[str | Path],
    format: str | None = None,  # noqa: A002
    *,
    answer: str | Extractor | Read | None = None,
    gold: str | Path | None = None,
    suffix: str | None = None,
    columns: TableColumns = TableColumns(),  # noqa: B008
    fewest: int = 1,
) -> Imported:
    r"""Make a pool of what others wrote: see docs/joins.md for the formats.

    Args:
        paths: A file, or several of one format that make one pool.
        format: inspect, lm-eval, openai-batch, csv or parquet; what the file shows, where it is None.
        answer: How answers are extracted from the responses; where it is None, only those of files that have none.
        gold: A file of JSON lines with id and gold, instead of the gold answers in the files.
        suffix: What is between the question and the draw in the custom ids of a batch.
        columns: What the columns of a table are called.
        fewest: Questions with fewer responses are dropped.

    Returns:
        The pool, how many responses were taken, and how many dropped, by the reason.

    Raises:
        PoolError: Where a file is missing, is not of its format, or has no response to take.
        OptionError: Where the format can't be told, or an argument is out of range.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "mine.csv"
    ...     _ = path.write_text("question,answer,tokens\nq1,1/2,20\nq1,0.5,31\nq1,,40\n")
    ...     import_pool(path).pool.questions[0].answers
    ('0.5', '0.5', None)
    """
    files = [Path(paths)] if isinstance(paths, str | Path) else [Path(path) for path in paths]
    whole_number("fewest", fewest)
    if format not in (None, *FORMATS):
        raise OptionError(f'must be one of {", ".join(FORMATS)}, not "{format}"', "format")
    extractor = None if answer is None else get_extractor(answer)
    if extractor is not None and extractor.structure:
        raise OptionError("can't be one whose answers have fields: collect such a pool", "answer")
    golds = _golds(Path(gold)) if gold else {}
    kept: dict[str, list[ImportedRow]] = {}
    dropped: Counter[str] = Counter()
    digest = hashlib.sha256()
    for path in files:
        data = _read(path)
        digest.update(data)
        for row in _rows(path, data, format, suffix, columns):
            if isinstance(row, str):
                dropped[row] += 1
            else:
                kept.setdefault(row.question, []).append(row)
    for name in [name for name, rows in kept.items() if len(rows) < fewest]:
        dropped[f"of questions with fewer than {fewest}"] += len(kept.pop(name))
    if not kept:
        why = "; ".join(f"{number} {reason}" for reason, number in dropped.items())
        raise PoolError(f"{files[0]}: there is no response in it that can be taken{': ' + why if why else ''}")
    questions = tuple(_question(name, rows, extractor, golds.get(name)) for name, rows in kept.items())
    pool = Pool(files[0].stem, questions, digest.hexdigest())
    return Imported(pool, sum(map(len, kept.values())), dict(dropped))


def _read(path: Path) -> bytes:
    if not is_there(path):
        raise PoolError(f"{path}: there is no such file")
    if path.is_dir():
        raise PoolError(f"{path}: it is a folder; give the files in it, as in {path}/*")
    data = read_unpacked(path, PoolError)
    if not data or data.isspace():
        raise PoolError(f"{path}: it is empty; give a file with responses in it")
    return data


def _rows(path: Path, data: bytes, format: str | None, suffix: str | None, columns: TableColumns) -> Rows:  # noqa: A002
    chosen = format or _format_of(path, data)
    try:
        yield from _READERS[chosen](path, data, suffix, columns)
    except (AttributeError, TypeError):  # there is a number or a list where an object should be
        raise PoolError(f"{path}: it is JSON, and not as {chosen} writes it; give another file, or format") from None


def _format_of(path: Path, data: bytes) -> str:
    """The format, by how the file begins and what its name ends in."""
    if data.startswith(b"PAR1") or path.suffix == ".parquet":
        return "parquet"
    if zipfile.is_zipfile(path):
        return "inspect"
    first = data.lstrip(b"\xef\xbb\xbf \r\n").split(b"\n", 1)[0]
    is_text = False
    with suppress(UnicodeDecodeError):
        is_text = "\0" not in first.decode()
    if not is_text:
        raise PoolError(f"{path}: it is neither UTF-8 text nor a whole Inspect log or Parquet file; give one of these")
    if path.suffix in (".eval", ".json"):
        return "inspect"
    if path.name.removesuffix(".gz").endswith(".csv"):
        return "csv"
    fields = None
    with suppress(ValueError):
        fields = json.loads(first)
    for name, mark in (("openai-batch", "custom_id"), ("lm-eval", "doc_id")):
        if isinstance(fields, dict) and mark in fields:
            return name
    raise OptionError(f"must be one of {', '.join(FORMATS)} for {path}, which doesn't show it", "format")


def _golds(path: Path) -> dict[str, str | None]:
    golds = {}
    for place, record in json_lines(path, read_unpacked(path, PoolError), PoolError, "id and gold"):
        value = wanted(record, "gold", place)
        golds[str(wanted(record, "id", place))] = None if value is None else str(value)
    return golds


def _question(name: str, rows: list[ImportedRow], extractor: Extractor | None, gold: str | None) -> Question:
    """A question of a pool: equal answers have one key, and gold is compared alike."""
    reading = extractor or get_extractor("auto")
    keys = extractor.keys() if extractor else Keys()
    answers = []
    for row in rows:
        is_said = extractor is None and row.given is not None
        answers.append(keys.key((row.given or None) if is_said else reading.extract(row.response)))
    gold = next((one for one in (gold, *(row.gold for row in rows)) if one is not None), None)
    tokens = tuple(row.response.tokens for row in rows)
    known = any(one is not None for one in tokens)
    return Question(name, keys.find(gold), tuple(answers), tokens if known else None)
