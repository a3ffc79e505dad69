"""Where what the gateway learns and what audits prove is kept: a port, and files in a folder, which workers share."""

import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from suffice.paths import alone_in, write_whole

MOST_BYTES = 4 << 20
"""So much of a list is read at most: its end."""

Change = Callable[[bytes | None], bytes | None]
"""From what is kept, or nothing, to what shall be kept instead, or None to leave it; ValueError where it is broken."""


class State(Protocol):
    """Values by name, which are replaced whole, and lists by name, which grow; OSError where that can't be done now."""

    def version(self, name: str) -> int:
        """What changes whenever a value does."""

    def update(self, name: str, change: Change) -> None:
        """Change a value, with nobody else at it; a broken one is put aside, with a warning, and is as none."""

    def append(self, name: str, line: bytes) -> None:
        """Add a line to a list, in one piece: all who read it see the same order."""

    def lines(self, name: str, start: int) -> tuple[list[bytes], int]:
        """The lines of a list from a position, 0 at first, and the position after them."""


class FileState:
    """A file for each value and each list."""

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
