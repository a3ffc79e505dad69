"""Replaying ASC and ESC here, and as a plain loop around AdaptiveConsistency's `should_stop`, on the same draws.

python benchmarks/replay.py
"""

import resource
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence

import numpy as np
from adaptive_consistency import BetaStoppingCriteria

from suffice import Pool, Question, bundled_pools, evaluate, load_pool

BUDGET = 32
REPEATS = 100
PEER_SHARE = 100
"""The plain loop plays one in so many of the episodes: it would take minutes otherwise."""


def here(pools: Sequence[Pool]) -> float:
    """Episodes a second, from loaded pools to finished figures, drawing included."""
    begun = time.perf_counter()
    for pool in pools:
        evaluate(pool, ["asc", "esc"], budget=BUDGET, repeats=REPEATS, confidence=False)
    return 2 * REPEATS * sum(len(pool.questions) for pool in pools) / (time.perf_counter() - begun)


def plain_loop(pools: Sequence[Pool]) -> float:
    """Episodes a second of the obvious loop, on every hundredth episode."""
    random = np.random.default_rng(0)
    asc = BetaStoppingCriteria(0.95)
    played, begun = 0, time.perf_counter()
    for pool in pools:
        for question in pool.questions:
            for _ in range(REPEATS // PEER_SHARE):
                drawn = [question.answers[i] for i in random.permutation(len(question.answers))[:BUDGET]]
                for draws in range(1, BUDGET + 1):
                    given = [answer for answer in drawn[:draws] if answer is not None]
                    if given and asc.should_stop(given)["stop"]:
                        break
                for draws in range(5, BUDGET + 5, 5):
                    if len(set(drawn[draws - 5 : draws])) == 1 and drawn[draws - 5] is not None:
                        break
                Counter(answer for answer in drawn[:draws] if answer is not None).most_common(1)
                played += 2
    return played / (time.perf_counter() - begun)


def peak_megabytes() -> float:
    """The most memory that 1,318 questions × 100 repeats × 4 controllers take, in a process of their own."""
    done = subprocess.run([sys.executable, __file__, "large"], capture_output=True, text=True, check=True)
    return float(done.stdout)


def large() -> None:
    random = np.random.default_rng(0)
    questions = tuple(
        Question(
            str(number), "0", tuple(map(str, random.geometric(0.3, 40))), tuple(random.integers(50, 900, 40).tolist())
        )
        for number in range(1318)
    )
    evaluate(Pool("large", questions), ["sc", "asc", "esc", "boinf"], budget=BUDGET, repeats=REPEATS)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def main() -> None:
    pools = [load_pool(name) for name in bundled_pools()]
    # The best of three each, turn by turn: what else the machine does slows both.
    ours, theirs = (max(rates) for rates in zip(*((here(pools), plain_loop(pools)) for _ in range(3)), strict=True))
    print(f"ASC and ESC over the bundled pools: {ours:,.0f} episodes a second here, {theirs:,.0f} in the plain loop")
    print(f"ratio {ours / theirs:,.0f} (target: at least 100)")
    print(f"1,318 questions × 100 repeats × 4 controllers: {peak_megabytes():,.0f} MB at most (target: under 2,000)")


if __name__ == "__main__":
    large() if sys.argv[1:] == ["large"] else main()
