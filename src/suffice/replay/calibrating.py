"""Learning from labels how often votes are right, by replay; and how true that turns out to be."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any

import numpy as np
import scipy

from suffice.controllers import Controller, get_controller
from suffice.elections.learned import common_signals
from suffice.errors import OptionError, PoolError, whole_number
from suffice.planning import certainties
from suffice.planning.right import FEWEST, SIGNALS, Calibration, SignalScale, learn, score
from suffice.pools import AnyPool, Pool, Question, draw_episodes, get_pools
from suffice.replay.evaluate import concatenated, row_means
from suffice.replay.run import Outcomes, replay
from suffice.tally import DEFAULT_BUDGET, FloatArray, IntArray

REPEATS = 8
"""So many votes are held on each labelled question; together they count as one label."""

FOLDS = 5

BINS = 5

RISKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3)
"""What a table shows thresholds for."""

COVERAGES = (100, 90, 80, 70, 60, 50, 40, 30, 20, 10)
"""In percent: what it shows the risk for."""


def calibrate(
    pool: AnyPool | Sequence[AnyPool],
    controller: str | Controller = "plan",
    budget: int = DEFAULT_BUDGET,
    questions: int | Iterable[str] | None = None,
    seed: int = 0,
) -> Calibration:
    """Learn how often the elected answer is right, from questions with a gold answer.

    Args:
        pool: A `Pool`, the name of a bundled one, or a path; or several, taken for one: a question that is in more than
            one of them, by its text or else its id, counts where it is first, and a signal where all have it.
        controller: Who decides when votes stop: what is learned holds for votes that stop like this.
        budget: The most draws for a question.
        questions: How many of those with a gold answer, or the ids of them; all by default.
        seed: Decides on the draws, and on which questions where there is a number of them.

    Returns:
        The probability to be right of any vote, and thresholds.

    Raises:
        PoolError: Where there are fewer than 30 labels, or answers have fields.

    >>> calibration = calibrate("qwen2.5-coder-1.5b__gsm8k", questions=60)
    >>> len(calibration.scores), calibration.slope > 0
    (60, True)
    """
    return calibration_of(labelled_votes(pool, controller, budget, questions, seed))


@dataclass(frozen=True)
class LabelledVotes:
    """Votes on questions with a gold answer: a row a question, a column for each vote on it."""

    leader: IntArray
    draws: IntArray
    none: IntArray
    truths: FloatArray
    certainties: FloatArray
    signals: dict[str, FloatArray]
    """By name, the mean over those who gave the answer, NaN where it is not known."""
    card: dict[str, Any]

    def scores(self, signal: SignalScale | None) -> FloatArray:
        known = 0.0 if signal is None else signal.standard(self.signals[signal.name])
        return score(self.leader, self.draws, self.none, known)

    def scale(self) -> SignalScale | None:
        """The signal that tells most of those that most votes have, and what it usually is."""
        for name in SIGNALS:
            known = self.signals[name][~np.isnan(self.signals[name])] if name in self.signals else np.array([])
            if 2 * known.size > self.draws.size and known.std() > 0:
                return SignalScale(name, float(known.mean()), float(known.std()))
        return None


def labelled_votes(
    pool: AnyPool | Sequence[AnyPool],
    controller: str | Controller = "plan",
    budget: int = DEFAULT_BUDGET,
    questions: int | Iterable[str] | None = None,
    seed: int = 0,
    fewest: int = FEWEST,
) -> LabelledVotes:
    """The votes that labels are learned from, or checked on; arguments as those of `calibrate`."""
    pools = get_pools(pool)
    for one in pools:
        if any(question.structured for question in one):
            raise PoolError(f"{one.name}: its answers have fields, and what is learned is of answers as a whole")
    every = [question for one in pools for question in one if question.gold is not None]
    first: dict[str, Question] = {}
    for question in every:
        text = question.extra.get("question")
        first.setdefault(text if isinstance(text, str) else question.id, question)
    labelled = list(first.values())
    repeated = len(every) - len(labelled)
    if questions is not None:
        labelled = _chosen(labelled, questions, seed)
    names = ", ".join(one.name for one in pools)
    if len(labelled) < fewest:
        raise PoolError(
            f"{names}: {len(labelled)} questions with a gold answer are too few to learn from; label {fewest} at "
            "least, and better 100"
        )
    chosen = set(map(id, labelled))
    for one in pools:
        if voted := tuple(question for question in one if id(question) in chosen):
            Pool(one.name, voted).check_budget(budget)
    decides = get_controller(controller)
    signals = [name for name in common_signals(pools) if name in SIGNALS]
    parts = [
        _votes(replay(episodes, decides), signals)
        for episodes in draw_episodes(Pool(names, tuple(labelled)), budget, REPEATS, seed)
    ]
    joined: dict[str, Any] = {name: values.reshape(-1, REPEATS) for name, values in concatenated(parts).items()}
    card = {
        "controller": str(controller),
        "budget": budget,
        "labels": len(labelled),
        "repeated": repeated,
        "pools": [{"name": one.name, "sha256": one.sha256} for one in pools],
        "seed": seed,
        "versions": {"suffice": version("suffice")},
    }
    own = {name: joined.pop(name) for name in ("leader", "draws", "none", "truths", "certainties")}
    return LabelledVotes(**own, signals=joined, card=card)


def _chosen(labelled: Sequence[Question], questions: int | Iterable[str], seed: int) -> list[Question]:
    if not isinstance(questions, Iterable):
        most = whole_number("questions", questions)
        order = np.random.default_rng(seed).permutation(len(labelled))
        return [labelled[place] for place in sorted(order[:most])]
    named = set(questions)
    if unknown := named - {question.id for question in labelled}:
        raise OptionError(f'has "{min(unknown)}", and no question of that id has a gold answer', "questions")
    return [question for question in labelled if question.id in named]


def _votes(outcomes: Outcomes, signals: Sequence[str]) -> dict[str, Any]:
    episodes, tallies = outcomes.episodes, outcomes.tallies()
    givers = outcomes.counted & (episodes.answers == outcomes.answer[:, None])
    found = {
        "leader": tallies.top(1)[:, 0],
        "draws": outcomes.samples,
        "none": outcomes.samples - tallies.votes.sum(axis=1),
        "truths": outcomes.right,
        "certainties": np.nan_to_num(certainties(tallies)),
    }
    return found | {name: row_means(np.where(givers, episodes.signal(name), np.nan)) for name in signals}


def calibration_of(votes: LabelledVotes) -> Calibration:
    """The calibration that votes teach; a threshold is tested on the first vote on each question alone."""
    signal = votes.scale()
    scores = votes.scores(signal)
    level, slope = learn(scores, votes.truths)
    return Calibration(level, slope, scores[:, 0], votes.truths[:, 0].astype(int), signal, votes.card)


@dataclass(frozen=True)
class Judged:
    """Probabilities to be right, of one vote a question, and whether it was; with the certainty for comparison."""

    right: FloatArray
    truths: FloatArray
    certainties: FloatArray
    fitted: FloatArray
    """The probabilities by all labels: votes rank by them, as labels have no say in the order."""

    @property
    def accuracy(self) -> float:
        return float(self.truths.mean())

    @property
    def calibration_error(self) -> float:
        """The expected calibration error, over five bins with as many votes each."""
        return expected_error(self.right, self.truths)

    @property
    def brier(self) -> float:
        return float(((self.right - self.truths) ** 2).mean())

    @property
    def brier_of_mean(self) -> float:
        """The Brier score of who says the accuracy of every vote."""
        return self.accuracy * (1 - self.accuracy)

    @property
    def auroc(self) -> float | None:
        """How often a vote that is right has the larger probability than one that is wrong; None without both."""
        right, wrong = self.fitted[self.truths == 1], self.fitted[self.truths == 0]
        pairs = right.size * wrong.size
        return float(scipy.stats.mannwhitneyu(right, wrong).statistic / pairs) if pairs else None

    def answered(self, least: float | None) -> tuple[float, float | None]:
        """The share that is at least so probable, and which part of it is wrong."""
        kept = np.zeros(len(self.fitted), bool) if least is None else self.fitted >= least
        return float(kept.mean()), float(1 - self.truths[kept].mean()) if kept.any() else None

    def risks(self) -> list[tuple[float, float, float]]:
        """For coverages from all to few: the share that is answered, from what probability on, and its risk."""
        ordered = np.sort(self.fitted)[::-1]
        rows: list[tuple[float, float, float]] = []
        for coverage in COVERAGES:
            least = float(ordered[max(1, round(coverage / 100 * len(ordered))) - 1])
            share, risk = self.answered(least)
            if risk is not None and (not rows or share < rows[-1][0]):
                rows.append((share, least, risk))
        return rows


def binned(probabilities: FloatArray, truths: FloatArray) -> list[tuple[float, float]]:
    """The mean probability and the share that is true, of bins with as many each."""
    # Many are equal, and pools are often sorted by subject: a bin should not end where a subject does.
    shuffled = np.random.default_rng(0).permutation(len(probabilities))
    bins = np.array_split(shuffled[np.argsort(probabilities[shuffled], kind="stable")], BINS)
    return [(float(probabilities[one].mean()), float(truths[one].mean())) for one in bins]


def expected_error(probabilities: FloatArray, truths: FloatArray) -> float:
    """How far the two are apart, in the mean over the bins."""
    return float(np.mean([abs(said - true) for said, true in binned(probabilities, truths)]))


def judge(calibration: Calibration, votes: LabelledVotes) -> Judged:
    """How true a calibration is, on votes that it was not learned from."""
    signal = calibration.signal
    scores = votes.scores(signal if signal and signal.name in votes.signals else None)[:, 0]
    right = np.array([calibration.at(one) for one in scores])
    return Judged(right, votes.truths[:, 0], votes.certainties[:, 0], right)


def judge_pools(calibration: Calibration, pools: Sequence[Pool], budget: int, seed: int) -> dict[str, Judged]:
    """Judge on each pool with gold answers, by votes that stop as those that it learned from."""
    controller = calibration.card.get("controller", "plan")
    known = [pool for pool in pools if any(question.gold is not None for question in pool.questions)]
    return {
        pool.name: judge(calibration, labelled_votes(pool, controller, budget, seed=seed, fewest=1)) for pool in known
    }


def cross_judge(calibration: Calibration, votes: LabelledVotes) -> Judged:
    """How true it is where it was not learned: each fifth of its questions by what the others teach."""
    scores = votes.scores(calibration.signal)
    folds = np.random.default_rng(0).permutation(len(scores)) % FOLDS
    right = np.zeros(len(scores))
    for fold in range(FOLDS):
        level, slope = learn(scores[folds != fold], votes.truths[folds != fold])
        right[folds == fold] = 1 / (1 + np.exp(-(level + slope * scores[folds == fold, 0])))
    return replace(judge(calibration, votes), right=right)
