"""Exact planning at a budget of 32 from nothing, and training PPO for 1,000,000 steps with the fast preset.

python benchmarks/planning.py
"""

import os
import tempfile
import time

from suffice import Penalties, load_pool
from suffice.planning import UNIVERSAL, build_model, plan
from suffice.training import Job, learn


def main() -> None:
    os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp()  # from nothing: an empty cache
    begun = time.perf_counter()
    model = build_model(32, UNIVERSAL)
    plan(model, Penalties(0.0075, 0.0), (1, 2, 4))
    planning = time.perf_counter() - begun
    begun = time.perf_counter()
    learn(Job((load_pool("qwen2.5-coder-1.5b__train"),)))
    training = time.perf_counter() - begun
    print(f"planning takes {planning:.2f} s, training {training:.0f} s")
    print(f"ratio {training / planning:.0f} (target: at least 20)")


if __name__ == "__main__":
    main()
