import gzip
import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from suffice import PoolError, bundled_pools, load_pool, summarise
from suffice.pools.pool import signal_columns

Write = Callable[..., Path]
GOOD = {"id": "q", "gold": "1", "answers": ["1", None], "tokens": [3, 4]}


def test_a_line_becomes_a_question(write_pool: Write) -> None:
    pool = load_pool(
        write_pool({**GOOD, "topic": "sums"}, "", {"id": "r", "gold": None, "answers": [], "tokens": None})
    )
    assert (pool.name, len(pool.questions)) == ("toy", 2)
    question = pool.questions[0]
    assert (question.gold, question.answers, question.tokens) == ("1", ("1", None), (3, 4))
    assert question.extra == {"topic": "sums"}


def test_gzip_is_read_alike(write_pool: Write) -> None:
    plain = write_pool(GOOD)
    packed = plain.with_suffix(".jsonl.gz")
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert load_pool(packed) == load_pool(plain)  # the hash too: it is that of the contents


def without(name: str) -> dict[str, object]:
    return {key: value for key, value in GOOD.items() if key != name}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{", ["not JSON"]),
        ("[" * 100_000, ["not JSON"]),
        ([1], ["not a JSON object"]),
        (without("id"), ['"id" is missing']),
        (without("gold"), ['"gold" is missing', "may be null"]),
        (without("answers"), ['"answers" is missing']),
        (without("tokens"), ['"tokens" is missing', "may be null"]),
        ({**GOOD, "id": 7}, ['"id" must be a string', "7"]),
        ({**GOOD, "gold": 7}, ['"gold" must be a string or null']),
        ({**GOOD, "answers": "11"}, ['"answers" must be a list']),
        ({**GOOD, "answers": ["1", 2]}, ['"answers" must hold strings and nulls', "2"]),
        ({**GOOD, "gold": "x", "answers": [{"n": 1}, None]}, ["where one answer is an object or a list, all must be"]),
        ({**GOOD, "gold": {"n": 1}, "answers": ["x", None]}, ["where one answer is an object or a list, all must be"]),
        ({**GOOD, "gold": {"n": 1}, "answers": [1, None]}, ["where one answer is an object or a list, all must be"]),
        ({**GOOD, "tokens": 7}, ['"tokens" must be null or a list']),
        ({**GOOD, "tokens": [1, 2.5]}, ['"tokens" must hold integers', "2.5"]),
        ({**GOOD, "tokens": [1, True]}, ['"tokens" must hold integers', "true"]),
        ({**GOOD, "tokens": [1, -2]}, ['"tokens" must lie between', "-2"]),
        ({**GOOD, "tokens": [1, 10**30]}, ['"tokens" must lie between']),
        ({**GOOD, "tokens": [1]}, ["2 entries", '"tokens" 1']),
        ({**GOOD, "signals": [1, 2]}, ['"signals" must be null or an object of lists', "[1, 2]"]),
        ({**GOOD, "signals": {"tail": 7}}, ['"signals", "tail" must be a list', "7"]),
        ({**GOOD, "signals": {"tail": [1, "2"]}}, ['"signals", "tail" must hold finite numbers', '"2"']),
        ({**GOOD, "signals": {"tail": [1, True]}}, ['"signals", "tail" must hold finite numbers', "true"]),
        ({**GOOD, "signals": {"tail": [1, float("nan")]}}, ['"signals", "tail" must hold finite numbers', "NaN"]),
        ({**GOOD, "signals": {"tail": [1, 10**400]}}, ['"signals", "tail" must hold finite numbers']),
        ({**GOOD, "signals": {"tail": [1]}}, ["2 entries", '"signals", "tail" 1']),
        (GOOD, ["was used before", '"q"']),
    ],
)
def test_a_bad_line_is_named(write_pool: Write, line: object, words: list[str]) -> None:
    path = write_pool(GOOD, line)
    with pytest.raises(PoolError) as caught:
        load_pool(path)
    for word in [f"{path}, line 2:", *words]:
        assert word in str(caught.value)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("toy.jsonl", b"\n  \n", "no questions"),
        ("toy.jsonl", json.dumps(GOOD).encode() + b"\n\xff\n", "line 2: not UTF-8"),
        ("toy.jsonl.gz", b"plain text", "not a whole gzip file"),
        ("toy.jsonl.gz", gzip.compress(json.dumps(GOOD).encode(), mtime=0)[:-9], "not a whole gzip file"),
    ],
)
def test_a_file_that_is_no_pool_is_named(tmp_path: Path, name: str, data: bytes, words: str) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(PoolError, match=words):
        load_pool(tmp_path / name)
    with pytest.raises(PoolError, match="can't be read"):
        load_pool(tmp_path)


def test_a_missing_file_gets_near_misses() -> None:
    with pytest.raises(PoolError, match=r"did you mean qwen2\.5-coder-1\.5b__gsm8k"):
        load_pool("qwen2.5-coder-1.5b_gsm8k")
    with pytest.raises(PoolError, match=r"did you mean qwen2\.5-coder-0\.5b__gsm8k or qwen2\.5-coder-1\.5b__gsm8k\?"):
        load_pool("gsm8k")
    with pytest.raises(PoolError, match='"suffice pools" lists'):
        load_pool("nothing/like/it.jsonl")


def test_bundled_pools_are_as_their_card_says() -> None:
    bundled = bundled_pools()
    folder = next(iter(bundled.values())).parent
    entries = [entry for card in folder.glob("CARD*.json") for entry in json.loads(card.read_text())["pools"].values()]
    assert len(bundled) == len(entries) == 9
    for entry in entries:
        name = entry["file"].removesuffix(".jsonl")
        assert hashlib.sha256(gzip.decompress(bundled[name].read_bytes())).hexdigest() == entry["sha256"]
        questions = load_pool(name).questions
        assert len(questions) == entry["questions"]
        assert {len(question.answers) for question in questions} == {entry["samples_per_question"]}


def test_signals_are_numbers_for_each_response(write_pool: Write) -> None:
    columns = signal_columns([{"tail": 2}, {"logprob": -0.5}])
    (question,) = load_pool(write_pool({**GOOD, "signals": columns})).questions
    assert question.signals == {"tail": (2, None), "logprob": (None, -0.5)} and "signals" not in question.extra
    np.testing.assert_equal(question.signal_values["tail"], [2, np.nan])
    for without in (GOOD, {**GOOD, "signals": None}):
        assert load_pool(write_pool(without)).questions[0].signal_values == {}


def test_lengths_are_known_or_not(write_pool: Write) -> None:
    lines = [{**GOOD, "tokens": [3, None]}, {**GOOD, "id": "r", "tokens": None}]
    questions = load_pool(write_pool(*lines)).questions
    assert [question.tokens for question in questions] == [(3, None), None]
    np.testing.assert_equal([question.lengths for question in questions], [[3, np.nan], [np.nan, np.nan]])


def test_summary_of_a_pool(write_pool: Write) -> None:
    path = write_pool(
        {"id": "a", "gold": "1", "answers": ["1", "1", "2", None], "tokens": [1, 2, 3, None]},
        {"id": "b", "gold": "2", "answers": ["1", "1", "1", "2"], "tokens": None},
        {"id": "c", "gold": None, "answers": ["1", "1"], "tokens": [4, 10]},
    )
    summary = summarise(load_pool(path))
    assert (summary.questions, summary.samples) == (3, (2, 4))
    assert summary.one_sample_accuracy == pytest.approx(100 * (2 / 4 + 1 / 4) / 2)
    assert summary.majority_accuracy == 50
    assert summary.entropy == pytest.approx((0.6365 + 0.5623 + 0) / 3, abs=1e-4)
    assert summary.none_share == pytest.approx(10)
    assert summary.mean_tokens == 4
    assert summary.tokens_95 == pytest.approx(8.8)


def test_summary_of_a_pool_that_tells_nothing(write_pool: Write) -> None:
    summary = summarise(load_pool(write_pool({"id": "a", "gold": None, "answers": [], "tokens": None})))
    assert (summary.one_sample_accuracy, summary.majority_accuracy, summary.mean_tokens) == (None, None, None)
