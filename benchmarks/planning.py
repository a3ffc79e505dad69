"""Plans from nothing: seconds and memory by budget, what the approximate ones lose, and training for comparison.

python benchmarks/planning.py
"""

import os
import subprocess
import sys
import tempfile
import time

from suffice import Penalties, Plan, load_pool
from suffice.planning.approximate import plan_table
from suffice.planning.budgets import follow
from suffice.planning.model import UNIVERSAL, build_model
from suffice.planning.values import Policy, plan
from suffice.training.learner import learn
from suffice.training.setting import TrainingJob

TARGETS = {32: (1, 0.3), 48: (5, 0.5), 128: (10, 1.0), 512: (60, 2.0)}
"""Seconds and gigabytes for a first decision and a first confidence."""

PRICES = [Penalties(0.0075, 0.005), Penalties(0.0075, 0.0), Penalties(0.003, 0.005), Penalties(0.015, 0.02)]

PROBE = """
import resource, sys, time
from suffice import Plan, Tally, confidence
tally = Tally(int(sys.argv[1]))
tally.add_round("aab")
begun = time.perf_counter()
Plan().decide(tally), confidence(tally)
print(time.perf_counter() - begun, time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6)
begun = time.perf_counter()
for _ in range(10_000):
    Plan().decide(tally)
print((time.perf_counter() - begun) * 100)
"""


def main() -> None:
    os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp()  # from nothing: an empty cache
    taken = {}
    for budget, (most_seconds, most_memory) in TARGETS.items():
        done = subprocess.run([sys.executable, "-c", PROBE, str(budget)], capture_output=True, text=True, check=True)
        taken[budget], processor, memory, decision = map(float, done.stdout.split())
        print(
            f"budget {budget}: {taken[budget]:.1f} s, {processor:.1f} of the processor (target: {most_seconds}), "
            f"{memory:.2f} GB (target: {most_memory}); then {decision:.0f} µs a decision"
        )
    for budget in (32, 48):
        losses = [loss(budget, penalties) for penalties in PRICES]
        print(f"the approximate plan loses {max(losses):.4f} at {budget} (target: at most 0.002)")
    begun = time.perf_counter()
    learn(TrainingJob((load_pool("qwen2.5-coder-1.5b__train"),)))
    training = time.perf_counter() - begun
    print(f"training takes {training:.0f} s")
    print(f"ratio {training / taken[32]:.0f} (target: at least 20)")


def loss(budget: int, penalties: Penalties) -> float:
    """How much less reward the approximate plan has than the exact one, by the model itself."""
    model = build_model(budget, UNIVERSAL)
    table = plan_table(budget, UNIVERSAL, penalties, Plan.actions)
    asked = [
        table.find_states("asked", level.keys, level.parts[:, :3], draws) for draws, level in enumerate(model.levels)
    ]
    means = follow(model, Policy(asked, asked, []))
    reward = 2 * means.agreement - 1 - penalties.draw * means.samples - penalties.round * means.rounds
    return float(plan(model, penalties, Plan.actions).value[0][0]) - reward


if __name__ == "__main__":
    main()
