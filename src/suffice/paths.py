"""Looking for files, and writing them whole or not at all."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from suffice.errors import OptionError


def is_there(path: Path) -> bool:
    """Whether a path exists; one that can't even be looked up does not."""
    try:
        return path.exists()
    except OSError:
        return False


LOOK_SECONDS = 1.0
WRITING_SECONDS = 2.0  # a file that is empty for longer is not being written
"""Minimum seconds between two looks at a watched file."""


class WatchedFile:
    """A file that is read again when it has changed; emptied a moment ago, it is being written."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._looked = time.monotonic()
        self._seen = self._stamp()

    def has_changed(self) -> bool:
        """Whether it has changed since the last time that this was asked."""
        now = time.monotonic()
        if now - self._looked < LOOK_SECONDS:
            return False
        self._looked = now
        stamp = self._stamp()
        if stamp == self._seen or (stamp and stamp[0] == 0 and time.time() - stamp[1] / 1e9 < WRITING_SECONDS):
            return False
        self._seen = stamp
        return True

    def _stamp(self) -> tuple[int, ...] | None:
        try:
            about = self._path.stat()
        except OSError:
            return None
        return about.st_size, about.st_mtime_ns, about.st_ino


def check_writable(*paths: Path | None) -> None:
    """Refuse paths that can't be written, or not beside each other, before the work that fills them."""
    taken = set()
    for path in filter(None, paths):
        try:
            target = path.resolve()
            device = is_device(path)
            fits = not path.is_dir() and target.parent.is_dir() and (device or os.access(target.parent, os.W_OK))
        except OSError:
            fits = False
        if not fits:
            raise OptionError(f"{path}: it can't be written; name a file in a folder that exists and is yours")
        if target in taken:
            raise OptionError(f"{path}: only one of the outputs can go there; give each a file of its own")
        if not device:
            taken.add(target)


def write_whole(path: Path, data: bytes | memoryview) -> None:
    """Write a file so that a crash half-way leaves what was there before."""
    with writing_whole(path) as file:
        file.write(data)


@contextmanager
def writing_whole(path: Path) -> Iterator[BinaryIO]:
    """A file to write to, which takes the path's place when all is written."""
    target = path.resolve()
    draft = target.with_name(f".{os.getpid()}.draft")
    try:
        if is_device(target):
            with target.open("wb") as file:
                yield file
            return
        try:
            with draft.open("wb") as file:
                yield file
            draft.replace(target)
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        raise OptionError(f"{path}: it can't be written: {error.strerror}") from None


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Hold a folder's lock, so that of two who change a file in it none undoes what the other did."""
    held = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
    finally:
        os.close(held)


def is_device(path: Path) -> bool:
    """Whether this is a terminal, a pipe or the like, which can't be replaced."""
    return path.exists() and not path.is_file()
