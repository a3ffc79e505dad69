"""Pools made up on the spot."""

from collections.abc import Sequence

from suffice import Pool, Question


def make_pool(*answers: Sequence[str | None], gold: str | None = "a", tokens: int | None = 10) -> Pool:
    """A pool with these answers, all of the same length."""
    return Pool(
        "toy",
        tuple(
            Question(f"q{number}", gold, tuple(given), None if tokens is None else (tokens,) * len(given))
            for number, given in enumerate(answers)
        ),
    )
