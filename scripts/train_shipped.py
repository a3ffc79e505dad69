"""Train the controllers that come with the package, with fixed seeds, on its own training pool.

    python scripts/train_shipped.py

Some ten minutes on two cores. What is there already is kept: delete src/suffice/controllers/shipped to begin anew.
"""

from pathlib import Path

from suffice import Penalties, load_pool, save_controller
from suffice.training import Job, Setting, Trained, learn_each

SHIPPED = Path(__file__).parents[1] / "src" / "suffice" / "controllers" / "shipped"
SWEEP = [(draw, 0.0) for draw in (0.0075, 0.001, 0.005, 0.015, 0.02, 0.03)]
"""The paper's penalties for a draw, with rounds free."""

WITH_ROUNDS = [(0.0075, 0.005), (0.0075, 0.01), (0.02, 0.01)]
SEEDS = 2


def main() -> None:
    SHIPPED.mkdir(exist_ok=True)
    pool = load_pool("qwen2.5-coder-1.5b__train")
    paths = {
        (draw, round_): SHIPPED / f"draw-{draw:g}_round-{round_:g}.safetensors" for draw, round_ in SWEEP + WITH_ROUNDS
    }
    missing = [penalties for penalties, path in paths.items() if not path.exists()]
    jobs = [Job((pool,), Setting(Penalties(*pair)), seed=seed) for pair in missing for seed in range(SEEDS)]
    runs: dict[tuple[float, float], list[Trained]] = {pair: [] for pair in missing}
    for number, trained in learn_each(jobs):
        pair = missing[number // SEEDS]
        runs[pair].append(trained)
        if len(runs[pair]) == SEEDS:
            best = max(runs[pair], key=lambda one: one.reward)
            if worse := best.controller.no_better_than():
                raise SystemExit(f"{paths[pair].name}: no better than {worse[0]}")
            save_controller(best.controller, paths[pair])
            print(f"{paths[pair].name}: rewards {', '.join(f'{one.reward:.4f}' for one in runs[pair])}", flush=True)


if __name__ == "__main__":
    main()
