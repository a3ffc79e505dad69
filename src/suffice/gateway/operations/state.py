"""Files of what the gateway learns and what audits prove, in a folder that workers share."""

import os
import warnings
from collections.abc import Callable
from pathlib import Path

from suffice.paths import alone_in, write_whole

MOST_BYTES = 4 << 20
"""So much of a list is read at most: its end."""

Change = Callable[[bytes | None], bytes | None]
"""From what is kept, or nothing, to what shall be kept instead, or None to leave it; ValueError where it is broken."""


class FileState:
    """Values by name, replaced whole under a lock, and lists by name, which grow: a file for each.

    OSError if a file can't be read or written now.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def version(self, name: str) -> int:
        """When the file was written; 0 where there is none."""
        try:
            return (self._folder / name).stat().st_mtime_ns
        except OSError:
            return 0

    def update(self, name: str, change: Change) -> None:
        """Change a file, which is there whole at any moment, before or after."""
        path = self._made(name)
        with alone_in(path.parent):
            try:
                changed = change(path.read_bytes() if path.exists() else None)
            except ValueError as error:
                aside = path.with_name(f"{path.name}.corrupt")
                path.replace(aside)
                warnings.warn(f"{path}: {error}; it is put aside as {aside.name}, and begun anew", stacklevel=2)
                changed = change(None)
            if changed is not None:
                write_whole(path, changed)

    def append(self, name: str, line: bytes) -> None:
        """Add a line to a file."""
        file = os.open(self._made(name), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(file, line + b"\n")
        finally:
            os.close(file)

    def lines(self, name: str, start: int) -> tuple[list[bytes], int]:
        """The whole lines from a position, or of the file's end."""
        try:
            with (self._folder / name).open("rb") as file:
                start = max(start, file.seek(0, os.SEEK_END) - MOST_BYTES)
                file.seek(start)
                whole, end, _ = file.read().rpartition(b"\n")
        except FileNotFoundError:
            return [], start
        return whole.split(b"\n"), start + len(whole + end)

    def _made(self, name: str) -> Path:
        path = self._folder / name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return path
