"""Files of questions: a JSON line each, with id, question and, if known, gold."""

import gzip
import hashlib
import shutil
import weakref
import zlib
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, BinaryIO, cast, overload

from suffice.answers.structure import spelled
from suffice.errors import OptionError
from suffice.jsonl import json_object, quoted

WHITESPACE = b" \t\r\n\x0b\x0c"


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


class Questions(Sequence[Asked]):
    """The questions of a .jsonl or .jsonl.gz file, read when needed: in memory is only where each one begins."""

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
            if line.strip(b"\xef\xbb\xbf" + WHITESPACE):
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


def _unpacked(path: Path) -> BinaryIO:
    """The file itself, where it can be read again and again as it is, else a copy, unpacked where it is compressed."""
    try:
        file = path.open("rb") if path.is_file() else _copied(path.open("rb"))
        if path.suffix != ".gz" and file.read(2) != b"\x1f\x8b":
            file.seek(0)
            return file
        file.seek(0)
        with file:
            return _copied(cast(BinaryIO, gzip.GzipFile(fileobj=file)))
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise OptionError(f"{path}: not a whole gzip file; compress it again, or drop the .gz") from None
    except OSError as reason:
        raise OptionError(f"{path}: it can't be read: {reason.strerror}") from None


def _copied(file: BinaryIO) -> BinaryIO:
    copy = cast(BinaryIO, TemporaryFile())  # noqa: SIM115
    try:
        with file:
            shutil.copyfileobj(file, copy)
    except BaseException:
        copy.close()
        raise
    copy.seek(0)
    return copy


def _read(line: bytes) -> Asked:
    try:
        text = line.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError("not UTF-8 text; save the file as UTF-8") from None
    return _asked(json_object(text, "id and question"))


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
