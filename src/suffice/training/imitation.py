"""One network for all budgets and penalties, which imitates the planner in the states that episodes pass through."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch.nn import Linear, ReLU, Sequential

from suffice.controllers.conditioned import (
    ARRAYS,
    CONDITIONS,
    FEATURES,
    TOP,
    ConditionedController,
    Range,
    conditions,
    features,
)
from suffice.executors import Link
from suffice.penalties import Penalties
from suffice.planning.approximate import Basis, Fitted, cached_confidence, fit_model, simulate, state_worths
from suffice.planning.model import EXACT_BUDGET, UNIVERSAL, build_model
from suffice.planning.values import level_worths
from suffice.tally import FloatArray, IntArray
from suffice.training import learner
from suffice.training.setting import TrainingJob

EPISODES = 1500
"""Simulated for each budget and pair of penalties."""

MOST_STATES, STATES_A_DRAW = 8000, 400
"""So many states are kept for each budget and pair of penalties: small budgets have few that differ."""

PAST_STOP = 4
"""States this far past the planner's stop are learned from too: a network may go there."""

WITHOUT_ANSWERS = 0.25
"""In this share of the states some answers that came once are taken for responses without one."""

HIDDEN = (64, 64)
EPOCHS = 16
BATCH = 4096
RATE = 3e-3
SHARPNESS = 0.01
"""A loss of this much against the planner's best makes an action e times less likely to be imitated."""

LIKENESS = 0.02
"""The weight, at the start, of acting alike where it hardly matters: that leads the way to what does."""

LEAST_ROUND = 1e-3
"""Price of a round in the imitated plans, even where rounds are free: they take time."""

LARGE_BUDGETS = (56, 64, 80, 96, 112, 128, 160, 192, 224, 256)
"""Above the exact budgets these are planned: plans take seconds there."""


@dataclass(frozen=True)
class PlannerExamples:
    """States as the network sees them, and what the planner holds each action to be worth there, stopping first."""

    inputs: FloatArray
    worths: FloatArray


def learn_by_imitation(job: TrainingJob, link: Link | None = None) -> learner.Trained:
    """Train one network for the job's ranges. Its pools only measure it; an interrupt keeps nothing."""
    torch.set_num_threads(1)  # the network is so small that threads only get into each other's way
    link = link or Link()

    def tell(note: str) -> None:
        link.check()
        link.tell(learner.Watched(0, 0.0, 0.0, 0.0, note))

    within = job.ranges or Range()
    made = []
    for budget, examples in planner_examples(within, job.setting.actions, LEAST_ROUND, job.lessons, job.seed):
        tell(f"planning at a budget of {budget}")
        made.append(examples)
    inputs, worths = (np.concatenate(parts) for parts in zip(*((one.inputs, one.worths) for one in made), strict=True))
    actor = imitate(PlannerExamples(inputs, worths), job.seed, tell)
    controller = ConditionedController(learner.weights_of(actor), _card(job, within), job.setting.penalties)
    results = learner.measure(controller, job.pools, job.setting)
    figures = learner.figures(results)
    about = {"steps": EPOCHS * len(inputs), **figures, "target_reward": figures["reward"]}
    card = {**controller.card, **about, "rules": learner.figures_of_rules(job)}
    return learner.Trained(ConditionedController(controller.layers, card, job.setting.penalties), results)


def _card(job: TrainingJob, within: Range) -> dict[str, Any]:
    ranges = asdict(within)
    return {
        "kind": "conditioned",
        "ranges": {"budget": ranges["budgets"], "penalty_draw": ranges["draw"], "penalty_round": ranges["round"]},
        "top": TOP,
        "lessons": job.lessons,
        "algorithm": "imitation",
        "activation": "relu",
        **learner.common_card(job),
    }


def random_penalties(random: np.random.Generator, within: Range) -> Penalties:
    """Any penalties of the range: draws by their logarithm; rounds free in a third of all cases."""
    low, high = np.log(within.draw)
    draw = float(np.exp(random.uniform(low, high)))
    low, high = within.round
    return Penalties(draw, 0.0 if low == 0 and random.random() < 1 / 3 else low + (high - low) * random.random() ** 2)


def planner_examples(
    within: Range, actions: tuple[int, ...], least_round: float, prices: int, seed: int
) -> Iterator[tuple[int, PlannerExamples]]:
    """The examples of every budget, with so many pairs of penalties each.

    There are four times as many where plans take no time, and a third where they take seconds.
    """
    random = np.random.default_rng(seed)
    low, high = within.budgets
    exact = [budget for budget in range(low, min(high, EXACT_BUDGET) + 1) if budget <= 16 or budget % 4 == 0]
    large = [budget for budget in LARGE_BUDGETS if low <= budget <= high]
    for budget in exact + large:
        for _ in range(4 * prices if budget < 8 else prices if budget <= EXACT_BUDGET else -(-prices // 3)):
            penalties = random_penalties(random, within)
            yield budget, _examples(budget, penalties, actions, least_round, random)


def _examples(
    budget: int, penalties: Penalties, actions: tuple[int, ...], least_round: float, random: np.random.Generator
) -> PlannerExamples:
    """Simulated episodes up to a little after the planner's stop, and the planner's worths along them."""
    tops, keys = [np.zeros((EPISODES, TOP), np.int64)], [np.zeros(EPISODES, np.uint64)]
    for step in simulate(UNIVERSAL, budget, EPISODES, seed=int(random.integers(2**31)), counts=TOP):
        tops.append(step.top.T.astype(np.int64))
        keys.append(step.keys.copy())
    paid = Penalties(penalties.draw, max(penalties.round, least_round))
    worths = _worths(budget, paid, actions, tops, keys)
    stops = worths[..., 0] >= worths[..., 1:].max(axis=2)
    stops[0] = False
    ended = np.cumsum(stops, axis=0) > PAST_STOP
    draws, episode = np.nonzero(~ended)
    chosen = random.permutation(len(draws))[: min(MOST_STATES, STATES_A_DRAW * budget)]
    draws, episode = draws[chosen], episode[chosen]
    top = _without_answers(np.stack(tops)[draws, episode], random)
    known = (np.full(len(draws), one) for one in (budget, penalties.draw, penalties.round))
    inputs = np.column_stack([*features(top.T, draws, budget, ARRAYS), conditions(*known)])
    return PlannerExamples(inputs.astype(np.float32), worths[draws, episode].astype(np.float32))


def _without_answers(top: IntArray, random: np.random.Generator) -> IntArray:
    """The planner takes a response without an answer for an answer of its own: so some of these become such again."""
    singles = (top == 1).sum(axis=1)
    kept = np.where(random.random(len(top)) < WITHOUT_ANSWERS, random.integers(0, singles + 1), singles)
    kept = np.maximum(kept, top[:, 0] == 1)  # with a leader there is something to stop with
    place = np.arange(top.shape[1]) - (top > 1).sum(axis=1)[:, None]
    return np.where((top == 1) & (place >= kept[:, None]), 0, top)


def _worths(
    budget: int, penalties: Penalties, actions: tuple[int, ...], tops: Sequence[IntArray], keys: Sequence[np.ndarray]
) -> FloatArray:
    """What stopping and each action are worth, by draws made, episode and action; the last draws have no decision."""
    found = np.empty((budget, len(keys[0]), len(actions) + 1))
    if budget <= EXACT_BUDGET:
        model = build_model(budget, UNIVERSAL)
    else:
        sure = Fitted(budget, cached_confidence(budget, UNIVERSAL)["fit"])
        model, later = fit_model(sure, UNIVERSAL, penalties, actions)
        for draws in range(sure.first, budget):
            basis = Basis.of(tops[draws][:, :3], draws, budget)
            worths = state_worths(sure, later, basis, draws, penalties, actions)
            found[draws] = np.column_stack([worths.stopping, worths.drawing])
    for worths in level_worths(model, penalties, actions):
        if worths.votes < budget:
            rows = np.searchsorted(model.levels[worths.votes].keys, keys[worths.votes])
            columns = np.searchsorted(worths.draws, np.minimum(actions, budget - worths.votes))
            found[worths.votes, :, 0] = worths.stopping[rows]
            found[worths.votes, :, 1:] = worths.drawing[rows][:, columns]
    found[0, :, 0] = -1  # nothing to stop with
    return found


def imitate(examples: PlannerExamples, seed: int, tell: Callable[[str], None]) -> Sequential:
    """Train a network to act as the planner would, weighing each action by its loss against the planner's best."""
    torch.manual_seed(seed)
    inputs = torch.as_tensor(examples.inputs)
    worths = torch.as_tensor(examples.worths)
    losses = (worths.max(dim=1, keepdim=True).values - worths).clamp(max=0.5)
    sizes = (FEATURES + CONDITIONS, *HIDDEN)
    hidden = [part for size, next_ in pairwise(sizes) for part in (Linear(size, next_), ReLU())]
    actor = Sequential(*hidden, Linear(sizes[-1], worths.shape[1]))
    batch = min(BATCH, len(inputs))
    rounds = len(inputs) // batch
    optimiser = torch.optim.Adam(actor.parameters(), lr=RATE)
    rate = torch.optim.lr_scheduler.OneCycleLR(optimiser, RATE, total_steps=EPOCHS * rounds, pct_start=0.1)
    for epoch in range(EPOCHS):
        tell(f"imitating the planner, {epoch + 1} of {EPOCHS}")
        for number, rows in enumerate(torch.randperm(len(inputs))[: rounds * batch].reshape(rounds, batch)):
            scores, lost = actor(inputs[rows]), losses[rows]
            likely = (-lost / SHARPNESS).softmax(dim=1)
            alike = -(likely * scores.log_softmax(dim=1)).sum(dim=1).mean()
            loss = (scores.softmax(dim=1) * lost).sum(dim=1).mean()
            likeness = likeness_after((epoch + number / rounds) / EPOCHS)
            optimiser.zero_grad()
            (loss + likeness * alike).backward()
            optimiser.step()
            rate.step()
    return actor


def likeness_after(done: float) -> float:
    """What being like the planner counts for when that share of the steps is done: it falls to nothing.

    >>> likeness_after(0) == LIKENESS, likeness_after(0.5) == LIKENESS / 2, likeness_after(1)
    (True, True, 0.0)
    """
    return LIKENESS * (1 - done)
