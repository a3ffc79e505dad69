"""The command line: parse, call, print."""

import importlib
import importlib.util
import sys
from importlib.abc import Loader
from pathlib import Path
from typing import Annotated, Any, cast

import typer
from rich.console import Console
from typer.core import TyperGroup

import suffice
from suffice import OptionError, Penalties, SufficeError
from suffice.replay import Comparison
from suffice.report import (
    check_writable,
    evaluation_tables,
    pool_table,
    progress_bar,
    results_csv,
    results_json,
    write_whole,
)

WIDE = 120
"""Columns of output that goes to a file or a pipe, where there is no terminal to ask."""


class _Group(TyperGroup):
    """Turns our errors into one sentence and exit code 2."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except SufficeError as error:
            typer.echo(f"suffice: {error}", err=True)
            raise typer.Exit(2) from None


app = typer.Typer(
    cls=_Group,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Ask your LLM just enough times.",
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(suffice.__version__)
        raise typer.Exit


@app.callback()
def options(
    imports: Annotated[
        list[str],
        typer.Option("--import", metavar="MODULE", help="Import a module, or a .py file, that registers controllers."),
    ] = [],  # noqa: B006
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", is_eager=True, callback=_version)
    ] = False,
) -> None:
    """Ask your LLM just enough times."""
    for name in imports:
        _import(name)


@app.command()
def pools(
    chosen: Annotated[
        list[str],
        typer.Argument(metavar="POOL", help="Bundled pools' names or paths; all bundled by default."),
    ] = [],  # noqa: B006
) -> None:
    """Describe pools: how hard they are and how much their answers differ."""
    summaries = [suffice.summarise(suffice.load_pool(name)) for name in chosen or suffice.bundled_pools()]
    _console().print(pool_table(summaries))


@app.command()
def evaluate(
    chosen: Annotated[list[str], typer.Argument(metavar="POOL...", help="Bundled pools' names, or paths.")],
    controllers: Annotated[
        list[str],
        typer.Option("--controller", metavar="C", help="A controller, as NAME or NAME:key=value,…; repeat for more."),
    ] = ["sc", "asc", "esc", "doubling", "boinf"],  # noqa: B006
    budget: Annotated[int, typer.Option(help="The most draws for a question.")] = 32,
    repeats: Annotated[int, typer.Option(help="How often each question is replayed.")] = 100,
    seed: Annotated[int, typer.Option(help="Chooses the draws.")] = 0,
    penalty_draw: Annotated[float, typer.Option(help="What a draw costs in the reward.")] = 0.0075,
    penalty_round: Annotated[float, typer.Option(help="What a round costs in the reward.")] = 0.0,
    baseline: Annotated[
        str, typer.Option(metavar="C", help="The controller that changes and differences are against.")
    ] = "sc",
    json: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the results as JSON.")] = None,
    csv: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the results as CSV.")] = None,
) -> None:
    """Replay controllers over pools, all on the same draws, and compare them."""
    for path in filter(None, (json, csv)):
        check_writable(path)
    loaded = [suffice.load_pool(name) for name in chosen]
    comparisons = []
    with progress_bar("replay", (len(controllers) + 1) * sum(len(pool.questions) for pool in loaded)) as advance:
        for pool in loaded:
            *results, base = suffice.evaluate(
                pool,
                [*controllers, baseline],
                budget=budget,
                repeats=repeats,
                seed=seed,
                penalties=Penalties(penalty_draw, penalty_round),
                progress=advance,
            )
            comparisons.append(Comparison(results, base))
    for table in evaluation_tables(comparisons):
        _console().print(table, "")
    if json:
        write_whole(json, results_json(comparisons, budget=budget, repeats=repeats, seed=seed))
    if csv:
        write_whole(csv, results_csv(comparisons))


def _import(name: str) -> None:
    """Run a module or file for what it registers."""
    try:
        if not name.endswith(".py"):
            importlib.import_module(name)
        elif spec := importlib.util.spec_from_file_location(Path(name).stem, name):
            cast(Loader, spec.loader).exec_module(importlib.util.module_from_spec(spec))
    except (ImportError, OSError, SyntaxError) as error:
        raise OptionError(f"--import {name}: {error}") from None


def _console() -> Console:
    return Console(width=None if sys.stdout.isatty() else WIDE)


def main() -> None:
    """The `suffice` command."""
    app()
