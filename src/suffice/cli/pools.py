"""The command that describes pools."""

from typing import Annotated

import typer

import suffice
from suffice.cli import completion
from suffice.cli.app import app, show
from suffice.report import pool_table, waiting


@app.command()
def pools(
    chosen: Annotated[
        list[str],
        typer.Argument(
            metavar="POOL",
            help="Names of bundled pools, or paths; all bundled ones by default.",
            autocompletion=completion.pools,
        ),
    ] = [],  # noqa: B006
) -> None:
    """Describe pools: how hard they are and how much their answers differ."""
    with waiting("reading pools"):
        summaries = [suffice.summarise(name) for name in chosen or suffice.bundled_pools()]
    show(pool_table(summaries))
