"""One decision: the learned controller's look-up, Stable-Baselines3's `predict`, AdaptiveConsistency's `should_stop`.

python benchmarks/decide.py
"""

import time
from collections.abc import Callable

import numpy as np
from adaptive_consistency import BetaStoppingCriteria
from stable_baselines3 import PPO

from suffice import Tally, get_controller, load_pool
from suffice.training import SamplingEnv

TALLIES = 2000


def microseconds(decide: Callable[[int], object]) -> float:
    """The time of one decision: the best of five rounds over all tallies."""
    times = []
    for _ in range(5):
        begun = time.perf_counter()
        for number in range(TALLIES):
            decide(number)
        times.append((time.perf_counter() - begun) / TALLIES * 1e6)
    return min(times)


def main() -> None:
    random = np.random.default_rng(0)
    pool = load_pool("qwen2.5-coder-1.5b__gsm8k")
    tallies, states, given = [], [], []
    for _ in range(TALLIES):
        question = pool.questions[random.integers(len(pool.questions))]
        answers = [question.answers[i] for i in random.permutation(128)[: random.integers(4, 32)]]
        tally = Tally(32)
        tally.add_round(answers)
        tallies.append(tally)
        states.append(tally.state().astype(np.float32))
        given.append([answer for answer in answers if answer is not None])
    ours, peer = get_controller("rl"), BetaStoppingCriteria(0.95)
    ours.decide(tallies[0])  # makes the table
    model = PPO("MlpPolicy", SamplingEnv(pool), policy_kwargs={"net_arch": [32, 64, 64, 32]}, device="cpu")
    look_up = microseconds(lambda number: ours.decide(tallies[number]))
    predict = microseconds(lambda number: model.predict(states[number], deterministic=True))
    should_stop = microseconds(lambda number: peer.should_stop(given[number]))
    print(f"a decision: {look_up:.2f} µs here, {predict:.0f} µs by predict, {should_stop:.1f} µs by should_stop")
    print(f"ratio to predict {predict / look_up:.0f} (target: at least 20)")
    print(f"ratio to should_stop {should_stop / look_up:.1f} (target: at least 5)")


if __name__ == "__main__":
    main()
