"""Tallies made up on the spot."""

from collections.abc import Iterable
from typing import Any

from suffice import Tally
from suffice.elections import FieldElection, FieldTallies


def tally_of(answers: Iterable[str | None], budget: int = 32) -> Tally:
    """One round of these answers."""
    tally = Tally(budget)
    tally.add_round(answers)
    return tally


def tally_by_votes(*votes: int, none: int = 0, budget: int = 32) -> Tally:
    """So many votes for each answer, and draws without one."""
    return tally_of([*(str(name) for name, count in enumerate(votes) for _ in range(count)), *[None] * none], budget)


def field_tallies(*answers: Any, **options: Any) -> FieldTallies:
    tallies = FieldTallies(**options)
    for answer in answers:
        tallies = tallies.joined_by(answer)
    return tallies


def elect_fields(*answers: Any, compose: bool = False, **options: Any) -> FieldElection:
    elected = field_tallies(*answers, **options).elect(compose)
    assert elected is not None
    return elected


def at(value: Any, pointer: str) -> Any:
    """What a JSON pointer leads to."""
    for name in pointer.split("/")[1:]:
        name = name.replace("~1", "/").replace("~0", "~")
        value = value[int(name)] if isinstance(value, list) else value[name]
    return value
