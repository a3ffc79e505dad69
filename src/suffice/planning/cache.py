"""Arrays that take long to work out are kept in the user's cache directory."""

import hashlib
import os
import zipfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from suffice.errors import OptionError
from suffice.paths import write_whole

VERSION = 2
"""Part of every file's name: raise it when the arrays change their meaning."""

MOST_BYTES = 500_000_000
"""The oldest files are deleted beyond this: a search for penalties leaves many that nobody needs again."""

Arrays = dict[str, np.ndarray]


def cached(build: Callable[[], Arrays], *identity: object, keep: bool = True) -> Arrays:
    """The arrays from the cache; where they aren't there, or aren't whole, they are built and, if they shall be, kept.

    Files are written whole under their final name, so that two processes at once do no harm.
    """
    if not keep:
        return build()
    name = hashlib.sha256(repr((VERSION, *identity)).encode()).hexdigest()[:24]
    path = cache_folder() / f"model-{name}.npz"
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, SystemError):
        # A SystemError is Python 3.11's own, where two threads read the heads of arrays at the same moment.
        arrays: dict[str, Any] = build()
    data = BytesIO()
    np.savez(data, **arrays)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, data.getbuffer())
        _forget_the_oldest(path.parent)
    except (OSError, OptionError):
        pass  # a cache that can't be written is only slower
    return arrays


def _forget_the_oldest(folder: Path) -> None:
    files = sorted(folder.glob("model-*.npz"), key=lambda file: file.stat().st_mtime, reverse=True)
    kept = 0
    for file in files:
        kept += file.stat().st_size
        if kept > MOST_BYTES:
            file.unlink()


def cache_folder() -> Path:
    """Where arrays are kept: `suffice` in XDG_CACHE_HOME, or in ~/.cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "suffice"
