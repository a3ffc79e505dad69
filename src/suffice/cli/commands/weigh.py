"""The command that learns how much each response's vote should weigh."""

from json import dumps
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from typer import Option

from suffice.cli import options
from suffice.cli.app import app
from suffice.elections import save_weights
from suffice.replay import Difference
from suffice.replay import weigh as learn_weights
from suffice.replay.weighing import Weighed
from suffice.report.progress import waiting


@app.command()
def weigh(
    chosen: options.Pools,
    out: Annotated[Path, Option(metavar="FILE", help="Where the weights go, as .safetensors.")],
    outputs: options.JsonFile,
    draws: options.Draws,
    signal: list[str] = Option(
        [], metavar="S", help="A signal to weigh by; repeat for more. By default all that the pools share."
    ),
    no_gold: bool = Option(False, "--no-gold", help="Learn from the majority of a question's responses, without gold."),
    force: bool = Option(False, "--force", help="Write the weights though their gain may be below zero."),
) -> None:
    """Learn weights for elections from pools with signals, and show what they gain over the plain vote."""
    outputs.check(out)
    with waiting("weighing"):
        found = learn_weights(chosen, signals=signal, no_gold=no_gold, **draws)
    written = found.is_safe or force
    if written:
        save_weights(found.weights, out)
    page = {**found.weights.card, "safe": found.is_safe, "written": written}
    outputs.write(json=lambda: dumps(page, indent=1, allow_nan=False) + "\n")
    if not outputs.quiet:
        _tell(found, draws["budget"])
        if written:
            typer.echo(f"The weights are in {out}: use them as --elect file:{out}")
    if not written:
        typer.echo("suffice: the weights are not written, since their gain may be below zero; --force does", err=True)
        raise typer.Exit(1)


def _tell(found: Weighed, budget: int) -> None:
    for name, strength in found.weights.card["strengths"].items():
        typer.echo(f"{name}: strength {strength:+.2f}")
    for pool in found.tried:
        plain, weighed = np.nanmean(pool.plain), np.nanmean(pool.weighed)
        typer.echo(f"{pool.pool}: {found.weights.card['gain_of']} {plain:.2f} → {weighed:.2f} %, {_points(pool.gain)}")
    typer.echo(f"Gain over the plain vote of {budget} draws, cross-validated: {_points(found.gain)}")


def _points(gain: Difference) -> str:
    interval = "" if gain.low is None else f" [{gain.low:+.2f}, {gain.high:+.2f}]"
    return f"{gain.mean:+.2f} points{interval}"
