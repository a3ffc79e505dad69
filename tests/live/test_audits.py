"""Audits in a batch: some questions are drawn to the full budget, to compare."""

from pathlib import Path
from random import Random
from typing import Any

import pytest
from helpers.batches import read_lines, url, write_lines
from helpers.commands import fails, suffice

from suffice.testing import FakeServer

pytestmark = pytest.mark.usefixtures("quick")


def split(request: dict[str, Any], number: int) -> list[str]:
    chance = Random(number)
    return [rf"\boxed{{{chance.choice('7778')}}}" for _ in range(request.get("n", 1))]


def test_a_share_of_the_questions_is_drawn_to_the_full_budget_and_compared(tmp_path: Path) -> None:
    out = tmp_path / "a.jsonl"
    lines = [{"id": f"q{number}", "question": f"Which is number {number}?", "gold": "7"} for number in range(20)]
    questions = write_lines(tmp_path / "q.jsonl", lines)
    with FakeServer(split) as server:
        options = ["--out", str(out), *url(server), "--budget", "16", "--controller", "asc", "--audit", "0.5"]
        done = suffice("run", questions, *options)
        assert done.returncode == 0, done.stderr
        told = read_lines(out)
        audited = [line["audit"] for line in told if "audit" in line]
        assert 3 <= len(audited) < 18
        assert all(one["samples_full"] == 16 >= one["samples"] for one in audited)
        early = sum(line["samples"] for line in told if "audit" not in line)
        asked = sum(request.get("n", 1) for request in server.requests)
        assert asked == early + 16 * len(audited), "an audit goes on from its vote"
        assert f"{len(audited)} audits) for " in done.stdout and "with the full budget" in done.stdout
        out.unlink()
        assert suffice("run", questions, *options).returncode == 0
        assert asked == sum(one.get("n", 1) for one in server.requests), "all of it was in the journal"
    assert "--audit must be a share" in fails("run", questions, "--out", out, "--audit", "2")
