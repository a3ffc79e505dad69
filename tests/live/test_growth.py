"""A file of questions that grew is gone on with; one whose questions changed is refused."""

import json
from pathlib import Path
from typing import Any

import pytest
from helpers.batches import write_lines
from helpers.commands import fails, suffice

from suffice.testing import FakeServer


def write(path: Path, *questions: tuple[str, str]) -> Path:
    return write_lines(path, ({"id": name, "question": text} for name, text in questions))


FIRST = [("a", "What is 1 + 1?"), ("b", "What is 2 + 2?")]
GROWN = [*FIRST, ("c", "What is 3 + 3?")]


def answer(request: dict[str, Any], number: int) -> str:
    return rf"\boxed{{{number % 2}}}"


@pytest.mark.parametrize("command", [["run", "--controller", "sc:draws=2"], ["collect", "--samples", "2"]])
def test_new_questions_at_the_end_are_new_work(tmp_path: Path, command: list[str]) -> None:
    questions, out = tmp_path / "questions.jsonl", tmp_path / "out.jsonl"
    name, *options = command
    with FakeServer(answer) as server:
        options += ["--base-url", server.base_url, "--out", str(out)]
        assert suffice(name, write(questions, *FIRST), *options).returncode == 0
        before, served = out.read_text().splitlines(), server.served
        done = suffice(name, write(questions, *GROWN), *options)
        assert done.returncode == 0, done.stderr
        asked = [request["messages"][-1]["content"] for request in server.requests[served:]]
        assert all("3 + 3" in question for question in asked) and asked, "only the new one is asked"
        after = out.read_text().splitlines()
        assert after[:2] == before and json.loads(after[2])["id"] == "c"

        options += ["--model", "fake"]
        for changed, complaint in (
            ([("a", "What is 9 + 9?"), *GROWN[1:]], '"a" is another question now'),
            (GROWN[1:], '"a" is no longer asked'),
        ):
            assert complaint in fails(name, write(questions, *changed), *options)
        assert out.read_text().splitlines() == after, "nothing is lost"
