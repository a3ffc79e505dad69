"""The command that lists controllers and prints their cards."""

from json import dumps
from pathlib import Path
from typing import Annotated

import typer

import suffice
from suffice import OptionError, Penalties
from suffice.cli.app import app, show
from suffice.cli.command import offered_cards
from suffice.paths import is_there
from suffice.report.tables import controllers_table


@app.command()
def controllers(
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="FILE",
            help="A controller file, or a shipped one's name: its card is printed.",
            autocompletion=offered_cards,
        ),
    ] = None,
) -> None:
    """Tell what the shipped controller can be asked for, or print the card of a controller file."""
    if file is None:
        show(controllers_table(suffice.shipped_controllers()[Penalties.draw, Penalties.round]))
        return
    known = not is_there(Path(file)) and file.partition(":")[0] in suffice.controller_names()
    chosen = suffice.get_controller(file) if known else suffice.load_controller(file)
    if not isinstance(chosen, suffice.SavedController):
        raise OptionError(f"{file} is a rule: it has parameters, and no card")
    typer.echo(dumps(dict(chosen.card), indent=2))
