"""A controller that goes by steps, fitted to recorded draws by regression backwards.

After the last step there is nothing more to gain; before it, what a step gains over stopping is regressed on how the
vote stands, episodes being followed to their end by what was fitted for later steps.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from suffice.controllers.files import FORMAT, load_tensors, write_tensors
from suffice.errors import ControllerError, OptionError
from suffice.panel.controllers import PanelController, PanelTallies
from suffice.panel.episodes import PanelEpisodes, draw_panel, run_panel
from suffice.panel.voters import PoolVoter, aligned, learn_weights
from suffice.pools import Pool
from suffice.tally import DEFAULT_BUDGET, NONE, FloatArray, IntArray

EPISODES = 6000
"""About so many episodes of questions on which responses differ are drawn, however many questions those are."""

GOLD = 0.5
"""How much of being right goes by gold answers where they are known; the rest by the full vote: fewer accidents."""

PULL = 10.0
"""How many episodes' worth the fit of a step is pulled to that of the step after it."""

STEPS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
"""How often a voter has been asked after each of its steps."""

FURTHEST = 5.0
"""A leader that is further ahead than so many deviations is as good as settled."""


def ends_of(budget: int) -> IntArray:
    """How often a voter has been asked before its steps, and after each."""
    return np.array([0, *(step for step in STEPS if step < budget), budget])


def standing(tallies: PanelTallies, weights: Sequence[float]) -> FloatArray:
    """How votes stand, as numbers that mean the same on easy and on hard questions, at [row, feature].

    The lead by weight, in shares and in deviations; how much of it each voter backs, and how little that voter has
    been asked; and where voters disagree, how much.
    """
    heavy = np.asarray(weights, float)
    rows = np.arange(len(tallies))
    votes, draws = tallies.votes, tallies.draws
    sums = tallies.sums(weights)
    first = sums.argmax(axis=1)
    best = sums[rows, first]
    others = sums.copy()
    others[rows, first] = -1
    second = others.argmax(axis=1)
    next_best = np.maximum(others[rows, second], 0)
    total = np.maximum(sums.sum(axis=1), 1e-9)
    for_first = votes[rows, :, first]
    for_second = np.where(next_best[:, None] > 0, votes[rows, :, second], 0)
    spread = np.sqrt(np.maximum((heavy**2 * (for_first + for_second)).sum(axis=1), 1e-9))
    ahead = np.minimum((best - next_best) / spread, FURTHEST)
    margin, near = (best - next_best) / total, np.exp(-ahead)
    columns = [np.ones(len(rows)), margin, margin**2, best / total, ahead, ahead**2 / FURTHEST]
    columns += [near, np.exp(-(ahead**2) / 2), 1 / (1 + draws.sum(axis=1)), draws.sum(axis=1) > 0]
    fewness = 1 / (1 + draws)
    backs = (for_first + 0.5) * fewness
    leads = (for_first - for_second) * fewness
    dissents = votes.max(axis=2) > for_first + 0.5
    for one in range(draws.shape[1]):
        few = fewness[:, one]
        columns += [backs[:, one], backs[:, one] ** 2, leads[:, one], dissents[:, one], few, few * margin, few * near]
        for other in range(one):
            both = np.einsum("rk,rk->r", votes[:, one], votes[:, other]) * few * fewness[:, other]
            columns += [leads[:, one] * leads[:, other], both]
            columns += [dissents[:, other] * few, dissents[:, one] * fewness[:, other]]
    return np.stack(columns, axis=1).astype(float)


@dataclass(frozen=True, eq=False, repr=False)
class FittedPanel(PanelController):
    """Asks the voter whose next step gains most; stops where none gains anything."""

    voters: tuple[str, ...]
    weights: tuple[float, ...]
    gains: FloatArray
    """What a step of the voter gains over stopping, at [steps made by all, feature, voter]."""
    value: float
    """What a right answer is worth, in the money of the prices."""
    budget: int = DEFAULT_BUDGET

    def __str__(self) -> str:
        return f"fitted:value={self.value:g}"

    def choose_many(self, tallies: PanelTallies) -> IntArray:
        ends = ends_of(tallies.budget)
        made = np.searchsorted(ends, tallies.draws, side="right") - 1
        level = made.sum(axis=1)
        stands = standing(tallies, self.weights)
        gain = np.einsum("rf,rfj->rj", stands, self.gains[np.minimum(level, len(self.gains) - 1)])
        gain[level >= len(self.gains)] = -np.inf
        gain[made >= len(ends) - 1] = -np.inf
        best = gain.argmax(axis=1)
        rows = np.arange(len(tallies))
        goes_on = np.isfinite(gain[rows, best]) & ((gain[rows, best] > 0) | (level == 0))
        asked = np.zeros(tallies.draws.shape, np.intp)
        reached = ends[np.minimum(made[rows, best] + 1, len(ends) - 1)]
        asked[rows, best] = np.where(goes_on, reached - tallies.draws[rows, best], 0)
        return asked


def fit_panel(
    voters: Sequence[PoolVoter],
    value: float,
    *,
    budget: int = DEFAULT_BUDGET,
    labels: bool = True,
    seed: int = 0,
    progress: Callable[[float], None] = lambda share: None,
) -> FittedPanel:
    """Fit a controller to what voters said to the same questions.

    Args:
        voters: The voters, each with a pool; questions that all of them have count.
        value: The worth of a right answer, in the money of the prices.
        budget: The most draws of each voter.
        labels: Whether gold answers count. Without them, right is what the panel's full vote elects, by weights that
            are learned without them.
        seed: The seed of the episodes.
        progress: Called with the share of the work that is done, piece by piece.
    """
    if not 0 < value < float("inf"):
        raise OptionError(f"must be a number above 0, not {value}", "value_of_an_answer")
    voters = aligned(voters)
    weights = learn_weights(voters, labels)
    episodes, counts = _episodes(voters, budget, seed)
    full, trust = episodes.full_vote(weights), np.where((episodes.gold != NONE) & labels, GOLD, 0)

    def worth(answer: IntArray, rows: IntArray) -> FloatArray:
        gold, voted = answer == episodes.gold[rows], answer == full[rows]
        return value * (trust[rows] * gold + (1 - trust[rows]) * voted)

    random = np.random.default_rng(seed)
    ends = ends_of(budget)
    count, rows, last = len(voters), np.arange(len(episodes)), len(ends) - 1
    levels = last * count
    begun = standing(PanelTallies(episodes.answers[:1], np.zeros((1, count), np.intp)), weights)
    gains = np.zeros((levels + 1, begun.shape[1], count))  # after the last step there is nothing more to gain
    fitted = FittedPanel(episodes.voters, weights, gains[:levels], value, budget)
    for level in reversed(range(levels)):
        made = _steps(level, last, len(rows), count, random)
        tallies = PanelTallies(episodes.answers, ends[made])
        stands, stopped = standing(tallies, weights), worth(tallies.leader(weights), rows)
        spent = episodes.spent(rows, ends[made])
        for voter in range(count):
            open_yet = np.flatnonzero(made[:, voter] < last)
            further = made[open_yet]
            further[:, voter] += 1
            ended = run_panel(episodes, fitted, open_yet, ends[further])
            won = worth(ended.answer, open_yet) - (ended.cost - spent[open_yet])
            later = gains[level + 1, :, voter]
            beyond = _ridge(stands[open_yet], won - stopped[open_yet], later, counts[open_yet])
            gains[level, :, voter] = later + beyond
        progress(1 / levels)
    return fitted


def _episodes(voters: Sequence[PoolVoter], budget: int, seed: int) -> tuple[PanelEpisodes, FloatArray]:
    """Episodes of all questions, and what part of them each row is, a question being EPISODES over their number."""
    same = list(zip(*(voter.pool for voter in voters), strict=True))
    ids = {one[0].id for one in same}
    settled = {one[0].id for one in same if len({answer for question in one for answer in question.answers}) == 1}
    parts, counts = [], []
    # Of a question on which all responses agree, one episode tells all.
    for chosen, repeats in ((settled, 1), (ids - settled, max(1, EPISODES // max(len(ids - settled), 1)))):
        some = [
            replace(voter, pool=Pool(voter.name, tuple(question for question in voter.pool if question.id in chosen)))
            for voter in (voters if chosen else ())
        ]
        for episodes in draw_panel(some, budget, repeats, seed):
            parts.append(episodes)
            counts.append(np.full(len(episodes), 1 / repeats))
    answers, money, gold = (
        np.concatenate([getattr(one, name) for one in parts]) for name in ("answers", "money", "gold")
    )
    return PanelEpisodes(parts[0].voters, answers, money, gold), np.concatenate(counts) * EPISODES / len(ids)


def _steps(level: int, most: int, rows: int, voters: int, random: np.random.Generator) -> IntArray:
    """So many steps, made by whichever voters, differently in each row; at [row, voter]."""
    shares = random.dirichlet(np.full(voters, 0.7), rows)
    made = np.zeros((rows, voters), np.intp)
    for _ in range(level):
        chances = np.where(made < most, shares + 1e-9, 0).cumsum(axis=1)
        chosen = (chances < random.random((rows, 1)) * chances[:, -1:]).sum(axis=1)
        made[np.arange(rows), chosen] += 1
    return made


def _ridge(stands: FloatArray, gained: FloatArray, later: FloatArray, counts: FloatArray) -> FloatArray:
    """What the gain is beyond that of the step after, by least squares that are pulled to nothing."""
    counted = stands.T * counts
    gram = counted @ stands + PULL * np.eye(stands.shape[1])
    return np.linalg.solve(gram, counted @ (gained - stands @ later))


def save_panel(controller: FittedPanel, path: Path) -> None:
    about = {"voters": list(controller.voters), "weights": list(controller.weights), "value": controller.value}
    write_tensors(path, {"gains": controller.gains}, {"kind": "panel", "format": FORMAT, **about})


def load_panel(path: str | Path) -> FittedPanel:
    def make(tensors: dict[str, FloatArray], card: dict[str, Any]) -> FittedPanel:
        if card["kind"] != "panel":
            raise ControllerError(f"{path}: this is no controller of a panel")
        return FittedPanel(tuple(card["voters"]), tuple(card["weights"]), tensors["gains"], card["value"])

    return load_tensors(path, "controller file", "suffice panel fit", ControllerError, make)
