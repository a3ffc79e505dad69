"""The command that trains controllers."""

from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Option

import suffice
from suffice.cli import options
from suffice.cli.app import app, need, show
from suffice.cli.command import Fields
from suffice.report.files import training_json
from suffice.report.progress import training_bar
from suffice.report.tables import training_table
from suffice.training.setting import Setting, TrainingJob

MISSED = 0.05
"""A mean that is further off than this share is said to be missed."""


@app.command()
def train(
    out: Annotated[Path, Option(metavar="FILE", help="Where the controller goes, as a .safetensors file.")],
    prices: options.Prices,
    outputs: options.JsonFile,
    setting: Annotated[dict[str, Any], Fields(Setting, "target first budget top")],
    how: Annotated[dict[str, Any], Fields(TrainingJob, "preset mean_samples mean_rounds steps seed")],
    chosen: options.Pools,
    process: options.Trained,
    seeds: int = Option(5, metavar="N", help="How many controllers to train; the best is kept."),
    keep: str = Option(
        "best", metavar="best|last", help="The best network of each training, or the last, as in the paper."
    ),
    ray: options.RayAddress = None,
) -> None:
    """Train a controller on pools; Ctrl-C keeps the best so far."""
    training = need("suffice.training.runs", "train")
    outputs.check(out)
    pools = tuple(options.load_pools(chosen))
    penalties = process.penalties(pools, prices, outputs.quiet)
    job = TrainingJob(pools, Setting(penalties, process.draws, **setting), **how)
    cluster = options.on_ray(ray)
    with training_bar(seeds, job.steps, cluster) as watch:
        trained = training.train(job, seeds, watch, cluster or "processes", keep)
    if not trained:
        raise KeyboardInterrupt  # before there was anything to keep
    best = trained[0].controller
    suffice.save_controller(best, out)
    outputs.write(json=lambda: training_json(trained))
    if not outputs.quiet:
        show(training_table(trained))
    over = job.excess(best.card["samples"], best.card["rounds"])
    if max(abs(over[0]), over[1]) > MISSED:
        typer.secho("WARNING: the means were missed by more than 5 %: train longer.", fg="red", bold=True, err=True)
    for rule in [] if job.mean_samples or job.mean_rounds else best.no_better_than():
        message = (
            f"WARNING: on its own training pools this controller is no better than {rule}: it has learned nothing "
            "worth using. Train longer, with more seeds, or on pools with more agreement."
        )
        typer.secho(message, fg="red", bold=True, err=True)
    if any(one.controller.card["steps"] < job.steps for one in trained):
        typer.echo("Interrupted: these are the best so far.", err=True)
    typer.echo(f"The controller of seed {trained[0].seed} is in {out}: use it as file:{out}", err=outputs.quiet)
