"""The command that computes plans."""

from pathlib import Path
from typing import Annotated

import typer
from typer import Option

import suffice
from suffice import Plan
from suffice.cli import options
from suffice.cli.app import app
from suffice.paths import check_writable
from suffice.replay.targets import HELD_OUT_SEED, meet
from suffice.report.progress import waiting
from suffice.tally import DEFAULT_BUDGET


@app.command()
def plan(
    prices: options.Prices,
    process: options.Planned,
    chosen: Annotated[list[str], options.pool_argument("Pools to meet the means on; the model's own by default.")] = [],  # noqa: B006
    mean_samples: float | None = Option(None, metavar="N", help="Draw so many on average."),
    mean_rounds: float | None = Option(None, metavar="N", help="Take at most so many rounds on average."),
    min_agreement: float | None = Option(None, metavar="N", help="Agree with the full vote so often, in percent."),
    budget: int = Option(DEFAULT_BUDGET, metavar="N", help="The most draws for a question."),
    out: Path | None = Option(None, metavar="FILE", help="Where the controller goes, as .safetensors."),
) -> None:
    """Compute the best policy exactly, with no training: for penalties, or for means that it shall meet."""
    check_writable(out)
    pools = options.load_pools(chosen)
    penalties = process.penalties(pools, prices)
    base = Plan(penalties.draw, penalties.round, process.draws)
    base.check_budget(budget)
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
        typer.echo(f"Use it as {result}" if isinstance(result, Plan) else "Say --out FILE to keep it.")
