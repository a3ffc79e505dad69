"""Pools from files of others: what is taken, what is dropped and why, and what is refused."""

import gzip
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers.commands import fails, works

import suffice
from suffice.importing.formats import TableColumns

Write = Callable[..., Path]


def answers(made: suffice.Imported) -> dict[str, tuple[str | None, ...]]:
    return {question.id: question.answers for question in made.pool.questions}


def sample(identity: str, answer: str | None, **fields: Any) -> dict[str, Any]:
    """A sample of an Inspect log, with what is read of it."""
    choice = {"message": {"role": "assistant", "content": f"ANSWER: {answer}"}, "stop_reason": "stop"}
    output = {"choices": [choice], "completion": f"ANSWER: {answer}", "usage": {"output_tokens": 5}}
    scores = {"match": {"value": "C", "answer": answer}}
    return {"id": identity, "epoch": 1, "target": "0.5", "output": output, "scores": scores, **fields}


def test_inspect_logs_packed_by_deflate_need_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "log.eval"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as log:
        log.writestr("header.json", "{}")
        for epoch, answer in [(10, "3"), (1, "1/2"), (2, "0.5")]:
            log.writestr(f"samples/q_epoch_{epoch}.json", json.dumps(sample("q", answer)))
    made = suffice.import_pool(path)
    assert answers(made) == {"q": ("0.5", "0.5", "3")}
    assert made.pool.questions[0].tokens == (5, 5, 5)
    with zipfile.ZipFile(path, "a") as log:
        log.writestr("samples/q.json", json.dumps(sample("q", "3")))
    with pytest.raises(suffice.PoolError, match="no whole Inspect log"):
        suffice.import_pool(path)


def test_a_response_that_was_cut_off_has_no_answer_where_answers_are_extracted(write_pool: Write) -> None:
    cut = sample("q", None)
    cut["output"]["choices"][0]["stop_reason"] = "max_tokens"
    cut["scores"] = {}
    log = write_pool({"samples": [sample("q", "4"), cut, sample("q", "4", error={"message": "no"})]}, name="log.json")
    made = suffice.import_pool(log)
    assert answers(made) == {"q": ("4", None)}
    assert made.dropped == {"ended in an error": 1}


def harness(doc: int, texts: list[Any], filtered: list[Any], **fields: Any) -> dict[str, Any]:
    record = {"doc_id": doc, "doc": {}, "target": "6 * 7 = 42\n#### 42", "arguments": {}, "resps": [texts]}
    return record | {"filtered_resps": filtered, "filter": "strict-match", "exact_match": 1.0} | fields


def test_harness_samples_with_repeats(write_pool: Write) -> None:
    path = write_pool(
        harness(0, ["It is #### 42", "Hm.", "It is #### 41"], [["42", "[invalid]", "41"]]),
        harness(0, ["It is #### 42", "Hm.", "It is #### 41"], [["42", "7", "41"]], filter="flexible-extract"),
        harness(1, [r"\boxed{42}", "So the answer is 42.0"], ["42"]),
        harness(2, [[-1.5, False], [-2.0, True]], []),
        name="samples_gsm8k.jsonl",
    )
    made = suffice.import_pool(path)
    assert answers(made) == {"0": ("42", None, "41"), "1": ("42", "42")}, "a filter that took the first is not used"
    assert {question.gold for question in made.pool.questions} == {"42"}
    assert made.taken == 5
    assert made.dropped == {"there again by another filter": 3, "no text but a likelihood": 2}


def batch(custom: str, *texts: str, **fields: Any) -> dict[str, Any]:
    choices = [{"message": {"content": text}, "finish_reason": "stop"} for text in texts]
    body = {"choices": choices, "usage": {"completion_tokens": 9}}
    return {"custom_id": custom, "response": {"status_code": 200, "body": body}, "error": None, **fields}


def test_batches_with_several_choices_or_a_suffix(write_pool: Write) -> None:
    gold = write_pool({"id": "q", "gold": "42.0"}, name="gold.jsonl")
    several = write_pool(batch("q", r"\boxed{42}", r"\boxed{41}"), name="several.jsonl")
    made = suffice.import_pool(several, gold=gold)
    assert answers(made) == {"q": ("42", "41")}
    assert made.pool.questions[0].tokens is None and made.pool.questions[0].gold == "42"
    failed = batch("q-2", "", response={"status_code": 500, "body": {}})
    path = write_pool(batch("q-0", r"\boxed{42}"), batch("q-1", r"\boxed{41}"), failed, name="one.jsonl")
    made = suffice.import_pool(path, suffix="-")
    assert answers(made) == {"q": ("42", "41")}
    assert made.pool.questions[0].tokens == (9, 9)
    assert made.dropped == {"failed at the server": 1}


def test_batches_of_responses(write_pool: Write) -> None:
    body = {"output": [{"type": "reasoning"}, {"content": [{"text": r"\boxed{42}"}]}], "usage": {"output_tokens": 3}}
    path = write_pool({"custom_id": "q", "response": {"status_code": 200, "body": body}}, name="out.jsonl")
    assert answers(suffice.import_pool(path)) == {"q": ("42",)}


def test_tables(tmp_path: Path, write_pool: Write) -> None:
    table = write_pool("id,said,n,truth", "q,1/2,20,0.5", 'q,"So it is\nthe 7",,0.5', ",3,4,5", "r,,1,", name="t.csv")
    made = suffice.import_pool(table, columns=TableColumns("id", "said", "n", "truth"), answer="number")
    assert answers(made) == {"q": ("0.5", "7"), "r": (None,)}
    assert made.pool.questions[0].tokens == (20, None) and made.pool.questions[0].gold == "0.5"
    assert made.dropped == {"no question named": 1}
    assert answers(suffice.import_pool(table, columns=TableColumns("id", "said"), fewest=2)).keys() == {"q"}
    packed = tmp_path / "t.csv.gz"
    packed.write_bytes(gzip.compress(b"question,answer\nq,1\n"))
    assert answers(suffice.import_pool(packed)) == {"q": ("1",)}


@pytest.mark.slow
def test_parquet(tmp_path: Path, write_pool: Write) -> None:
    import pyarrow
    from pyarrow import parquet

    columns = {"question": ["q", "q"], "answer": ["1/2", None], "tokens": [3, None]}
    parquet.write_table(pyarrow.table(columns), tmp_path / "t.parquet")
    made = suffice.import_pool(tmp_path / "t.parquet")
    assert answers(made) == {"q": ("0.5", None)} and made.pool.questions[0].tokens == (3, None)
    refused = fails("import", write_pool("hello", name="a.parquet"), "--out", tmp_path / "pool.jsonl")
    assert "it is no Parquet file that can be read: " in refused


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.jsonl", '{"custom_id": "q", "response": {}}\n{"custom', "line 2: not JSON"),
        ("a.jsonl", '{"doc_id": 1, "target": "1"}', 'line 1: the field "resps" is missing'),
        (
            "a.csv",
            "question,text\nq,1",
            'line 2: there is no column "answer"; there are question, text: name one by --answer-column',
        ),
        ("a.csv", "question,answer,tokens\nq,1,3\nq,1,many", "line 3: tokens must be a whole number, 0 or more"),
        ("a.csv", "question,answer", "there is no response in it that can be taken"),
        ("a.csv", "question,answer,tokens\nq,1,inf", "line 2: tokens must be a whole number, 0 or more"),
        ("a.csv", 'question,answer\nq1,"unclosed\nq1,3\n', "unexpected end of data"),
        ("a.csv", "question,answer,answer\nq1,3,4\n", 'two columns "answer"'),
        ("a.csv", "question,answer\nq1,3,4\n", "line 2: it has not 2 fields"),
        ("a.csv", "question,answer\nq1\n", "line 2: it has not 2 fields"),
        ("a.csv", "", "it is empty; give a file with responses in it"),
        ("a.eval", " \n", "it is empty"),
        ("a.txt", "\0\0", "neither UTF-8 text nor a whole Inspect log or Parquet file"),
        ("a.eval", "PK\0", "neither UTF-8 text nor a whole Inspect log or Parquet file"),
        ("a.csv", "\0\0", "neither UTF-8 text nor a whole Inspect log or Parquet file"),
        ("a.eval", "hello", "no Inspect log"),
        ("a.json", "[]", "no Inspect log"),
        ("a.json", '{"samples": [1]}', "it is JSON, and not as inspect writes it"),
        ("a.jsonl", '{"custom_id": "q", "response": 3}', "it is JSON, and not as openai-batch writes it"),
    ],
)
def test_what_can_t_be_read_is_named_with_its_line(tmp_path: Path, name: str, text: str, said: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(suffice.PoolError) as refused:
        suffice.import_pool(path)
    assert str(refused.value).startswith(str(path)) and said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_what_is_no_file_or_of_no_known_format_is_refused_with_what_to_give(tmp_path: Path, write_pool: Write) -> None:
    out = ["--out", str(tmp_path / "pool.jsonl")]
    assert f"{tmp_path}: it is a folder; give the files in it, as in {tmp_path}/*" in fails("import", tmp_path, *out)
    assert "none.csv: there is no such file" in fails("import", tmp_path / "none.csv", *out)
    for name in ("a.jsonl", "a.txt"):
        cut = write_pool('{"custom_id": "q"', name=name)
        assert f"--from must be one of inspect, lm-eval, openai-batch, csv, parquet for {cut}" in fails(
            "import", cut, *out
        )


def test_the_command_says_what_it_took_and_evaluate_takes_the_pool(tmp_path: Path, write_pool: Write) -> None:
    rows = [f"q{question},{(question * draw) % 3},{draw}" for question in range(3) for draw in range(8)]
    table = write_pool("question,answer,tokens", *rows, ",1,1", name="t.csv")
    out = tmp_path / "pool.jsonl"
    said = works("import", table, "--out", out)
    assert "24 responses to 3 questions were taken" in said and "Dropped 1: no question named." in said
    (result,) = suffice.evaluate(out, "asc", budget=8, repeats=2)
    assert result.samples <= 8
    assert "--from must be one of inspect" in fails("import", table, "--out", out, "--from", "excel")
