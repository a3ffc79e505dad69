"""The commands that manage the gateway's file of keys."""

from dataclasses import fields
from pathlib import Path
from typing import Annotated

import typer

from suffice.cli.app import App, Group, app, need, show
from suffice.report.layout import Columns

keys = App(cls=Group, no_args_is_help=True, help="Manage the keys with names and limits that the gateway asks for.")
app.add_typer(keys, name="keys")

File = Annotated[Path, typer.Option("--file", metavar="FILE", help="The file of keys.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="Whose key it is.")]
FILE = Path("keys.toml")


@keys.command()
def add(
    name: Name,
    file: File = FILE,
    requests_per_minute: Annotated[int | None, typer.Option(help="The most requests in 60 seconds.")] = None,
    tokens_per_day: Annotated[
        int | None, typer.Option(help="The most tokens, of prompts and completions, in a day (UTC).")
    ] = None,
    max_samples: Annotated[int | None, typer.Option(help="The most samples of a request.")] = None,
    money_per_month: Annotated[
        float | None, typer.Option(help="The most money in a month (UTC), at the gateway's prices.")
    ] = None,
    operator: Annotated[bool, typer.Option("--operator", help="Let it see the usage of all keys.")] = False,
) -> None:
    """Add a key, and print it: this once, for the file has its hash only."""
    file_of_keys = need("suffice.gateway.keys", "serve")
    limits = file_of_keys.Limits(requests_per_minute, tokens_per_day, max_samples, money_per_month)
    typer.echo(file_of_keys.add_key(file, name, limits, operator=operator))


@keys.command("list")
def list_(file: File = FILE) -> None:
    """List the names and limits, and no secrets."""
    file_of_keys = need("suffice.gateway.keys", "serve")
    limits = [field.name for field in fields(file_of_keys.Limits)]
    headings = [one.replace("_per_", "\nper ").replace("_", "\n") for one in limits]
    table = Columns("", "name", [*headings, "operator"])
    for key in file_of_keys.read_keys(file):
        told = [key.limits.given.get(one, "") for one in limits]
        table.add_row(key.name, *map(str, told), "yes" if key.operator else "")
    show(table)


@keys.command()
def remove(name: Name, file: File = FILE) -> None:
    """Remove a key; a gateway that runs takes notice within a second or two."""
    need("suffice.gateway.keys", "serve").remove_key(file, name)
