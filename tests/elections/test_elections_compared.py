"""`reproduce elections`: every election that a pool has the signals for, at every stop, against the plain vote."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from suffice import Pool, evaluate, load_pool
from suffice.experiments import Bench
from suffice.experiments.elections import ElectionResult, elections, elections_page, gain

MODEL = "qwen2.5-coder-0.5b"


def part_of(name: str, questions: int) -> Pool:
    pool = load_pool(name)
    return replace(pool, questions=pool.questions[:questions])


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(
        train=(part_of(f"{MODEL}__train", 30), part_of("qwen2.5-coder-1.5b__train-signals", 30)),
        test=(part_of(f"{MODEL}__gsm8k", 20), part_of("qwen2.5-coder-1.5b__gsm8k", 20)),
        out=tmp_path_factory.mktemp("elections"),
        repeats=6,
    )


@pytest.fixture(scope="module")
def found(bench: Bench) -> list[ElectionResult]:
    return elections(bench)


def names(found: list[ElectionResult], pool: str) -> set[str]:
    return {one.election for one in found if one.pool == pool}


def test_each_pool_has_the_elections_that_it_has_signals_for(found: list[ElectionResult]) -> None:
    signals, tokens = names(found, f"{MODEL}__gsm8k"), names(found, "qwen2.5-coder-1.5b__gsm8k")
    assert {"majority", "weighted:signal=tail,strength=0.4", "deepconf:signal=tail,keep=10"} <= signals
    assert {f"learned from {who}, by gold" for who in ("the same model", "another model")} <= signals
    assert tokens < signals and all("length" in name or "learned" in name or name == "majority" for name in tokens)
    for one in found:
        if one.election.startswith("learned") and one.pool == "qwen2.5-coder-1.5b__gsm8k":
            assert set(one.strengths) == {"length"}, "the pool tells nothing else"


def test_figures_are_those_of_evaluate(found: list[ElectionResult], bench: Bench) -> None:
    for one in found:
        if one.stop == "plan" and one.election in ("majority", "weighted:signal=length,strength=-0.4"):
            pool = next(pool for pool in bench.test if pool.name == one.pool)
            (result,) = evaluate(pool, "plan", repeats=6, elect=one.election, confidence=False)
            np.testing.assert_allclose(one.accuracy, result.by_question["accuracy"])
            assert one.samples == pytest.approx(result.samples)


def test_gains_are_over_the_plain_vote_of_the_full_budget(found: list[ElectionResult], bench: Bench) -> None:
    pool = f"{MODEL}__gsm8k"
    plain = gain(found, [pool], "SC@32", "majority")
    assert plain is not None and (plain.low, plain.mean, plain.high) == (0, 0, 0)
    page = elections_page(found, bench)
    text, rows = page.text, page.rows
    assert len(rows) == len(found) and rows[0]["gain"] == 0
    for words in (
        "At the stops of SC@32",
        "At the stops of plan for 16 samples",
        "32.0 samples on",
        "learned from another model",
    ):
        assert words in text
    both = gain(found, [pool, "qwen2.5-coder-1.5b__gsm8k"], "plan", "weighted:signal=tail,strength=0.4")
    assert both is None, "one of the pools hasn't got it"


def test_nothing_to_elect_is_said(tmp_path: Path, bench: Bench) -> None:
    structured = replace(bench.test[0], questions=tuple(replace(q, structured=True) for q in bench.test[0].questions))
    assert "Skipped" in elections_page(elections(replace(bench, test=(structured,))), bench).text
