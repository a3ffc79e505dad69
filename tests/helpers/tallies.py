"""Tallies made up on the spot."""

from collections.abc import Iterable

from suffice import Tally


def tally_of(answers: Iterable[str | None], budget: int = 32) -> Tally:
    """One round of these answers."""
    tally = Tally(budget)
    tally.add_round(answers)
    return tally


def tally_by_votes(*votes: int, none: int = 0, budget: int = 32) -> Tally:
    """So many votes for each answer, and draws without one."""
    return tally_of([*(str(name) for name, count in enumerate(votes) for _ in range(count)), *[None] * none], budget)
