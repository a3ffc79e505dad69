"""The command that adds a key to the gateway's file of keys."""

from pathlib import Path
from typing import Annotated

import typer

from suffice.cli.app import CommandApp, Group, app
from suffice.gateway.keys import add_key

keys = CommandApp(cls=Group, no_args_is_help=True, help="Manage the keys that the gateway asks for.")
app.add_typer(keys, name="keys")


@keys.command()
def add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Whose key it is.")],
    file: Annotated[Path, typer.Option("--keys", metavar="FILE", help="The file of keys.")] = Path("keys"),
) -> None:
    """Add a key, and print its secret: this once, for the file has its SHA-256 only."""
    typer.echo(add_key(file, name))
