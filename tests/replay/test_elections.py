"""Elections in a replay: stopping by counts as ever, and accuracy of what is elected by weight."""

import json
from pathlib import Path

import numpy as np
import pytest
from helpers.commands import fails, suffice

from suffice import Flow, Pool, PoolError, Question, compare, evaluate, get_controller, load_pool
from suffice.elections import get_election
from suffice.pools import draw_episodes
from suffice.replay.run import replay

POOL = "qwen2.5-coder-0.5b__gsm8k"
ELECT = "weighted:signal=tail,strength=1"


def toy(signals: dict[str, tuple[float | None, ...]] | None = None, tokens: tuple[int, ...] | None = None) -> Pool:
    """The wrong answer has more votes, and the right one is surer."""
    return Pool("toy", (Question("q", "right", ("wrong",) * 5 + ("right",) * 3, tokens, signals=signals or {}),))


def test_the_elected_is_what_accuracy_is_of_and_nothing_else_changes() -> None:
    pool = toy({"sure": (1.0,) * 5 + (9.0,) * 3})
    plain, weighed = (
        evaluate(pool, ["sc", "asc"], budget=8, repeats=20, elect=elect)
        for elect in ("majority", "weighted:signal=sure,strength=2")
    )
    assert [result.accuracy for result in plain] == [0, pytest.approx(plain[1].accuracy)]
    assert weighed[0].accuracy == 100 and (weighed[1].accuracy or 0) > (plain[1].accuracy or 0)
    for before, after in zip(plain, weighed, strict=True):
        assert (before.election, after.election) == ("majority", "weighted:signal=sure,strength=2")
        for metric, values in before.by_question.items():
            if metric != "accuracy":
                np.testing.assert_array_equal(values, after.by_question[metric])


@pytest.mark.parametrize("flow", [None, Flow(), Flow("arrival", 4)])
def test_it_is_as_electing_one_by_one_from_the_draws_that_count(flow: Flow | None) -> None:
    loaded = load_pool(POOL)
    pool = Pool("some", loaded.questions[:3])
    (episodes,) = draw_episodes(pool, 32, 5, 0)
    election, controller = get_election(ELECT), get_controller("asc")
    outcomes = replay(episodes, controller, flow)
    elected = outcomes.elected(election).answer
    assert (elected != outcomes.answer).any(), "else this shows nothing"
    for row, samples in enumerate(outcomes.samples):
        drawn = outcomes.episodes.orders[row // 5, :samples, row % 5]
        assert len({*outcomes.episodes.orders[row // 5, :, row % 5]}) == 32, "each draw once"
        question = episodes.question(row)
        signals = {name: values[drawn] for name, values in question.signal_values.items()}
        assert elected[row] == election.elect(question.codes[drawn], signals, question.lengths[drawn])


def test_a_comparison_is_with_the_plain_vote() -> None:
    (pool,) = compare(POOL, ["sc"], repeats=5, elect=ELECT)
    (plain,) = evaluate(POOL, "sc", repeats=5)
    assert pool.baseline.accuracy == plain.accuracy != pool.results[0].accuracy
    assert (pool.baseline.election, pool.results[0].election) == ("majority", ELECT)


def test_a_pool_without_the_signal_is_refused() -> None:
    unknown = toy({"tail": (None,) * 8, "other": (1.0,) * 8})
    with pytest.raises(PoolError, match=r'toy has no signal "tail", which the election needs: it has other$'):
        evaluate(unknown, "sc", budget=8, elect="weighted:signal=tail")
    with pytest.raises(PoolError, match=r'toy has no signal "length", which the election needs: it has none$'):
        evaluate(toy(), "sc", budget=8, elect="weighted:signal=length")
    structured = Pool("forms", (Question("q", None, ('{"a": 1}',) * 8, (3,) * 8, structured=True),))
    with pytest.raises(PoolError, match="forms has structured answers, which are elected field by field"):
        evaluate(structured, "sc", budget=8, elect="weighted:signal=length")


def test_length_is_the_number_of_tokens() -> None:
    pool = toy(tokens=(90,) * 5 + (10,) * 3)
    for strength, accuracy in ((-2, 100), (2, 0)):
        (result,) = evaluate(pool, "sc", budget=8, repeats=3, elect=f"weighted:signal=length,strength={strength}")
        assert result.accuracy == accuracy


def test_evaluate_elects_on_the_command_line(tmp_path: Path) -> None:
    page, table = tmp_path / "r.json", tmp_path / "r.csv"
    options: list[str | Path] = ["--controller", "sc", "--repeats", "5", "--json", page, "--csv", table]
    done = suffice("evaluate", POOL, *options, "--elect", ELECT)
    assert "elected by weighted:signal=tail" in " ".join(done.stdout.split())
    written = json.loads(page.read_text())
    assert (written["elect"], written["results"][0]["election"]) == (ELECT, ELECT)
    assert written["results"][0]["differences"]["samples"]["mean"] == 0
    assert table.read_text().splitlines()[0].endswith(",election")
    assert 'has no signal "tail"' in fails("evaluate", "smollm2-135m__arithmetic", "--elect", ELECT)
    assert 'unknown election "best"' in fails("evaluate", POOL, "--elect", "best")
    assert "--learn" in fails("evaluate", POOL, "--learn", "--elect", ELECT)
