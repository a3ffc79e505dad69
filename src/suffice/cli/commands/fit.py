"""The command that fits the planner to pools of one's own."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from typer import Option

import suffice
from suffice import Plan
from suffice.cli import options
from suffice.cli.app import app
from suffice.paths import check_writable
from suffice.planning.learning import FEWEST
from suffice.replay import learn_prior
from suffice.replay.targets import HELD_OUT_SEED
from suffice.report.progress import waiting


@app.command()
def fit(
    chosen: options.Pools,
    out: Annotated[Path, Option(metavar="FILE", help="Where the controller goes, as .safetensors.")],
    draws: options.DrawsOnce,
    process: options.Planned,
) -> None:
    """Fit the plan to pools of yours, as if they had been traffic to learn from, and save it as a controller."""
    check_writable(out)
    pools = options.load_pools(chosen)
    penalties = process.penalties(pools, {})
    base = Plan(penalties.draw, penalties.round, process.draws)
    with waiting("fitting"):
        prior = learn_prior(pools, base, **draws)
    learned_from = [{"name": pool.name, "sha256": pool.sha256} for pool in pools]
    fitted = replace(base, prior=prior, fewest=FEWEST, pools=learned_from)
    for pool in pools:
        with waiting(f"replay of {pool.name}"):
            old, new = suffice.evaluate(
                pool,
                [base, fitted],
                budget=draws["budget"],
                seed=HELD_OUT_SEED,
                penalties=penalties,
                confidence=False,
            )
        typer.echo(
            f"{pool.name}: samples {old.samples:.2f} → {new.samples:.2f}, agreement {old.agreement:.2f} → "
            f"{new.agreement:.2f} %, reward {old.reward:.4f} → {new.reward:.4f}, on other draws"
        )
    suffice.save_controller(fitted, out)
    typer.echo(f"The plan is in {out}: use it as file:{out}")
