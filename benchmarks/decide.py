"""One decision: the learned controller's, Stable-Baselines3's `predict`, AdaptiveConsistency's `should_stop`.

python benchmarks/decide.py
"""

import time
from collections.abc import Callable

import numpy as np
from adaptive_consistency import BetaStoppingCriteria
from stable_baselines3 import PPO

from suffice import Tally, load_pool
from suffice.controllers.conditioned import Shipped
from suffice.training.env import SamplingEnv

TALLIES = 2000


def microseconds(decide: Callable[[int], object]) -> float:
    """The processor's time for one decision: the best of five rounds over all tallies."""
    times = []
    for _ in range(5):
        begun = time.process_time()
        for number in range(TALLIES):
            decide(number)
        times.append((time.process_time() - begun) / TALLIES * 1e6)
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
    ours, peer = Shipped(), BetaStoppingCriteria(0.95)
    model = PPO("MlpPolicy", SamplingEnv(pool), policy_kwargs={"net_arch": [32, 64, 64, 32]}, device="cpu")
    predict = microseconds(lambda number: model.predict(states[number], deterministic=True))
    should_stop = microseconds(lambda number: peer.should_stop(given[number]))
    passing = microseconds(lambda number: ours._pass_through(32, tallies[number].draws, *tallies[number].top(5)))
    for tally in tallies:
        ours.decide(tally)
    known = microseconds(lambda number: ours.decide(tallies[number]))
    print(f"a decision: {passing:.1f} µs in a new state, {known:.2f} µs in one met before (target: under 20)")
    print(f"by predict {predict:.0f} µs, by should_stop {should_stop:.1f} µs")
    print(f"ratio to predict {predict / known:.0f} (target: at least 20)")
    print(f"ratio to should_stop {should_stop / known:.1f} (target: at least 5)")


if __name__ == "__main__":
    main()
