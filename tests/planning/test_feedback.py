"""Feedback: what a calibration learns from it, and when a promised risk is broken."""

import numpy as np
import pytest
from helpers.labels import calibration

from suffice.planning.feedback import KEPT_LABELS, MOST_LABELS, Feedback
from suffice.planning.promises import PROOF, STRETCH, RiskPromise

RISK = 0.1
BASE = calibration([3.0] * 60, [1] * 60)


def after(feedback: Feedback, truths: "list[bool]", score: float = 3.0, sure: bool = True) -> Feedback:
    for right in truths:
        feedback = feedback.joined_by(score, right, sure, RISK)
    return feedback


def test_labels_join_those_of_the_calibration_and_the_last_ones_count() -> None:
    grown = after(Feedback(), [True, False]).applied_to(BASE)
    assert (len(grown.scores), int(grown.truths.sum())) == (62, 61)
    assert grown.at(3.0) < after(Feedback(), [True, True]).applied_to(BASE).at(3.0)
    long = after(Feedback(), [True] * (MOST_LABELS + 20))
    assert len(long.labels) == len(long.applied_to(BASE).scores) == MOST_LABELS
    assert Feedback().applied_to(BASE) is BASE


def test_what_is_not_sure_enough_teaches_and_counts_against_no_promise() -> None:
    unsure = after(Feedback(), [False] * 40, sure=False)
    assert unsure.promise is None and not unsure.broken and len(unsure.labels) == 40
    assert unsure.applied_to(BASE).threshold(RISK) is None
    unpromised = Feedback().joined_by(3.0, False, None, None)
    assert unpromised.promise is None and len(unpromised.labels) == 1


def test_a_broken_promise_sets_aside_what_was_before_until_new_labels_prove_another() -> None:
    feedback = after(Feedback(), [True] * STRETCH)
    while not feedback.broken:
        feedback = after(feedback, [False])
    assert len(feedback.labels) == KEPT_LABELS and feedback.fresh == 0
    assert feedback.applied_to(BASE).threshold(RISK) is None
    assert feedback.applied_to(BASE).at(3.0) < BASE.at(3.0)
    assert after(feedback, [True] * 21, sure=False).applied_to(BASE).threshold(RISK) is None
    assert after(feedback, [True] * 22, sure=False).applied_to(BASE).threshold(RISK) is not None


def test_another_risk_is_another_promise() -> None:
    feedback = after(Feedback(), [True, False]).joined_by(3.0, True, True, 0.2)
    assert feedback.promise and (feedback.promise.risk, feedback.promise.answers) == (0.2, 1)


def test_it_is_kept_and_read_again() -> None:
    feedback = after(Feedback(), [True, False, True])
    assert Feedback.read(feedback.to_bytes()) == feedback
    assert Feedback.read(None) == Feedback()
    for broken in (b"", b"[]", b'{"labels": 1}'):
        with pytest.raises(ValueError):
            Feedback.read(broken)


def test_a_promise_that_is_kept_is_seldom_broken_whenever_one_looks() -> None:
    random = np.random.default_rng(2)
    broken = 0
    for _ in range(200):
        promise = RiskPromise(RISK)
        for wrong in random.random(400) < RISK:
            promise.observe(bool(wrong))
            if promise.is_broken:
                broken += 1
                break
    assert broken <= 200 / PROOF * 2


@pytest.mark.parametrize("good", [0, 500])
def test_one_that_is_broken_is_noticed_after_a_good_past_too(good: int) -> None:
    random = np.random.default_rng(3)
    promise = RiskPromise(RISK)
    for wrong in random.random(good) < RISK / 2:
        promise.observe(bool(wrong))
    seen = 0
    while not promise.is_broken:
        promise.observe(bool(random.random() < 0.35))
        seen += 1
        assert seen < 120


def test_bets_win_nothing_in_the_mean_while_the_risk_is_as_promised() -> None:
    """All sequences of a few answers, each as likely as it is: the mean of an e-process is 1."""
    for length in (1, 4, 8):
        mean = 0.0
        for case in range(2**length):
            promise, chance = RiskPromise(RISK), 1.0
            for place in range(length):
                wrong = bool(case >> place & 1)
                promise.observe(wrong)
                chance *= RISK if wrong else 1 - RISK
            mean += chance * promise.evidence
        assert mean == pytest.approx(1)
