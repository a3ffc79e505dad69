"""What the help of `suffice serve` and a page of the docs say of the settings is what they are."""

from pathlib import Path

from helpers.commands import command

from suffice.cli.command import declared
from suffice.gateway import Settings

DEPLOY = Path(__file__).parents[2] / "docs" / "deploy.md"


def test_each_setting_is_an_option_or_has_its_row_in_the_table_of_those_in_files_alone() -> None:
    options = {option.name: option.help or "" for option in command("serve").params}
    page = DEPLOY.read_text()
    for name, (_, given, about) in declared(Settings).items():
        default = f"{given:g}" if isinstance(given, float) else str(given).lower()
        if about["file_only"]:
            shown = "" if given in (None, ()) else f"`{default}`"
            assert f"| `{name}` | {shown} | {about['about']} |".replace("|  |", "| |") in page
            assert name in options["config"]
        else:
            assert options[name].startswith(about["about"])
