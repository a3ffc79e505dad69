"""Files with a JSON object a line: reading them, and saying which line is wrong."""

import gzip
import json
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from suffice.errors import SufficeError


def is_packed(path: Path, begins: bytes) -> bool:
    """Whether a file that begins so is compressed by gzip, or should be by its name."""
    return path.suffix == ".gz" or begins.startswith(b"\x1f\x8b")


@contextmanager
def unpacking(path: Path, error: type[SufficeError]) -> Iterator[None]:
    """Say in a sentence why a file can't be read or unpacked."""
    try:
        yield
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise error(f"{path}: not a whole gzip file; compress it again, or drop the .gz") from None
    except OSError as reason:
        raise error(f"{path}: it can't be read: {reason.strerror}") from None


def read_unpacked(path: Path, error: type[SufficeError]) -> bytes:
    """The file, unpacked where it is compressed."""
    with unpacking(path, error):
        data = path.read_bytes()
        return gzip.decompress(data) if is_packed(path, data) else data


def decoded(path: Path, data: bytes, error: type[SufficeError]) -> str:
    """The text of a file; an error names the line that is none."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as reason:
        line = data.count(b"\n", 0, reason.start) + 1
        raise error(f"{path}, line {line}: not UTF-8 text; save the file as UTF-8") from None


def json_lines(path: Path, data: bytes, error: type[SufficeError], fields: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The objects of a file, a line each but for blank ones, with the words that name the line in an error."""
    for number, line in enumerate(decoded(path, data, error).split("\n"), 1):
        place = f"{path}, line {number}"
        if line.strip():
            try:
                yield place, json_object(line, fields)
            except ValueError as reason:
                raise error(f"{place}: {reason}") from None


def json_object(text: str, fields: str) -> dict[str, Any]:
    """One line; ValueError says what is wrong with it, and what fields it should have."""
    try:
        record = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON ({error.msg} at column {error.colno}); each line must be one JSON object") from None
    except RecursionError:
        raise ValueError("not JSON that can be read (too deeply nested); each line must be one JSON object") from None
    if not isinstance(record, dict):
        raise ValueError(f"not a JSON object; each line must be one, with {fields}")
    return record


def quoted(value: object) -> str:
    """A value as it may stand in a message: on one line, and not too long."""
    shown = json.dumps(value)
    return shown if len(shown) <= 60 else shown[:57] + "..."
