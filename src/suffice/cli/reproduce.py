"""The command that runs the paper's experiments."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from suffice import OptionError, Penalties
from suffice.cli.app import app, need, new_console, show, whole_numbers
from suffice.cli.options import (
    PAPER_ACTIONS,
    Actions,
    Algorithm,
    Budget,
    First,
    FirstSeed,
    Keep,
    PenaltyDraw,
    PenaltyRound,
    Preset,
    RayAddress,
    Repeats,
    Steps,
    load_pools,
    on_ray,
    standing_of,
)
from suffice.cli.reports import ReportFile, write_report
from suffice.experiments import EXPERIMENTS, JOBS, Bench, forecast
from suffice.paths import check_writable
from suffice.report import experiments_report, progress_bar, shown_page, training_bar, waiting
from suffice.training.setting import Setting

MODELS = ("qwen2.5-coder-1.5b", "qwen2.5-coder-0.5b")
TRAINING_POOLS = [f"{model}__train" for model in MODELS]
TEST_POOLS = [f"{MODELS[0]}__dapo", *(f"{model}__{name}" for model in MODELS for name in ("gsm8k", "math500"))]


@app.command()
def reproduce(
    what: Annotated[str, typer.Argument(metavar="WHAT", help=", ".join(EXPERIMENTS) + " or all.")],
    train: Annotated[
        list[str],
        typer.Option(metavar="POOL…", help="Pools to train on: for each test pool those of its model, if any."),
    ] = TRAINING_POOLS,
    test: Annotated[list[str], typer.Option(metavar="POOL…", help="Pools to test on.")] = TEST_POOLS,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where the pages, tables and pictures go.")] = Path(
        "reproduced"
    ),
    leave_one_out: Annotated[
        bool, typer.Option("--leave-one-out", help="Train for each test pool on the same model's others.")
    ] = False,
    allow_overlap: Annotated[
        bool, typer.Option("--allow-overlap", help="Let training and test share questions.")
    ] = False,
    penalty_draw: PenaltyDraw = Penalties.draw,
    penalty_round: PenaltyRound = Penalties.round,
    actions: Actions = PAPER_ACTIONS,
    first: First = Setting.first,
    budget: Budget = Setting.budget,
    algorithm: Algorithm = Bench.algorithm,
    preset: Preset = Bench.preset,
    steps: Steps = Bench.steps,
    keep: Keep = Bench.keep,
    seeds: Annotated[int, typer.Option(help="How many controllers rows and curves are means of.")] = Bench.seeds,
    repeats: Repeats = Bench.repeats,
    seed: FirstSeed = Bench.seed,
    cache: Annotated[
        list[Path],
        typer.Option(
            metavar="DIR", help="Where trained controllers are kept; with the pages by default. Repeat to look in more."
        ),
    ] = [],  # noqa: B006
    report: ReportFile = None,
    ray: RayAddress = None,
) -> None:
    """Run the paper's experiments on any pools; interrupted, it goes on where it was."""
    need("suffice.training.runs", "train,plot")
    pages = need("suffice.report.experiments", "train,plot")
    if what not in (*EXPERIMENTS, "all"):
        raise OptionError(f'WHAT must be one of {", ".join(EXPERIMENTS)} or all, not "{what}"')
    check_writable(report)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OptionError(f"--out {out}: it can't be made a folder: {error.strerror}") from None
    cluster = on_ray(ray)
    bench = Bench(
        train=tuple(load_pools(train)),
        test=tuple(load_pools(test)),
        out=out,
        leave_one_out=leave_one_out,
        setting=Setting(Penalties(penalty_draw, penalty_round), whole_numbers("actions", actions), first, budget),
        algorithm=algorithm,
        preset=preset,
        steps=steps,
        seeds=seeds,
        repeats=repeats,
        seed=seed,
        keep=keep,
        progress=partial(training_bar, standing=standing_of(cluster)),
        bar=partial(progress_bar, standing=standing_of(cluster)),
        warn=lambda message: typer.echo(f"WARNING: {message}", err=True),
        cache=cache,
        executor=cluster,
    )
    bench.check(allow_overlap)
    names = list(EXPERIMENTS) if what == "all" else [what]
    if jobs := [job for name in names if name in JOBS for job in JOBS[name](bench).values()]:
        typer.echo(forecast([(bench, jobs)]), err=True)
    try:
        for name in names:
            found = EXPERIMENTS[name](bench)
            with waiting(f"page of {name}"):
                pages.write_page(name, found, bench)
        if what == "all":
            pages.write_index(names, bench)
    except KeyboardInterrupt:
        typer.echo("Interrupted: run the same command again to go on.", err=True)
        raise
    page = (out / f"{'index' if what == 'all' else what}.md").read_text()
    show(*shown_page(page, new_console().width))
    typer.echo(f"All of it is in {out}.")
    if report:
        settings = {"train": train, "test": test, "leave_one_out": leave_one_out, "preset": preset, "keep": keep}
        settings |= {"steps": steps, "seeds": seeds, "repeats": repeats, "seed": seed, "budget": budget}
        write_report(report, experiments_report(names, out, bench.used, settings))
