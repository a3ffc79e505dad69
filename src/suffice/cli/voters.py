"""Options of panels: voters with pools, and what an answer is worth."""

from typing import Annotated

import typer

from suffice.panel import PoolVoter
from suffice.report.progress import waiting

Voters = Annotated[
    list[str],
    typer.Option(
        "--voter",
        metavar="NAME=POOL[+POOL…],price=P",
        help="A voter with its pools, and its price for a million tokens; repeat it.",
    ),
]

Value = Annotated[
    float | None,
    typer.Option("--value-of-an-answer", help="What a right answer is worth, in the money of the prices."),
]


def load_voters(texts: list[str]) -> list[PoolVoter]:
    """The voters that `--voter` describes."""
    with waiting("reading pools"):
        return [PoolVoter.of(text) for text in texts]
