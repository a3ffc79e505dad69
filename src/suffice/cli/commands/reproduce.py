"""The command that runs the paper's experiments."""

from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Option

from suffice import OptionError
from suffice.cli import options
from suffice.cli.app import app, need
from suffice.cli.command import Fields
from suffice.experiments import EXPERIMENTS, Bench
from suffice.experiments.pages import experiments_report, write_index, write_page
from suffice.panel.voters import price_of
from suffice.report.progress import waiting
from suffice.training.setting import Setting

MODELS = ("qwen2.5-coder-1.5b", "qwen2.5-coder-0.5b")
TRAINING_POOLS = [f"{model}__train" for model in MODELS]
TEST_POOLS = [f"{MODELS[0]}__dapo", *(f"{model}__{name}" for model in MODELS for name in ("gsm8k", "math500"))]


@app.command()
def reproduce(
    what: Annotated[str, typer.Argument(metavar="WHAT", help=", ".join(EXPERIMENTS) + " or all.")],
    outputs: options.ReportFile,
    process: options.Trained,
    setting: Annotated[dict[str, Any], Fields(Setting, "first budget")],
    how: Annotated[dict[str, Any], Fields(Bench, "leave_one_out preset steps keep seeds repeats seed")],
    train: list[str] = Option(
        TRAINING_POOLS, metavar="POOL…", help="Pools to train on: for each test pool those of its model, if any."
    ),
    test: list[str] = Option(TEST_POOLS, metavar="POOL…", help="Pools to test on."),
    out: Path = Option(Path("reproduced"), metavar="DIR", help="Where the pages, tables and pictures go."),
    allow_overlap: bool = Option(False, "--allow-overlap", help="Let training and test share questions."),
    price: list[str] = Option(
        [], metavar="MODEL=P…", help="What a million tokens cost, for a panel; else the billions in a model's name."
    ),
    value_of_an_answer: float | None = Option(
        None, metavar="N", help="What a right answer is worth, in the money of the prices."
    ),
    cache: list[Path] = Option(
        [], metavar="DIR", help="Where trained controllers are kept; with the pages by default. Repeat to look in more."
    ),
    ray: options.RayAddress = None,
) -> None:
    """Run the paper's experiments on any pools; interrupted, it goes on where it was."""
    for module in ("suffice.training.runs", "suffice.report.figures"):
        need(module, "train,plot")
    if what not in (*EXPERIMENTS, "all"):
        raise OptionError(f'WHAT must be one of {", ".join(EXPERIMENTS)} or all, not "{what}"')
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OptionError(f"--out {out}: it can't be made a folder: {error.strerror}") from None
    cluster = options.on_ray(ray)
    bench = Bench(
        train=tuple(options.load_pools(train)),
        test=tuple(options.load_pools(test)),
        out=out,
        setting=Setting(process.penalties((), {}), process.draws, **setting),
        **how,
        warn=lambda message: typer.secho(f"WARNING: {message}", fg="red", bold=True, err=True),
        cache=cache,
        prices=dict(map(_priced, price)),
        value=value_of_an_answer,
        executor=cluster,
    )
    bench.check(allow_overlap)
    names = list(EXPERIMENTS) if what == "all" else [what]
    trainings = [find_jobs(bench) for name in names if (find_jobs := EXPERIMENTS[name].jobs)]
    if missing := bench.missing(job for jobs in trainings for job in jobs.values()):
        typer.echo(f"{len(missing)} controllers are to be trained.", err=True)
    pages = {}
    try:
        for name in names:
            pages[name] = EXPERIMENTS[name].run(bench)
            with waiting(f"page of {name}"):
                write_page(name, pages[name], bench)
        if what == "all":
            write_index(names, bench)
    except KeyboardInterrupt:
        typer.echo("Interrupted: run the same command again to go on.", err=True)
        raise
    typer.echo((out / f"{'index' if what == 'all' else what}.md").read_text())
    typer.echo(f"All of it is in {out}.")
    about = {"train": train, "test": test, "budget": bench.budget, **how}
    outputs.write(report=lambda: experiments_report(pages, bench, about))


def _priced(text: str) -> tuple[str, float]:
    model, equals, price = text.partition("=")
    if not (model and equals):
        raise OptionError(f'must be MODEL=P, not "{text}"', "price")
    return model, price_of(price, "price")
