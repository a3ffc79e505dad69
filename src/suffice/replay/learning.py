"""Learning in a replay: a pool as traffic, in random order, served by a plan that learns from it as it goes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from suffice.controllers import Controller, get_controller
from suffice.errors import OptionError
from suffice.penalties import Penalties
from suffice.planning import Plan, Prior
from suffice.planning.learning import FEWEST, FIRST, MEMORY, Learner
from suffice.pools import AnyPool, Episodes, Pool, Question, draw_episodes, get_pools
from suffice.pools.pool import get_pool
from suffice.replay.run import replay_arrays
from suffice.tally import DEFAULT_BUDGET, NONE, FloatArray, IntArray

DEFAULT_ORDERS = 5

BENDS = (25, 50, 100, 200, 400, 800, 1600, 3200, 6400, 12800)
"""Numbers of questions between which a learning curve is told: finer where more is learned."""


@dataclass(frozen=True)
class TrafficRun:
    """What each question took, in order, and the places at which the plan was made anew."""

    samples: IntArray
    rounds: IntArray
    agrees: np.ndarray
    plans: tuple[int, ...] = ()
    changes: tuple[int, ...] = ()
    """Where a change of the traffic was noticed."""

    def rewards(self, penalties: Penalties) -> FloatArray:
        return 2.0 * self.agrees - 1 - penalties.draw * self.samples - penalties.round * self.rounds


def serve(answers: IntArray, base: Plan, learner: Learner | None = None) -> TrafficRun:
    """Serve traffic, a row of codes a question, with a plan that stays, or with one that a learner makes anew.

    A question is served by the plan of the moment it arrives in, and learned from before the next.
    """
    given = ([None if code == NONE else f"{code}" for code in row] for row in answers.tolist())
    questions = tuple(Question("", None, tuple(row), None) for row in given)
    orders = np.tile(np.arange(answers.shape[1])[:, None], (len(answers), 1, 1))
    episodes = Episodes(questions, 1, 0, orders)
    samples, rounds, answer = np.zeros((3, len(answers)), np.int64)
    plan, place = base, 0
    plans: list[int] = []
    changes: list[int] = []
    while place < len(answers):
        rows = np.arange(place, len(answers) if learner is None else min(place + FIRST, len(answers)))
        found = replay_arrays(episodes, plan, rows)
        samples[rows], rounds[rows], answer[rows] = found.samples, found.rounds, found.answer
        place += len(rows) if learner is None else _learn(learner, episodes, rows, found.samples)
        if learner and learner.due:
            if learner.changes > len(changes):
                changes.append(place)
            plans.append(place)
            plan = learner.plan(base, answers.shape[1])
    return TrafficRun(samples, rounds, answer == episodes.standings.reference, tuple(plans), tuple(changes))


def _learn(learner: Learner, episodes: Episodes, rows: IntArray, samples: IntArray) -> int:
    """Learn from one question after another until another plan is due; how many those were."""
    for taken, (row, draws) in enumerate(zip(rows.tolist(), samples.tolist(), strict=True), 1):
        if draws >= FEWEST:
            votes = [count for count in episodes.standings.votes[draws, row, :draws].tolist() if count]
            learner.observe_partition((*votes, *(1,) * (draws - sum(votes))))
        if learner.due:
            return taken
    return len(rows)


@dataclass(frozen=True)
class LearningReplay:
    """A pool as traffic, in several orders: served by a plan that learns, and by one that stays, on the same draws."""

    pool: str
    learning: tuple[TrafficRun, ...]
    staying: tuple[TrafficRun, ...]

    def curve(self, penalties: Penalties) -> list[dict[str, float]]:
        """The means over stretches of the questions, shorter ones first, with learning and without."""
        ends = [*(end for end in BENDS if end < self.questions * 0.8), self.questions]
        curve: list[dict[str, float]] = []
        for start, end in zip([0, *ends[:-1]], ends, strict=True):
            curve.append({"from": start, "to": end})
            for name, runs in (("learning", self.learning), ("staying", self.staying)):
                some = slice(start, end)
                curve[-1][f"{name}_samples"] = float(np.mean([run.samples[some] for run in runs]))
                curve[-1][f"{name}_agreement"] = 100 * float(np.mean([run.agrees[some] for run in runs]))
                curve[-1][f"{name}_reward"] = float(np.mean([run.rewards(penalties)[some] for run in runs]))
        return curve

    @property
    def questions(self) -> int:
        return len(self.learning[0].samples)


def replay_learning(
    pool: AnyPool,
    controller: str | Controller = "plan",
    *,
    budget: int = DEFAULT_BUDGET,
    orders: int = DEFAULT_ORDERS,
    seed: int = 0,
    progress: Callable[[int], None] = lambda orders: None,
) -> LearningReplay:
    """Replay a pool as traffic: each question once in every order, with draws of its own, learning anew in each."""
    base, pool = _base(controller), get_pool(pool)
    learning, staying = [], []
    for answers in _traffic(pool, budget, orders, seed):
        learning.append(serve(answers, base, Learner()))
        staying.append(serve(answers, base))
        progress(1)
    return LearningReplay(pool.name, tuple(learning), tuple(staying))


def learn_prior(
    pools: AnyPool | Sequence[AnyPool],
    controller: str | Controller = "plan",
    *,
    budget: int = DEFAULT_BUDGET,
    seed: int = 0,
) -> Prior:
    """The prior that is learned where all questions of some pools come as traffic, often enough to fill a memory."""
    known = get_pools(pools)
    together = Pool(known[0].name, tuple(question for pool in known for question in pool.questions))
    # A question that comes again shows more of itself, but it is no other question: ten times are enough.
    orders = min(10, -(-MEMORY // len(together.questions)))
    learner = Learner()
    for answers in _traffic(together, budget, orders, seed):
        serve(answers, _base(controller), learner)
    return Prior(learner.prior().weights)


def _base(controller: str | Controller) -> Plan:
    base = get_controller(controller)
    if not isinstance(base, Plan):
        raise OptionError(f"must be a plan to learn, not {controller}", "controller")
    return base


def _traffic(pool: Pool, budget: int, orders: int, seed: int) -> list[IntArray]:
    if any(question.structured for question in pool.questions):
        raise OptionError(f"{pool.name} has structured answers: what is learned is learned from plain ones")
    parts = [part.answers.reshape(-1, orders, budget) for part in draw_episodes(pool, budget, orders, seed)]
    answers = np.concatenate(parts)
    return [answers[np.random.default_rng([seed, order]).permutation(len(answers)), order] for order in range(orders)]
