"""Right: how true it is after 100 labels, how promises about the risk are kept, and whether to stop for it.

    python benchmarks/right.py [POOL …]

Pools with 150 questions or more are used, the bundled ones and those that are named. Labels are drawn at random, and
everything is measured on the other questions. The score was learned from the bundled pools, marked with a star.
"""

import sys
import timeit
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import fmean

import numpy as np

from suffice import Plan, Pool, Response, Sampling, Tallies, Tally, bundled_pools, calibrate, evaluate, load_pool
from suffice.controllers import ArrayController
from suffice.planning.right import Calibration, score
from suffice.pools import draw_episodes
from suffice.replay.calibrating import LabelledVotes, calibration_of, expected_error, judge, labelled_votes
from suffice.report.markdown import markdown_table
from suffice.tally import FloatArray, IntArray, Standings

FEWEST_QUESTIONS = 150
LABELS = 100
SPLITS, PROMISED_SPLITS = 20, 200
RISK, CONFIDENCE = 0.1, 0.9
OTHER_RISKS = (0.05, 0.2)


def main() -> None:
    named = {f"{name} *": load_pool(name) for name in bundled_pools()} | {
        _label(path): load_pool(path) for path in sys.argv[1:]
    }
    pools = {name: pool for name, pool in named.items() if len(pool) >= FEWEST_QUESTIONS}
    votes = {name: labelled_votes(pool) for name, pool in pools.items()}
    truth(votes)
    promises(votes)
    stopping({name: pool for name, pool in pools.items() if not name.endswith("*")} or pools)
    speed()


def _label(path: str) -> str:
    """The last two parts of a path: pools of different folders may share a name."""
    return "/".join(path.removesuffix(".jsonl").split("/")[-2:])


def splits(votes: LabelledVotes, number: int) -> Iterator[tuple[Calibration, LabelledVotes]]:
    """A calibration from some labels, and the votes on all other questions; again and again."""
    for seed in range(number):
        order = np.random.default_rng(seed).permutation(len(votes.draws))
        yield calibration_of(_some(votes, order[:LABELS])), _some(votes, order[LABELS:])


def _some(votes: LabelledVotes, rows: IntArray) -> LabelledVotes:
    """The votes on some of the questions."""
    own = {name: getattr(votes, name)[rows] for name in ("leader", "draws", "none", "truths", "certainties")}
    return replace(votes, **own, signals={name: one[rows] for name, one in votes.signals.items()})


def truth(votes: dict[str, LabelledVotes]) -> None:
    """Expected calibration error, Brier score and AUROC, beside the certainty's."""
    rows, means = [], []
    for name, known in votes.items():
        figures = []
        for calibration, others in splits(known, SPLITS):
            judged = judge(calibration, others)
            certain = np.array(
                [expected_error(judged.certainties, judged.truths), _brier(judged.certainties, judged.truths)]
            )
            own = [judged.calibration_error, judged.brier, judged.brier_of_mean, judged.auroc or np.nan]
            figures.append([judged.accuracy, *own, *certain])
        means.append(np.nanmean(figures, axis=0))
        rows.append([name, *(f"{figure:.3f}" for figure in means[-1])])
    rows.append(["mean", *(f"{figure:.3f}" for figure in np.mean(means, axis=0))])
    headings = ["pool", "accuracy", "error", "Brier", "Brier of the mean", "AUROC", "certainty: error", "Brier"]
    print(f"\n{LABELS} labels, the other questions, {SPLITS} splits\n\n{markdown_table(headings, rows)}")


def _brier(probabilities: FloatArray, truths: FloatArray) -> float:
    return float(((probabilities - truths) ** 2).mean())


def promises(votes: dict[str, LabelledVotes]) -> None:
    """How often the promised risk is kept on the other questions, and which share of them is answered."""
    rows = []
    for name, known in votes.items():
        cells = [name]
        found = list(splits(known, PROMISED_SPLITS))
        judged = [judge(calibration, others) for calibration, others in found]
        for risk in (RISK, *OTHER_RISKS):
            least = [calibration.threshold(risk, CONFIDENCE) for calibration, _ in found]
            answered = [one.answered(threshold) for one, threshold in zip(judged, least, strict=True)]
            kept = np.mean([wrong is None or wrong <= risk for _, wrong in answered])
            none = np.mean([threshold is None for threshold in least])
            cells += [f"{kept:.1%}", f"{np.mean([share for share, _ in answered]):.0%}", f"{none:.0%}"]
        rows.append(cells)
    headings = ["pool"]
    for risk in (RISK, *OTHER_RISKS):
        headings += [f"risk {risk:g}: kept", "coverage", "no threshold"]
    print(f"\nConfidence {CONFIDENCE:g}, {PROMISED_SPLITS} splits\n\n{markdown_table(headings, rows)}")


CHECKED = (1, 2, 3, 4, 6, 8, 12, 16, 20, 24, 28, 32)
"""After so many draws a stop is possible."""

PRICES = (0.0003, 0.001, 0.002, 0.004, 0.008, 0.016)
PLAN_PRICES = (0.0005, 0.002, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1)
REPEATS = 40

State = tuple[int, ...]
"""Draws, the votes of the first two answers, and draws without one."""


@dataclass(frozen=True)
class StopForTruth(ArrayController):
    """Draws on wherever a table says so, or has not seen the like."""

    stops: frozenset[State]

    def decide_many(self, tallies: Tallies) -> IntArray:
        """To the next number of draws at which a stop is possible."""
        states = _states(tallies.draws, tallies.votes)
        after = [next((one for one in CHECKED if one > state[0]), state[0]) for state in states]
        more = [0 if state in self.stops else draws - state[0] for state, draws in zip(states, after, strict=True)]
        return np.array(more, int)


def _states(draws: IntArray, votes: IntArray) -> list[State]:
    none = draws - votes.sum(axis=1)
    return [tuple(row) for row in np.column_stack([draws, votes[:, :2], none]).tolist()]


@dataclass(frozen=True)
class Lessons:
    """A pool's episodes after each number of draws at which a stop is possible: their states, and what is right."""

    states: dict[int, list[State]]
    right: dict[int, dict[State, float]]

    @classmethod
    def of(cls, pool: Pool) -> "Lessons":
        """Of the share of episodes that are right in a state, drawn to a calibration by one question's worth."""
        episodes = list(draw_episodes(pool, 32, REPEATS, 1))
        standings = Standings(np.concatenate([part.answers for part in episodes]))
        golds = np.concatenate([part.codes(question.gold for question in part.questions) for part in episodes])
        states: dict[int, list[State]] = {}
        right: dict[int, dict[State, float]] = {}
        for draws in CHECKED:
            known = calibrate(pool, f"sc:draws={draws}")
            states[draws] = _states(np.full(len(golds), draws), standings.votes[draws])
            truths = means(states[draws], standings.leader[draws] == golds)
            right[draws] = {
                (_, leader, second, none): (count * share + REPEATS * known.at(score(leader, draws, none)))
                / (count + REPEATS)
                for (_, leader, second, none), (share, count) in truths.items()
            }
        return cls(states, right)

    def best(self, price: float) -> StopForTruth:
        """The best rule for the right answer at a price of a draw, backwards from the budget."""
        stops: set[State] = set()
        later: FloatArray = np.array([self.right[CHECKED[-1]][state] for state in self.states[CHECKED[-1]]])
        for draws, after in reversed(list(pairwise(CHECKED))):
            on = {
                state: mean - price * (after - draws) for state, (mean, _) in means(self.states[draws], later).items()
            }
            stops |= {state for state, worth in on.items() if worth <= self.right[draws][state]}
            later = np.array([max(on[state], self.right[draws][state]) for state in self.states[draws]])
        return StopForTruth(frozenset(stops))


def means(states: Sequence[State], values: np.ndarray) -> dict[State, tuple[float, int]]:
    """The mean of the values in each state, and their number."""
    by_state: dict[State, list[float]] = {}
    for state, value in zip(states, values.tolist(), strict=True):
        by_state.setdefault(state, []).append(value)
    return {state: (fmean(found), len(found)) for state, found in by_state.items()}


def stopping(pools: dict[str, Pool]) -> None:
    """Accuracy at the same number of samples: stopping for truth, learned from half of the questions, and the plan."""
    rows, gaps = [], []
    for name, pool in pools.items():
        halves = [Pool(pool.name, pool.questions[start::2]) for start in (0, 1)]
        lessons = [Lessons.of(half) for half in halves]
        usual = np.array([_taken(halves, [Plan(penalty_draw=price, penalty_round=0.0)] * 2) for price in PLAN_PRICES])
        usual = usual[np.argsort(usual[:, 0])]
        for price in PRICES:
            samples, accuracy = _taken(halves, [half.best(price) for half in reversed(lessons)])
            if usual[0, 0] <= samples <= usual[-1, 0]:
                gaps.append(accuracy - np.interp(samples, *usual.T))
                cells = (f"{samples:.1f}", f"{accuracy:.2f}", f"{accuracy - gaps[-1]:.2f}", f"{gaps[-1]:+.2f}")
                rows.append([name, f"{price:g}", *cells])
    headings = ["pool", "price", "samples", "for truth %", "plan, dearer draw %", "difference"]
    print(f"\nStopping for truth against a plan with as many samples\n\n{markdown_table(headings, rows)}")
    print(f"\nmean difference {np.mean(gaps):+.2f} points, from {min(gaps):+.2f} to {max(gaps):+.2f}")


def _taken(pools: Sequence[Pool], controllers: Sequence[ArrayController]) -> tuple[float, float]:
    """Samples a question and accuracy in percent, each pool by its controller."""
    results = [
        result
        for pool, controller in zip(pools, controllers, strict=True)
        for result in evaluate(pool, controller, repeats=REPEATS, executor="here")
    ]
    return fmean(one.samples for one in results), fmean(one.accuracy or 0.0 for one in results)


def speed() -> None:
    """What the live path pays for a decision."""
    tally = Tally()
    tally.add_round(["7", "7", None, "9", "7", "7"])
    responses = [Response("7", answer="7", signals={"lowest": 9.0})] * 32
    for pool, what in (("gsm8k", "without a signal"), ("train-signals", "with one")):
        voting = Sampling(right=calibrate(f"qwen2.5-coder-1.5b__{pool}"), risk=0.3).voting
        times = timeit.repeat("voting.right(tally, responses)", number=1000, repeat=20, globals=locals())
        print(f"\na decision takes {1000 * min(times):.1f} µs {what}")


if __name__ == "__main__":
    main()
