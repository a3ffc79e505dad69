"""Options for what sampling really costs, which stand for penalties."""

from collections.abc import Sequence
from typing import Annotated

import typer

import suffice
from suffice import OptionError, Penalties

Price = Annotated[
    float | None, typer.Option("--price-per-million-tokens", help="What tokens cost, instead of a penalty for a draw.")
]
Tokens = Annotated[
    float | None, typer.Option("--tokens-per-sample", help="How long a response is; the pools' mean by default.")
]
Wait = Annotated[
    float | None, typer.Option("--seconds-per-round", help="How long a round takes, instead of a penalty for it.")
]
Second = Annotated[float | None, typer.Option("--value-of-a-second", help="What a second of waiting costs.")]
Answer = Annotated[
    float | None, typer.Option("--value-of-an-answer", help="What the right answer is worth, in the same money.")
]


def penalties_of(
    draw: float,
    round_: float,
    pools: Sequence[suffice.Pool],
    price: float | None,
    tokens: float | None,
    wait: float | None,
    second: float | None,
    answer: float | None,
) -> Penalties:
    """The penalties, or what they stand for where any of that is given."""
    if (price, tokens, wait, second, answer) == (None,) * 5:
        return Penalties(draw, round_)
    if answer is None:
        raise OptionError("--value-of-an-answer must be given for costs to be weighed against it")
    if price is not None and tokens is None:
        counted = [count for pool in pools for one in pool.questions for count in one.tokens or () if count is not None]
        if not counted:
            raise OptionError("--tokens-per-sample must be given: there is no pool that tells it")
        tokens = sum(counted) / len(counted)
    costs = suffice.Costs(price or 0.0, tokens or 0.0, wait or 0.0, second or 0.0, answer)
    typer.echo(f"Penalties: {costs.penalties.draw:.4g} a draw, {costs.penalties.round:.4g} a round.")
    return costs.penalties
