"""The reports: what is in the file, and in a real browser what it does."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers.browser import open_browser
from helpers.commands import fails, works
from helpers.live import until

from suffice.testing import FakeServer

Write = Callable[..., Path]
ANSWERS = ["7"] * 20 + ["</script><script>document.title = 'gone'</script>"] * 12


def data(path: Path) -> dict[str, Any]:
    """What a report's script reads."""
    (found,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', path.read_text(), re.DOTALL)
    read: dict[str, Any] = json.loads(found)
    return read


def section(path: Path, title: str) -> dict[str, Any]:
    (found,) = [one for one in data(path)["sections"] if one["title"].startswith(title)]
    return dict(found)


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two pools: one question that divides, with hostile answers, and twelve on which all agree."""
    folder = tmp_path_factory.mktemp("report")
    divided = {"id": "q <b>1</b>", "gold": "7", "answers": ANSWERS, "tokens": [10] * 32, "question": "What is 3 + 4?"}
    settled = [{"id": f"s{number}", "gold": "1", "answers": ["1"] * 32, "tokens": [5] * 32} for number in range(12)]
    for name, lines in (("m__divided", [divided]), ("m__settled", settled)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    report = folder / "report.html"
    pools = [folder / f"m__{name}.jsonl" for name in ("divided", "settled")]
    chosen = [part for name in ("sc", "asc", "plan") for part in ("--controller", name)]
    works("evaluate", *pools, *chosen, "--repeats", "4", "--report", report)
    return report


def test_a_report_is_one_file_with_no_network(evaluated: Path) -> None:
    text = evaluated.read_text()
    assert not re.findall(r"(?:src|href)\s*=", text)
    assert set(re.findall(r"https?://[^\s\"'<]+", text)) == {"http://www.w3.org/2000/svg"}, "the name of a language"
    assert "default-src 'none'" in text
    assert text.count("<script") == text.count("</script") == 2, "an answer ends no script"


def test_a_report_tells_what_the_command_measured(evaluated: Path) -> None:
    text = evaluated.read_text()
    assert re.search(r"plan: \d+ % fewer samples than SC@32 in [\d.]+ rounds, [\d.]+ % the same answers", text)
    assert re.search(r"; tokens \(prompts not counted\) that plan saves: [\d,]+ of [\d,]+ a question \(\d+ %\)", text)
    assert f"--repeats 4 --report {evaluated}" in text
    table = section(evaluated, "Samples and rounds")
    assert [panel["name"] for panel in table["panels"]] == ["", "m__divided", "m__settled"]
    assert section(evaluated, "Differences to sc, without intervals: there are too few questions")["panels"]
    asc = table["panels"][2]["rows"][1]
    cells = ["asc", [100, "100.0"], [100, "100.0"], "–", [4, "4.0 (+300 %)"], [4, "4.0 (-88 %)"]]
    assert asc == cells, "32 responses are too few for an independent vote of 32"
    assert ["repeats", "4"] in section(evaluated, "Settings")["facts"]
    assert "numpy" in dict(section(evaluated, "Versions")["facts"])


def test_large_pools_are_cut_with_a_word(tmp_path: Path, write_pool: Write) -> None:
    report = tmp_path / "large.html"
    line = {"gold": None, "answers": ["x" * 500, "y"], "tokens": None, "question": "why? " * 500}
    pool = write_pool(*({"id": str(number), **line} for number in range(2100)))
    works("evaluate", pool, "--controller", "sc", "--budget", "2", "--repeats", "1", "--report", report)
    votes = section(report, "Each question's votes")
    assert len(votes["questions"]) == 2000 and "These are 2,000 of 2,100" in votes["note"]
    assert report.stat().st_size < 5_000_000


@pytest.fixture(scope="module")
def advised(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Many ways with long names, and thousands of tokens; the report and what was printed."""
    folder = tmp_path_factory.mktemp("advice")
    pool, report = folder / "pool.jsonl", folder / "advice.html"
    pool.write_text(json.dumps({"id": "q", "gold": "1", "answers": ["1"] * 32, "tokens": [1000] * 32}) + "\n")
    return report, works("advise", pool, "--max-mean-tokens", "90000", "--repeats", "1", "--report", report)


def test_advice_has_a_report(advised: tuple[Path, str]) -> None:
    report, printed = advised
    chosen = printed.split("Use ")[1].split("\n")[0]
    assert chosen in [row[0] for row in section(report, "All that was tried")["panels"][0]["rows"]]
    assert f"Use {chosen}" in report.read_text()
    (panel,) = section(report, "Tokens against time")["panels"]
    assert [panel["series"][place]["name"] for place in (0, -1)] == ["front", "advised"], "the advised is on top"


def test_learning_has_a_report(tmp_path: Path, write_pool: Write) -> None:
    pool = write_pool(*({"id": f"{n}", "gold": "1", "answers": ["1", "2"] * 16, "tokens": None} for n in range(4)))
    report = tmp_path / "learning.html"
    works("evaluate", pool, "--learn", "--repeats", "1", "--report", report)
    (panel,) = section(report, "Learning curves")["panels"]
    assert [series["name"] for series in panel["series"]] == ["without learning", "learning"]
    assert all(series["points"] for series in panel["series"])


def test_answered_questions_have_a_report(tmp_path: Path) -> None:
    questions, report = tmp_path / "questions.jsonl", tmp_path / "run.html"
    questions.write_text('{"id": "a", "question": "What is 3 + 4?", "gold": "7"}\n')
    with FakeServer(lambda request, number: r"\boxed{7}") as server:
        url = server.base_url.replace("://", "://me:secret@")
        works("run", questions, "--out", tmp_path / "out.jsonl", "--base-url", url, "--report", report)
    (asked,) = section(report, "Each question's votes")["questions"]
    assert (asked["question"], asked["gold"], asked["none"]) == ("What is 3 + 4?", "7", 0)
    assert asked["votes"] == [["7", asked["rows"][0][0]]]
    (took,) = section(report, "What each question took")["panels"][0]["series"]
    assert (took["name"], took["points"][0][0]) == ("right", "a")
    assert section(report, "Why they stopped")["panels"][0]["rows"] == [["controller", [1, "1"]]]
    assert "://…@" in report.read_text() and "secret" not in report.read_text()


def test_a_report_that_can_t_be_written_is_refused_before_the_work(tmp_path: Path) -> None:
    assert "can't be written" in fails("evaluate", "smollm2-135m__arithmetic", "--report", tmp_path / "no" / "r.html")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with open_browser(tmp_path_factory.mktemp("chromium")) as driver:
        yield driver


def find(where: Any, selector: str) -> Any:
    return where.find_element("css selector", selector)


def find_all(where: Any, selector: str) -> Any:
    return where.find_elements("css selector", selector)


def cells(browser: Any) -> list[str]:
    """The first column of the first table."""
    return [cell.text for cell in find_all(find(browser, "table"), "tbody td:first-child")]


@pytest.mark.slow
def test_a_report_in_a_browser(browser: Any, evaluated: Path) -> None:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import Select

    browser.set_window_size(1280, 900)
    browser.get(evaluated.as_uri())
    assert browser.title == "Controllers side by side", "an answer is text and never runs"

    assert cells(browser) == ["sc", "asc", "plan"]
    samples = browser.find_element("xpath", "//th/button[text()='samples']")
    samples.click()
    assert cells(browser)[-1] == "sc" and samples.find_element("xpath", "..").get_attribute("aria-sort") == "ascending"
    samples.send_keys(Keys.ENTER)
    assert cells(browser)[0] == "sc", "by keyboard, the other way round"

    plot = find(browser, ".plot svg")
    tip = find(browser, ".plot .tip")
    assert not tip.is_displayed()
    mark = find_all(plot, "path")[-1]
    ActionChains(browser).scroll_to_element(plot).move_to_element(mark).perform()
    assert tip.text.startswith("plan") and "rounds" in tip.text
    browser.execute_script("arguments[0].focus()", plot)
    plot.send_keys(Keys.ARROW_RIGHT)
    assert "samples" in tip.text, "points are reached by keyboard too"
    marks = len(find_all(plot, "path"))
    find(browser, ".legend button").click()
    assert len(find_all(browser, ".plot:first-of-type svg path")) < marks

    Select(find(browser, "#pool")).select_by_visible_text("m__divided")
    questions = find_all(browser, "details.question")
    assert len(questions) == 1
    questions[0].click()
    assert until(lambda: find_all(questions[0], ".bar")), "its votes are drawn when it opens"
    assert [bar.text.split("\n")[-1] for bar in find_all(questions[0], ".bar")] == ["20", "12"]
    assert "bar gold" in find(questions[0], ".bar").get_attribute("class")
    Select(find(browser, "#pool")).select_by_value("")
    assert len(find_all(browser, "details.question")) == 13
    find(browser, "input[type=search]").send_keys("3 + 4")
    assert len(find_all(browser, "details.question")) == 1

    find(browser, "#copy").click()
    browser.execute_async_script("setTimeout(arguments[0])")
    assert find(browser, "#copy").text == "Copied"
    assert browser.execute_script("return getSelection().toString()").startswith("suffice evaluate ")

    assert not browser.get_log("browser"), "nothing is wrong on the console"


def place(browser: Any, element: Any) -> dict[str, float]:
    found: dict[str, float] = browser.execute_script("return arguments[0].getBoundingClientRect().toJSON()", element)
    return found


def stays(browser: Any, cell: str, axis: str, side: str) -> bool:
    """Whether the first cell of the first table stays where it is when the table is scrolled."""
    table = find(browser, ".scroll")
    before = place(browser, find(table, cell))[axis]
    assert browser.execute_script(f"return (arguments[0].scroll{side} = 999, arguments[0].scroll{side})", table) > 100
    return place(browser, find(table, cell))[axis] == before


@pytest.fixture
def phone(browser: Any) -> Iterator[Any]:
    size = {"width": 400, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    yield browser
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.mark.slow
def test_a_report_on_a_phone(phone: Any, evaluated: Path) -> None:
    phone.get(evaluated.as_uri())
    assert phone.execute_script("return document.documentElement.scrollWidth") <= 400, "it fits"

    plot = find(phone, ".plot svg")
    phone.execute_script("arguments[0].scrollIntoView({block: 'center'})", plot)
    mark = place(phone, find_all(plot, "path")[-1])
    finger = {"x": mark["x"] + mark["width"] / 2, "y": mark["y"] + mark["height"] / 2}
    for kind, points in (("touchStart", [finger]), ("touchEnd", [])):
        phone.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    phone.execute_async_script("setTimeout(arguments[0])")
    assert find(phone, ".plot .tip").text.startswith("plan"), "a tap tells of a mark"

    question = find(phone, "details.question")
    assert place(phone, find(question, ".name"))["width"] > 250, "its figures leave the name room"
    question.click()
    assert until(lambda: find_all(question, "progress")), "its votes are drawn when it opens"
    assert place(phone, find(question, "progress"))["width"] > 250

    assert stays(phone, "td", "x", "Left"), "whose figures these are stays in sight"


@pytest.mark.slow
def test_long_tables_and_large_numbers(browser: Any, advised: tuple[Path, str]) -> None:
    browser.set_window_size(1280, 900)
    browser.get(advised[0].as_uri())
    table = find(browser, ".scroll")
    cut = "return [...arguments[0].querySelectorAll('td *')].filter((one) => one.scrollWidth > one.clientWidth).length"
    assert browser.execute_script(cut, table) == 0, "no name is cut"
    assert place(browser, table)["height"] < 900
    assert stays(browser, "th", "y", "Top"), "the headings stay"

    texts = find_all(browser, ".plot svg text")
    (name,) = (text for text in texts if text.text == "tokens spent")
    ticks = [place(browser, text)["left"] for text in texts if text.get_attribute("text-anchor") == "end"]
    assert place(browser, name)["right"] < min(ticks), "the axis' name is beside its ticks"


@pytest.mark.slow
def test_a_printed_report_has_its_headings_and_legends(browser: Any, evaluated: Path) -> None:
    browser.get(evaluated.as_uri())
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert find(browser, "th button").is_displayed()
    assert find(browser, ".legend button").is_displayed()
    assert not find(browser, "#copy").is_displayed()
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


CONTRAST = """
const part = (one) => (one <= 0.03928 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4);
const light = ([red, green, blue]) => 0.2126 * part(red / 255) + 0.7152 * part(green / 255) + 0.0722 * part(blue / 255);
const colour = (text) => text.match(/[\\d.]+/g).slice(0, 3).map(Number);
const paper = colour(getComputedStyle(document.body).backgroundColor);
const written = (one) => [...one.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim());
return [...document.querySelectorAll("body *:not(script)")].filter((one) => written(one) && one.checkVisibility())
  .map((one) => {
    const style = getComputedStyle(one), solid = Number(style.opacity);
    const ink = colour(one instanceof SVGElement ? style.fill : style.color)
      .map((value, place) => solid * value + (1 - solid) * paper[place]);
    const [less, more] = [light(ink), light(paper)].sort((a, b) => a - b);
    return [(more + 0.05) / (less + 0.05), one.textContent];
  }).filter(([contrast]) => contrast < 4.5);
"""


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_can_be_read(browser: Any, evaluated: Path, scheme: str) -> None:
    wanted = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", wanted)
    browser.get(evaluated.as_uri())
    find(browser, ".legend button").click()
    find(browser, "details.question").click()
    assert browser.execute_script(CONTRAST) == []
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
