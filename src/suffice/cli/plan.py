"""The command that computes plans."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

import suffice
from suffice import Penalties, Plan
from suffice.cli import completion
from suffice.cli.app import app, whole_numbers
from suffice.cli.options import (
    Actions,
    Answer,
    Budget,
    PenaltyDraw,
    PenaltyRound,
    Price,
    Second,
    Tokens,
    Wait,
    load_pools,
    penalties_of,
)
from suffice.paths import check_writable
from suffice.planning.fit import fit_prior
from suffice.replay.targets import HELD_OUT_SEED, meet
from suffice.report import waiting
from suffice.tally import DEFAULT_BUDGET

ACTIONS = ",".join(map(str, Plan.actions))


@app.command()
def plan(
    chosen: Annotated[
        list[str],
        typer.Argument(
            metavar="POOL",
            help="Pools to meet the means on; the model's own by default.",
            autocompletion=completion.pools,
        ),
    ] = [],  # noqa: B006
    mean_samples: Annotated[float | None, typer.Option(help="Draw so many on average.")] = None,
    mean_rounds: Annotated[float | None, typer.Option(help="Take at most so many rounds on average.")] = None,
    min_agreement: Annotated[float | None, typer.Option(help="Agree with the full vote so often, in percent.")] = None,
    budget: Budget = DEFAULT_BUDGET,
    penalty_draw: PenaltyDraw = Plan.penalty_draw,
    penalty_round: PenaltyRound = Plan.penalty_round,
    price: Price = None,
    tokens: Tokens = None,
    wait: Wait = None,
    second: Second = None,
    answer: Answer = None,
    actions: Actions = ACTIONS,
    fit: Annotated[
        list[str],
        typer.Option(metavar="POOL…", help="Fit the prior to these pools.", autocompletion=completion.pools),
    ] = [],  # noqa: B006
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where the controller goes, as .safetensors.")
    ] = None,
) -> None:
    """Compute the best policy exactly, with no training: for penalties, or for means that it shall meet."""
    check_writable(out)
    pools = load_pools(chosen)
    penalties = penalties_of(penalty_draw, penalty_round, pools, price, tokens, wait, second, answer)
    base = Plan(penalties.draw, penalties.round, whole_numbers("actions", actions))
    if fit:
        base = _fitted(base, load_pools(fit), budget)
    result: suffice.SavedController = base
    if mean_samples is not None or mean_rounds is not None or min_agreement is not None:
        with waiting("planning"):
            found = meet(base, budget, pools, mean_samples, mean_rounds, min_agreement)
        result = found.controller
        typer.echo(found.report)
    with waiting("replay"):
        results = suffice.evaluate(pools, result, budget=budget, seed=HELD_OUT_SEED)
    for measured in results:
        typer.echo(
            f"{measured.pool}: {measured.samples:.2f} samples in {measured.rounds:.2f} rounds, "
            f"{measured.agreement:.2f} % agreement, measured on other draws"
        )
    if out:
        suffice.save_controller(result, out)
        typer.echo(f"The plan is in {out}: use it as file:{out}")
    else:
        typer.echo(f"Use it as {result}" if isinstance(result, Plan) and not fit else "Say --out FILE to keep it.")


def _fitted(base: Plan, pools: list[suffice.Pool], budget: int) -> Plan:
    """The plan with a prior fitted to pools, and what that changes on them."""
    with waiting("fitting"):
        fitted = fit_prior(pools)
    after = replace(base, prior=fitted.prior)
    concentration, discount = fitted.typical
    typer.echo(
        f"Fitted to {sum(len(pool.questions) for pool in pools)} questions: concentration {concentration:.3g}, "
        f"discount {discount:.2f}; a question's answers are {fitted.nats_gained:.2f} nats likelier than before."
    )
    penalties = Penalties(base.penalty_draw, base.penalty_round)
    for pool in pools:
        with waiting(f"replay of {pool.name}"):
            old, new = suffice.evaluate(pool, [base, after], budget=budget, penalties=penalties)
        typer.echo(
            f"{pool.name}: reward {old.reward:.4f} → {new.reward:.4f}, samples {old.samples:.1f} → {new.samples:.1f}, "
            f"rounds {old.rounds:.1f} → {new.rounds:.1f}"
        )
    return after
