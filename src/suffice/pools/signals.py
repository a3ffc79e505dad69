"""Signals in pools: for each, a number a response, in the order of the answers."""

from collections.abc import Iterable, Mapping
from typing import Any

from suffice.jsonl import quoted

Signals = Mapping[str, tuple[float | None, ...]]
"""By name, the number of each response, None where it isn't known."""

LARGEST = 1e100
"""No signal is larger than this: sums of squares stay finite."""


def signal_columns(responses: Iterable[Mapping[str, float]]) -> dict[str, list[float | None]]:
    """The field "signals" of a pool's line, from the signals of each response.

    >>> signal_columns([{"logprob": -0.1}, {}, {"logprob": -0.3, "tail": 9.5}])
    {'logprob': [-0.1, None, -0.3], 'tail': [None, None, 9.5]}
    """
    rows = list(responses)
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


def read_signals(found: Any, answers: int) -> Signals:
    """The field "signals" of a line with so many answers; ValueError says what is wrong with it."""
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise ValueError(f'"signals" must be null or an object of lists, not {quoted(found)}')
    for name, column in found.items():
        where = f'"signals", {quoted(name)}'
        if not isinstance(column, list):
            raise ValueError(f"{where} must be a list of numbers and nulls, not {quoted(column)}")
        for value in column:
            if value is not None and (
                isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= LARGEST
            ):
                raise ValueError(f"{where} must hold finite numbers and nulls alone, not {quoted(value)}")
        if len(column) != answers:
            raise ValueError(f'"answers" has {answers} entries and {where} {len(column)}; they must be as many')
    return {name: tuple(column) for name, column in found.items()}
