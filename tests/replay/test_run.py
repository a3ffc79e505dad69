from dataclasses import fields

import numpy as np
import pytest
from helpers.examples import at_most
from hypothesis import given
from hypothesis import strategies as st

from suffice import ArrayController, Pool, Question, get_controller
from suffice.pools import draw_episodes
from suffice.replay.run import Outcomes, replay, replay_arrays, replay_clocked, run

SPECS = [
    "sc",
    "sc:draws=3",
    "asc",
    "asc:threshold=0.7",
    "esc",
    "esc:window=2",
    "esc:window=1",
    "doubling",
    "doubling:threshold=1",
    "boinf",
    "boinf:factor=2,unknown=0",
    "plan",
    "plan:penalty_draw=0.02,penalty_round=0,actions=1+2+4",
    "plan:penalty_draw=0,penalty_round=0",
]


@st.composite
def pools(draw: st.DrawFn) -> Pool:
    """Up to three questions with 12 answers each, from all alike to all different, with none among them."""
    questions = []
    for number in range(draw(st.integers(1, 3))):
        kinds = draw(st.integers(0, 12))
        answer = st.none() | st.integers(0, kinds).map(str)
        answers = draw(st.lists(answer, min_size=12, max_size=12))
        tokens = draw(st.lists(st.integers(0, 99), min_size=12, max_size=12))
        questions.append(Question(f"q{number}", "0", tuple(answers), tuple(tokens)))
    return Pool("toy", tuple(questions))


def assert_equal(ours: Outcomes, theirs: Outcomes) -> None:
    for field in fields(Outcomes)[1:]:
        np.testing.assert_array_equal(getattr(ours, field.name), getattr(theirs, field.name), field.name)


@pytest.mark.parametrize("spec", SPECS)
@at_most(200)
@given(pool=pools(), budget=st.integers(1, 12))
def test_arrays_and_plain_loop_give_the_same_outcomes(spec: str, pool: Pool, budget: int) -> None:
    controller = get_controller(spec)
    assert isinstance(controller, ArrayController)
    for episodes in draw_episodes(pool, budget, repeats=3, seed=0):
        serving = [controller] * len(episodes.answers)
        assert_equal(replay_arrays(episodes, controller, np.arange(len(serving))), replay_clocked(episodes, serving))


@pytest.mark.parametrize("spec", SPECS)
@at_most(200)
@given(pool=pools(), names=st.permutations([str(name) for name in range(13)]))
def test_names_of_answers_change_nothing(spec: str, pool: Pool, names: list[str]) -> None:
    def rename(answer: str | None) -> str | None:
        return None if answer is None else names[int(answer)]

    renamed = Pool(
        "toy", tuple(Question(q.id, q.gold, tuple(map(rename, q.answers)), q.tokens) for q in pool.questions)
    )
    controller = get_controller(spec)
    (before,), (after,) = (draw_episodes(p, budget=8, repeats=3, seed=0) for p in (pool, renamed))
    assert_equal(replay(before, controller), replay(after, controller))


def test_the_last_round_is_cut_to_what_is_left() -> None:
    assert run(get_controller("esc"), list("ab" * 6)).round_ends == [5, 10, 12]


def test_tokens_add_up_in_all_and_along_the_longest() -> None:
    pool = Pool("toy", (Question("q", "a", ("a",) * 4, (7, 7, 7, 7)),))
    (episodes,) = draw_episodes(pool, budget=4, repeats=1, seed=0)
    two_rounds = replay(episodes, get_controller("doubling:threshold=1"))
    assert (two_rounds.rounds[0], two_rounds.total_tokens[0], two_rounds.sequential_tokens[0]) == (1, 14, 7)
    one_by_one = replay(episodes, get_controller("asc"))
    assert (one_by_one.total_tokens[0], one_by_one.sequential_tokens[0]) == (28, 28)
