"""Train the controller that comes with the package, with a fixed seed, on its training pool and the model of answers.

    python scripts/train_shipped.py

It plans, imitates the plans, and goes on by PPO: seven minutes of one core. Ctrl-C keeps the best so far. What
is there already is kept: delete src/suffice/controllers/shipped/rl.safetensors to begin anew.
"""

from pathlib import Path

from suffice import load_pool, save_controller
from suffice.controllers.conditioned import Range
from suffice.report.progress import training_bar
from suffice.training.runs import learn_each
from suffice.training.setting import TrainingJob

SHIPPED = Path(__file__).parents[1] / "src" / "suffice" / "controllers" / "shipped" / "rl.safetensors"
STEPS = 2_000_000


def main() -> None:
    if SHIPPED.exists():
        raise SystemExit(f"{SHIPPED.name} is there already")
    job = TrainingJob((load_pool("qwen2.5-coder-1.5b__train"),), steps=STEPS, ranges=Range())
    with training_bar(1, STEPS) as watch:
        for _, trained in learn_each([job], watch, "here"):
            card = trained.controller.card
            if worse := trained.controller.no_better_than():
                raise SystemExit(f"no better than {worse[0]}")
            save_controller(trained.controller, SHIPPED)
            imitation, best = card["imitation_reward"], card["target_reward"]
            print(f"reward {imitation:.4f} by imitation, {best:.4f} after {card['best_after_steps']:,} steps of PPO")


if __name__ == "__main__":
    main()
