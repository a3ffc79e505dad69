"""What holds of every executor."""

from typing import Any

import pytest

from helpers.tasks import fail, square
from suffice import OptionError
from suffice.executors import Executor, Task


def check_executor(executor: Executor, count: int) -> None:
    """A task's error is the run's, whole; results come with the numbers of their tasks, and with what these told."""
    with pytest.raises(OptionError, match="work must be better") as caught:
        list(executor.run([(fail, ()), (fail, ())]))
    assert caught.value.argument == "work"
    told: list[tuple[int, Any]] = []
    tasks: list[Task[int]] = [(square, (number,)) for number in range(count)]
    done = dict(executor.run(tasks, lambda number, message: told.append((number, message))))
    assert done == {number: number * number for number in range(count)}
    assert sorted(told) == [(number, f"at {number}") for number in range(count)]
