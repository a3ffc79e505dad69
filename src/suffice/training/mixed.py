"""The decision process with a budget and penalties of its own for each episode, from pools and from the model."""

from dataclasses import dataclass, replace
from typing import Any

import gymnasium
import numpy as np

from suffice.controllers.conditioned import CONDITIONS, FEATURES, TOP, Range
from suffice.planning.model import UNIVERSAL
from suffice.planning.simulation import simulate
from suffice.pools import Pool, draw_episodes
from suffice.tally import FloatArray, IntArray
from suffice.training.env import BoolArray, Copies
from suffice.training.imitation import random_penalties, seen
from suffice.training.setting import Setting

FROM_POOLS = 0.7
"""The share of episodes from pools, where the budget is no larger than they are; the rest are from the model."""

AHEAD = 16
ROWS = 256
"""Budgets, and episodes of each, that are drawn at a time."""


@dataclass
class EpisodeBatch:
    """Episodes of many budgets: the top counts and whether the leader is right, after each number of draws."""

    top: IntArray
    right: BoolArray
    budget: IntArray
    draw: FloatArray
    round: FloatArray

    def __getitem__(self, rows: Any) -> "EpisodeBatch":
        return EpisodeBatch(*(column[rows] for column in vars(self).values()))

    def __len__(self) -> int:
        return len(self.budget)

    def put(self, rows: BoolArray, others: "EpisodeBatch") -> None:
        """Let others take the place of these."""
        for name, column in vars(self).items():
            column[rows] = getattr(others, name)

    @classmethod
    def joined(cls, parts: list["EpisodeBatch"]) -> "EpisodeBatch":
        """All of several."""
        return cls(*map(np.concatenate, zip(*(vars(part).values() for part in parts), strict=True)))


class ConditionedSupply:
    """Fresh episodes without end, of random budgets and penalties: from pools, and from the model of answers."""

    def __init__(self, pools: tuple[Pool, ...], ranges: Range, seed: int) -> None:
        self.ranges = ranges
        self._pools = pools
        self._random = np.random.default_rng(seed)
        self._ahead = self._draw()

    def take(self, count: int) -> EpisodeBatch:
        """So many episodes."""
        while len(self._ahead) < count:
            self._ahead = EpisodeBatch.joined([self._ahead, self._draw()])
        taken, self._ahead = self._ahead[:count], self._ahead[count:]
        return taken

    def _draw(self) -> EpisodeBatch:
        low, high = self.ranges.budgets
        # Every doubling of the budget comes as often as any other.
        budgets = np.exp(self._random.uniform(np.log(low), np.log(high + 1), AHEAD)).astype(int)
        drawn = EpisodeBatch.joined([self._episodes(int(budget)) for budget in np.minimum(budgets, high)])
        return drawn[self._random.permutation(len(drawn))]

    def _episodes(self, budget: int) -> EpisodeBatch:
        large = [pool for pool in self._pools if min(len(one.answers) for one in pool.questions) >= budget]
        from_pool = large and self._random.random() < FROM_POOLS
        top, right = self._from_pool(large, budget) if from_pool else self._from_model(budget)
        most = self.ranges.budgets[1]
        tops, rights = np.zeros((ROWS, most + 1, TOP), np.int16), np.zeros((ROWS, most + 1), bool)
        tops[:, : budget + 1, : top.shape[2]], rights[:, : budget + 1] = top, right
        paid = [random_penalties(self._random, self.ranges) for _ in range(ROWS)]
        draw, round_ = np.array([(one.draw, one.round) for one in paid]).T
        return EpisodeBatch(tops, rights, np.full(ROWS, budget), draw, round_)

    def _from_pool(self, pools: list[Pool], budget: int) -> tuple[IntArray, BoolArray]:
        pool = pools[self._random.integers(len(pools))]
        chosen = self._random.integers(len(pool.questions), size=ROWS)
        # Questions of their own: one that is chosen twice shall not come in the same order again.
        questions = [replace(pool.questions[place], id=f"{row}") for row, place in enumerate(chosen.tolist())]
        batches = list(draw_episodes(Pool(pool.name, tuple(questions)), budget, 1, int(self._random.integers(2**63))))
        standings = [episodes.standings for episodes in batches]
        top = np.concatenate([one.votes[:, :, :TOP].swapaxes(0, 1) for one in standings])
        return top, np.concatenate([(one.leader == one.reference).T for one in standings])

    def _from_model(self, budget: int) -> tuple[IntArray, BoolArray]:
        tops: list[IntArray] = [np.zeros((TOP, ROWS), np.int16)]
        leaders: list[IntArray] = [np.full(ROWS, -1, np.int16)]
        for step in simulate(UNIVERSAL, budget, ROWS, seed=int(self._random.integers(2**31)), counts=TOP):
            tops.append(step.top.copy())
            leaders.append(step.leader.copy())
        return np.stack(tops).transpose(2, 0, 1), (np.stack(leaders) == leaders[-1]).T


class ConditionedVecEnv(Copies):
    """Many episodes in step, each with a budget and penalties of its own, which are part of what is seen."""

    def __init__(self, supply: ConditionedSupply, setting: Setting, copies: int, least_round: float) -> None:
        self._supply = supply
        self._least_round = least_round
        self._first = setting.first
        self._draws_by_action = setting.draws_by_action
        observations = gymnasium.spaces.Box(-4, 4, (FEATURES + CONDITIONS,), np.float32)
        super().__init__(copies, observations, len(self._draws_by_action))

    def reset(self) -> FloatArray:
        """Begin an episode in every copy."""
        self._now = self._supply.take(self.num_envs)
        self._draws = self._first_rounds(self._now)
        return self._seen()

    def _first_rounds(self, drawn: EpisodeBatch) -> IntArray:
        return np.where(2 * self._first <= drawn.budget, self._first, 0)

    def _seen(self) -> FloatArray:
        top = self._now.top[np.arange(self.num_envs), self._draws].astype(np.intp)
        return seen(top, self._draws, self._now.budget, self._now.draw, self._now.round)

    def step_async(self, actions: IntArray) -> None:
        """Keep the actions for `step_wait`."""
        self._asked = np.minimum(self._draws_by_action[actions], self._now.budget - self._draws)

    def step_wait(self) -> tuple[FloatArray, FloatArray, BoolArray, list[dict[str, Any]]]:
        """Take the actions; a copy whose episode ended is already in its next one."""
        asked, now = self._asked, self._now
        self._draws = self._draws + asked
        ended = (asked == 0) | (self._draws == now.budget)
        final = np.where(now.right[np.arange(self.num_envs), self._draws], 1.0, -1.0)
        rewards = ended * final - (asked > 0) * np.maximum(now.round, self._least_round) - asked * now.draw
        if ended.any():
            others = self._supply.take(int(ended.sum()))
            now.put(ended, others)
            self._draws[ended] = self._first_rounds(others)
        return self._seen(), rewards.astype(np.float32), ended, self._infos
