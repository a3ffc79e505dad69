"""Learning from labels how often votes are right: from which, how true it is, and what the command tells."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers.commands import fails, suffice, works
from helpers.labels import easy_and_hard, wrongly_sure

from suffice import OptionError, Pool, PoolError, Tally, calibrate, get_controller, load_calibration
from suffice.pools import draw_episodes
from suffice.replay.calibrating import calibration_of, cross_judge, expected_error, judge, labelled_votes
from suffice.replay.run import run

POOL = easy_and_hard()


def test_what_it_says_is_true_where_it_was_not_learned() -> None:
    known = calibrate(POOL)
    judged = judge(known, labelled_votes(easy_and_hard(400, seed=1)))
    assert judged.calibration_error < 0.07
    assert judged.brier < judged.brier_of_mean
    assert judged.auroc is not None and judged.auroc > 0.8


def test_a_model_that_is_sure_of_what_is_wrong_is_less_likely_to_be_right() -> None:
    tally = Tally()
    tally.add_round(["42"] * 4)
    honest, misled = calibrate(POOL).right(tally), calibrate(wrongly_sure(POOL, 0.4)).right(tally)
    assert honest and misled and misled < honest - 0.2


def test_arrays_and_single_tallies_are_worth_the_same() -> None:
    votes, known = labelled_votes(POOL), calibrate(POOL)
    controller = get_controller("plan")
    (episodes,) = draw_episodes(POOL, 32, votes.draws.shape[1], 0)
    told = judge(known, votes).right
    for question in range(0, len(POOL), 10):
        tally = run(controller, episodes.row(question * votes.draws.shape[1]))
        assert known.right(tally) == pytest.approx(told[question])


def test_a_number_of_questions_or_their_ids_may_be_learned_from() -> None:
    by_number, again, other = (calibrate(POOL, questions=40, seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(by_number.scores, again.scores) and by_number.level == again.level
    assert len(calibrate(POOL, questions=np.int64(40)).scores) == 40  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="questions must be a whole number"):
        calibrate(POOL, questions=0.5)  # type: ignore[arg-type]
    assert len(by_number.scores) == 40 and not np.array_equal(by_number.scores, other.scores)
    named = calibrate(POOL, questions=[question.id for question in POOL.questions[:50]])
    assert len(named.scores) == 50
    assert len(calibrate(POOL, questions=1000).scores) == len(POOL)
    with pytest.raises(OptionError, match='"q-none", and no question of that id'):
        calibrate(POOL, questions=["q-none"])


def test_too_few_labels_and_answers_with_fields_are_refused() -> None:
    unlabelled = Pool(
        "some", tuple(replace(one, gold=one.gold if place < 29 else None) for place, one in enumerate(POOL))
    )
    with pytest.raises(PoolError, match="29 questions with a gold answer are too few"):
        calibrate(unlabelled)
    with pytest.raises(PoolError, match="too few"):
        calibrate(POOL, questions=29)
    fields = replace(POOL, questions=(replace(POOL.questions[0], structured=True),))
    with pytest.raises(PoolError, match="have fields"):
        calibrate(fields)
    others = tuple(replace(one, id=f"s{one.id}") for one in easy_and_hard(responses=20).questions)
    with pytest.raises(PoolError, match=r'^short: question "sq0" has 20 answers'):
        calibrate([POOL, Pool("short", others)])


def test_pools_are_taken_for_one_and_a_question_counts_once_over_all() -> None:
    other = easy_and_hard(80, seed=3)  # under the same name
    others = tuple(replace(one, id=f"other {one.id}") for one in other.questions)
    assert len(calibrate([POOL, replace(other, questions=others)]).scores) == 200
    twice = calibrate([POOL, POOL])
    assert len(twice.scores) == len(POOL) and twice.card["repeated"] == len(POOL)
    assert twice.threshold(0.05) == calibrate(POOL).threshold(0.05)
    texts = tuple(replace(one, id=f"new {one.id}", extra={"question": "same"}) for one in POOL.questions)
    assert len(calibrate([POOL, replace(POOL, questions=texts)]).scores) == len(POOL) + 1


@pytest.mark.parametrize("first", [0, 1])
def test_a_signal_is_learned_from_where_all_pools_have_it(first: int) -> None:
    pools = ["qwen2.5-coder-1.5b__train-signals", "qwen2.5-coder-1.5b__train"]
    assert calibrate(pools[0]).signal
    both = calibrate([pools[first], pools[1 - first]])
    assert both.signal is None and both.card["repeated"] == 200


def test_cross_judging_learns_nothing_from_what_it_judges() -> None:
    votes = labelled_votes(POOL)
    known = calibration_of(votes)
    judged, fitted = cross_judge(known, votes), judge(known, votes)
    assert judged.accuracy == fitted.accuracy
    assert not np.allclose(judged.right, fitted.right)
    assert judged.auroc == fitted.auroc, "how votes rank is not learned"
    shares = [share for share, _, _ in judged.risks()]
    assert shares == sorted(shares, reverse=True) and shares[0] == 1


def test_the_order_of_a_pool_makes_no_error_where_probabilities_are_equal() -> None:
    truths = np.repeat([1.0, 0.0], 500)
    assert expected_error(np.full(1000, 0.5), truths) < 0.05
    assert expected_error(np.full(1000, 0.8), truths) == pytest.approx(0.3)


def test_the_command_writes_and_tells(tmp_path: Path) -> None:
    out, figure, report, told = (tmp_path / name for name in ("it.json", "it.png", "it.html", "told.json"))
    pool = "qwen2.5-coder-1.5b__gsm8k"
    printed = works(
        "calibrate", pool, "--labels", "80", "--out", out, "--figure", figure, "--report", report, "--json", told
    )
    for words in ("Reliability", "Risk and coverage", "Promised with 90% confidence", "AUROC", "Brier", "--right"):
        assert words in printed
    assert len(load_calibration(out).scores) == 80
    page = json.loads(told.read_text())
    assert page["labels"] == 80 and {one["risk"] for one in page["promises"]} >= {0.05, 0.1}
    assert figure.stat().st_size and "How often votes are right" in report.read_text()


def test_the_command_refuses_too_few_labels_and_says_how_many_were_left_out(tmp_path: Path) -> None:
    pool, out = "smollm2-135m__arithmetic", tmp_path / "it.json"
    said = fails("calibrate", pool, "--labels", "20", "--out", out)
    assert "20 questions with a gold answer are too few" in said and not out.exists()
    done = suffice("calibrate", pool, pool, "--out", out)
    assert done.returncode == 0 and "suffice: 40 labels are left out" in done.stderr
