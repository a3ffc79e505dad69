"""The command line in a shell: completion, help, options with many values, and a narrow terminal."""

import json
import os
import signal
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import StringIO
from pathlib import Path

import pytest
from helpers.commands import command, fails, suffice, works
from rich.console import Console
from rich.progress import Progress
from typer.testing import CliRunner

from suffice import bundled_pools, controller_names
from suffice.cli import app
from suffice.live.batches.batch import Spent
from suffice.report import progress
from suffice.testing import FakeServer, Reply

SMALL = "smollm2-135m__arithmetic"
QUICK = ["--repeats", "1"]
COMMANDS = [[], *([name] for name in command().commands), *(["keys", name] for name in command("keys").commands)]


def completed(line: str) -> list[str]:
    """What bash is told when Tab is pressed at the end of a line."""
    words = line.split(" ")
    told = {"_SUFFICE_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    return CliRunner().invoke(app, [], prog_name="suffice", env=told).stdout.split()


def test_python_runs_the_module() -> None:
    done = subprocess.run([sys.executable, "-m", "suffice", "--version"], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, works("--version"), "")


def test_a_shell_completes_controllers_pools_and_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.jsonl").touch()
    (tmp_path / "mine.txt").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "c.safetensors").touch()
    assert completed("suffice eval") == ["evaluate"]
    assert set(controller_names()) < set(completed("suffice evaluate --controller "))
    assert completed("suffice ask --controller pl") == ["plan"]
    assert completed("suffice evaluate smollm") == [SMALL]
    assert set(completed("suffice evaluate ")) == {*bundled_pools(), "mine.jsonl", "folder/"}
    assert completed(f"suffice evaluate {SMALL} m") == ["mine.jsonl"]
    assert completed(f"suffice evaluate {SMALL} --controller asc es") == ["esc"], "there may be more of them"
    assert completed("suffice controllers fo") == ["folder/"]
    assert completed("suffice controllers folder/") == ["folder/c.safetensors"]
    assert completed("suffice evaluate --repe") == ["--repeats"]
    assert completed("suffice evaluate --json ") == [], "the shell completes files then"


def test_the_script_for_a_shell_is_printed() -> None:
    script = CliRunner().invoke(app, [], prog_name="suffice", env={"_SUFFICE_COMPLETE": "source_bash"}).stdout
    assert "complete -o default -F _suffice_completion suffice" in script
    assert "--install-completion" in works("--help") and "--show-completion" in works("--help")


@pytest.mark.parametrize("names", COMMANDS, ids=" ".join)
def test_help_says_defaults_and_shows_no_types(names: list[str]) -> None:
    shown = CliRunner().invoke(app, [*names, "--help"], prog_name="suffice", env={"COLUMNS": "200"}).stdout
    assert "<" not in shown and "[default: None]" not in shown
    for option in command(*names).params:
        text = (option.help or "").replace("\\[", "[")
        assert option.hidden or "[default: " not in text or text.split("[default: ")[1] in shown, option.name


def test_controllers_may_follow_one_another(tmp_path: Path) -> None:
    def asked(*arguments: str) -> list[str]:
        written = json.loads(works("evaluate", *arguments, *QUICK, "--json"))
        return [f"{one['pool']} {one['controller']}" for one in written["results"]]

    both = [f"{SMALL} asc", f"{SMALL} esc:window=4"]
    assert asked(SMALL, "--controller", "asc", "--controller", "esc:window=4") == both
    assert asked(SMALL, "--controller", "asc", "esc:window=4") == both
    assert asked("--controller", "asc", "esc:window=4", SMALL) == both, "a pool is no controller"
    assert asked("--controller", "asc", SMALL, "--controller", "esc:window=4") == both
    assert asked(SMALL, "--controller", "asc", SMALL) == both[:1] * 2
    assert 'unknown controller "ecs"' in fails("evaluate", SMALL, "--controller", "asc", "ecs")
    assert "did you mean" in fails("evaluate", "--controller", "asc", "smollm2-135m_arithmetic")


def test_json_goes_to_a_file_or_to_the_output_alone(tmp_path: Path) -> None:
    file = tmp_path / "r.json"
    printed = works("evaluate", SMALL, "--controller", "asc", *QUICK, "--json")
    assert works("evaluate", SMALL, "--controller", "asc", *QUICK, "--json", "-") == printed
    shown = works("evaluate", SMALL, "--controller", "asc", *QUICK, "--json", str(file))
    assert file.read_text() == printed and "Samples and rounds" in shown
    assert json.loads(printed)["sentence"] == shown.splitlines()[-1]
    assert "in a folder" in fails("evaluate", SMALL, "--json", tmp_path / "no" / "r.json")


def test_a_question_may_come_before_and_after_json(tmp_path: Path) -> None:
    with FakeServer(lambda request, number: r"\boxed{42}") as server:
        options = ["--base-url", server.base_url, "--controller", "esc"]
        for arguments in (["What?", *options, "--json"], [*options, "--json", "What?"], ["--json", *options, "What?"]):
            assert json.loads(works("ask", *arguments))["answer"] == "42"
        file = tmp_path / "outcome.json"
        assert "Answer: 42" in works("ask", *options, "--json", file, "What?")
        assert json.loads(file.read_text())["answer"] == "42"


def test_an_error_names_the_option_as_it_is_spelled() -> None:
    options = [SMALL, *QUICK, "--controller", "asc", "--min-agreement", "50"]
    done = suffice("advise", *options, "--max-mean-tokens", "1000000")
    assert done.stderr == "" and "--controller asc" in done.stdout
    assert "--max-mean-tokens of 1: the cheapest" in fails("advise", *options, "--max-mean-tokens", "1")
    assert "--risk needs a calibration" in (said := fails("evaluate", SMALL, "--risk", "0.1")) and "(--right)" in said
    assert "(--right)" in fails("ask", "What is 2 + 2?", "--risk", "0.1")
    serve = ["serve", "--upstream", "http://127.0.0.1:9"]
    assert "too (--audit)" in fails(*serve, "--min-agreement", "99")
    assert "(--allow-no-key)" in fails(*serve, "--host", "0.0.0.0")


def test_the_sentence_is_of_the_plan_or_of_the_best_and_needs_the_full_vote() -> None:
    def last(*options: str) -> str:
        return works("evaluate", SMALL, *QUICK, *options).splitlines()[-1]

    said = last("--controller", "rl", "plan", "asc")
    assert (
        said.startswith("plan: ") and " % fewer samples than SC@32 in " in said and said.endswith(" % the same answers")
    )
    assert last("--controller", "esc").startswith("esc: ")
    assert last("--controller", "esc", "--budget", "16").count("SC@16") == 1
    assert "fewer" not in last("--controller", "sc") + last("--controller", "esc", "--baseline", "asc")
    assert last("--controller", "esc", "sc", "--baseline", "asc").startswith("esc: ")


def test_titles_are_whole_where_they_are_longer_than_their_table() -> None:
    options = ["--elect", "weighted:signal=tail,strength=3", "--repeats", "2", "--controller", "sc"]
    said = works("evaluate", "qwen2.5-coder-0.5b__gsm8k", *options)
    title = "Tokens and reward; elected by weighted:signal=tail,strength=3; change against sc in brackets"
    assert title in " ".join(said.split())
    assert max(map(len, said.splitlines())) <= 80


def test_a_share_where_percent_is_meant_and_a_picture_of_no_kind_are_refused() -> None:
    for options in (["plan"], ["advise", SMALL, "--max-latency", "100"]):
        assert "--min-agreement is in percent: give 99 for 0.99" in fails(*options, "--min-agreement", "0.99")
    for options in (["evaluate", SMALL], ["advise", SMALL, "--max-latency", "100"]):
        assert "--figure x.xyz: its ending must be one of .png" in fails(*options, "--figure", "x.xyz")


def test_tables_fit_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    wide = [SMALL, *QUICK, "--tokens-per-second", "9", "--controller", "rl", "plan", "asc:threshold=0.99"]
    for text in (works("evaluate", *wide), works("pools"), works("controllers")):
        assert max(map(len, text.splitlines())) <= 80 and "…" not in text, text


def test_a_wait_has_a_bar_on_a_terminal_and_none_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """What can't tell how far it is shows a bar too; it waits here for the bar, and else nothing."""
    begun = threading.Event()

    class Bar(Progress):
        def start(self) -> None:
            super().start()
            begun.set()

    monkeypatch.setattr(progress, "Progress", Bar)
    monkeypatch.setattr(progress, "PATIENCE_SECONDS", 0.001)
    for is_terminal in (True, False):
        written = StringIO()
        console = Console(file=written, force_terminal=is_terminal, width=80)
        monkeypatch.setattr(progress, "Console", lambda stderr, console=console: console)
        with progress.waiting("planning"):
            assert begun.wait(60) if is_terminal else not begun.is_set()
        begun.clear()
        assert ("planning" in written.getvalue()) == is_terminal


def test_a_batch_has_lines_now_and_then_where_there_is_no_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for seconds, lines in ((1e9, 1), (0.0, 3)):
        monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", seconds)
        with progress.batch_bar("out.jsonl", 64, "questions", Spent()) as advance:
            for steps in (5, 0, 2):
                advance(steps)
        said = capsys.readouterr().err.splitlines()
        assert len(said) == lines and said[0] == "out.jsonl is under way; 5 of 64 questions done"
    assert said[-1] == "out.jsonl: 0 tokens/s; 7 of 64 questions done"


def test_flow_may_stand_alone_and_takes_nothing_that_is_not_its_own() -> None:
    few = ["--controller", "asc", "--repeats", "1", "--json"]
    for options, flow in [
        (["--flow", SMALL], "order=launch,extra=0"),
        ([SMALL, "--flow"], "order=launch,extra=0"),
        (["--flow", "order=arrival,extra=2", SMALL], "order=arrival,extra=2"),
        ([SMALL], None),
    ]:
        assert json.loads(works("evaluate", *options, *few))["flow"] == flow


def test_what_goes_into_requests_is_told_by_options() -> None:
    with FakeServer(lambda request, number: r"\boxed{42}") as server:
        ask = ["ask", "--base-url", server.base_url, "--controller", "sc:draws=2", "What is 6 * 7?"]
        works(*ask, "--temperature", "0.5", "--top-p", "0.9", "--max-tokens", "99", "--seed", "5")
        sent = server.requests[0]
        assert "at temperature 0 all samples will agree" in suffice(*ask, "--temperature", "0").stderr
    assert (sent["temperature"], sent["top_p"], sent["max_tokens"], sent["seed"]) == (0.5, 0.9, 99, 5)


def test_a_refused_key_says_where_keys_come_from() -> None:
    refusal = Reply({"error": {"message": "Incorrect API key provided: none."}}, 401)
    with FakeServer(lambda request, number: refusal) as server:
        done = suffice("ask", "What is 2 + 2?", "--base-url", server.base_url, "--model", "fake")
    assert done.returncode == 2 and "its key is read from OPENAI_API_KEY" in done.stderr
    with FakeServer(lambda request, number: refusal, models=[]) as server:
        said = fails("ask", "What is 2 + 2?", "--base-url", server.base_url)
    assert f"{server.base_url} refuses the key, which is read from OPENAI_API_KEY" in said and "--model" not in said


def test_an_address_without_an_api_is_said_to_be_one() -> None:
    class NotFound(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_error(404)

        def log_message(self, *said: object) -> None:
            """Keep quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), NotFound) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        said = fails("ask", "What is 2 + 2?", "--base-url", f"http://127.0.0.1:{server.server_port}/api")
        server.shutdown()
    assert "there is no API at this address, which is usually …/v1" in said and "--model" not in said


def test_an_interrupt_while_it_starts_prints_nothing(tmp_path: Path) -> None:
    """A package that it imports presses Ctrl-C."""
    (tmp_path / "typer.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    path = os.pathsep.join([str(tmp_path), *sys.path])
    command, beside = [sys.executable, "-m", "suffice", "pools"], os.environ | {"PYTHONPATH": path}
    done = subprocess.run(command, env=beside, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")
