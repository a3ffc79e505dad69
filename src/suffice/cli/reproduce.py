"""The command that runs the paper's experiments."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from suffice import OptionError, load_pool
from suffice.cli.app import ManyValues, app, need
from suffice.cli.options import FirstSeed, Preset, RayAddress, Repeats, on_ray, standing_of
from suffice.cli.reports import ReportFile, write_report
from suffice.experiments import EXPERIMENTS, Bench
from suffice.paths import check_writable
from suffice.report import experiments_report, training_bar

TRAINING_POOL = "qwen2.5-coder-1.5b__train"
TEST_POOLS = ["qwen2.5-coder-1.5b__dapo", "qwen2.5-coder-1.5b__gsm8k", "qwen2.5-coder-1.5b__math500"]


@app.command(cls=ManyValues)
def reproduce(
    what: Annotated[
        str, typer.Argument(metavar="WHAT", help="main, scaling, frontier, ablation, explain, transfer or all.")
    ],
    train: Annotated[list[str], typer.Option(metavar="POOL…", help="Pools to train on.")] = [TRAINING_POOL],  # noqa: B006
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
    preset: Preset = Bench.preset,
    keep: Annotated[
        str, typer.Option(metavar="best|last", help="The best network of each training, or the last, as in the paper.")
    ] = Bench.keep,
    steps: Annotated[int, typer.Option(help="Decisions to learn from, for each controller.")] = Bench.steps,
    seeds: Annotated[int, typer.Option(help="How many controllers the tables are means of.")] = Bench.seeds,
    budget: Annotated[int, typer.Option(help="The most draws of a question, for scaling and frontier.")] = Bench.budget,
    repeats: Repeats = Bench.repeats,
    seed: FirstSeed = Bench.seed,
    cache: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where trained controllers are kept; with the pages by default."),
    ] = None,
    report: ReportFile = None,
    ray: RayAddress = None,
) -> None:
    """Run the paper's experiments on any pools; interrupted, it goes on where it was."""
    need("suffice.training.runs", "train,plot")
    pages = need("suffice.report.experiments", "train,plot")
    if what not in (*EXPERIMENTS, "all"):
        raise OptionError(f'WHAT must be one of {", ".join(EXPERIMENTS)} or all, not "{what}"')
    if budget != Bench.budget and what not in ("scaling", "frontier"):
        raise OptionError(f"is for scaling and frontier; {what} is the paper's, at {Bench.budget}", "budget")
    check_writable(report)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OptionError(f"--out {out}: it can't be made a folder: {error.strerror}") from None
    cluster = on_ray(ray)
    bench = Bench(
        train=tuple(map(load_pool, train)),
        test=tuple(map(load_pool, test)),
        out=out,
        leave_one_out=leave_one_out,
        steps=steps,
        seeds=seeds,
        repeats=repeats,
        seed=seed,
        budget=budget,
        preset=preset,
        keep=keep,
        progress=partial(training_bar, standing=standing_of(cluster)),
        warn=lambda message: typer.echo(f"WARNING: {message}", err=True),
        cache=cache,
        executor=cluster,
    )
    bench.check(allow_overlap)
    names = list(EXPERIMENTS) if what == "all" else [what]
    try:
        for name in names:
            pages.write_page(name, EXPERIMENTS[name](bench), bench)
        if what == "all":
            pages.write_index(EXPERIMENTS, bench)
    except KeyboardInterrupt:
        typer.echo("Interrupted: run the same command again to go on.", err=True)
        raise
    typer.echo((out / f"{'index' if what == 'all' else what}.md").read_text())
    typer.echo(f"All of it is in {out}.")
    if report:
        settings = {"train": train, "test": test, "leave_one_out": leave_one_out, "preset": preset, "keep": keep}
        settings |= {"steps": steps, "seeds": seeds, "repeats": repeats, "seed": seed, "budget": budget}
        write_report(report, experiments_report(names, out, bench.used, settings))
