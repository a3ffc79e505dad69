"""What would be wrong with the documentation site is found: dead links, lost pages, names that no page describes."""

import json
from pathlib import Path

import build_site
import pytest
from helpers import api_page

DOCS = build_site.ROOT / "docs"


def test_a_dead_link_would_be_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<h2 id="here"></h2><a href="#here"></a><a href="#gone"></a><a href="b.html#gone"></a><a href="c.html"></a>'
        '<img src="gone.png"><a href="https://example.org/#gone"></a>'
    )
    (tmp_path / "b.html").write_text('<a href="a.html#here"></a>')
    dead = ["#gone", "b.html#gone", "c.html", "gone.png"]
    assert build_site.dead_links(tmp_path) == [f"a.html: {link} leads nowhere" for link in dead]


def test_what_comes_from_the_network_would_be_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text('<script src="//a.example/x.js"></script><a href="https://a.example"></a>')
    (tmp_path / "a.css").write_text("a { src: url('https://a.example/font.woff2') url(data:x) }")
    script, font = build_site.from_the_network(tmp_path)
    assert "//a.example/x.js" in script and "font.woff2" in font


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A project with two pages, of which one is in the menu, and a notebook."""
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "index.md").write_text("# One\n[licence](../LICENSE) [changes](../CHANGELOG.md#new) [run](b.ipynb)\n")
    (docs / "lost.md").write_text("# Lost\n")
    cells = [
        {"cell_type": "markdown", "source": ["# Two\n", "text"]},
        {
            "cell_type": "code",
            "source": ["1 + 1"],
            "outputs": [{"data": {"text/plain": ["2"]}}, {"text": ["said\n"]}, {"data": {"text/html": ["<b>2</b>"]}}],
        },
    ]
    (docs / "b.ipynb").write_text(json.dumps({"cells": cells}))
    (tmp_path / "LICENSE").write_text("free")
    (tmp_path / "CHANGELOG.md").write_text("# Changes\n## New\n[one](docs/index.md)\n")
    nav = '[{ "One" = "index.md" }, { "All" = [{ "Two" = "b.md" }, { "Gone" = "gone.md" }, "changelog.md"] }]'
    (tmp_path / "zensical.toml").write_text(f'[project]\nsite_name = "x"\nnav = {nav}\n')
    return tmp_path


def test_a_page_that_is_not_in_the_menu_would_be_found(small: Path) -> None:
    lost, missing = build_site.not_in_the_menu(small)
    assert lost == "docs/lost.md is not in the site's menu: give lost.md a line in nav of zensical.toml"
    assert "gone.md" in missing


def test_links_that_lead_out_of_docs_lead_to_copies(small: Path) -> None:
    folder = small / "staged"
    folder.mkdir()
    build_site.stage(folder, small)
    assert (folder / "docs" / "index.md").read_text().splitlines()[1] == (
        "[licence](files/LICENSE) [changes](changelog.md#new) [run](b.md)"
    )
    assert (folder / "docs" / "files" / "LICENSE").read_text() == "free"
    assert "[one](index.md)" in (folder / "docs" / "changelog.md").read_text()
    page = (folder / "docs" / "b.md").read_text()
    assert page == "# Two\ntext\n\n```python\n1 + 1\n```\n\n```text\n2\n```\n\n```text\nsaid\n```\n\n<b>2</b>\n"


def test_the_names_of_all_public_modules_are_looked_for() -> None:
    assert build_site.MODULES == api_page.MODULES


def test_a_name_that_no_page_describes_would_be_found(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    for page in build_site.described():
        text = (DOCS / page).read_text()
        for name in ("evaluate", "OptionError", "suffice_retries_total"):
            text = text.replace(f"`{name}`", "`renamed`")
        (docs / page).write_text(text)
    missed = {problem.partition(" does not describe ")[2] for problem in build_site.undescribed(tmp_path)}
    assert missed == {"`evaluate`", "`OptionError`", "`suffice_retries_total`"}
