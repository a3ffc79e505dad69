"""The commands that manage the gateway's file of keys."""

from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Option

from suffice.cli.app import CommandApp, Group, app, show
from suffice.cli.command import Fields
from suffice.gateway.accounts.keys import Limits, add_key, read_keys, remove_key
from suffice.report.layout import Columns

keys = CommandApp(
    cls=Group, no_args_is_help=True, help="Manage the keys with names and limits that the gateway asks for."
)
app.add_typer(keys, name="keys")

File = Annotated[Path, Option("--file", metavar="FILE", help="The file of keys.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="Whose key it is.")]
FILE = Path("keys.toml")


@keys.command()
def add(
    name: Name,
    limits: Annotated[dict[str, Any], Fields(Limits)],
    file: File = FILE,
    operator: bool = Option(False, "--operator", help="Let it see the usage of all keys."),
) -> None:
    """Add a key, and print it: this once, for the file has its hash only."""
    typer.echo(add_key(file, name, Limits(**limits), operator=operator))


@keys.command("list")
def list_(file: File = FILE) -> None:
    """List the names and limits, and no secrets."""
    limits = [field.name for field in fields(Limits)]
    headings = [one.replace("_per_", "\nper ").replace("_", "\n") for one in limits]
    table = Columns("", "name", [*headings, "operator"])
    for key in read_keys(file):
        told = [key.limits.given.get(one, "") for one in limits]
        table.add_row(key.name, *map(str, told), "yes" if key.operator else "")
    show(table)


@keys.command()
def remove(name: Name, file: File = FILE) -> None:
    """Remove a key; a gateway that runs takes notice within a second or two."""
    remove_key(file, name)
