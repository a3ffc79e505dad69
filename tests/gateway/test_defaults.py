"""What the help of `suffice serve` and a page of the docs say of the settings is what they are."""

from dataclasses import fields
from pathlib import Path

import typer

from suffice.cli import app
from suffice.gateway import Settings

DEPLOY = Path(__file__).parents[2] / "docs" / "deploy.md"


def test_each_setting_is_an_option_or_has_its_row_in_the_table_of_those_in_files_alone() -> None:
    command = typer.main.get_command(app).commands["serve"]  # type: ignore[attr-defined]
    options = {option.name: option.help or "" for option in command.params}
    page = DEPLOY.read_text()
    for field in fields(Settings):
        default = f"{field.default:g}" if isinstance(field.default, float) else str(field.default).lower()
        about = field.metadata["about"]
        if field.metadata["file_only"]:
            shown = "" if field.default in (None, ()) else f"`{default}`"
            assert f"| `{field.name}` | {shown} | {about} |".replace("|  |", "| |") in page
            assert field.name in options["config"]
        else:
            assert options[field.name].startswith(about)
