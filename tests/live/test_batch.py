"""`collect` and `run` as a user meets them: real processes, killed ones among them, and their files."""

import signal
import subprocess
import time
import zlib
from pathlib import Path
from typing import Any

import pytest
from helpers.batches import drawn, mostly_right, read_lines, sums, url
from helpers.commands import SUFFICE, fails, suffice
from helpers.live import until

from suffice.pools import load_pool
from suffice.testing import FakeServer, Reply, completion

IDS = [f"q{number}" for number in range(6)]


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    return sums(tmp_path, 6)


def collect(server: FakeServer, questions: Path, out: Path, *options: str) -> list[str]:
    samples = ["--samples", "12", "--seed", "5", *url(server)]
    return ["collect", str(questions), "--out", str(out), *samples, *options]


def test_collect_makes_a_pool(questions: Path, tmp_path: Path) -> None:
    out = tmp_path / "pool.jsonl"
    with FakeServer(mostly_right) as server:
        done = suffice(*collect(server, questions, out, "--keep-text", "--temperature", "0.5", "--max-tokens", "99"))
    assert done.returncode == 0, done.stderr
    pool = load_pool(out)
    assert [question.id for question in pool.questions] == IDS
    assert [question.gold for question in pool.questions] == list("123456")
    for question in pool.questions:
        assert len(question.answers) == len(question.extra["texts"]) == 12
        assert question.extra["texts"][0] == rf"\boxed{{{question.answers[0]}}}"
    assert len(server.requests) == 72
    request = server.requests[0]
    assert "Please reason step by step" in request["messages"][0]["content"]
    assert (request["temperature"], request["max_tokens"], "n" in request) == (0.5, 99, False)
    assert 4 <= server.most_in_flight <= 8
    assert "72 responses" in done.stdout
    assert done.stderr == "pool.jsonl is under way; 0 of 72 responses done\n"


def kill_when_grown(command: list[str], journal: Path, grown: int) -> None:
    """Kill a command as soon as it has added so much to its journal."""
    size = journal.stat().st_size if journal.exists() else 0
    running = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        while not (journal.exists() and journal.stat().st_size > size + grown):
            assert running.poll() is None, "it ended before it was killed"
            time.sleep(0.001)
    finally:
        running.kill()
        running.wait()


def test_a_killed_collect_goes_on_where_it_was(questions: Path, tmp_path: Path) -> None:
    out = tmp_path / "pool.jsonl"
    journal = tmp_path / "pool.jsonl.journal"
    with FakeServer(mostly_right) as server:
        assert suffice(*collect(server, questions, tmp_path / "whole.jsonl")).returncode == 0
        asked = len(server.requests)
        for grown in (700, 3500):
            kill_when_grown([SUFFICE, *collect(server, questions, out)], journal, grown)
            with journal.open("ab") as torn:  # what a crash of the machine may leave
                torn.write(b'{"id": "q0", "extrac')
        assert suffice(*collect(server, questions, out)).returncode == 0
        lost = len(server.requests) - 2 * asked
    assert out.read_bytes() == (tmp_path / "whole.jsonl").read_bytes(), "nothing is lost, and nothing is there twice"
    assert lost <= 16 * 2, "only what was in flight, or had just arrived, is asked for again"


def test_a_finished_collect_asks_nothing_again_and_refuses_other_settings(questions: Path, tmp_path: Path) -> None:
    out = tmp_path / "pool.jsonl"
    with FakeServer(mostly_right) as server:
        assert suffice(*collect(server, questions, out, "--temperature", "0.5")).returncode == 0
        asked, before = len(server.requests), out.read_bytes()
        assert suffice(*collect(server, questions, out, "--temperature", "0.5")).returncode == 0
        message = fails(*collect(server, questions, out, "--temperature", "0.7", "--keep-text"))
        assert "temperature was 0.5 and is now 0.7" in message and "keep_text was false and is now true" in message
        assert (len(server.requests), out.read_bytes()) == (asked, before)


def test_a_pool_without_its_journal_is_not_written_over(questions: Path, tmp_path: Path) -> None:
    out = tmp_path / "pool.jsonl"
    out.write_text("precious")
    with FakeServer(mostly_right) as server:
        assert "there already" in fails(*collect(server, questions, out))
    assert out.read_text() == "precious"


def test_two_processes_can_not_share_a_journal(questions: Path, tmp_path: Path) -> None:
    slow = lambda request, number: Reply(completion(["1"]), delay=20)  # noqa: E731
    with FakeServer(slow) as server:
        first = subprocess.Popen([SUFFICE, *collect(server, questions, tmp_path / "pool.jsonl")])
        try:
            assert until(lambda: bool(server.requests), 200)
            assert "another process" in fails(*collect(server, questions, tmp_path / "pool.jsonl"))
        finally:
            first.kill()
            first.wait()


def test_ctrl_c_leaves_a_journal_to_go_on_from(questions: Path, tmp_path: Path) -> None:
    with FakeServer(mostly_right) as server:
        command = [SUFFICE, *collect(server, questions, tmp_path / "pool.jsonl")]
        collecting = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert until(lambda: len(server.requests) >= 10, 200)
        collecting.send_signal(signal.SIGINT)
        _, said = collecting.communicate(timeout=60)
        assert collecting.returncode == 130 and "again to go on" in said and "Traceback" not in said
        assert suffice(*command[1:]).returncode == 0
    assert len(load_pool(tmp_path / "pool.jsonl").questions) == 6


def test_draws_that_fail_are_tried_again_next_time(questions: Path, tmp_path: Path) -> None:
    failing = [True]

    def sometimes(request: dict[str, Any], number: int) -> Reply:
        unlucky = failing[0] and zlib.crc32(str(request).encode()) % 7 == 0
        return Reply({"error": {"message": "unlucky"}}, 403) if unlucky else mostly_right(request, number)

    with FakeServer(sometimes) as server:
        done = suffice(*collect(server, questions, tmp_path / "pool.jsonl"))
        assert done.returncode == 1 and "unlucky" in done.stderr and not (tmp_path / "pool.jsonl").exists()
        failing[0] = False
        assert suffice(*collect(server, questions, tmp_path / "pool.jsonl")).returncode == 0
        assert suffice(*collect(server, questions, tmp_path / "whole.jsonl")).returncode == 0
    assert (tmp_path / "pool.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


def test_a_server_that_fails_everything_is_given_up(tmp_path: Path) -> None:
    questions = sums(tmp_path, 40)
    with FakeServer(lambda request, number: Reply({"error": {"message": "no such model"}}, 404)) as server:
        done = suffice(*answer(server, questions, tmp_path / "outcomes.jsonl"))
        assert done.returncode == 2 and "no such model" in done.stderr and len(server.requests) < 100
    nobody = ["--base-url", "http://127.0.0.1:9/v1", "--model", "m"]
    done = suffice("collect", questions, "--out", tmp_path / "pool.jsonl", *nobody)
    assert done.returncode == 2 and "nothing but failures" in done.stderr


def test_questions_that_a_server_refuses_do_not_stop_the_others_and_are_tried_again(tmp_path: Path) -> None:
    refused = ["What is 0 ", "What is 1 ", "What is 13 "]

    def picky(request: dict[str, Any], number: int) -> Reply:
        if any(one in request["messages"][-1]["content"] for one in refused):
            return Reply({"error": {"message": "policy"}}, 400)
        return mostly_right(request, number)

    out = tmp_path / "outcomes.jsonl"
    with FakeServer(picky) as server:
        command = answer(server, sums(tmp_path, 20), out, "--concurrency", "2", "--controller", "sc")
        done = suffice(*command)
        assert done.returncode == 1 and "3 questions failed, the last with: " in done.stderr and "policy" in done.stderr
        failed = [number for number, line in enumerate(read_lines(out)) if line["stop_reason"] == "failed"]
        assert failed == [0, 1, 13]
        refused.clear()
        assert suffice(*command).returncode == 0
    assert [line["stop_reason"] for line in read_lines(out)] == ["budget"] * 20


def test_a_question_with_no_response_before_its_deadline_is_not_done(questions: Path, tmp_path: Path) -> None:
    out = tmp_path / "outcomes.jsonl"
    stuck = [True]
    slow = lambda request, number: Reply(completion(["1"]), delay=30) if stuck[0] else mostly_right(request, number)  # noqa: E731
    with FakeServer(slow) as server:
        options = ["--deadline-seconds", "3", "--controller", "sc:draws=2"]
        done = suffice(*answer(server, questions, out, *options))
        assert done.returncode == 1 and "no response before the deadline" in done.stderr and "Saved" not in done.stdout
        stuck[0] = False
        assert suffice(*answer(server, questions, out, *options)).returncode == 0
    assert all(line["samples"] == 2 for line in read_lines(out))


def test_odd_answers_and_characters_do_not_poison_the_journal(questions: Path, tmp_path: Path) -> None:
    odd = [r"\boxed{1/0}", r"\boxed{\frac{1}{0}}", "\ud800 \\boxed{2}", "\x1b[2J \\boxed{\x1b[2J}"]
    with FakeServer(lambda request, number: odd[number % 4]) as server:
        done = suffice(*collect(server, questions, tmp_path / "pool.jsonl", "--keep-text"))
        assert done.returncode == 0, done.stderr
        first = load_pool(tmp_path / "pool.jsonl").questions[0].answers
        assert {"1/0", r"\frac{1}{0}"} & {*first}, "both are one, by the name of whichever came first"
        assert (
            suffice("ask", "?", "--base-url", server.base_url, "--json", "--controller", "sc:draws=3").returncode == 0
        )
        shown = suffice("ask", "?", "--base-url", server.base_url, "--controller", "sc:draws=1")
        assert shown.returncode == 0 and "\x1b" not in shown.stdout


@pytest.mark.parametrize(
    "content", ["my notes", "my notes\n", '{"format": "suffice-journal-2"}\n', '{"format": "suffice-journal-2", "se']
)
def test_a_file_that_is_no_journal_is_left_alone(questions: Path, tmp_path: Path, content: str) -> None:
    journal = tmp_path / "pool.jsonl.journal"
    journal.write_text(content)
    torn = content.endswith('"se')
    with FakeServer(mostly_right) as server:
        if torn:
            assert suffice(*collect(server, questions, tmp_path / "pool.jsonl")).returncode == 0
        else:
            assert "not a journal's" in fails(*collect(server, questions, tmp_path / "pool.jsonl"))
            assert journal.read_text() == content


def test_a_line_that_is_no_journal_s_gets_one_sentence(questions: Path, tmp_path: Path) -> None:
    journal = tmp_path / "pool.jsonl.journal"
    with FakeServer(mostly_right) as server:
        assert suffice(*collect(server, questions, tmp_path / "pool.jsonl")).returncode == 0
        for line in ("nonsense", '{"id": "a"}', "3", '{"id": "a", "response": {"odd": 1}, "extracted": null}'):
            before = journal.read_text()
            journal.write_text(before + line + "\n")
            complaint = "line 74: not a journal's" if line == "nonsense" else "no journal's"
            assert complaint in fails(*collect(server, questions, tmp_path / "pool.jsonl"))
            journal.write_text(before)


def answer(server: FakeServer, questions: Path, out: Path, *options: str) -> list[str]:
    return ["run", str(questions), "--out", str(out), "--seed", "5", *url(server), *options]


def test_run_answers_a_file_of_questions(questions: Path, tmp_path: Path) -> None:
    out = tmp_path / "outcomes.jsonl"
    with FakeServer(mostly_right) as server:
        done = suffice(*answer(server, questions, out, "--controller", "asc"))
    assert done.returncode == 0, done.stderr
    lines = read_lines(out)
    assert [line["id"] for line in lines] == IDS
    right = sum(line["right"] for line in lines)
    assert right == sum(line["answer"] == line["gold"] for line in lines) >= 4
    assert f"accuracy {right / 6:.1%} ({right} of 6 with gold)" in done.stdout
    assert sum(line["samples"] for line in lines) == len(server.requests)
    assert all(line["stop_reason"] in ("controller", "budget") for line in lines)
    saved = sum(line["samples_saved"] for line in lines)
    assert (
        f"Together they saved {saved} of {6 * 32} samples ({saved / (6 * 32):.0%}) of the budget" in done.stdout
        and saved > 0
    )
    over_one, changed = sum(line["samples"] - 1 for line in lines) / 6, sum(line["changed"] for line in lines) / 6
    assert f"Over one response: +{over_one:.1f} samples" in done.stdout
    assert f"{changed:.0%} of answers changed" in done.stdout


def test_a_killed_run_goes_on_where_it_was(questions: Path, tmp_path: Path) -> None:
    out = tmp_path / "outcomes.jsonl"
    journal = tmp_path / "outcomes.jsonl.journal"
    with FakeServer(mostly_right) as server:
        command = [SUFFICE, *answer(server, questions, out, "--controller", "asc", "--concurrency", "1")]
        whole = answer(server, questions, tmp_path / "whole.jsonl", "--controller", "asc", "--concurrency", "1")
        assert suffice(*whole).returncode == 0
        asked = len(server.requests)
        for grown in (500, 2500):
            kill_when_grown(command, journal, grown)
        assert suffice(*command[1:]).returncode == 0
        assert len(server.requests) - 2 * asked <= 2, "at most the draw in flight is asked for again"
    assert [*map(timeless, read_lines(out))] == [*map(timeless, read_lines(tmp_path / "whole.jsonl"))]


def timeless(line: dict[str, Any]) -> dict[str, Any]:
    return line | {"seconds": 0, "response": line["response"] | {"seconds": 0}}


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("", "no questions"),
        ("nonsense", "line 1: not JSON"),
        ('{"id": "a", "question": "?"}\n[]', "line 2: not a JSON object"),
        ('{"question": "?"}', 'line 1: the field "id" is missing'),
        ('{"id": "a"}', 'line 1: the field "question" is missing'),
        ('{"id": "a", "question": "\\ud800"}', "half a character"),
        ('{"id": "a", "question": 3}', '"question" must be a text'),
        ('{"id": ["a"], "question": "?"}', '"id" must be'),
        ('{"id": "a", "question": "?"}\n{"id": "a", "question": "!"}', "line 2: the id"),
    ],
)
def test_bad_questions_get_one_sentence(tmp_path: Path, content: str, complaint: str) -> None:
    path = tmp_path / "questions.jsonl"
    path.write_text(content)
    assert complaint in fails("collect", path, "--out", tmp_path / "pool.jsonl", "--base-url", "http://127.0.0.1:9")
    assert not (tmp_path / "pool.jsonl.journal").exists()


def test_bad_options_get_one_sentence(questions: Path, tmp_path: Path) -> None:
    out, url = tmp_path / "out.jsonl", "http://127.0.0.1:9/v1"
    bad: list[tuple[str, list[str | Path]]] = [
        ("No such file", ["run", tmp_path / "none.jsonl", "--out", out]),
        ("--base-url", ["run", questions, "--out", out, "--base-url", "nonsense"]),
        ("can't be reached", ["run", questions, "--out", out, "--base-url", url]),
        ("--max-cost needs a price", ["run", questions, "--out", out, "--max-cost", "1"]),
        ("unknown controller", ["run", questions, "--out", out, "--controller", "nonsense"]),
        ("unknown extractor", ["collect", questions, "--out", out, "--answer", "nonsense"]),
        ("{question}", ["collect", questions, "--out", out, "--prompt", "nonsense"]),
        ("concurrency", ["collect", questions, "--out", out, "--concurrency", "0"]),
        ("--max-tokens must be a whole number", ["run", questions, "--out", out, "--max-tokens", "0"]),
        ("--temperature must be a number, at least 0", ["ask", "?", "--temperature", "-3"]),
        ("--samples", ["collect", questions, "--out", out, "--samples", "0"]),
        ("can't be written", ["collect", questions, "--out", tmp_path / "no" / "out.jsonl"]),
        ("no such file", ["ask", "?", "--gguf", tmp_path / "none.gguf"]),
        ("can't be loaded", ["ask", "?", "--gguf", questions]),
        ("empty", ["ask", " "]),
        ("--budget", ["run", questions, "--out", out, "--budget", "0"]),
        ("can't be written", ["run", questions, "--out", "."]),
        ("--base-url x: it must", ["ask", "?", "--base-url", "ftp://me:secret@x"]),
    ]
    for complaint, command in bad:
        assert complaint in fails(*command)
    assert not out.exists()


def test_a_killed_run_in_flow_goes_on_and_counts_nothing_twice(questions: Path, tmp_path: Path) -> None:
    out, journal = tmp_path / "outcomes.jsonl", tmp_path / "outcomes.jsonl.journal"
    with FakeServer(mostly_right, streams=True) as server:
        command = [SUFFICE, *answer(server, questions, out, "--flow", "extra=2", "--controller", "asc")]
        kill_when_grown(command, journal, 3000)
        assert suffice(*command[1:]).returncode == 0
    for line in read_lines(out):
        assert sum(line["votes"].values()) <= line["samples"] == sum(line["draws"]) <= line["launched"]
        assert line["stop_reason"] in ("controller", "budget")
    draws = drawn(journal)
    assert len(draws) == len(set(draws))
    assert "whole rounds" in fails(*answer(server, questions, tmp_path / "o.jsonl", "--flow", "--controller", "sc"))
