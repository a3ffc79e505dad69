"""Train the controllers that come with the package, with fixed seeds, on its own training pool.

    python scripts/train_shipped.py

About ten minutes on two cores. What is there already is kept: delete src/suffice/controllers/shipped to begin anew.
"""

from pathlib import Path

from suffice import Penalties, load_pool, save_controller
from suffice.training import Job, Setting, train

SHIPPED = Path(__file__).parents[1] / "src" / "suffice" / "controllers" / "shipped"
SWEEP = [(draw, 0.0) for draw in (0.0075, 0.001, 0.005, 0.015, 0.02, 0.03)]
"""The paper's penalties for a draw, with rounds free."""

WITH_ROUNDS = [(0.0075, 0.005), (0.0075, 0.01), (0.02, 0.01)]
SEEDS = 3


def main() -> None:
    SHIPPED.mkdir(exist_ok=True)
    pool = load_pool("qwen2.5-coder-1.5b__train")
    for draw, round_ in [*SWEEP, *WITH_ROUNDS]:
        path = SHIPPED / f"draw-{draw:g}_round-{round_:g}.safetensors"
        if path.exists():
            continue
        job = Job((pool,), Setting(Penalties(draw, round_)))
        trained = train(job, SEEDS)
        if worse := trained[0].controller.no_better_than():
            raise SystemExit(f"{path.name}: no better than {worse[0]}")
        save_controller(trained[0].controller, path)
        print(f"{path.name}: rewards {', '.join(f'{one.reward:.4f}' for one in trained)}", flush=True)


if __name__ == "__main__":
    main()
