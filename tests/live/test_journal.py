"""The journal of a batch: read entry by entry, whatever a crash left at its end, and never kept in memory."""

import asyncio
import tracemalloc
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice.errors import OptionError
from suffice.live.batches.asker import BatchConfig
from suffice.live.batches.batch import Batch, Spent
from suffice.live.batches.journal import Journal
from suffice.live.batches.questions import Asked
from suffice.response import Response

TEXT = "So it is. " * 10_000 + r"\boxed{42}"


@pytest.fixture
def asked() -> list[Asked]:
    return [Asked(f"q{number}", f"What is {number} + 1?") for number in range(100)]


def begun(path: Path, asked: list[Asked]) -> None:
    """A journal in which half of the questions have an outcome, and all have long responses."""

    async def main() -> None:
        with closing(Journal(path, {})) as journal:
            for number, one in enumerate(asked):
                about = {"id": one.id, "question": one.digest}
                for draw in range(2):
                    response = Response(TEXT, "stop", 10, draw=draw).to_json()
                    await journal.add({**about, "extracted": "42", "response": response})
                if number % 2:
                    await journal.add({**about, "outcome": {"id": one.id, "response": {"text": TEXT}}})

    asyncio.run(main())


def test_memory_does_not_grow_with_the_texts(tmp_path: Path, asked: list[Asked]) -> None:
    path = tmp_path / "j.journal"
    begun(path, asked)
    assert path.stat().st_size > 20_000_000
    unfinished = asked[::2]
    tracemalloc.start()
    try:
        with closing(Journal(path, {})) as journal:
            batch = Batch([], BatchConfig({}, []), journal, Spent())  # nobody is asked
            held, _ = tracemalloc.get_traced_memory()
            written = 0
            for question in unfinished:
                ((first, extracted), *_) = batch.read(question)
                written += first.text == TEXT and extracted == "42"
            _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert written == len(unfinished)
    assert batch.spent.responses == 2 * len(asked)
    assert held < 500_000
    assert peak < 3_000_000, "a few lines at a time"


@given(torn=st.binary(max_size=40).filter(lambda data: b"\n" not in data))
def test_whatever_a_crash_left_of_the_last_line_is_cut_off(
    tmp_path_factory: pytest.TempPathFactory, torn: bytes
) -> None:
    path = tmp_path_factory.mktemp("torn") / "j.journal"

    async def add(entry: dict[str, Any]) -> int:
        with closing(Journal(path, {"budget": 32})) as journal:
            place = await journal.add(entry)
            assert journal.at(place) == entry
            return place

    first = asyncio.run(add({"id": "a", "text": "ä"}))
    with path.open("ab") as file:
        file.write(torn)
    second = asyncio.run(add({"id": "b"}))
    with closing(Journal(path, {"budget": 32})) as journal:
        assert list(journal.entries()) == [(first, {"id": "a", "text": "ä"}), (second, {"id": "b"})]


def test_a_journal_without_entries_is_begun_anew(tmp_path: Path, asked: list[Asked]) -> None:
    path = tmp_path / "j.journal"
    Journal(path, {"budget": 600}).close()
    with closing(Journal(path, {"budget": 32})) as journal:
        asyncio.run(journal.add({"id": "q0"}))
        assert [entry for _, entry in journal.entries()] == [{"id": "q0"}]
    assert len(path.read_bytes().splitlines()) == 2
    with pytest.raises(OptionError, match="budget was 32 and is now 600"):
        Journal(path, {"budget": 600})
