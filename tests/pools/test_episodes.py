import numpy as np
import pytest
from helpers.pools import make_pool

from suffice import OptionError, Pool, PoolError, Question, load_pool
from suffice.pools import Episodes, draw_episodes
from suffice.pools.pool import ABSENT
from suffice.tally import NONE


def all_answers(pool: Pool, **settings: int) -> np.ndarray:
    return np.concatenate([batch.answers for batch in draw_episodes(pool, **settings)])


def drawn(pool: Pool, budget: int = 3, repeats: int = 4, seed: int = 0) -> Episodes:
    (episodes,) = draw_episodes(pool, budget, repeats, seed)
    return episodes


def test_draws_are_without_replacement_and_keep_their_tokens() -> None:
    answers = tuple("abcdefgh")
    pool = Pool("toy", (Question("q", "c", answers, tuple(range(8))),))
    episodes = drawn(pool, budget=5, repeats=200)
    assert all(len(set(row)) == 5 for row in episodes.answers)
    assert (episodes.answers == episodes.tokens).all()
    assert list(episodes.codes(["c"])) == [2] * 200
    # Each response comes first about as often as any other.
    assert np.bincount(episodes.answers[:, 0], minlength=8).min() > 10


def test_none_and_unseen_gold_have_codes_of_their_own() -> None:
    episodes = drawn(make_pool([None, None, "b"], gold="a"))
    assert sorted(episodes.answers[0]) == [NONE, NONE, 0]
    assert list(episodes.codes(["a"])) == [ABSENT] * 4


def test_the_seed_decides_the_draws() -> None:
    pool = load_pool("qwen2.5-coder-1.5b__gsm8k")
    settings = {"budget": 32, "repeats": 5}
    assert (all_answers(pool, seed=1, **settings) == all_answers(pool, seed=1, **settings)).all()
    assert (all_answers(pool, seed=1, **settings) != all_answers(pool, seed=2, **settings)).any()


def test_other_questions_do_not_change_a_question_s_draws() -> None:
    pool = load_pool("qwen2.5-coder-1.5b__gsm8k")
    fewer = Pool("fewer", pool.questions[40:60][::-1])
    whole = all_answers(pool, budget=32, repeats=5, seed=0).reshape(-1, 5, 32)
    part = all_answers(fewer, budget=32, repeats=5, seed=0).reshape(-1, 5, 32)
    assert (whole[40:60][::-1] == part).all()


def test_a_small_pool_is_refused_for_a_large_budget() -> None:
    with pytest.raises(PoolError, match='question "q1" has 2 answers, fewer than the budget of 3'):
        drawn(make_pool("aaa", "ab"))


@pytest.mark.parametrize(("name", "value"), [("budget", 0), ("budget", 2.5), ("repeats", 0), ("seed", -1)])
def test_settings_out_of_range_are_refused(name: str, value: int) -> None:
    with pytest.raises(OptionError, match=f"^{name} must be a whole number, at least [01], not {value}$"):
        draw_episodes(make_pool("aaa"), **{"budget": 3, "repeats": 4, "seed": 0, name: value})


def test_a_larger_budget_goes_on_from_the_same_draws() -> None:
    pool = load_pool("qwen2.5-coder-1.5b__gsm8k")
    small, large = (all_answers(pool, budget=budget, repeats=5, seed=0) for budget in (8, 32))
    assert (large[:, :8] == small).all()
