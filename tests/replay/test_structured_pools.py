"""Pools whose answers have fields: how they are read, and replayed field by field."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.commands import works
from helpers.tallies import field_tallies

import suffice
from suffice.elections import field_accuracy
from suffice.executors import get_executor
from suffice.replay.evaluate import METRICS

GOLD = {"city": "Bern", "zip": 3011, "tags": ["a", "b"]}


def responses(seed: int, count: int = 12, right: float = 0.7) -> list[Any]:
    """Objects whose fields are wrong now and then, each for itself; and one response in ten without an answer."""
    random = np.random.default_rng(seed)

    def one() -> Any:
        changed = {"city": "Thun", "zip": 3600, "tags": ["a"]}
        if random.random() < 0.1:
            return None
        return {name: value if random.random() < right else changed[name] for name, value in GOLD.items()}

    return [one() for _ in range(count)]


def line(number: int, **changed: Any) -> dict[str, Any]:
    answers = responses(number)
    return {"id": f"q{number}", "gold": GOLD, "answers": answers, "tokens": [10] * len(answers), **changed}


Write = Callable[..., Path]


def test_structured_answers_are_read_as_such(write_pool: Write) -> None:
    (plain, question) = suffice.load_pool(
        write_pool({"id": "p", "gold": "7", "answers": ["7", '{"n": 1}'], "tokens": None}, line(1))
    ).questions
    assert not plain.structured and plain.answers == ("7", '{"n": 1}')
    assert question.structured and json.loads(question.gold or "") == GOLD
    assert [value for value in question.values if value == GOLD] == [GOLD], "the different answers, once each"
    assert len(question.answers) == 12 and question.answers.count(None) == responses(1).count(None)


def test_the_full_budget_s_figures_are_those_of_an_election(write_pool: Write) -> None:
    pool = suffice.load_pool(write_pool(*map(line, range(4))))
    (result,) = suffice.evaluate(pool, "sc", budget=12, repeats=3)
    expected = []
    for number in range(4):
        election = field_tallies(*responses(number), budget=12).elect()
        expected.append(field_accuracy(election and election.value, GOLD, responses(number)))
    assert result.accuracy == pytest.approx(100 * np.mean([one.whole for one in expected]))
    assert result.field_accuracy == pytest.approx(100 * np.mean([one.share for one in expected]))
    assert (result.agreement, result.samples, result.rounds, result.total_tokens) == (100, 12, 1, 120)


def test_controllers_are_asked_about_every_field(write_pool: Write) -> None:
    easy = [line(number, answers=responses(number, right=0.9)) for number in range(4)]
    pool = suffice.load_pool(write_pool(*easy))
    full, asc, once = suffice.evaluate(pool, ["sc", "asc", "sc:draws=1"], budget=12, repeats=5)
    assert once.samples == 1 < asc.samples < full.samples == 12
    assert (once.field_accuracy or 0) < (asc.field_accuracy or 0) and once.agreement < asc.agreement
    assert asc.accuracy is not None and asc.accuracy <= (asc.field_accuracy or 0)
    assert asc.sequential_tokens == pytest.approx(10 * asc.rounds) and asc.total_tokens == pytest.approx(
        10 * asc.samples
    )
    assert asc.confidence is not None and asc.certainty is not None and asc.reliability is not None


def test_an_easy_field_stops_as_early_as_plain_answers_do(write_pool: Write) -> None:
    answers = [{"n": 1}] * 8 + [{"n": 2}] * 4
    structured = suffice.load_pool(write_pool(line(1, answers=answers, gold={"n": 1})))
    plain = suffice.load_pool(
        write_pool(line(1, answers=[str(one["n"]) for one in answers], gold="1"), name="plain.jsonl")
    )
    for controller in ("asc", "esc", "plan"):
        ours, theirs = (suffice.evaluate(pool, controller, budget=12, repeats=20)[0] for pool in (structured, plain))
        for metric in METRICS:
            if metric != "field_accuracy":
                assert getattr(ours, metric) == pytest.approx(getattr(theirs, metric)), (controller, metric)
    assert theirs.field_accuracy is None and ours.field_accuracy == ours.accuracy


def test_processes_give_the_same_figures_and_pools_may_be_mixed(write_pool: Write) -> None:
    plain = {"id": "p", "gold": "7", "answers": ["7"] * 8 + ["8"] * 4, "tokens": [5] * 12}
    pool = suffice.load_pool(write_pool(line(0), plain, line(1), plain | {"id": "r"}))
    here = suffice.evaluate(pool, ["sc", "asc"], budget=12, repeats=3)
    there = suffice.evaluate(pool, ["sc", "asc"], budget=12, repeats=3, executor=get_executor("processes:workers=2"))
    for one, other in zip(here, there, strict=True):
        for metric, values in one.by_question.items():
            np.testing.assert_array_equal(values, other.by_question[metric])
    assert np.isnan(here[0].by_question["field_accuracy"]).tolist() == [False, True, False, True]


def test_what_a_question_ignores_is_neither_voted_on_nor_graded(write_pool: Write) -> None:
    answers = [{"n": 1, "note": f"note {number}"} for number in range(12)]
    pool = suffice.load_pool(write_pool(line(1, answers=answers, gold={"n": 1}, ignore=["/note"])))
    (result,) = suffice.evaluate(pool, "asc", budget=12, repeats=3)
    assert (result.accuracy, result.field_accuracy, result.agreement) == (100, 100, 100) and result.samples < 6


def test_no_gold_and_no_answer_are_replayed_but_not_in_flow(write_pool: Write) -> None:
    pool = suffice.load_pool(write_pool(line(1, gold=None), line(2, answers=[None] * 12)))
    (result,) = suffice.evaluate(pool, "sc", budget=12, repeats=2)
    assert (result.accuracy, result.field_accuracy, result.agreement) == (0, 0, 100)
    with pytest.raises(suffice.OptionError, match="has structured answers"):
        suffice.evaluate(pool, "asc", budget=12, flow=suffice.Flow())


def test_the_table_shows_the_fields(write_pool: Write, tmp_path: Path) -> None:
    pool, out = write_pool(*map(line, range(3))), tmp_path / "out.json"
    shown = works("evaluate", pool, "--budget", "12", "--repeats", "2", "--controller", "asc", "--json", out)
    assert "fields" in shown and "right %" in shown
    (result,) = json.loads(out.read_text())["results"]
    assert 0 < result["field_accuracy"] <= 100
    assert "fields" not in works("evaluate", "smollm2-135m__arithmetic", "--repeats", "2", "--controller", "asc")
    assert "33.3  66.7" in works("pools", pool), "right: one response in three, and two votes"
