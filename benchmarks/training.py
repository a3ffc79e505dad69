"""Steps a second while training PPO: the fast preset here, and a plain single environment with the library's defaults.

python benchmarks/training.py
"""

import resource
import subprocess
import sys
import time

from stable_baselines3 import PPO

from suffice import load_pool
from suffice.training.env import SamplingEnv
from suffice.training.learner import learn
from suffice.training.setting import TrainingJob

POOL = "qwen2.5-coder-1.5b__train"
STEPS = 1_000_000
PLAIN_STEPS = 20_480


def here() -> None:
    begun = time.perf_counter()
    trained = learn(TrainingJob((load_pool(POOL),), steps=STEPS))
    taken = time.perf_counter() - begun
    steps = trained.controller.card["steps"]
    print(steps / taken, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, trained.reward)


def plain() -> None:
    model = PPO("MlpPolicy", SamplingEnv(load_pool(POOL)), policy_kwargs={"net_arch": [32, 64, 64, 32]}, device="cpu")
    begun = time.perf_counter()
    model.learn(PLAIN_STEPS)
    print(PLAIN_STEPS / (time.perf_counter() - begun))


def run(what: str) -> list[float]:
    """One of the two in a process of its own."""
    done = subprocess.run([sys.executable, "-W", "ignore", __file__, what], capture_output=True, text=True, check=True)
    return [float(figure) for figure in done.stdout.split()]


def main() -> None:
    (slow,) = run("plain")
    quick, megabytes, reward = run("here")
    print(f"PPO on {POOL}: {quick:,.0f} steps a second here, watching included, {slow:,.0f} in a plain environment")
    print(f"ratio {quick / slow:.1f} (target: at least 15); reward {reward:.4f}")
    print(f"{STEPS:,} steps take {megabytes:,.0f} MB at most (target: under 1,000)")


if __name__ == "__main__":
    {"here": here, "plain": plain}.get("".join(sys.argv[1:]), main)()
