"""`reproduce elections`: every election that a pool has the signals for, at every stop, against the plain vote."""

from dataclasses import replace
from pathlib import Path

import pytest

from suffice import Pool, difference, evaluate, load_pool
from suffice.experiments import Bench
from suffice.experiments.elections import elections
from suffice.report.markdown import Page

SMALL, LARGE = (f"qwen2.5-coder-{size}__gsm8k" for size in ("0.5b", "1.5b"))


def part_of(name: str, questions: int) -> Pool:
    pool = load_pool(name)
    return replace(pool, questions=pool.questions[:questions])


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(
        train=(part_of("qwen2.5-coder-0.5b__train", 30), part_of("qwen2.5-coder-1.5b__train-signals", 30)),
        test=(part_of(SMALL, 20), part_of(LARGE, 20)),
        out=tmp_path_factory.mktemp("elections"),
        repeats=6,
    )


@pytest.fixture(scope="module")
def page(bench: Bench) -> Page:
    return elections(bench)


def line(page: Page, start: str, after: str = "") -> list[str]:
    """The cells of the first line of a table, below these words, that starts so."""
    lines = page.text[page.text.index(after) :].splitlines()
    return next(found for found in lines if found.startswith(f"| {start}")).strip("| ").split(" | ")


def test_each_pool_has_the_elections_that_it_has_signals_for(page: Page) -> None:
    signals, tokens = ({row["election"] for row in page.rows if row["pool"] == pool} for pool in (SMALL, LARGE))
    assert {"majority", "weighted:signal=tail,strength=0.4", "deepconf:signal=tail,keep=10"} <= signals
    assert {f"learned from {who}, by gold" for who in ("the same model", "another model")} <= signals
    assert tokens < signals and all("length" in name or "learned" in name or name == "majority" for name in tokens)
    learned = zip(line(page, "for | election"), line(page, LARGE, after="strengths"), strict=True)
    told = {head for head, cell in learned if cell.strip()}
    assert told == {"for", "election", "length"}, "the pool tells nothing else"


def test_figures_are_those_of_evaluate(page: Page, bench: Bench) -> None:
    for row in page.rows:
        if row["stop"] == "plan" and row["election"] in ("majority", "weighted:signal=length,strength=-0.4"):
            pool = next(pool for pool in bench.test if pool.name == row["pool"])
            (result,) = evaluate(pool, "plan", repeats=6, elect=row["election"], confidence=False)
            gap = difference([result], evaluate(pool, "sc", repeats=6, confidence=False), "accuracy")
            assert gap is not None
            figures = [row[name] for name in ("accuracy", "samples", "gain", "gain_low", "gain_high")]
            assert figures == pytest.approx([result.accuracy, result.samples, gap.mean, gap.low, gap.high])


def test_gains_are_over_the_plain_vote_of_the_full_budget(page: Page) -> None:
    first = page.rows[0]
    assert (first["pool"], first["stop"], first["election"]) == (SMALL, "SC@32", "majority")
    assert (first["gain_low"], first["gain"], first["gain_high"]) == (0, 0, 0)
    for words in ("At the stops of SC@32", "At the stops of plan for 16 samples", "32.0 samples on"):
        assert words in page.text
    assert "learned from another model" in page.text
    tail = line(page, "weighted:signal=tail,strength=0.4", after="At the stops of plan")
    assert tail[1] != "–" and tail[2:] == ["–", "–"], "one of the pools hasn't got it, and so they have no mean"


def test_nothing_to_elect_is_said(tmp_path: Path, bench: Bench) -> None:
    structured = replace(bench.test[0], questions=tuple(replace(q, structured=True) for q in bench.test[0].questions))
    assert "Skipped" in elections(replace(bench, test=(structured,))).text
