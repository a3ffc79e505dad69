"""The documentation site: built once, with nothing dead, lost or undescribed; and looked at from disk in a browser."""

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import build_site
import pytest
import typer.main
from helpers import api_page
from helpers.browser import open_browser
from selenium import webdriver
from selenium.webdriver.support.ui import WebDriverWait

from suffice.cli import app

DOCS = build_site.ROOT / "docs"
COMMAND: Any = typer.main.get_command(app)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    return build_site.build(tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    with open_browser(tmp_path_factory.mktemp("chromium")) as driver:
        yield driver


def test_nothing_is_wrong_with_the_site(built: tuple[Path, list[str]]) -> None:
    site, problems = built
    assert not problems, "\n".join(problems)
    assert {page.name for page in site.glob("*.html")} >= {f"{page.stem}.html" for page in DOCS.glob("*.md")}


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


def commands(page: Path) -> Iterator[tuple[list[str], str]]:
    """Our commands in a page's blocks for a shell, as words."""
    for block in re.findall(r"^```sh\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(line.replace("…", "x"), comments=True)
            while words and (re.match(r"\w+=", words[0])):
                words = words[1:]
            if words[:1] == ["suffice"]:
                yield words[1:], line


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.name)
def test_commands_that_pages_show_exist(page: Path) -> None:
    for words, line in commands(page):
        command = COMMAND
        options = {"--help"}
        for word in words:
            options |= {name for parameter in command.params for name in parameter.opts + parameter.secondary_opts}
            command = getattr(command, "commands", {}).get(word, command)
        options |= {name for parameter in command.params for name in parameter.opts + parameter.secondary_opts}
        given = {word.partition("=")[0] for word in words if word.startswith("--")}
        assert command is not COMMAND and given <= options, f"{page.name}: {line}"


def test_the_site_works_from_disk(built: tuple[Path, list[str]], browser: webdriver.Chrome) -> None:
    """Its search finds, dark is dark, and on a telephone nothing is wider than the screen."""
    site, _ = built
    browser.get((site / "reproduce.html").as_uri())
    found = search(browser, "certainty")
    assert {"api.html", "planner.html"} <= {Path(link.partition("?")[0]).name for link in found}
    prefer(browser, "light")
    WebDriverWait(browser, 60).until(lambda _: brightness(browser) > 700)
    prefer(browser, "dark")
    WebDriverWait(browser, 60).until(lambda _: brightness(browser) < 100)
    telephone = {"width": 400, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", telephone)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 400
    assert not browser.get_log("browser")  # type: ignore[no-untyped-call]


def prefer(browser: webdriver.Chrome, scheme: str) -> None:
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def brightness(browser: webdriver.Chrome) -> int:
    colour: str = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    return sum(map(int, re.findall(r"\d+", colour)[:3]))


def search(browser: webdriver.Chrome, words: str) -> list[str]:
    """Where the search leads for some words."""
    opened = "document.querySelector('button.md-search__button').click(); return document.activeElement.shadowRoot"
    box = WebDriverWait(browser, 60).until(lambda _: browser.execute_script(opened))
    typed = "const input = arguments[0].querySelector('input'); input.value = arguments[1];"
    browser.execute_script(f"{typed} input.dispatchEvent(new Event('input', {{bubbles: true}}))", box, words)
    links = "return [...arguments[0].querySelectorAll('li a')].map(link => link.href)"

    def found(_: object) -> list[str]:
        there: list[str] = browser.execute_script(links, box)
        return there if any(f"h={words}" in link for link in there) else []

    return WebDriverWait(browser, 60).until(found)
