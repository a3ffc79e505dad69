"""Tasks for executors; what runs them on other nodes imports this file, and nothing heavy with it."""

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from suffice.errors import OptionError
from suffice.executors import Link


def square(number: int, link: Link) -> int:
    link.tell(f"at {number}")
    return number * number


def fail(link: Link) -> None:
    raise OptionError("must be better", "work")


def length(texts: list[str], link: Link) -> int:
    return len(texts)


def wait(number: int, link: Link) -> int:
    """Only to be stopped has an end."""
    link.tell("begun")
    while not link.stop.is_set():
        time.sleep(0.01)
    return number


HELD_SECONDS = 100.0
"""How long a task waits to be let go on, before it is clear that nobody will: a busy machine takes its time."""


class ForgottenError(Exception):
    """A task that nobody let go on."""


@dataclass(frozen=True)
class At:
    """Where a task runs."""

    node: str
    process: int


def hold(folder: Path, number: int, function: Any, arguments: tuple[Any, ...], link: Link) -> Any:
    """A task that leaves a mark, tells where it is, and goes on when it may."""
    import ray

    with (folder / str(number)).open("a") as file:
        file.write("begun\n")
    link.tell(At(ray.get_runtime_context().get_node_id(), os.getpid()))
    end = time.monotonic() + HELD_SECONDS
    while not (folder / "go").exists():
        link.check()
        if time.monotonic() > end:
            raise ForgottenError(number)
        time.sleep(0.01)
    return function(*arguments, link)
