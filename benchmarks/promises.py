"""Whether a promised agreement holds: traffic that changes from pool to pool, with a share of it audited.

    python benchmarks/promises.py [POOL…] [--promise 0.99] [--audit 0.05] [--runs 100]

Each pool is a phase of the traffic, 4,000 votes long; what is told is the mean over all votes, audited or not.
"""

import argparse
from dataclasses import replace

import numpy as np
from rich.console import Console
from rich.table import Table

from suffice.planning import Plan
from suffice.planning.promises import LEVELS, SLACK, AgreementPromise
from suffice.pools import draw_episodes
from suffice.pools.pool import get_pool
from suffice.replay.run import replay_arrays

BUNDLED = [f"qwen2.5-coder-1.5b__{name}" for name in ("gsm8k", "dapo", "math500")]
VOTES = 4000
Phase = dict[float, tuple[np.ndarray, np.ndarray]]
REPEATS = 20


def factors() -> list[float]:
    """All factors that a promise may come to."""
    return [*(0.5**level for level in range(LEVELS - 1)), 0.0]


def phase(pool: str, base: Plan, random: np.random.Generator) -> Phase:
    """What becomes of each vote of a phase at each factor: its samples, and whether it agrees with the full budget."""
    batches = list(draw_episodes(get_pool(pool), 32, REPEATS, seed=0))
    found = {}
    for factor in factors():
        plan = replace(base, penalty_draw=factor * base.penalty_draw, penalty_round=factor * base.penalty_round)
        results = [replay_arrays(episodes, plan, np.arange(len(episodes.answers))) for episodes in batches]
        agrees = [one.answer == episodes.standings.reference for one, episodes in zip(results, batches, strict=True)]
        found[factor] = np.concatenate([one.samples for one in results]), np.concatenate(agrees)
    rows = random.integers(0, len(found[0.0][0]), VOTES)
    return {factor: (samples[rows], agrees[rows]) for factor, (samples, agrees) in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pools", nargs="*", default=BUNDLED)
    parser.add_argument("--promise", type=float, default=0.99)
    parser.add_argument("--audit", type=float, default=0.05)
    parser.add_argument("--runs", type=int, default=100)
    given = parser.parse_args()
    base = Plan()
    random = np.random.default_rng(0)
    rows: list[list[list[float]]] = [[] for _ in given.pools]
    overall, audited = [], []
    phases = [phase(pool, base, random) for pool in given.pools]
    for _ in range(given.runs):
        promise = AgreementPromise(given.promise)
        everything: list[bool] = []
        audits: list[bool] = []
        for number in range(len(phases)):
            votes = phases[number]
            order = random.permutation(VOTES)
            samples, agreed = [], []
            for vote in order:
                drawn, agrees = (column[vote] for column in votes[promise.factor])
                samples.append(drawn)
                agreed.append(agrees)
                if random.random() < given.audit:
                    audits.append(bool(agrees))
                    promise.observe(bool(agrees))
            kept = votes[1.0]
            rows[number].append([np.mean(agreed), np.mean(samples), kept[1].mean(), kept[0].mean()])
            everything += agreed
        overall.append(np.mean(everything))
        audited.append(np.mean(audits))
    table = Table(title=f"Promised: {100 * given.promise:g} %, audited: {100 * given.audit:g} %, {given.runs} runs")
    for name in ("phase", "agreement %", "samples", "without a promise %", "samples then"):
        table.add_column(name)
    for pool, told in zip(given.pools, rows, strict=True):
        agreement, samples, without, then = np.mean(told, axis=0)
        table.add_row(pool, f"{100 * agreement:.2f}", f"{samples:.2f}", f"{100 * without:.2f}", f"{then:.2f}")
    console = Console(width=140)
    console.print(table)
    count = given.audit * VOTES * len(given.pools)
    least = given.promise - SLACK / count
    kept = np.mean(np.array(overall) >= given.promise)
    console.print(
        f"Over all votes {100 * np.mean(overall):.2f} % in the mean, {100 * np.min(overall):.2f} % in the worst run; "
        f"kept in {kept:.0%} of the runs. Over the audits {100 * np.min(audited):.2f} % in the worst run; at least "
        f"{100 * least:.2f} % is what holds whatever comes."
    )


if __name__ == "__main__":
    main()
