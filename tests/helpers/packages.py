"""Packages of other people, as an installation leaves them behind."""

import tomllib
from collections.abc import Mapping
from configparser import ConfigParser
from pathlib import Path


def install(folder: Path, package: str, offers: Mapping[str, Mapping[str, str]]) -> None:
    """The metadata of a package: its entry points, by group and name."""
    about = folder / f"{package}-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    points = ConfigParser()
    points.read_dict(offers)
    with (about / "entry_points.txt").open("w") as file:
        points.write(file)


def offers_of(project: Path) -> Mapping[str, Mapping[str, str]]:
    """The entry points of a project, as its pyproject.toml has them."""
    offers: Mapping[str, Mapping[str, str]] = tomllib.loads(project.read_text())["project"]["entry-points"]
    return offers
