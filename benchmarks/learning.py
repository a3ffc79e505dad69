"""Learning from traffic: what it costs, what it saves, and that traffic which changes can't fool it.

python benchmarks/learning.py [POOL …]
"""

import asyncio
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import product
from statistics import fmean
from typing import Any

import numpy as np
from gateway import gateway, load

from suffice import Penalties, Plan, Pool, Tally, bundled_pools, load_pool
from suffice.planning import UNIVERSAL, Prior, confidences
from suffice.planning.learning import FEWEST, Learner
from suffice.planning.learning import likelihoods as likelihoods_of
from suffice.planning.model import build_model
from suffice.pools import draw_episodes
from suffice.replay import certainty_reliability, learn_prior
from suffice.replay.learning import TrafficRun, serve
from suffice.replay.reliability import DECILES, Reliability, decile_sums
from suffice.tally import FloatArray, IntArray
from suffice.testing import FakeServer

BUDGET = 32
PLAN = Plan()
PENALTIES = Penalties(PLAN.penalty_draw, PLAN.penalty_round)
WINDOW = 100


def main() -> None:
    pools = [load_pool(name) for name in [*bundled_pools(), *sys.argv[1:]]]
    kinds = {pool.name: traffic(pool, 1500, 1) for pool in pools} | {
        "easy process": process(0.03, 0.0, 1500, 1),
        "two answers": two_answers(1500),
    }
    live(kinds["easy process"])
    costs(kinds)
    halves([pool for pool in pools if len(pool.questions) >= 100])
    online(kinds)
    easy, hard = split(kinds)
    overnight(kinds, easy, hard)
    drift(kinds, easy, hard)
    mixed(kinds, easy, hard)
    tiny(pools)
    calibration([pool for pool in pools if len(pool.questions) >= 100])


def traffic(pool: Pool, questions: int, seed: int) -> IntArray:
    """So many questions in random order; where a pool has fewer, they come again with other draws."""
    repeats = -(-questions // len(pool.questions))
    answers = np.concatenate([part.answers for part in draw_episodes(pool, BUDGET, repeats, seed)])
    return answers[np.random.default_rng(seed).permutation(len(answers))[:questions]]


def process(alpha: float, discount: float, questions: int, seed: int) -> IntArray:
    """Questions of one kind, by the model of answers itself."""
    random = np.random.default_rng(seed)
    answers = np.zeros((questions, BUDGET), int)
    for row in answers:
        counts: list[int] = []
        for draw in range(BUDGET):
            weights = np.array([*(count - discount for count in counts), alpha + len(counts) * discount])
            row[draw] = random.choice(len(weights), p=weights / weights.sum())
            if row[draw] == len(counts):
                counts.append(0)
            counts[row[draw]] += 1
    return answers


def kept_bytes(learner: Learner) -> int:
    """The size of what a learner keeps."""
    sizes: list[int] = []
    learner.sync(lambda change: sizes.append(len(change(None) or b"")))
    return sizes[0]


def two_answers(questions: int) -> IntArray:
    """Two answers, of which one has between half and nine tenths: the first draws agree, and may yet be wrong."""
    random = np.random.default_rng(7)
    return (random.random((questions, BUDGET)) > random.uniform(0.5, 0.9, (questions, 1))).astype(int)


def live(answers: IntArray) -> None:
    """600 requests to a gateway before a server that gives these answers, four at once; and 50 after a restart."""
    asked: Counter[int] = Counter()

    def script(request: dict[str, Any], number: int) -> list[str]:
        row, draws = int(request["messages"][-1]["content"].split()[-1]), request.get("n", 1)
        place = asked[row]
        asked[row] += draws
        return [rf"\boxed{{{answer}}}" for answer in answers[row, place : place + draws]]

    def body(first: int, number: int) -> dict[str, Any]:
        return {"model": "easy", "messages": [{"role": "user", "content": f"This is question {first + number}"}]}

    with tempfile.TemporaryDirectory() as state, FakeServer(script, remember=False) as upstream:
        options = (upstream.base_url.removesuffix("/v1"), "--vote", "always", "--state", state)
        told: list[float] = []
        for first, requests in ((0, 600), (600, 50)):
            with gateway(*options) as (url, _):
                replies, _, _ = asyncio.run(load(url, 4, requests, partial(body, first)))
            told += [reply["suffice"]["samples"] for _, reply in sorted(replies, key=lambda one: one[0])]
    parts = (told[:50], told[250:300], told[550:600], told[600:])
    means = ", ".join(f"{fmean(part):.2f}" for part in parts)
    print(f"through the gateway: {means} samples in the first 50, to 300, to 600, and after a restart")


def costs(kinds: dict[str, IntArray]) -> None:
    for name, answers in kinds.items():
        learner = Learner()
        serve(answers, PLAN, learner)
        build_model.cache_clear()
        begun = time.process_time()
        plan = learner.plan(PLAN, BUDGET)
        planning = time.process_time() - begun
        tallies = [stopped(plan, row) for row in answers[:500]]
        likelihoods_of.cache_clear()
        taken = []
        for _ in range(2):
            begun = time.process_time()
            for tally in tallies:
                learner.observe(tally)
            taken.append((time.process_time() - begun) / len(tallies) * 1e6)
        print(
            f"cost, {name}: {taken[0]:.0f} µs a vote never seen before, {taken[1]:.0f} µs after (target: 50); "
            f"a plan {planning:.2f} s (target: 1); state {kept_bytes(learner) / 1000:.0f} kB"
        )


def stopped(plan: Plan, answers: IntArray) -> Tally:
    tally = Tally(BUDGET)
    while asked := plan.next_round(tally):
        tally.add_round(map(str, answers[tally.draws : tally.draws + asked]))
    return tally


def halves(pools: list[Pool]) -> None:
    for pool in pools:
        parts: list[tuple[TrafficRun, TrafficRun]] = []
        for learned_from, tested_on in both_ways(pool):
            answers = traffic(tested_on, 20 * len(tested_on.questions), 0)
            fitted = replace(PLAN, prior=learned(learned_from), fewest=FEWEST)
            parts.append((serve(answers, PLAN), serve(answers, fitted)))
        print(f"fitted on one half, tested on the other, {pool.name}: {change(parts)}")


def both_ways(pool: Pool) -> Iterator[tuple[Pool, Pool]]:
    order = np.random.default_rng(1).permutation(len(pool.questions))
    first, second = (Pool(pool.name, tuple(pool.questions[place] for place in order[start::2])) for start in (0, 1))
    yield first, second
    yield second, first


_priors: dict[tuple[str, ...], Prior] = {}


def learned(pool: Pool) -> Prior:
    key = tuple(question.id for question in pool.questions)
    if key not in _priors:
        _priors[key] = learn_prior(pool)
    return _priors[key]


def change(parts: list[tuple[TrafficRun, TrafficRun]], some: slice = slice(None)) -> str:
    """Means over some of the questions, without learning → with it."""
    cells = []
    for name, places in (("samples", 2), ("agreement", 2), ("reward", 4)):
        values = [
            fmean(float(figures(course, name)[some].mean()) for course in way) for way in zip(*parts, strict=True)
        ]
        cells.append(f"{name} {values[0]:.{places}f} → {values[1]:.{places}f}")
    return ", ".join(cells)


def figures(course: TrafficRun, name: str) -> FloatArray:
    if name == "reward":
        return course.rewards(PENALTIES)
    return course.samples * 1.0 if name == "samples" else 100.0 * course.agrees


def online(kinds: dict[str, IntArray]) -> None:
    false_alarms = 0
    for name, answers in kinds.items():
        pair = staying(name, answers), serve(answers, PLAN, Learner())
        false_alarms += len(pair[1].changes)
        print(f"online, {name}: all {change([pair])}; the last 500 {change([pair], slice(-500, None))}")
    print(f"online: {false_alarms} false alarms in {sum(map(len, kinds.values()))} questions")


_staying: dict[str, TrafficRun] = {}


def staying(name: str, answers: IntArray) -> TrafficRun:
    if name not in _staying:
        _staying[name] = serve(answers, PLAN)
    return _staying[name]


def split(kinds: dict[str, IntArray]) -> tuple[list[str], list[str]]:
    """The kinds that take few samples, and those that take half as many more at least."""
    samples = {name: staying(name, answers).samples.mean() for name, answers in kinds.items()}
    easy = [name for name, mean in samples.items() if mean < 7]
    return easy, [name for name, mean in samples.items() if mean >= 7]


def overnight(kinds: dict[str, IntArray], easy: list[str], hard: list[str]) -> None:
    """Easy traffic for 1,500 questions, then hard traffic for 1,000."""
    noticed: list[float] = []
    worst: list[float] = []
    lost: list[int] = []
    for before, after in product(easy, hard):
        answers = np.concatenate([kinds[before], kinds[after][:1000]])
        old, new = serve(answers, PLAN), serve(answers, PLAN, Learner())
        late = [place - 1500 for place in new.changes if place > 1500]
        difference = new.agrees[1500:] * 1.0 - old.agrees[1500:]
        noticed.append(late[0] if late else np.inf)
        worst.append(100 * rolling(difference).min())
        lost.append(-int(difference.sum()))
        print(
            f"overnight, {before} then {after}: noticed after {noticed[-1]}, {lost[-1]} of 1000 answers lost, "
            f"at worst {worst[-1]:.0f} points of agreement in {WINDOW} questions"
        )
    print(
        f"overnight, all {len(noticed)}: noticed after {np.median(noticed):.0f} in the median, {max(noticed)} at most; "
        f"lost {fmean(lost):.1f} of 1000 in the mean, {max(lost)} at most; at worst {min(worst):.0f} points"
    )


def rolling(values: FloatArray) -> FloatArray:
    sums = np.cumsum(np.concatenate([[0], values]))
    means: FloatArray = (sums[WINDOW:] - sums[:-WINDOW]) / WINDOW
    return means


def drift(kinds: dict[str, IntArray], easy: list[str], hard: list[str]) -> None:
    """The share of hard questions grows from none to all over 1,500."""
    for before, after in product(easy, hard):
        turned = np.random.default_rng(3).random(1500) < np.linspace(0, 1, 1500)
        report("drift", before, after, np.where(turned[:, None], kinds[after], kinds[before]))


def mixed(kinds: dict[str, IntArray], easy: list[str], hard: list[str]) -> None:
    """Two models under one name, every question by one or the other."""
    for one, other in product(easy, hard):
        chosen = np.random.default_rng(4).random(1500) < 0.5
        report("mixed", one, other, np.where(chosen[:, None], kinds[other], kinds[one]))


def report(what: str, one: str, other: str, answers: IntArray) -> None:
    pair = serve(answers, PLAN), serve(answers, PLAN, Learner())
    worst = 100 * rolling(pair[1].agrees * 1.0 - pair[0].agrees).min()
    print(f"{what}, {one} and {other}: {change([pair])}; at worst {worst:.0f} points in {WINDOW} questions")


def tiny(pools: list[Pool]) -> None:
    """20 questions, 40 times over."""
    losses = []
    for pool in pools:
        answers = traffic(pool, 800, 5).reshape(40, 20, BUDGET)
        pairs = [(serve(some, PLAN), serve(some, PLAN, Learner())) for some in answers]
        gains = [float((new.rewards(PENALTIES) - old.rewards(PENALTIES)).mean()) for old, new in pairs]
        losses.append(fmean(gains))
    print(f"tiny: reward changes by {min(losses):+.4f} to {max(losses):+.4f} on {len(pools)} pools (target: −0.002)")


def confidence_reliability(pool: Pool, draws: int, prior: Prior = UNIVERSAL) -> Reliability:
    """Confidence after so many draws, by decile, and how often the leader is the answer of the full budget."""
    sums = np.zeros((DECILES, 3))
    for episodes in draw_episodes(pool, BUDGET, 20, 0):
        rows = np.arange(len(episodes.answers))
        sure = confidences(episodes.standings.at(rows, np.full(len(rows), draws)), prior)
        sums += decile_sums(sure, episodes.standings.leader[draws] == episodes.standings.reference)
    return Reliability(sums)


def calibration(pools: list[Pool]) -> None:
    """The error of confidence and certainty on one half under the prior learned on the other, in points."""
    for draws in (2, 4, 8, 16):
        errors = {
            f"{what}, {name}": fmean(
                measure(tested_on, draws, prior=prior).calibration_error
                for pool in pools
                for learned_from, tested_on in both_ways(pool)
                for prior in [UNIVERSAL if name == "universal" else learned(learned_from)]
            )
            for what, measure in (("confidence", confidence_reliability), ("certainty", certainty_reliability))
            for name in ("universal", "learned")
        }
        print(f"calibration after {draws} draws: " + "; ".join(f"{name} {error:.1f}" for name, error in errors.items()))


if __name__ == "__main__":
    main()
