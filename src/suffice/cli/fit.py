"""The command that fits the planner to pools of one's own."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

import suffice
from suffice import Plan
from suffice.cli.app import app, whole_numbers
from suffice.cli.options import (
    Actions,
    Answer,
    Budget,
    DrawSeed,
    PenaltyDraw,
    PenaltyRound,
    Pools,
    Price,
    Second,
    Tokens,
    Wait,
    load_pools,
    penalties_of,
)
from suffice.cli.plan import ACTIONS
from suffice.paths import check_writable
from suffice.planning.learning import FEWEST
from suffice.replay import learn_prior
from suffice.replay.targets import HELD_OUT_SEED
from suffice.report import waiting
from suffice.tally import DEFAULT_BUDGET


@app.command()
def fit(
    chosen: Pools,
    out: Annotated[Path, typer.Option(metavar="FILE", help="Where the controller goes, as .safetensors.")],
    budget: Budget = DEFAULT_BUDGET,
    seed: DrawSeed = 0,
    penalty_draw: PenaltyDraw = Plan.penalty_draw,
    penalty_round: PenaltyRound = Plan.penalty_round,
    price: Price = None,
    tokens: Tokens = None,
    wait: Wait = None,
    second: Second = None,
    answer: Answer = None,
    actions: Actions = ACTIONS,
) -> None:
    """Fit the plan to pools of yours, as if they had been traffic to learn from, and save it as a controller."""
    check_writable(out)
    pools = load_pools(chosen)
    penalties = penalties_of(penalty_draw, penalty_round, pools, price, tokens, wait, second, answer)
    base = Plan(penalties.draw, penalties.round, whole_numbers("actions", actions))
    with waiting("fitting"):
        fitted = replace(base, prior=learn_prior(pools, base, budget=budget, seed=seed), fewest=FEWEST)
    for pool in pools:
        with waiting(f"replay of {pool.name}"):
            old, new = suffice.evaluate(
                pool, [base, fitted], budget=budget, seed=HELD_OUT_SEED, penalties=penalties, confidence=False
            )
        typer.echo(
            f"{pool.name}: samples {old.samples:.2f} → {new.samples:.2f}, agreement {old.agreement:.2f} → "
            f"{new.agreement:.2f} %, reward {old.reward:.4f} → {new.reward:.4f}, on other draws"
        )
    suffice.save_controller(fitted, out)
    typer.echo(f"The plan is in {out}: use it as file:{out}")
