"""The command that runs the paper's experiments."""

from pathlib import Path
from typing import Annotated

import typer

import suffice
from suffice import OptionError
from suffice.cli.app import ManyValues, app, need

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
    preset: Annotated[str, typer.Option(metavar="fast|paper", help="How PPO is run.")] = "fast",
    steps: Annotated[int, typer.Option(help="Decisions to learn from, for each controller.")] = 1_000_000,
    seeds: Annotated[int, typer.Option(help="How many controllers the tables are means of.")] = 5,
    repeats: Annotated[int, typer.Option(help="How often each question is replayed.")] = 100,
    seed: Annotated[int, typer.Option(help="The first seed.")] = 0,
) -> None:
    """Run the paper's experiments on any pools; interrupted, it goes on where it was."""
    experiments = need("suffice.report.experiments", "train,plot")
    if what not in (*experiments.EXPERIMENTS, "all"):
        raise OptionError(f'WHAT must be one of {", ".join(experiments.EXPERIMENTS)} or all, not "{what}"')
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OptionError(f"--out {out}: it can't be made a folder: {error.strerror}") from None
    bench = experiments.Bench(
        train=tuple(map(suffice.load_pool, train)),
        test=tuple(map(suffice.load_pool, test)),
        out=out,
        leave_one_out=leave_one_out,
        steps=steps,
        seeds=seeds,
        repeats=repeats,
        seed=seed,
        preset=preset,
    )
    bench.check(allow_overlap)
    try:
        experiments.reproduce(what, bench)
    except KeyboardInterrupt:
        typer.echo("Interrupted: run the same command again to go on.", err=True)
        raise
    typer.echo((out / f"{'index' if what == 'all' else what}.md").read_text())
    typer.echo(f"All of it is in {out}.")
