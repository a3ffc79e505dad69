"""The probability to be right and its thresholds: what they promise, and the file that they are kept in."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.labels import calibration
from helpers.tallies import tally_of

from suffice import Calibration, OptionError, Tally, calibrate, load_calibration
from suffice.planning.right import SignalScale, learn

KNOWN = Calibration(-0.2, 0.9, np.array([0.5, 3.0]), np.array([0, 1]))


def voted(*answers: str | None) -> Tally:
    return tally_of(answers)


def test_agreement_makes_an_answer_likelier_and_draws_without_one_make_it_less() -> None:
    split, most, all_of_them, many = (KNOWN.right(voted(*votes)) or 0.0 for votes in ("aabb", "aaab", "aaaa", "a" * 16))
    assert 0 < split < most < all_of_them < many < 1
    assert (KNOWN.right(voted("a", "a", "a", None)) or 0) < most


def test_nothing_is_said_where_there_is_no_answer() -> None:
    assert KNOWN.right(voted(None, None)) is None
    assert KNOWN.right(Tally()) is None


def test_a_signal_counts_where_it_was_learned_from_and_is_known() -> None:
    signal = Calibration(0.0, 1.0, KNOWN.scores, KNOWN.truths, SignalScale("lowest", 9.0, 1.0))
    vote = voted(*"aaab")
    low, usual, high = (signal.right(vote, value) or 0.0 for value in (8.0, 9.0, 10.0))
    assert low < usual < high
    assert signal.right(vote) == usual
    assert signal.right(vote, 1e9) == signal.right(vote, 12.0)
    assert KNOWN.right(vote, 8.0) == KNOWN.right(vote)


def test_without_a_wrong_one_a_threshold_takes_as_many_labels_as_the_tail_says() -> None:
    assert calibration([2.0] * 21, [1] * 21).threshold(0.1, 0.9) is None
    found = calibration([2.0] * 22, [1] * 22).threshold(0.1, 0.9)
    assert found == pytest.approx(1 / (1 + np.exp(-2.0)))


def test_what_is_wrong_among_the_less_sure_is_not_answered() -> None:
    scores = [3.0] * 40 + [1.0] * 40 + [-1.0] * 40
    truths = [1] * 40 + [1, 0] * 20 + [0] * 40
    found = calibration(scores, truths)
    strict, mild = found.threshold(0.1), found.threshold(0.4)
    assert strict is not None and mild is not None
    assert found.at(1.0) < strict <= found.at(3.0)
    assert found.at(-1.0) < mild <= found.at(1.0)
    assert found.threshold(0.01) is None


def test_the_promise_is_kept_as_often_as_it_says() -> None:
    random = np.random.default_rng(5)
    scores = random.normal(1.2, 1.5, (400, 100))
    truths = random.random(scores.shape) < 1 / (1 + np.exp(-scores))
    many = np.sort(random.normal(1.2, 1.5, 200_000))
    wrong = 1 - 1 / (1 + np.exp(-many))
    broken = 0
    for labels, right in zip(scores, truths, strict=True):
        found = calibration(labels, right).threshold(0.15, 0.9)
        if found is not None:
            broken += wrong[many >= np.log(found / (1 - found))].mean() > 0.15
    assert 0 < broken <= 400 * 0.1


@pytest.mark.parametrize("surest", [0.12, 0.3])
def test_it_is_kept_even_where_the_surest_are_wrong_more_often(surest: float) -> None:
    """Those above come to just too many wrong ones: what is answered by chance alone breaks the promise."""
    random = np.random.default_rng(6)
    share, risk, labels = 0.2, 0.1, 100
    wrong = np.array([surest, (risk + 0.001 - share * surest) / (1 - share)])
    broken = 0
    for _ in range(400):
        less = (random.random(labels) >= share).astype(int)
        truths = random.random(labels) >= wrong[less]
        broken += calibration(2.0 - less, truths).threshold(risk, 0.9) is not None
    assert broken <= 400 * 0.1


def test_labels_move_what_is_expected_and_few_of_them_move_it_less() -> None:
    random = np.random.default_rng(1)
    scores = random.normal(1, 2, (1000, 1))
    truths = (random.random(scores.shape) < 1 / (1 + np.exp(-(0.8 * scores - 1.5)))).astype(float)
    level, slope = learn(scores, truths)
    assert (level, slope) == pytest.approx((-1.5, 0.8), abs=0.15)
    few, _ = learn(scores[:5], truths[:5])
    assert abs(few - level) > 0.2


def test_even_labels_against_all_expectation_leave_a_slope_above_zero() -> None:
    scores = np.linspace(-3, 3, 100)[:, None]
    assert learn(scores, (scores < 0).astype(float))[1] > 0


@pytest.mark.parametrize(("risk", "confidence"), [(0, 0.9), (1, 0.9), (0.1, 0), (0.1, 1), (10, 0.9), ("a", 0.9)])
def test_shares_that_are_none_are_refused(risk: Any, confidence: float) -> None:
    with pytest.raises(OptionError, match="must be between 0 and 1"):
        KNOWN.threshold(risk, confidence)


def test_a_file_gives_the_same_calibration_back(tmp_path: Path) -> None:
    known = calibrate("qwen2.5-coder-1.5b__train-signals", questions=60)
    known.save(tmp_path / "it.json")
    loaded = load_calibration(tmp_path / "it.json")
    vote = voted(*"aaab")
    assert loaded.signal == known.signal and known.signal and known.signal.name == "lowest"
    assert loaded.right(vote, 9.0) == known.right(vote, 9.0)
    assert [loaded.threshold(risk) for risk in (0.1, 0.3)] == [known.threshold(risk) for risk in (0.1, 0.3)]
    assert loaded.card["labels"] == 60


def test_a_newer_format_and_files_that_are_none_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "it.json"
    KNOWN.save(path)
    told = json.loads(path.read_text())
    changes: list[dict[str, Any]] = [{"kind": "weights"}, {"slope": -1.0}, {"truths": [1, 2]}, {"scores": [1.0]}]
    changes += [{"truths": [1, float("inf")]}, {"signal": {"name": "tail"}}]
    broken = ["", "[]", "{}", '{"kind": "calibration", "format": 1}', *(json.dumps(told | one) for one in changes)]
    for text, message in [(json.dumps(told | {"format": 2}), "newer"), *((text, "not a whole") for text in broken)]:
        path.write_text(text)
        with pytest.raises(OptionError, match=message):
            load_calibration(path)
