"""A vote as a stage of Ray Data: batches of every format, failures in a column, and the docs' example on a real Ray."""

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.live import boxed

import suffice.ray
from suffice import OptionError, SampleError
from suffice.testing import FakeServer, Reply

DOCS = Path(__file__).parents[1] / "docs" / "ray.md"

pytestmark = pytest.mark.usefixtures("quick")


def product(request: dict[str, Any], number: int) -> Reply | str:
    text = request["messages"][-1]["content"]
    factors = re.findall(r"(\d+) \* (\d+)", text)
    return boxed(int(factors[0][0]) * int(factors[0][1])) if factors else Reply({"error": {"message": "no"}}, 400)


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer(product) as server:
        yield server


def questions(count: int) -> list[str]:
    return [f"What is {number} * 7?" for number in range(count)]


def asked(server: FakeServer, *batches: Any, **options: Any) -> list[Any]:
    async def main() -> list[Any]:
        stage = suffice.ray.ask(base_url=server.base_url, model="fake", **options)

        async def one(batch: Any) -> list[Any]:
            return [out async for out in stage(batch)]

        try:
            return [out for outs in await asyncio.gather(*map(one, batches)) for out in outs]
        finally:
            await stage.close()

    return asyncio.run(main())


def test_answers_stand_beside_their_questions(server: FakeServer) -> None:
    (out,) = asked(server, {"id": np.arange(20), "question": np.array(questions(20))}, response=True, budget=8)
    assert out["answer"].tolist() == [str(7 * number) for number in range(20)]
    assert out["id"].tolist() == list(range(20))
    assert out["response"][3] == boxed(21)
    assert set(out["stop_reason"]) == {"controller"} and set(out["error"]) == {None}
    assert all(2 <= samples <= 8 for samples in out["samples"]) and (out["certainty"] > 0.9).all()
    assert [out[name].dtype.kind for name in ("samples", "rounds", "tokens", "confidence")] == ["i", "i", "i", "f"]


def test_a_question_that_fails_has_its_error_and_fails_no_other(server: FakeServer) -> None:
    (out,) = asked(server, {"question": np.array(["What is 6 * 7?", "Who knows?", " ", None], object)})
    assert out["answer"].tolist() == ["42", None, None, None]
    assert "no" in out["error"][1] and "must be a text" in out["error"][2]
    assert out["error"][0] is None and out["error"][3] and out["samples"].tolist()[1:] == [0, 0, 0]


@pytest.mark.parametrize("question", ["Who knows?", ""])
def test_it_fails_the_batch_where_that_is_asked_for(server: FakeServer, question: str) -> None:
    with pytest.raises(SampleError if question else OptionError):
        asked(server, {"question": np.array([question])}, strict=True)


def test_all_batches_of_an_actor_share_its_limit(server: FakeServer) -> None:
    batches = [{"question": np.array(questions(10))} for _ in range(3)]
    outs = asked(server, *batches, concurrency=4)
    assert [out["answer"].tolist() for out in outs] == [[str(7 * number) for number in range(10)]] * 3
    assert server.most_in_flight <= 4


def test_messages_are_sent_as_they_are(server: FakeServer) -> None:
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "3 * 5"}]
    column = np.empty(1, object)
    column[0] = messages
    (out,) = asked(server, {"chat": column}, question="chat", temperature=0.5)
    assert out["answer"].tolist() == ["15"]
    assert server.requests[0]["messages"] == messages and server.requests[0]["temperature"] == 0.5


@pytest.mark.slow
def test_tables_come_back_as_tables(server: FakeServer) -> None:
    import pandas  # type: ignore[import-untyped]
    import pyarrow

    data = {"question": [*questions(2), "Who knows?"]}
    frame, table = asked(server, pandas.DataFrame(data), pyarrow.table(data))
    assert frame["answer"].tolist()[:2] == table["answer"].to_pylist()[:2] == ["0", "7"]
    assert table["answer"].null_count == 1 and table["certainty"].type == pyarrow.float64()
    assert frame["question"].tolist() == data["question"]


def test_columns_that_are_there_are_not_written_over(server: FakeServer) -> None:
    gold = {"question": np.array(questions(1)), "answer": np.array(["gold"])}
    with pytest.raises(OptionError, match="prefix must be given: there is a column answer already"):
        asked(server, gold)
    (out,) = asked(server, gold, prefix="vote_")
    assert (out["answer"].tolist(), out["vote_answer"].tolist()) == (["gold"], ["0"])


def test_what_can_not_be_meant_is_refused(server: FakeServer) -> None:
    with pytest.raises(OptionError, match='question must be one of text, not "question"'):
        asked(server, {"text": np.array(["1 * 1"])})
    with pytest.raises(OptionError, match="n can't be set here"):
        suffice.ray.ask(model="fake", n=3)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:`use_.* is deprecated:DeprecationWarning")  # Ray Data's own
def test_the_docs_example_runs_on_ray(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import ray
    import ray.data

    (block,) = re.findall(r"^```py\n(.*?)^```$", DOCS.read_text(), re.DOTALL | re.MULTILINE)
    block = block.replace("http://localhost:8000/v1", server.base_url).replace("size=2", "size=1")
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("RAY_worker_niceness", "0")  # it works while other tests run
    ray.init("local", num_cpus=1, include_dashboard=False, log_to_driver=False, object_store_memory=80 << 20)
    try:
        ray.data.DataContext.get_current().enable_progress_bars = False
        exec(compile(block, str(DOCS), "exec"), {})
        assert "{'id': 2, 'answer': '14', 'certainty': 0.99" in capsys.readouterr().out
    finally:
        ray.shutdown()
