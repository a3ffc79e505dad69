"""The command that trains controllers."""

from pathlib import Path
from typing import Annotated

import typer

import suffice
from suffice import OptionError, Penalties
from suffice.cli.app import app, file_of, is_output, need, show, whole_numbers, write_json
from suffice.cli.options import (
    PAPER_ACTIONS,
    Actions,
    Algorithm,
    Answer,
    Budget,
    First,
    FirstSeed,
    Json,
    Keep,
    PenaltyDraw,
    PenaltyRound,
    Pools,
    Preset,
    Price,
    RayAddress,
    Second,
    Steps,
    Tokens,
    Wait,
    load_pools,
    on_ray,
    penalties_of,
    standing_of,
)
from suffice.controllers.conditioned import Range
from suffice.paths import check_writable
from suffice.report import training_bar, training_json, training_table
from suffice.training.setting import Job, Setting

MISSED = 0.05
"""A mean that is further off than this share is said to be missed."""


@app.command()
def train(
    chosen: Pools,
    out: Annotated[Path, typer.Option(metavar="FILE", help="Where the controller goes, as a .safetensors file.")],
    algorithm: Algorithm = Job.algorithm,
    preset: Preset = Job.preset,
    target: Annotated[
        str,
        typer.Option(
            metavar="running|full|gold", help="What counts as right: the full budget's vote, the pool's, gold."
        ),
    ] = Setting.target,
    penalty_draw: PenaltyDraw = Penalties.draw,
    penalty_round: PenaltyRound = Penalties.round,
    price: Price = None,
    tokens: Tokens = None,
    wait: Wait = None,
    second: Second = None,
    answer: Answer = None,
    actions: Actions = PAPER_ACTIONS,
    first: First = Setting.first,
    budget: Budget = Setting.budget,
    budgets: Annotated[
        str | None,
        typer.Option(metavar="2-256", help="One network for all these budgets, and for all penalties of its range."),
    ] = None,
    lessons: Annotated[
        int, typer.Option(help="With --budgets: plans of each budget that are imitated first; 0 for none.")
    ] = Job.lessons,
    top: Annotated[int, typer.Option(help="How many vote counts the controller sees.")] = Setting.top,
    mean_samples: Annotated[
        float | None, typer.Option(help="Find the penalty for a draw with which so many are drawn on average.")
    ] = None,
    mean_rounds: Annotated[
        float | None, typer.Option(help="Find the penalty for a round with which there are at most so many on average.")
    ] = None,
    steps: Steps = Job.steps,
    seeds: Annotated[int, typer.Option(help="How many controllers to train; the best is kept.")] = 5,
    seed: FirstSeed = Job.seed,
    keep: Keep = "best",
    json: Json = None,
    ray: RayAddress = None,
) -> None:
    """Train a controller on pools; Ctrl-C keeps the best so far."""
    training = need("suffice.training.runs", "train")
    check_writable(out, file_of(json))
    pools = tuple(load_pools(chosen))
    penalties = penalties_of(penalty_draw, penalty_round, pools, price, tokens, wait, second, answer, is_output(json))
    setting = Setting(penalties, whole_numbers("actions", actions), first, budget, top, target)
    ranges = None if budgets is None else Range(_budget_range(budgets))
    job = Job(pools, setting, algorithm, preset, steps, seed, mean_samples, mean_rounds, ranges, lessons)
    cluster = on_ray(ray)
    with training_bar(seeds, steps, standing_of(cluster)) as watch:
        trained = training.train(job, seeds, watch, cluster or "processes", keep)
    if not trained:
        raise KeyboardInterrupt  # before there was anything to keep
    best = trained[0].controller
    suffice.save_controller(best, out)
    if json:
        write_json(json, training_json(trained))
    if not is_output(json):
        show(training_table(trained))
    over = job.excess(best.card["samples"], best.card["rounds"])
    if max(abs(over[0]), over[1]) > MISSED:
        typer.secho("WARNING: the means were missed by more than 5 %: train longer.", fg="red", bold=True, err=True)
    for rule in [] if mean_samples or mean_rounds else best.no_better_than():
        message = (
            f"WARNING: on its own training pools this controller is no better than {rule}: it has learned nothing "
            "worth using. Train longer, with more seeds, or on pools with more agreement."
        )
        typer.secho(message, fg="red", bold=True, err=True)
    if any(one.controller.card["steps"] < steps for one in trained):
        typer.echo("Interrupted: these are the best so far.", err=True)
    typer.echo(f"The controller of seed {trained[0].seed} is in {out}: use it as file:{out}", err=is_output(json))


def _budget_range(text: str) -> tuple[int, int]:
    """The value of --budgets."""
    low, _, high = text.partition("-")
    if not (low.isdecimal() and high.isdecimal()):
        raise OptionError(f'must be two whole numbers with a dash between, as in 2-256, not "{text}"', "budgets")
    return int(low), int(high)
