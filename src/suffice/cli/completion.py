"""What a shell offers when Tab is pressed: controllers, bundled pools and files."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import suffice

OPEN = "suffice.open"
"""Where a context has the option that takes many values, and may take one more where the line ends now."""
POOL_FILES = (".jsonl", ".jsonl.gz")
CONTROLLER_FILES = (".safetensors",)


def controllers(incomplete: str) -> list[str]:
    """Controllers by name, and files of them after `file:`."""
    kind, colon, path = incomplete.partition(":")
    if colon:
        return [f"file:{one}" for one in _files(path, CONTROLLER_FILES)] if kind == "file" else []
    return [one for one in (*suffice.controller_names(), "file:") if one.startswith(incomplete)]


def controllers_and_files(incomplete: str) -> list[str]:
    """Controllers, and files of them."""
    return [*controllers(incomplete), *_files(incomplete, CONTROLLER_FILES)]


def pools(ctx: Any, incomplete: str) -> list[str]:
    """Bundled pools and files; controllers too after one of them, since there may be more."""
    named = [one for one in suffice.bundled_pools() if one.startswith(incomplete)]
    more = controllers(incomplete) if ctx.meta.get(OPEN) == "--controller" else []
    return [*more, *named, *_files(incomplete, POOL_FILES)]


def _files(incomplete: str, suffixes: tuple[str, ...]) -> Iterator[str]:
    """The files that begin so and end so, and folders, which have more in them."""
    folder, slash, begun = incomplete.rpartition("/")
    try:
        found = sorted(Path(folder + slash or ".").iterdir())
    except OSError:
        return
    for one in found:
        if one.name.startswith(begun) and (begun or not one.name.startswith(".")):
            if one.is_dir():
                yield f"{folder}{slash}{one.name}/"
            elif one.name.endswith(suffixes):
                yield f"{folder}{slash}{one.name}"
