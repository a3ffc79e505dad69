"""The documentation site: built once, with nothing dead, lost or undescribed; and looked at from disk in a browser."""

import re
from collections.abc import Iterator
from pathlib import Path

import build_site
import pytest
from helpers.browser import open_browser
from selenium import webdriver
from selenium.webdriver.support.ui import WebDriverWait

pytestmark = pytest.mark.slow

DOCS = build_site.ROOT / "docs"


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


def test_the_site_works_from_disk(built: tuple[Path, list[str]], browser: webdriver.Chrome) -> None:
    """Its search finds, dark is dark, and on a telephone nothing is wider than the screen."""
    site, _ = built
    browser.get((site / "results.html").as_uri())
    found = search(browser, "certainty")
    assert {"api.html", "planner.html"} <= {Path(link.partition("?")[0]).name for link in found}
    prefer(browser, "light")
    WebDriverWait(browser, 60).until(lambda _: brightness(browser) > 700)
    prefer(browser, "dark")
    WebDriverWait(browser, 60).until(lambda _: brightness(browser) < 100)
    telephone = {"width": 400, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", telephone)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 400
    assert not browser.get_log("browser")


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

    return list(WebDriverWait(browser, 60).until(found))
