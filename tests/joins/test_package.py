"""What the package says of itself where it is published."""

import re
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def project() -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return found


def test_the_description_stands_alone() -> None:
    text = (ROOT / project()["readme"]).read_text()
    links = re.findall(r"\]\(([^)\s]+)\)", text)
    assert all(link.startswith("https://") for link in links), "nothing is beside it on the page of an index"
    assert "![" not in text and "<img" not in text
    named = re.search(r"Extras: (.*?)\.", text, re.DOTALL)
    assert named and set(re.findall(r"`(\w+)`", named[1])) == set(project()["optional-dependencies"]) - {"dev", "slow"}


def test_what_an_index_shows_is_there() -> None:
    about = project()
    assert {"name", "description", "license", "keywords", "classifiers", "requires-python"} <= set(about)
    assert "Typing :: Typed" in about["classifiers"] and (ROOT / "src" / "suffice" / "py.typed").exists()
    assert not any("License ::" in one for one in about["classifiers"]), "the licence is an expression"
