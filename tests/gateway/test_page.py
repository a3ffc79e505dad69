"""The page in a real browser."""

import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from helpers.browser import open_browser
from helpers.gateways import ASK, behind, free_port, gateway, post
from helpers.keys import key_file
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from suffice.testing import FakeServer, Reply, completion

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("quick")]

PICTURES = os.environ.get("SUFFICE_PICTURES")
"""A folder for screenshots, if somebody wants to look at them."""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    with open_browser(tmp_path_factory.mktemp("chromium")) as driver:
        yield driver


@contextmanager
def page_of(browser: webdriver.Chrome, script: Any, streams: bool = False, **settings: Any) -> Iterator[FakeServer]:
    """The page of a gateway before a scripted server."""
    with behind(script, streams=streams, **settings) as (upstream, url):
        browser.get(url)
        wait(browser, lambda _: text(browser, "model") == "fake")
        yield upstream


def ask(browser: webdriver.Chrome, question: str) -> None:
    browser.find_element(By.ID, "question").send_keys(question + Keys.CONTROL + Keys.ENTER)


def fits_a_phone(browser: webdriver.Chrome, name: str) -> None:
    phone = {"width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", phone)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 360
    picture(browser, name)
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def script(request: dict[str, Any], number: int) -> Reply:
    answers = [r"\boxed{63}", r"\boxed{73}", r"<b>no</b> \boxed{63}", r"\boxed{<i>72</i>}"]
    texts = [answers[(number + place) % 4] if number < 2 else answers[0] for place in range(request.get("n", 1))]
    return Reply(completion(texts), delay=0.2)


def wait(browser: webdriver.Chrome, holds: Any) -> None:
    WebDriverWait(browser, 20).until(holds)


def text(browser: webdriver.Chrome, identity: str) -> str:
    return str(browser.find_element(By.ID, identity).text)


def picture(browser: webdriver.Chrome, name: str) -> None:
    if PICTURES:
        browser.save_screenshot(str(Path(PICTURES) / f"{name}.png"))


def test_a_question_is_asked_by_keyboard_and_its_vote_watched(browser: webdriver.Chrome) -> None:
    browser.set_window_size(1000, 1100)
    with page_of(browser, script):
        assert browser.switch_to.active_element.get_attribute("id") == "question"
        browser.switch_to.active_element.send_keys("What is 25 + 38?" + Keys.CONTROL + Keys.ENTER)
        wait(browser, lambda _: browser.find_element(By.ID, "stop").is_enabled())
        wait(browser, lambda _: "63" in text(browser, "outcome"))
        bars = browser.find_elements(By.CSS_SELECTOR, ".bar")
        assert bars[0].find_element(By.CLASS_NAME, "name").text == "63"
        assert "lead" in (bars[0].get_attribute("class") or "")
        rounds = text(browser, "rounds").splitlines()
        assert "certain" in rounds[0] and rounds[0].endswith("more") and rounds[-1].endswith("enough")
        assert "samples saved" in text(browser, "outcome") and "tokens saved" in text(browser, "outcome")
        assert "generation saved" in text(browser, "outcome") and "samples over one" in text(browser, "outcome")
        browser.find_element(By.CSS_SELECTOR, "#said summary").click()
        assert r"\boxed{63}" in text(browser, "text")
        assert not browser.find_elements(By.CSS_SELECTOR, "#bars i, #text b"), "answers are text, never markup"
        wait(browser, lambda _: "vote, plan" in text(browser, "recent"))
        assert "25 + 38" not in text(browser, "recent")
        assert "samples a request on 100 % of the traffic" in text(browser, "cost")
        assert "fake boxed" in text(browser, "groups") and "samples saved" in text(browser, "savings")
        picture(browser, "light")
        browser.execute_cdp_cmd(
            "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
        )
        picture(browser, "dark")
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
        fits_a_phone(browser, "phone")
    log: Any = browser
    assert not [entry for entry in log.get_log("browser") if "Content Security" in entry["message"]]


def objects(request: dict[str, Any], number: int) -> Reply:
    """Documents of which two fields are clear, one is not, and one is a text."""
    texts = [
        json.dumps(
            {
                "vendor": {"city": "<b>Bern</b>", "zip": 3011},
                "total": [41.5, 41.5, 14.5][(number + place) % 3],
                "why": f"As it says on page {number} of {place}, and once more in the letter that came along.",
            }
        )
        for place in range(request.get("n", 1))
    ]
    return Reply(completion(texts), delay=0.2)


def test_an_object_s_fields_have_a_bar_each(browser: webdriver.Chrome) -> None:
    browser.set_window_size(1000, 1100)
    with page_of(browser, objects, controller="esc:window=6") as upstream:
        browser.find_element(By.ID, "json").click()
        assert not browser.find_element(By.ID, "boxed").is_enabled()
        ask(browser, "Read this invoice.")
        wait(browser, lambda _: browser.find_elements(By.CSS_SELECTOR, ".bar.field"))
        picture(browser, "fields-under-way")
        wait(browser, lambda _: "as it came" in text(browser, "outcome"))
        assert upstream.requests[0]["response_format"] == {"type": "json_object"}
        shown = {
            row.find_element(By.CLASS_NAME, "name").text: row for row in browser.find_elements(By.CSS_SELECTOR, ".bar")
        }
        assert list(shown) == ["/vendor/city", "/vendor/zip", "/total", "/why"]
        assert shown["/vendor/city"].find_element(By.TAG_NAME, "code").text == '"<b>Bern</b>"', "text, never markup"
        assert shown["/total"].find_element(By.TAG_NAME, "code").text == "41.5"
        assert "certain" in shown["/total"].text and "not voted on" in shown["/why"].text
        picture(browser, "fields")
        fits_a_phone(browser, "fields-phone")


def test_stopping_hangs_up(browser: webdriver.Chrome) -> None:
    slow = lambda request, number: Reply(completion(["1"]), delay=30)  # noqa: E731
    with page_of(browser, slow) as upstream:
        ask(browser, "Well?")
        wait(browser, lambda _: upstream.requests)
        browser.find_element(By.ID, "question").send_keys(Keys.ESCAPE)
        wait(browser, lambda _: text(browser, "error") == "Stopped.")
        wait(browser, lambda _: upstream.hung_up == len(upstream.requests) == 4)


def slowly(request: dict[str, Any], number: int) -> Reply:
    return Reply(completion(["word " * 200]), delay=60)


@pytest.mark.parametrize("vote, asked", [("always", 4), ("auto", 1)])
def test_draws_in_flight_and_their_tokens_are_seen_at_once(browser: webdriver.Chrome, vote: str, asked: int) -> None:
    with page_of(browser, slowly, streams=True, vote=vote) as upstream:
        browser.find_element(By.ID, "boxed").click()
        ask(browser, "What is 6 * 7?")
        wait(browser, lambda _: text(browser, "progress").startswith(f"asked {asked}, 0 in, "))
        early = int(text(browser, "progress").split()[4])
        wait(browser, lambda _: int(text(browser, "progress").split()[4]) > early)
        picture(browser, f"arriving-{vote}")
        browser.find_element(By.ID, "question").send_keys(Keys.ESCAPE)
        wait(browser, lambda _: upstream.hung_up == asked)


def test_a_reply_without_a_vote_is_shown_whole(browser: webdriver.Chrome) -> None:
    poem = "The moon is out,\nand so am I."
    with page_of(browser, lambda request, number: poem, streams=True, vote="auto") as upstream:
        browser.find_element(By.ID, "boxed").click()
        ask(browser, "Write a poem.")
        wait(browser, lambda _: "so am I." in text(browser, "text"))
        assert text(browser, "progress").startswith("one sample, and no vote")
        assert len(upstream.requests) == 1


def test_topics_are_shown_with_their_route_and_why(browser: webdriver.Chrome) -> None:
    with page_of(browser, script, vote="auto"):
        ask(browser, "What is 6 * 7?")
        wait(browser, lambda _: "voted on it names its answer" in text(browser, "taught"))


def test_the_embedded_model_is_asked_with_worked_examples(browser: webdriver.Chrome) -> None:
    with FakeServer(script, models=["SmolLM2-135M-Instruct"]) as upstream, gateway(upstream) as url:
        browser.get(url)
        wait(browser, lambda _: text(browser, "model") == "SmolLM2-135M-Instruct")
        ask(browser, "What is $& + 38?")
        wait(browser, lambda _: "63" in text(browser, "outcome"))
        asked = upstream.requests[0]
        assert [message["role"] for message in asked["messages"]] == ["user", "assistant"] * 3 + ["user"]
        assert asked["messages"][-1]["content"] == "What is $& + 38?" and asked["max_tokens"] == 256


def test_what_was_learned_and_audited_is_shown(browser: webdriver.Chrome) -> None:
    with FakeServer(script) as upstream, gateway(upstream, audit=1.0) as url:
        post(url, {**ASK, "suffice": {"topic": "<i>sums</i>"}})
        browser.get(url)
        wait(browser, lambda _: "<i>sums</i>" in text(browser, "kinds"))
        for _ in range(100):
            if "agreement 100.0 %" in text(browser, "proved"):
                break
            browser.refresh()
            wait(browser, lambda _: "<i>sums</i>" in text(browser, "kinds"))
        assert "one response" in text(browser, "proved")
        picture(browser, "proof")


def test_upstreams_are_shown_with_their_health(browser: webdriver.Chrome) -> None:
    dead = f"http://127.0.0.1:{free_port()}/v1"
    with FakeServer(script) as upstream, gateway([upstream.base_url, dead]) as url:
        browser.get(url)
        wait(browser, lambda _: text(browser, "model") == "fake")
        for _ in range(2):  # each upstream has its turn
            post(url, ASK)
        browser.refresh()
        wait(browser, lambda _: "upstream-2: set aside" in text(browser, "upstreams"))
        assert "upstream-1: healthy" in text(browser, "upstreams")
        picture(browser, "upstreams")


def requests_of(browser: webdriver.Chrome) -> list[str]:
    names: list[str] = browser.execute_script(
        "return performance.getEntriesByType('resource').map((entry) => entry.name)"
    )
    return names


def test_the_page_asks_for_a_key(browser: webdriver.Chrome, tmp_path: Path) -> None:
    with FakeServer(script) as upstream, gateway(upstream, keys=key_file(tmp_path, alice="sk-alice")) as url:
        browser.get(url)
        wait(browser, lambda _: browser.find_element(By.ID, "key").is_displayed())
        picture(browser, "key")
        assert not [entry for entry in requests_of(browser) if "/v1/" in entry], "no call before there is a key"
        browser.find_element(By.ID, "key").send_keys("sk-alice" + Keys.ENTER)
        wait(browser, lambda _: text(browser, "model") == "fake")
        assert not browser.find_element(By.ID, "key").is_displayed()
    browser.execute_script("sessionStorage.clear()")


def test_requests_of_others_are_seen_under_way(browser: webdriver.Chrome) -> None:
    slow = lambda request, number: Reply(completion(["1"]), delay=30)  # noqa: E731
    with FakeServer(slow) as upstream, gateway(upstream) as url, ThreadPoolExecutor(1) as clients:
        asking = clients.submit(post, url, {**ASK, "suffice": {"deadline_seconds": 3}})
        browser.get(url)
        wait(browser, lambda _: "asked 4, 0 in" in text(browser, "recent"))
        assert asking.result().status_code == 504
        wait(browser, lambda _: "asked 4" not in text(browser, "recent"))


def test_errors_are_shown(browser: webdriver.Chrome) -> None:
    fault = Reply({"error": {"message": "the model is asleep"}}, 404)
    with page_of(browser, lambda request, number: fault):
        ask(browser, "Well?")
        wait(browser, lambda _: "the model is asleep" in text(browser, "error"))
