"""The README and the docs are true: their examples run, their figures are measured, their help is the real one.

Blocks of `python` run, one after another within a page; a `console` block shows a command and all that it prints. The
`sh` blocks that begin with `suffice` run against a fake server, beside FILES, but for commands that take minutes or
never end, or need a cluster, a model or logs of yours.
Set SUFFICE_UPDATE_DOCS=1 to write what is printed now into the pages.
"""

import csv
import doctest
import gzip
import importlib
import json
import os
import re
import shlex
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from helpers.api_page import api_page, entries
from helpers.cli_page import readable

from suffice import evaluate, load_pool
from suffice.testing import FakeServer

ROOT = Path(__file__).parents[1]
GENERATED = ("api.md", "cli.md")
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted(path for path in (ROOT / "docs").glob("*.md") if path.name not in GENERATED),
]
UPDATE = bool(os.environ.get("SUFFICE_UPDATE_DOCS"))
BIN = Path(sys.executable).parent


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)


def settle(page: Path, shown: str, actual: str) -> None:
    if UPDATE:
        page.write_text(page.read_text().replace(shown, actual))
    else:
        assert shown == actual


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_examples_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": page.stem}
    for block in blocks(page, "python"):
        exec(compile(block, str(page), "exec"), names)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_print_what_is_shown(page: Path, tmp_path: Path) -> None:
    for block in blocks(page, "console"):
        command = block.splitlines()[0].removeprefix("$ suffice ")
        done = subprocess.run(
            [BIN / "suffice", *shlex.split(command)],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            check=True,
            env={**os.environ, "COLUMNS": "80"},
        )
        output = "\n".join(line.rstrip() for line in done.stdout.splitlines())
        settle(page, block, f"$ suffice {command}\n{output}\n")


QUESTIONS = b"".join(b'{"id": "%d", "question": "What is 25 + %d?"}\n' % (number, number) for number in range(3))
WHOLE_POOL = ROOT / "src/suffice/pools/bundled/smollm2-135m__arithmetic.jsonl.gz"
POOL = b"".join(gzip.decompress(WHOLE_POOL.read_bytes()).splitlines(keepends=True)[::5])
PLACE = {"type": "object", "properties": {"city": {"type": "string"}, "year": {"type": "integer"}}}
FILES = {
    **dict.fromkeys(["questions.jsonl", "letters.jsonl"], QUESTIONS),
    **dict.fromkeys(["my-pool.jsonl", "test-pool.jsonl", "other.jsonl"], POOL),
    "place.json": json.dumps(PLACE | {"required": ["city", "year"]}).encode(),
    "mine.safetensors": (ROOT / "src/suffice/controllers/shipped/rl.safetensors").read_bytes(),
}
"""What the reader of a page has, by the names that pages give it."""

LEFT_OUT = r"""
suffice() {
    case " $* " in
        *" train "* | *" reproduce "* | *" serve "*) ;;
        *" import "* | *" --ray "* | *" --gguf "*) ;;
        *) command suffice "$@" ;;
    esac
}
"""


def reply(request: dict[str, Any], number: int) -> str:
    """Objects where they are asked for; one response in seven says something else."""
    if "response_format" in request:
        return json.dumps({"city": "Bern", "year": 1191 + (number % 7 == 0)})
    return rf"\boxed{{{number % 7 > 0}}}"


def shell(script: str, folder: Path) -> str:
    """What a script prints whose server is a fake one."""
    with FakeServer(reply) as server:
        script = LEFT_OUT + script.replace("http://localhost:8000/v1", server.base_url).replace("…", "")
        path = f"{BIN}:{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path, "OPENAI_BASE_URL": server.base_url}
        command = ["bash", "-eo", "pipefail", "-c", script]
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, cwd=folder, env=environment, capture_output=True, text=True
        )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.timeout(600)
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_shell_blocks_run(page: Path, tmp_path: Path) -> None:
    script = "".join(block for block in blocks(page, "sh") if block.startswith("suffice "))
    for name, content in FILES.items():
        if not re.search(f"suffice collect .*--out {name}", script):  # it doesn't write over what is there
            (tmp_path / name).write_bytes(content)
    (tmp_path / "my_rules.py").write_text("\n".join(blocks(page, "python")))
    shell(script, tmp_path)


def test_the_readme_leads_to_the_tokens_saved_on_ones_own_server(tmp_path: Path) -> None:
    (block,) = [one for one in blocks(ROOT / "README.md", "sh") if "cat > questions.jsonl" in one]
    said = shell(block, tmp_path)
    assert re.search(r"^Saved \d\d% of the samples of the full budget, about \d+ of \d+ tokens\.$", said, re.MULTILINE)
    assert re.search(r"^tokens that plan saves: \d+ of \d+ a question \(\d\d %\)$", said, re.MULTILINE)
    assert (tmp_path / "report.html").exists()


def test_the_readme_s_figures_are_measured() -> None:
    page = ROOT / "README.md"
    rows = re.findall(r"^\| `(\w+)`.*\|$", page.read_text(), re.MULTILINE)
    pools = [load_pool(f"qwen2.5-coder-1.5b__{name}") for name in ("dapo", "gsm8k", "math500")]
    by_pool = [evaluate(pool, rows) for pool in pools]
    for row, results in zip(rows, zip(*by_pool, strict=True), strict=True):
        figures = [
            f"{statistics.fmean(getattr(result, metric) for result in results):{places}}"
            for metric, places in [
                ("accuracy", ".1f"),
                ("agreement", ".1f"),
                ("samples", ".1f"),
                ("rounds", ".1f"),
                ("total_tokens", ".0f"),
            ]
        ]
        (line,) = re.findall(rf"^\| `{row}`.*\|$", page.read_text(), re.MULTILINE)
        settle(page, line, " | ".join([line[: line.index(" |", 2)], *figures]) + " |")


def test_the_readme_s_typical_figures_are_those_of_the_table() -> None:
    with (ROOT / "docs" / "results" / "typical.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len({row["pool"] for row in rows}) == 8
    readme = " ".join((ROOT / "README.md").read_text().split())
    for name, said in (
        ("plan", "`plan` takes {samples:.1f} of 32 samples in {rounds:.1f} rounds, with {agreement:.1f} %"),
        ("rl", "`rl` {samples:.1f} in {rounds:.1f} with {agreement:.1f} %"),
        ("asc", "`asc` {samples:.1f} in {rounds:.1f} with {agreement:.1f} %"),
        ("esc", "`esc` {samples:.1f} in {rounds:.1f} with {agreement:.1f} %"),
    ):
        own = [row for row in rows if row["controller"] == name]
        means = {key: statistics.fmean(float(row[key]) for row in own) for key in ("samples", "rounds", "agreement")}
        assert said.format(**means) in readme


def test_the_command_line_s_page_is_its_help(tmp_path: Path) -> None:
    page = tmp_path / "cli.md"
    options = ["--name", "suffice", "--title", "The command line", "--output", str(page)]
    subprocess.run([BIN / "typer", "suffice.cli", "utils", "docs", *options], check=True, capture_output=True)
    settle(ROOT / "docs" / "cli.md", (ROOT / "docs" / "cli.md").read_text(), readable(page.read_text()))


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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"^```.*?^```$|`[^`\n]*`", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        file, _, heading = link.partition("#")
        if not link.startswith("http"):
            target = (page.parent / file) if file else page
            assert target.exists(), f"{page.name}: {link}"
            assert not heading or heading in headings(target), f"{page.name}: {link}"


def headings(page: Path) -> set[str]:
    """The anchors of a page's headings."""
    found = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in found}
