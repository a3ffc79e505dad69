"""Money and the journal: what is counted, what is on disk, and what happens where it can't be."""

import asyncio
import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest
from helpers.batches import read_lines, sums, url
from helpers.commands import suffice, works

from suffice import OptionError, Plan, save_controller
from suffice.live.batches.batch import Spent
from suffice.live.batches.journal import Journal
from suffice.planning.controller import Mixture
from suffice.response import Response
from suffice.testing import FakeServer, Reply, completion


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    return sums(tmp_path, 6)


def same(request: dict[str, Any], number: int) -> Reply:
    return Reply(completion([r"\boxed{1}"] * request.get("n", 1), tokens=10, prompt_tokens=5))


def samples_of(out: Path) -> list[int]:
    return [line["samples"] for line in read_lines(out)]


def test_what_is_spent_is_worked_out_by_hand() -> None:
    spent = Spent(price_per_million_tokens=2.0, price_per_million_prompt_tokens=3.0, max_tokens_total=30)
    spent.add(Response("a", tokens=10, prompt_tokens=5))
    spent.add(Response("b", tokens=None, prompt_tokens=4))
    assert (spent.responses, spent.tokens, spent.prompt_tokens, spent.exhausted) == (2, 10, 9, False)
    assert spent.cost == pytest.approx((2 * 10 + 3 * 9) / 1e6)
    spent.add(Response("c", tokens=11))
    assert spent.exhausted, "prompts count"
    assert Spent(price_per_million_tokens=1.0, max_cost=20e-6, tokens=20).exhausted
    assert not Spent(max_cost=20e-6, tokens=20).exhausted


# A question of two draws takes 20 tokens and 10 of its prompts.
@pytest.mark.parametrize(
    ("cap", "answered"),
    [
        (["--max-tokens-total", "70"], 3),
        (["--max-tokens-total", "60"], 2),
        (["--max-tokens-total", "61"], 3),
        (["--max-cost", "0.00006", "--price-per-million-prompt-tokens", "3", "--price-per-million-tokens", "1"], 2),
        (["--max-cost", "0.00006", "--price-per-million-tokens", "1"], 3),
    ],
)
def test_no_question_is_begun_once_the_limit_is_spent_until_it_is_raised(
    questions: Path, tmp_path: Path, cap: list[str], answered: int
) -> None:
    out = tmp_path / "outcomes.jsonl"
    with FakeServer(same) as server:
        options = [*url(server), "--controller", "sc:draws=2", "--concurrency", "1"]
        done = suffice("run", questions, "--out", out, *options, *cap)
        assert done.returncode == 0 and "limit on spending is reached" in done.stderr
        assert samples_of(out) == [2] * answered and len(server.requests) == 2 * answered
        works("run", questions, "--out", out, *options)
    assert samples_of(out) == [2] * 6 and len(server.requests) == 12


def test_a_mixture_serves_a_question_with_the_same_plan_in_every_run(questions: Path, tmp_path: Path) -> None:
    save_controller(Mixture((Plan(5.0), Plan(0.0)), (0.5, 0.5)), tmp_path / "m.safetensors")
    with FakeServer(same) as server:
        options = [*url(server), "--controller", f"file:{tmp_path}/m.safetensors"]
        for out in ("one", "two"):
            works("run", questions, "--out", tmp_path / out, *options)
    assert samples_of(tmp_path / "one") == samples_of(tmp_path / "two")
    assert len(set(samples_of(tmp_path / "one"))) == 2, "both plans were there"


def test_an_entry_is_on_disk_before_it_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[bytes] = []
    path = tmp_path / "j.journal"
    monkeypatch.setattr(os, "fsync", lambda file: synced.append(path.read_bytes()))

    async def main() -> None:
        journal = Journal(path, {})
        for number in range(3):
            await journal.add({"id": str(number)})
            assert json.loads(synced[-1].splitlines()[-1]) == {"id": str(number)}, "it was written, and then synced"
        journal.close()

    asyncio.run(main())


def test_a_full_disk_is_told_and_nothing_follows_half_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(file: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    async def main() -> None:
        journal = Journal(tmp_path / "j.journal", {})
        await journal.add({"id": "a"})
        before = (tmp_path / "j.journal").read_bytes()
        with monkeypatch.context() as broken:
            broken.setattr(os, "write", full)
            together = await asyncio.gather(*(journal.add({"id": name}) for name in "bc"), return_exceptions=True)
        assert [type(error) for error in together] == [OptionError] * 2 and "No space left" in str(together[0])
        with pytest.raises(OptionError, match="No space left"):
            await journal.add({"id": "d"})
        assert (tmp_path / "j.journal").read_bytes() == before
        journal.close()

    asyncio.run(main())
