"""What `suffice serve --help` says of defaults is what the settings have: it starts too quickly to ask them."""

import re
from dataclasses import fields

import typer

from suffice.cli import app
from suffice.gateway import Settings


def test_the_help_tells_the_settings_defaults() -> None:
    command = typer.main.get_command(app).commands["serve"]  # type: ignore[attr-defined]
    options = {option.name: option for option in command.params}
    told = {name: re.search(r"\[default: (.+)\]", option.help or "") for name, option in options.items()}
    left_out = ("()", "None", "''", "False", "True")
    plain = {field.name: field.default for field in fields(Settings) if repr(field.default) not in left_out}
    assert {name: found[1] for name, found in told.items() if found} == {
        name: f"{value:g}" if isinstance(value, float) else str(value) for name, value in plain.items()
    }
    assert {field.name for field in fields(Settings)} <= options.keys(), "each setting is an option"
