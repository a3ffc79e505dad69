import pickle
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from helpers.learners import learner_of
from helpers.tallies import tally_of
from hypothesis import given
from hypothesis import strategies as st

from suffice import Plan, Tally, certainty, confidence
from suffice.planning import UNIVERSAL, Prior
from suffice.planning.learning import ARMED, FLOOR, MEMORY, Learner, learned_prior, likelihoods, maximise, partition
from suffice.planning.model import CONCENTRATIONS, DISCOUNTS, log_likelihood

partitions = st.lists(st.integers(1, 12), min_size=1, max_size=8).map(lambda parts: tuple(sorted(parts, reverse=True)))

EASY, HARD = (3,), (2, 2, 1, 1, 1, 1)


def taught(*lessons: tuple[tuple[int, ...], int]) -> Learner:
    learner = Learner()
    for parts, times in lessons:
        for _ in range(times):
            learner.observe_partition(parts)
    return learner


class Kept:
    """A place where something is kept."""

    def __init__(self) -> None:
        self.data: bytes | None = None
        self.is_full = False

    def update(self, change: Callable[[bytes | None], bytes | None]) -> None:
        changed = change(self.data)
        if self.is_full:
            raise OSError("no space left")
        self.data = self.data if changed is None else changed

    @property
    def seen(self) -> int:
        return learner_of(self.data or b"").seen


@given(partitions)
def test_a_partition_s_likelihoods_are_those_of_the_model(parts: tuple[int, ...]) -> None:
    alpha, d = CONCENTRATIONS[:, None], DISCOUNTS
    new = sum(np.log(alpha + answers * d) for answers in range(1, len(parts)))
    again = sum(np.log(votes - d) for part in parts for votes in range(1, part))
    all_votes = sum(np.log(alpha + votes) for votes in range(1, sum(parts)))
    logs = np.broadcast_to(new + again - all_votes, (len(CONCENTRATIONS), len(DISCOUNTS))).ravel()
    np.testing.assert_allclose(likelihoods(parts), np.exp(logs - logs.max()), rtol=1e-9)


@given(st.lists(st.sampled_from(["7", "8", "9", None]), min_size=2, max_size=8))
def test_a_draw_without_an_answer_is_a_part_of_its_own(answers: list[str | None]) -> None:
    parts = partition(tally_of(answers, 8))
    assert sum(parts) == len(answers)
    assert sorted(parts, reverse=True) == list(parts)
    named = [str(place) + "none" if answer is None else answer for place, answer in enumerate(answers)]
    assert sorted(Counter(named).values(), reverse=True) == list(parts)


@given(st.lists(partitions, min_size=1, max_size=30))
def test_the_universal_prior_keeps_its_floor_whatever_is_seen(seen: list[tuple[int, ...]]) -> None:
    weights = np.array(learned_prior(Counter(seen * 100)).weights)
    assert weights.sum() == pytest.approx(1)
    assert weights.min() >= FLOOR / len(weights) * (1 - 1e-9)


def test_nothing_seen_is_the_universal_prior_and_little_is_near_it() -> None:
    assert Learner().prior() == UNIVERSAL

    def distance(times: int) -> float:
        return float(np.abs(np.array(taught((EASY, times)).prior().weights) - UNIVERSAL.weights).sum())

    assert 0 < distance(4) < distance(40) < distance(400)
    assert distance(4) < 0.2


def test_what_is_learned_makes_the_votes_likelier() -> None:
    seen = Counter({(3,): 200, (5, 1): 30, (4, 3, 1): 10})

    def mean_log(prior: Prior) -> float:
        return float(sum(times * np.log(likelihoods(parts) @ prior.weights) for parts, times in seen.items()))

    assert mean_log(learned_prior(seen)) > mean_log(UNIVERSAL)
    # The head start has one best solution: nothing near it is better.
    rows, counts = np.array([likelihoods(parts) for parts in seen]), np.array(list(seen.values()), float)
    best = maximise(rows, counts, 32)

    def objective(weights: np.ndarray) -> float:
        return float(counts @ np.log(rows @ weights) + 32 * np.log(weights).mean())

    random = np.random.default_rng(0)
    for _ in range(20):
        other = 0.99 * best + 0.01 * random.dirichlet(np.ones(len(best)))
        assert objective(other) < objective(best)


def test_stopped_votes_teach_what_full_ones_do() -> None:
    """Traffic of one kind, seen through a plan's stops, is found again: the prior is near that kind."""
    place = int(np.argmin(np.abs(CONCENTRATIONS - 0.3))) * len(DISCOUNTS)
    random = np.random.default_rng(1)
    learner, plan = Learner(), Plan()
    for _ in range(1500):
        tally = Tally(8)
        counts: list[int] = []
        while tally.left and (asked := plan.next_round(tally)):
            for _ in range(asked):
                weights = np.array([*counts, CONCENTRATIONS[place // len(DISCOUNTS)]])
                answer = int(random.choice(len(weights), p=weights / weights.sum()))
                if answer == len(counts):
                    counts.append(0)
                counts[answer] += 1
                tally.add(str(answer))
            tally.end_round()
        learner.observe(tally)
    before, after = [], []
    for parts in [(2,), (1, 1), (4,), (3, 1), (2, 2)]:
        chances = np.exp(log_likelihood(parts)).ravel()
        before.append(abs(chances @ UNIVERSAL.weights - chances[place]))
        after.append(abs(chances @ learner.prior().weights - chances[place]))
    assert max(after) < max(before) / 4


def test_easy_traffic_is_asked_less_and_never_less_than_twice() -> None:
    plan = taught((EASY, 2000)).plan(Plan(), 8)
    assert Plan().decide(Tally(8)) > plan.decide(Tally(8)) >= 1
    assert plan.decide(tally_of(["7"], 8)) >= 1
    assert plan.decide(tally_of(["7", "7"], 8)) == 0 < Plan().decide(tally_of(["7", "7"], 8))
    dear = taught((EASY, 2000)).plan(Plan(penalty_draw=0.5), 8)
    assert dear.decide(tally_of(["7"], 8)) >= 1


def test_confidence_and_certainty_follow_the_prior_and_leave_nothing_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    plan = taught((EASY, 500)).plan(Plan(), 8)
    tally = tally_of(["7", "7"], 8)
    sure, certain = confidence(tally, plan.prior), certainty(tally, plan.prior)
    assert not list(tmp_path.rglob("*"))
    assert (sure or 0) > (confidence(tally) or 1)
    assert (certain or 0) > (certainty(tally) or 1)
    again = pickle.loads(pickle.dumps(plan))
    assert again == plan
    assert 8 in plan.tables and 8 in plan.prior.tables
    assert 8 not in again.tables and 8 not in again.prior.tables
    assert again.decide(tally) == plan.decide(tally)


def test_a_plan_is_due_after_news_and_not_before() -> None:
    learner = taught((EASY, 15))
    assert not learner.due
    learner.observe_partition(EASY)
    assert learner.due
    learner.plan(Plan(), 8)
    assert not learner.due


def test_a_single_draw_says_nothing() -> None:
    learner = Learner()
    learner.observe(tally_of(["7"], 8))
    assert learner.seen == len(learner) == 0


def test_only_the_last_questions_are_remembered() -> None:
    learner = taught((HARD, 500), (EASY, MEMORY + MEMORY // 4 + 1))
    assert len(learner) == MEMORY
    assert learner.prior() == learned_prior(Counter({EASY: MEMORY}))


def test_a_change_is_noticed_at_once_and_what_was_before_is_dropped() -> None:
    learner = taught((EASY, 400))
    learner.plan(Plan(), 8)
    for _ in range(200):
        learner.observe_partition(EASY)
    assert learner.changes == 0
    learner.plan(Plan(), 8)
    questions = 0
    while not learner.changes:
        learner.observe_partition(HARD)
        questions += 1
    assert questions <= 10
    assert learner.due
    assert len(learner) == questions


def test_there_is_no_change_where_little_was_known() -> None:
    learner = taught((EASY, ARMED - 20))
    learner.plan(Plan(), 8)
    for _ in range(10):
        learner.observe_partition(HARD)
    assert learner.changes == 0


@given(st.lists(partitions, max_size=40))
def test_what_is_remembered_survives_as_bytes(seen: list[tuple[int, ...]]) -> None:
    learner = Learner()
    for parts in seen:
        learner.observe_partition(parts)
    kept = Kept()
    learner.sync(kept.update)
    again = learner_of(kept.data or b"")
    assert (again.seen, again.changes, again.prior()) == (learner.seen, learner.changes, learner.prior())


@given(st.integers(0, 10_000), st.integers(1, 255))
def test_bytes_that_were_changed_are_refused(place: int, flip: int) -> None:
    kept = Kept()
    taught((EASY, 3), (HARD, 2)).sync(kept.update)
    data = bytearray(kept.data or b"")
    data[place % len(data)] ^= flip
    with pytest.raises(ValueError, match="not whole"):
        learner_of(bytes(data))


def test_two_that_share_a_place_come_to_know_the_same() -> None:
    kept = Kept()
    one, other = taught((EASY, 30)), taught((HARD, 20))
    for learner in (one, other, one):
        learner.sync(kept.update)
    assert one.seen == other.seen == 50
    assert one.prior() == other.prior() == learned_prior(Counter({EASY: 30, HARD: 20}))
    one.sync(kept.update)
    assert one.seen == 50  # nothing is counted twice
    restarted = Learner()
    restarted.sync(kept.update)
    assert restarted.prior() == one.prior()
    assert restarted.due


def test_what_could_not_be_kept_is_kept_later() -> None:
    kept = Kept()
    one, other = taught((EASY, 3)), taught((HARD, 4))
    other.sync(kept.update)
    kept.is_full = True
    for _ in range(2):
        with pytest.raises(OSError, match="no space"):
            one.sync(kept.update)
    assert kept.seen == 4
    kept.is_full = False
    one.sync(kept.update)
    assert kept.seen == one.seen == 7
    assert one.prior() == learned_prior(Counter({HARD: 4, EASY: 3}))


def test_votes_that_end_while_others_are_kept_are_kept_next() -> None:
    learner, kept = taught((EASY, MEMORY)), Kept()
    learner.sync(lambda change: [kept.update(change), learner.observe_partition(HARD)])  # type: ignore[func-returns-value]
    learner.sync(kept.update)
    assert learner.prior() == learned_prior(Counter({EASY: MEMORY - 1, HARD: 1}))


def test_a_change_that_one_notices_is_a_change_for_all() -> None:
    kept = Kept()
    one, other = taught((EASY, 400)), Learner()
    for learner in (one, other):
        learner.sync(kept.update)
        learner.plan(Plan(), 8)
    while not one.changes:
        one.observe_partition(HARD)
    one.sync(kept.update)
    other.observe_partition(HARD)
    other.sync(kept.update)
    assert other.changes == 1
    assert other.due
    assert len(other) == len(one) + 1


def test_votes_may_end_while_a_plan_is_made() -> None:
    learner, kept = taught((EASY, 50)), Kept()

    def votes() -> None:
        for _ in range(2000):
            learner.observe_partition(EASY)

    busy = threading.Thread(target=votes)
    busy.start()
    while busy.is_alive():
        learner.plan(Plan(), 6)
        learner.sync(kept.update)
    busy.join()
    learner.sync(kept.update)
    assert learner.seen == kept.seen == 2050
