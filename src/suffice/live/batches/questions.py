"""Files of questions: a JSON line each, with id, question and, if known, gold."""

import codecs
import gzip
import hashlib
import re
import shutil
import weakref
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, overload

from suffice.answers.structure import spelled
from suffice.errors import OptionError
from suffice.jsonl import is_packed, json_object, quoted, unpacking

HALF = re.compile("[\ud800-\udfff]")
"""Half a character, as JSON may escape it: no file and no request can have it."""


@dataclass(frozen=True)
class Asked:
    """A question to be put to a model."""

    id: str
    question: str
    gold: str | None = None

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.question.encode()).hexdigest()[:16]


class Questions(Sequence[Asked]):
    """The questions of a file, read when needed: in memory is only where each one begins."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = _unpacked(path)
        weakref.finalize(self, self._file.close)
        self._places = array("q")
        self._load()

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, place: int) -> Asked: ...

    @overload
    def __getitem__(self, place: slice) -> list[Asked]: ...

    def __getitem__(self, place: int | slice) -> Asked | list[Asked]:
        if isinstance(place, slice):
            return [self[one] for one in range(*place.indices(len(self)))]
        self._file.seek(self._places[place])
        try:
            return _read(self._file.readline())
        except ValueError:
            raise OptionError(f"{self._path}: it was changed while it was at work on; run again") from None

    def _load(self) -> None:
        """Check every line, and note where it begins."""
        ids: set[str] = set()
        place = 0
        for number, line in enumerate(self._file, 1):
            if line.removeprefix(codecs.BOM_UTF8).strip():
                try:
                    identity = _read(line).id
                    if identity in ids:
                        raise ValueError(f"the id {quoted(identity)} was used before; ids must differ")
                except ValueError as error:
                    raise OptionError(f"{self._path}, line {number}: {error}") from None
                ids.add(identity)
                self._places.append(place)
            place += len(line)
        if not self._places:
            raise OptionError(f"{self._path}: there are no questions in it; it has a JSON line a question")


def _unpacked(path: Path) -> IO[bytes]:
    """Open a file, or a copy where it is compressed or can be read only once."""
    with unpacking(path, OptionError):
        file = path.open("rb")
        packed = is_packed(path, file.peek(2))
        if path.is_file() and not packed:
            return file
        copy = TemporaryFile()  # noqa: SIM115
        try:
            with file:
                shutil.copyfileobj(gzip.GzipFile(fileobj=file) if packed else file, copy)
        except BaseException:
            copy.close()
            raise
        copy.seek(0)
        return copy


def _read(line: bytes) -> Asked:
    try:
        record = json_object(line.decode("utf-8-sig"), "id and question")
    except UnicodeDecodeError:
        raise ValueError("not UTF-8 text; save the file as UTF-8") from None
    for name in ("id", "question"):
        if name not in record:
            raise ValueError(f'the field "{name}" is missing')
    identity, question, gold = record["id"], record["question"], record.get("gold")
    if not isinstance(question, str) or not question.strip():
        raise ValueError(f'"question" must be a text, not {quoted(question)}')
    for name, value in (("id", identity), ("question", question), ("gold", gold)):
        if isinstance(value, str) and HALF.search(value):
            raise ValueError(f'"{name}" has half a character in it, {quoted(value)}')
        structured = name == "gold" and isinstance(value, dict | list)
        if isinstance(value, bool) or not (structured or isinstance(value, str | int | float | None)):
            raise ValueError(f'"{name}" must be a string or a number, not {quoted(value)}')
    if identity is None:
        raise ValueError('"id" must be a string or a number, not null')
    if isinstance(gold, dict | list):
        gold = spelled(gold)
    return Asked(str(identity), question, None if gold is None else str(gold))
