"""The wheel in an environment without the extras."""

import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path

import pytest
import typer
from helpers.commands import POOL
from packaging.requirements import Requirement

from suffice.cli import app
from suffice.testing import FakeServer

ROOT = Path(__file__).parents[1]
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]


def closure(name: str, extra: str = "") -> Iterator[str]:
    """A package and all that it needs, without the extras that nobody asked for."""
    seen: set[tuple[str, str]] = set()
    waiting = [(name, extra)]
    while waiting:
        name, extra = one = waiting.pop()
        if one in seen:
            continue
        seen.add(one)
        yield name
        for text in distribution(name).requires or ():
            needed = Requirement(text)
            if needed.marker is None or needed.marker.evaluate({"extra": extra}):
                waiting += [(needed.name, wanted) for wanted in {"", *needed.extras}]


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of programs of a new environment: the wheel, and what it needs by itself."""
    folder = tmp_path_factory.mktemp("plain")
    project = folder / "project"
    project.mkdir()
    shutil.copytree(ROOT / "src", project / "src", ignore=shutil.ignore_patterns("*.egg-info", "__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, project)
    build = ["wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), str(project)]
    subprocess.run([*PIP, *build], check=True)
    (wheel,) = folder.glob("suffice-*.whl")
    venv.create(folder / "venv", with_pip=False, symlinks=True)
    (site,) = (folder / "venv" / "lib").glob("python*/site-packages")
    for name in set(closure("suffice")) - {"suffice"}:
        found = distribution(name)
        tops = {file.parts[0] for file in found.files or () if not file.parts[0].startswith(("..", "__pycache__"))}
        for top in tops:
            if not (site / top).exists():
                (site / top).symlink_to(Path(str(found.locate_file(top))))
    python = str(folder / "venv" / "bin" / "python")
    subprocess.run([*PIP, "--python", python, "install", "--no-deps", "--no-index", str(wheel)], check=True)
    return folder / "venv" / "bin"


def run(*command: str | Path, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "PYTHON"))}
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, cwd=cwd, env=kept | variables)


NEEDS: dict[str, tuple[list[str], str]] = {
    "train": (["train", POOL, "--out", "c.safetensors"], "train"),
    "reproduce": (["reproduce", "main", "--out", "r"], "train,plot"),
    "serve": (["serve", "--upstream", "http://127.0.0.1:9/v1"], "serve"),
    "ask": (["ask", "What is 6 * 7?"], "local"),
    "evaluate": (["evaluate", POOL, "--repeats", "1", "--figure", "f.png"], "plot"),
    "advise": (["advise", POOL, "--repeats", "1", "--max-latency", "1", "--figure", "f.png"], "plot"),
}
"""Commands that need an extra, or need it for something that they can do, and which."""


def test_without_extras_every_command_works_or_says_what_it_needs(plain: Path, tmp_path: Path) -> None:
    where = run(plain / "python", "-c", "import suffice; print(suffice.__file__)", cwd=tmp_path).stdout
    assert str(plain.parent) in where, "the wheel is what is tried"
    look = "import importlib.util, sys; print([name for name in sys.argv[1:] if importlib.util.find_spec(name)])"
    extras = ["torch", "starlette", "matplotlib", "xllamacpp", "gymnasium", "ray", "pytest"]
    assert run(plain / "python", "-c", look, *extras, cwd=tmp_path).stdout == "[]\n"
    (tmp_path / "q.jsonl").write_text('{"id": "a", "question": "What is 6 * 7?", "gold": "42"}\n')
    (tmp_path / "r.csv").write_text("question,answer\nq,42\nq,41\n")
    with FakeServer(lambda request, number: r"\boxed{42}") as server:
        at = ["--base-url", server.base_url]
        works: dict[str, list[str]] = {
            "ask": ["ask", "What is 6 * 7?", *at],
            "collect": ["collect", "q.jsonl", "--out", "pool.jsonl", "--samples", "2", *at],
            "run": ["run", "q.jsonl", "--out", "o.jsonl", "--controller", "sc:draws=2", *at],
            "import": ["import", "r.csv", "--out", "imported.jsonl"],
            "pools": ["pools"],
            "controllers": ["controllers"],
            "evaluate": ["evaluate", POOL, "--repeats", "1", "--controller", "rl"],
            "advise": ["advise", "pool.jsonl", "--budget", "2", "--repeats", "1", "--max-latency", "10000"],
            "plan": ["plan", "--budget", "8"],
            "weigh": [
                *["weigh", "qwen2.5-coder-0.5b__math500", "--signal", "tail"],
                *["--repeats", "1", "--force", "--out", "w.safetensors"],
            ],
            "calibrate": ["calibrate", "qwen2.5-coder-1.5b__gsm8k", "--out", "c.json"],
            "panel": [
                *["panel", "evaluate", "--voter", "a=qwen2.5-coder-0.5b__gsm8k,price=1"],
                *["--voter", "b=qwen2.5-coder-1.5b__gsm8k,price=3", "--repeats", "1"],
            ],
            "keys": ["keys", "add", "ann"],
            "fit": ["fit", "smollm2-135m__arithmetic", "--budget", "8", "--out", "f.safetensors"],
        }
        every = set(typer.main.get_command(app).commands)  # type: ignore[attr-defined]
        assert {*works, *NEEDS} == every, "a command that is new must be tried here"
        for arguments in works.values():
            done = run(plain / "suffice", *arguments, cwd=tmp_path)
            complaints = [line for line in done.stderr.splitlines() if " is under way; " not in line]
            assert (done.returncode, complaints) == (0, []), (arguments, done.stderr)
    for arguments, extra in NEEDS.values():
        done = run(plain / "suffice", *arguments, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (2, ""), (arguments, done)
        assert f"pip install 'suffice[{extra}]'" in done.stderr and done.stderr.count("\n") == 1, done.stderr
