"""The paper's Markov decision process: as a Gymnasium environment, and as arrays for training."""

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv

from suffice.pools import AnyPool, Episodes, draw_episodes, get_pools
from suffice.tally import FloatArray, IntArray, Tally, state
from suffice.training.setting import Setting

EPISODES_AHEAD = 4096
"""About how many episodes the array environment draws at a time."""

BoolArray = NDArray[np.bool_]


def observation_space(setting: Setting) -> Any:
    return gymnasium.spaces.Box(0, 1, (setting.top + 2,), np.float32)


class SamplingEnv(gymnasium.Env[FloatArray, np.int64]):
    """One question at a time; an episode begins after the first round, which is a constant and costs nothing here.

    `reset(options={"question": q, "order": [...]})` replays a given order of the responses of the q-th question.
    """

    def __init__(self, pools: AnyPool | Sequence[AnyPool], setting: Setting = Setting()) -> None:
        pools = get_pools(pools)
        setting.check(pools)
        self.setting = setting
        self.questions = [question for pool in pools for question in pool.questions]
        self.observation_space = observation_space(setting)
        self.action_space = gymnasium.spaces.Discrete(len(setting.actions) + 1)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[FloatArray, dict[str, Any]]:
        super().reset(seed=seed)
        options = options or {}
        question = self.questions[options.get("question", self.np_random.integers(len(self.questions)))]
        order = options.get("order", self.np_random.permutation(len(question.answers)))
        self.answers = [question.answers[position] for position in order[: self.setting.budget]]
        self.tally = Tally(self.setting.budget)
        self.tally.add_round(self.answers[: self.setting.first])
        reference = Tally(self.setting.budget)
        reference.add_round(self.answers)
        targets = {"running": reference.leader, "full": question.majority, "gold": question.gold}
        self.right = targets[self.setting.target]
        return self._observation(), {}

    def step(self, action: np.int64) -> tuple[FloatArray, float, bool, bool, dict[str, Any]]:
        asked = min((0, *self.setting.actions)[action], self.tally.left)
        reward = 0.0
        if asked:
            reward -= self.setting.penalties.round + self.setting.penalties.draw * asked
            self.tally.add_round(self.answers[self.tally.draws : self.tally.draws + asked])
        ended = asked == 0 or self.tally.left == 0
        if ended:
            reward += 1 if self.tally.leader == self.right else -1
        return self._observation(), reward, ended, False, {}

    def _observation(self) -> FloatArray:
        return self.tally.state(self.setting.top).astype(np.float32)


class SamplingVecEnv(VecEnv):
    """Many episodes of the same process in step, each a look-up in tables that were made beforehand.

    The copies share all attributes, since they are rows of the same arrays.
    """

    def __init__(self, supply: "Supply", copies: int) -> None:
        self.setting = supply.setting
        self.penalties = supply.setting.penalties
        """What draws and rounds cost now: training for means changes it on the way."""
        self.render_mode = None
        self._supply = supply
        self._draws_by_action = np.array([0, *self.setting.actions])
        self._infos: list[dict[str, Any]] = [{} for _ in range(copies)]
        actions = gymnasium.spaces.Discrete(len(self._draws_by_action))
        super().__init__(copies, observation_space(self.setting), actions)

    def close(self) -> None:
        pass

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        return [getattr(self, attr_name)] * len(list(self._get_indices(indices)))

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        setattr(self, attr_name, value)

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
        raise AttributeError(method_name)

    def env_is_wrapped(self, wrapper_class: type, indices: Any = None) -> list[bool]:
        return [False] * len(list(self._get_indices(indices)))

    def reset(self) -> FloatArray:
        self._states, self._right = self._supply.take(self.num_envs)
        self._draws = np.full(self.num_envs, self.setting.first)
        return self._states[:, self.setting.first].copy()

    def step_async(self, actions: IntArray) -> None:
        self._asked = np.minimum(self._draws_by_action[actions], self.setting.budget - self._draws)

    def step_wait(self) -> tuple[FloatArray, FloatArray, BoolArray, list[dict[str, Any]]]:
        """Take the actions; a copy whose episode ended is already in its next one."""
        asked, copies, penalties = self._asked, np.arange(self.num_envs), self.penalties
        self._draws += asked
        ended = (asked == 0) | (self._draws == self.setting.budget)
        final = np.where(self._right[copies, self._draws], 1.0, -1.0)
        rewards = ended * final - (asked > 0) * penalties.round - asked * penalties.draw
        if ended.any():
            self._states[ended], self._right[ended] = self._supply.take(int(ended.sum()))
            self._draws[ended] = self.setting.first
        return self._states[copies, self._draws], rewards.astype(np.float32), ended, self._infos


class Supply:
    """Fresh episodes without end: none is given twice, and every question is given as often as any other."""

    def __init__(self, pools: AnyPool | Sequence[AnyPool], setting: Setting, seed: int) -> None:
        pools = get_pools(pools)
        setting.check(pools)
        self.setting = setting
        self._pools = pools
        self._random = np.random.default_rng(seed)
        self._repeats = -(-EPISODES_AHEAD // sum(len(pool.questions) for pool in pools))
        self._states, self._right = self._draw()

    def take(self, count: int) -> tuple[FloatArray, BoolArray]:
        """The tables of so many episodes."""
        while len(self._states) < count:
            states, right = self._draw()
            self._states = np.concatenate([self._states, states])
            self._right = np.concatenate([self._right, right])
        states, self._states = self._states[:count], self._states[count:]
        right, self._right = self._right[:count], self._right[count:]
        return states.copy(), right.copy()

    def _draw(self) -> tuple[FloatArray, BoolArray]:
        tables = [
            episode_tables(episodes, self.setting)
            for pool in self._pools
            for episodes in draw_episodes(
                pool, self.setting.budget, self._repeats, seed=int(self._random.integers(2**63))
            )
        ]
        states, right = (np.concatenate(parts) for parts in zip(*tables, strict=True))
        order = self._random.permutation(len(states))
        return states[order], right[order]


def episode_tables(episodes: Episodes, setting: Setting) -> tuple[FloatArray, BoolArray]:
    """The state of each episode after each number of draws, and whether its leader is then right."""
    standings = episodes.standings
    top = standings.votes[:, :, : setting.top].swapaxes(0, 1)
    draws = np.broadcast_to(np.arange(setting.budget + 1), top.shape[:2])
    states = state(top, draws, setting.budget).astype(np.float32)
    right = standings.reference
    if setting.target != "running":
        right = episodes.codes(one.gold if setting.target == "gold" else one.majority for one in episodes.questions)
    return states, (standings.leader == right).T
