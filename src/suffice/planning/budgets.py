"""Budgets on average: penalties whose best plan, or mixture of plans, meets given means.

By the paper's proposition, penalties are the dual variables of constraints on the mean samples and rounds: so they are
searched for, and where the best plan jumps over a target, its neighbours are mixed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import scipy

from suffice.penalties import Penalties
from suffice.planning.approximate import simulate
from suffice.planning.controller import Mixture, Plan, planned
from suffice.planning.model import EXACT_BUDGET, Model, build_model
from suffice.planning.values import Policy, plan
from suffice.tally import IntArray, Tally

DEAREST = 2.0
"""A draw that costs this much is never worth it: an answer can't gain more."""

HALVINGS = 24
COLUMNS = 24
"""How often a single penalty, or a pair of them, is tried at the most."""

TINY = 1e-6

EPISODES = 20_000
"""By how many a plan for a large budget is measured."""


class Means(NamedTuple):
    """What a policy comes to on average; agreement as a fraction."""

    samples: float
    rounds: float
    agreement: float


@dataclass(frozen=True)
class Budgeted:
    """A mixture and its expected means; `met` tells whether they are what was asked for."""

    mixture: Mixture
    means: Means
    met: bool


Measure = Callable[[Plan], Means]


def expected_means(budget: int) -> Measure:
    """Measures plans by the model itself: the means over its prior, or over episodes drawn from it."""

    def measure(chosen: Plan) -> Means:
        if budget > EXACT_BUDGET:
            return _simulated(chosen, budget)
        model = build_model(budget, chosen.prior)
        policy = plan(model, Penalties(chosen.penalty_draw, chosen.penalty_round), chosen.actions, chosen.fewest)
        return follow(model, policy)

    return measure


def follow(model: Model, policy: Policy) -> Means:
    """Follow a policy from the empty tally: the chance of being at each partition, with draws still to come."""
    most = max(int(asked.max()) for asked in policy.asked)
    # Column r: the chance of being here with r draws of the present round to come.
    here = np.zeros((1, most + 1))
    here[0, 0] = 1
    samples = rounds = agreement = 0.0
    for votes, level in enumerate(model.levels):
        deciding = here[:, 0]
        asked = policy.asked[votes].astype(int)
        stops = asked == 0
        agreement += float((deciding * model.confidence[votes])[stops].sum())
        samples += votes * float(deciding[stops].sum())
        rounds += float(deciding[~stops].sum())
        if votes == model.budget:
            break
        here[np.flatnonzero(~stops), asked[~stops]] += deciding[~stops]
        shape = (len(model.levels[votes + 1].parts), len(level.parts))
        step = scipy.sparse.csr_array((model.probabilities[votes], (level.child, level.parent)), shape=shape)
        here = np.column_stack([step @ here[:, 1:], np.zeros(shape[0])])
    return Means(samples, rounds, agreement)


def _simulated(chosen: Plan, budget: int) -> Means:
    """The means over episodes; always the same ones, so that plans compare."""
    table = planned(budget, chosen)
    due, rounds = np.zeros((2, EPISODES), np.int64)
    answer: IntArray = np.zeros(EPISODES, np.int16)
    leader = answer
    asked = np.full(EPISODES, int(table.find("asked", Tally(budget))))
    for step in simulate(chosen.prior, budget, EPISODES, seed=1):
        due, rounds = due + asked, rounds + (asked > 0)
        deciding = np.flatnonzero(due == step.draws)
        asked = np.zeros(EPISODES, np.int64)
        asked[deciding] = table.find_states("asked", step.keys[deciding], step.top.T[deciding], step.draws)
        answer[deciding] = step.leader[deciding]
        leader = step.leader
    return Means(float(due.mean()), float(rounds.mean()), float((answer == leader).mean()))


def for_mean_samples(base: Plan, samples: float, measure: Measure) -> Budgeted:
    """The plan of the base's round penalty that draws so many on average."""
    return _between(base, measure, lambda means: means.samples - samples)


def for_agreement(base: Plan, agreement: float, measure: Measure) -> Budgeted:
    """The plan of the base's round penalty that draws least and agrees so often."""
    return _between(base, measure, lambda means: means.agreement - agreement)


def _between(base: Plan, measure: Measure, excess: Callable[[Means], float]) -> Budgeted:
    """Two plans, with cheaper and with dearer draws, mixed so that there is no excess: it falls as draws get dearer."""
    cheap, dear = replace(base, penalty_draw=0.0), replace(base, penalty_draw=DEAREST)
    above, below = measure(cheap), measure(dear)
    if excess(above) <= TINY:
        return Budgeted(Mixture((cheap,), (1.0,)), above, met=excess(above) >= -TINY)
    if excess(below) >= -TINY:
        return Budgeted(Mixture((dear,), (1.0,)), below, met=excess(below) <= TINY)
    for _ in range(HALVINGS):
        # Halve the ratio where there is one: penalties matter by their size.
        low, high = cheap.penalty_draw, dear.penalty_draw
        middle = replace(base, penalty_draw=float(np.sqrt(low * high)) if low > 0 else high / 8)
        if low > 0 and high / low < 1 + 1e-4:
            break
        means = measure(middle)
        if excess(means) > 0:
            cheap, above = middle, means
        else:
            dear, below = middle, means
    share = excess(below) / (excess(below) - excess(above))
    return Budgeted(Mixture((cheap, dear), (share, 1 - share)), _mixed([above, below], [share, 1 - share]), met=True)


def for_mean_samples_and_rounds(base: Plan, samples: float, rounds: float, measure: Measure) -> Budgeted:
    """The mixture that agrees most often within both means, by column generation.

    A linear program mixes the plans found so far; its dual variables are the penalties of the next plan to try.
    """
    starts = [(0.0, 0.0), (DEAREST, 0.0), (0.0, DEAREST), (DEAREST, DEAREST), (0.0075, 0.005)]
    plans = [replace(base, penalty_draw=draw, penalty_round=round_) for draw, round_ in starts]
    found = [measure(one) for one in plans]
    while True:
        table = np.array(found)
        solved = scipy.optimize.linprog(
            -table[:, 2], A_ub=table[:, :2].T, b_ub=[samples, rounds], A_eq=np.ones((1, len(table))), b_eq=[1]
        )
        if solved.status != 0:
            nearest = int(np.argmin(np.maximum(table[:, 0] / samples, table[:, 1] / rounds)))
            return Budgeted(Mixture((plans[nearest],), (1.0,)), found[nearest], met=False)
        # The program counts agreement once where the reward counts it twice.
        draw, round_ = np.minimum(2 * np.maximum(-solved.ineqlin.marginals, 0), DEAREST).tolist()
        following = replace(base, penalty_draw=draw, penalty_round=round_)
        if following in plans or len(plans) == COLUMNS:
            break
        plans.append(following)
        found.append(measure(following))
    kept = np.flatnonzero(solved.x > TINY)
    shares = (solved.x[kept] / solved.x[kept].sum()).tolist()
    mixture = Mixture(tuple(plans[number] for number in kept), tuple(shares))
    return Budgeted(mixture, _mixed([found[number] for number in kept], shares), met=True)


def _mixed(means: Sequence[Means], shares: Sequence[float]) -> Means:
    return Means(*(np.array(shares) @ np.array(means)).tolist())
