"""Files of what the gateway learns and what audits prove, in a folder that workers share."""

import warnings
from collections.abc import Callable
from pathlib import Path

from suffice.paths import alone_in, write_whole

Change = Callable[[bytes | None], bytes | None]
"""From the content, or None, to the new content; None leaves it. ValueError if it is broken."""


class FileState:
    """Values by name, replaced whole under a lock, a file for each; OSError if that fails."""

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
        path = self.path(name)
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

    def path(self, name: str) -> Path:
        path = self._folder / name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return path
