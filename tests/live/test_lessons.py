"""`suffice run --learn`: a batch that learns, and decides the same where it was killed and goes on."""

import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from helpers.batches import read_lines, url, write_lines
from helpers.commands import fails, works

from suffice.live.batches.lessons import generations, lesson_of
from suffice.testing import FakeServer, Reply, completion

COUNT = 80


def script(request: dict[str, Any], number: int) -> Reply:
    """Answers that depend on the question and the draw alone: nearly all agree."""
    question = request["messages"][-1]["content"].split("\n")[0]
    seeds = range(request["seed"], request["seed"] + request.get("n", 1))
    wrong = [random.Random(f"{question}{seed}").random() < 0.02 for seed in seeds]
    return Reply(completion([r"\boxed{8}" if one else r"\boxed{7}" for one in wrong], tokens=5))


@pytest.fixture(scope="module")
def questions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    asked = ({"id": f"q{number}", "question": f"What is {number}?", "gold": "7"} for number in range(COUNT))
    return write_lines(tmp_path_factory.mktemp("questions") / "questions.jsonl", asked)


def run(server: FakeServer, questions: Path, out: Path, *options: str) -> list[dict[str, Any]]:
    works("run", questions, "--out", out, "--seed", "5", "--budget", "8", *url(server), *options)
    return read_lines(out)


def decisions(lines: list[dict[str, Any]]) -> list[tuple[str, str, list[int], float]]:
    return [(line["id"], line["answer"], line["draws"], line["confidence"]) for line in lines]


def test_a_batch_learns_and_goes_on_as_if_it_had_never_stopped(questions: Path, tmp_path: Path) -> None:
    out, journal = tmp_path / "out.jsonl", tmp_path / "out.jsonl.journal"
    with FakeServer(script) as server:
        whole = run(server, questions, out, "--learn")
        entries = journal.read_bytes().splitlines(keepends=True)
        plain = run(server, questions, tmp_path / "plain.jsonl")
        journal.write_bytes(b"".join(entries[: len(entries) * 2 // 3]) + b'{"id": "q9", "torn')  # as a kill leaves it
        assert decisions(run(server, questions, out, "--learn", "--concurrency", "3")) == decisions(whole)
    late = slice(64, None)
    assert decisions(whole)[:32] == decisions(plain)[:32], "the first two generations have learned nothing yet"
    assert sum(line["samples"] for line in whole[late]) < sum(line["samples"] for line in plain[late])
    assert min(line["samples"] for line in whole) >= 2


def test_who_learns_from_whom_depends_on_the_order_so_it_must_stay(questions: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    few = tmp_path / "few.jsonl"
    lines = questions.read_text().splitlines(keepends=True)[:3]
    few.write_text("".join(lines))
    with FakeServer(script) as server:
        run(server, few, out, "--learn")
        few.write_text("".join(reversed(lines)))
        options = ["--seed", "5", "--budget", "8", *url(server)]
        assert "was begun with other settings: learn was" in fails("run", few, "--out", out, *options, "--learn")
        other = ["--controller", "asc", "--learn"]
        assert "--learn is for the controller plan" in fails("run", few, "--out", tmp_path / "b", *options, *other)


def test_generations_cover_all_questions_and_grow() -> None:
    for questions in (0, 1, 16, 17, 100, 5000):
        starts = generations(questions)
        sizes = [end - start for start, end in pairwise(starts)]
        assert starts[0] == 0
        assert sizes == sorted(sizes)
        assert not questions or starts[-1] < questions


def test_only_votes_that_a_plan_has_ended_teach() -> None:
    outcome = {"votes": {"7": 3, "8": 1}, "samples": 6, "stop_reason": "controller"}
    assert lesson_of(outcome) == (3, 1, 1, 1)
    assert lesson_of(outcome | {"stop_reason": "budget"}) == (3, 1, 1, 1)
    for reason in ("deadline", "repeats", "no answer", "failed"):
        assert lesson_of(outcome | {"stop_reason": reason}) is None
    assert lesson_of({"votes": {"7": 1}, "samples": 1, "stop_reason": "controller"}) is None
