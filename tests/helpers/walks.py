"""Which files of the package a piece of work crosses: those of which anything is called, in whatever thread."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import suffice

PACKAGE = f"{Path(suffice.__file__).parent}/"


@contextmanager
def walked() -> Iterator[set[str]]:
    """The files that are crossed in here, as they are; the fake server's own are none of them."""
    crossed: set[str] = set()

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        path = frame.f_code.co_filename
        if event == "call" and path.startswith(PACKAGE) and not path.startswith(f"{PACKAGE}testing"):
            crossed.add(path.removeprefix(PACKAGE))

    before = sys.getprofile()
    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        yield crossed
    finally:
        sys.setprofile(before)
        threading.setprofile(before)
