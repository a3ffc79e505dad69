from typing import Any

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from helpers.pools import make_pool
from hypothesis import given
from hypothesis import strategies as st

from suffice import OptionError, Penalties, Pool, PoolError, Question, evaluate, get_controller
from suffice.pools import draw_episodes
from suffice.tally import FloatArray
from suffice.training.env import SamplingEnv, SamplingVecEnv, Supply, episode_tables
from suffice.training.setting import Setting


def toy(gold: str = "0") -> Pool:
    """Questions whose tokens number the responses, so that an episode's tokens tell its order."""
    kinds: list[list[int | None]] = [[0] * 40, [0, 1] * 20, [0, 0, 1, 2, None] * 8, [*range(40)], [None] * 40]
    return Pool(
        "toy",
        tuple(
            Question(f"q{n}", gold, tuple(None if a is None else str(a) for a in answers), tuple(range(40)))
            for n, answers in enumerate(kinds)
        ),
    )


class Given(Supply):
    """Gives the same tables as often as they are asked for."""

    def __init__(self, setting: Setting, states: FloatArray, right: np.ndarray) -> None:
        self.setting = setting
        self.tables = states, right

    def take(self, count: int) -> tuple[FloatArray, np.ndarray]:
        return self.tables[0][:count].copy(), self.tables[1][:count].copy()


@pytest.mark.filterwarnings("ignore:.*render modes.*")
@pytest.mark.parametrize("setting", [Setting(), Setting(actions=(1, 8), first=2, budget=16, top=3)])
def test_gymnasium_s_checker_passes(setting: Setting) -> None:
    check_env(SamplingEnv(toy(), setting))


def test_a_game_by_hand() -> None:
    setting = Setting(Penalties(draw=0.01, round=0.1))
    env = SamplingEnv(make_pool("ab" * 16 + "a"), setting)
    seen, _ = env.reset(options={"question": 0, "order": range(33)})
    assert seen[:6] == pytest.approx([2 / 32, 2 / 32, 0, 0, 0, 4 / 32])
    seen, reward, ended, _, _ = env.step(np.int64(3))
    assert reward == pytest.approx(-0.1 - 0.04)
    assert not ended
    assert seen[5] == pytest.approx(8 / 32)
    # 16 votes each: the first to get there, "a", is the reference and leads now.
    _, reward, ended, _, _ = env.step(np.int64(0))
    assert (reward, ended) == (1, True)


def test_a_request_past_the_budget_is_cut_and_paid_as_cut() -> None:
    env = SamplingEnv(make_pool("a" * 6), Setting(Penalties(draw=0.01), budget=6))
    env.reset(seed=0)
    _, reward, ended, _, _ = env.step(np.int64(3))
    assert reward == pytest.approx(1 - 0.02)
    assert ended


@pytest.mark.parametrize("target", ["running", "full", "gold"])
@given(actions=st.lists(st.integers(0, 3), min_size=30, max_size=30))
def test_both_environments_give_the_same_game(target: str, actions: list[int]) -> None:
    setting = Setting(Penalties(draw=0.01, round=0.003), target=target)
    pool = toy()
    (episodes,) = draw_episodes(pool, budget=32, repeats=2, seed=0)
    many = SamplingVecEnv(Given(setting, *episode_tables(episodes, setting)), copies=10)
    starts: Any = many.reset()
    for row in range(10):
        env = SamplingEnv(pool, setting)
        seen, _ = env.reset(options={"question": row // 2, "order": episodes.tokens[row]})
        assert seen == pytest.approx(starts[row])
        many.reset()
        for action in actions:
            states: Any
            states, rewards, endings, _ = many.step(np.full(10, action))
            seen, reward, ended, _, _ = env.step(np.int64(action))
            assert (rewards[row], endings[row]) == (pytest.approx(reward), ended)
            if ended:
                break
            assert states[row] == pytest.approx(seen)


def test_the_return_is_the_replay_s_reward_but_for_the_first_round() -> None:
    penalties = Penalties(draw=0.01, round=0.003)
    setting, pool, rule = Setting(penalties), toy(), get_controller("esc:window=4")
    (episodes,) = draw_episodes(pool, budget=32, repeats=3, seed=0)
    returns = []
    for row in range(15):
        env = SamplingEnv(pool, setting)
        env.reset(options={"question": row // 3, "order": episodes.tokens[row]})
        total, ended = 0.0, False
        while not ended:
            action = {0: 0, 1: 1, 2: 2, 4: 3}[rule.next_round(env.tally)]
            _, reward, ended, _, _ = env.step(np.int64(action))
            total += reward
        returns.append(total)
    (result,) = evaluate(pool, [rule], repeats=3, seed=0, penalties=penalties)
    constant = 4 * penalties.draw + penalties.round
    assert result.by_question["reward"] == pytest.approx(np.reshape(returns, (5, 3)).mean(axis=1) - constant)


def test_supply_gives_every_question_as_often() -> None:
    setting = Setting()
    states, _ = Supply([make_pool("a" * 32, "ab" * 16)], setting, seed=0).take(4096)
    settled = states[:, -1, 0] == 1
    assert settled.mean() == pytest.approx(0.5, abs=0.001)
    for few in settled.reshape(-1, 64):
        assert 8 < few.sum() < 56, "questions come mixed, not one after the other"


def test_gold_needs_gold_answers_and_a_small_pool_is_refused() -> None:
    with pytest.raises(PoolError, match='no gold answer, which the target "gold" needs'):
        SamplingEnv(make_pool("a" * 32, gold=None), Setting(target="gold"))
    with pytest.raises(PoolError, match="fewer than the budget"):
        SamplingEnv(make_pool("a" * 31))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"target": "silver"}, "target must be one of running, full, gold"),
        ({"top": 1}, "top must be at least 2"),
        ({"top": 33}, "at most the budget"),
        ({"first": 0}, "first must be a whole number, at least 1"),
        ({"first": 32}, "below the budget"),
        ({"actions": ()}, "actions must be different"),
        ({"actions": (1, 1)}, "actions must be different"),
        ({"budget": 2.5}, "budget must be a whole number, at least 1, not 2.5"),
        ({"actions": (0, 1)}, "actions must be a whole number, at least 1, not 0"),
    ],
)
def test_settings_out_of_range_are_refused(options: dict[str, object], words: str) -> None:
    with pytest.raises(OptionError, match=words):
        Setting(**options)  # type: ignore[arg-type]
