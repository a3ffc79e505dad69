"""Modules of the user's that register things: importing them by name or file, here and in other processes."""

import importlib
import sys
from pathlib import Path

from suffice.errors import OptionError, SufficeError
from suffice.paths import is_there

IMPORTED: list[str] = []
"""What was imported, for processes that are started later."""


def import_module(name: str) -> None:
    """Run a module or file for what it registers."""
    path = Path(name)
    sys.path.insert(0, str(path.parent.resolve()) if name.endswith(".py") else "")
    try:
        if name.endswith(".py") and not is_there(path):
            raise FileNotFoundError("there is no such file")
        importlib.import_module(path.stem if name.endswith(".py") else name)
    except SufficeError:
        raise
    except Exception as error:
        raise OptionError(f"{name}: {error}", "import") from None
    IMPORTED.append(str(path.resolve()) if name.endswith(".py") else name)
