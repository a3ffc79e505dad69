"""The command that describes pools."""

from typing import Annotated

import suffice
from suffice.cli import options
from suffice.cli.app import app, show
from suffice.report.progress import waiting
from suffice.report.tables import pool_table


@app.command()
def pools(
    chosen: Annotated[
        list[str], options.pool_argument("Names of bundled pools, or paths; all bundled ones by default.")
    ] = [],  # noqa: B006
) -> None:
    """Describe pools: how hard they are and how much their answers differ."""
    with waiting("reading pools"):
        summaries = [suffice.summarise(name) for name in chosen or suffice.bundled_pools()]
    show(pool_table(summaries))
