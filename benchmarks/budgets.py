"""One network for every budget: its regret against exact plans, and all controllers at 8 to 128; for docs/results.md.

    python benchmarks/budgets.py [POOLS]

POOLS is a folder with the pools qwen3-0.6b and qwen3-1.7b on aime24, aime25 and hmmt25, which join the bundled ones.
"""

import csv
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

import numpy as np
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from suffice import Penalties, Plan, Pool, evaluate, load_pool
from suffice.controllers.conditioned import Shipped
from suffice.experiments.scaling import LABELS
from suffice.replay import Result, mean_over_pools
from suffice.report.figures import DPI, ROW_HEIGHT, WIDTH
from suffice.report.style import LOOKS

DOCS = Path(__file__).parents[1] / "docs"
OUT = DOCS / "results" / "budgets"
POOLS = Path(__file__).parents[2] / "shared" / "pools"
BUNDLED = [f"qwen2.5-coder-1.5b__{name}" for name in ("dapo", "gsm8k", "math500")]
QWEN3 = [f"qwen3-{size}__{name}" for size in ("0.6b", "1.7b") for name in ("aime24", "aime25", "hmmt25")]

PRICES = [(0.001, 0.0), (0.0075, 0.0), (0.0075, 0.005), (0.015, 0.01), (0.03, 0.0), (0.03, 0.05)]
EXACT = (4, 8, 16, 32, 48)
BUDGETS = (8, 16, 32, 64, 128)
REPEATS, MANY_REPEATS = 10, 100

DRAW_PENALTIES = (0.001, 0.002, 0.004, 0.0075, 0.015, 0.03)
SWEEPS = {
    "asc": [f"asc:threshold={threshold}" for threshold in (0.7, 0.8, 0.9, 0.95, 0.98, 0.99)],
    "esc": [f"esc:window={window}" for window in (2, 3, 4, 5, 6, 8, 10)],
    "boinf": [f"boinf:factor={factor}" for factor in (1, 2, 3, 5, 10, 30, 100)],
    "rl": [f"rl:penalty_draw={draw},penalty_round=0" for draw in DRAW_PENALTIES],
    "plan": [f"plan:penalty_draw={draw},penalty_round=0" for draw in DRAW_PENALTIES],
}
ALL = ["sc", "asc", "esc", "boinf", "consol", "rl", "plan"]
STYLES = {
    **{name: (label, *LOOKS[name]) for name, label in LABELS.items()},
    "boinf": ("BoInf", "#8e5bb5", "v"),
    "plan": ("plan", *LOOKS["plan"]),
}

AXES = ("samples", "agreement")
LEAST_AGREEMENT = 90
"""The fronts are shown from here on."""

PAGE = """## Every budget

`python benchmarks/budgets.py` makes this section. `rl` is one network for every budget from 2 to 256 and every price
within its range ([training](training.md)).

### How far from the best plan

Regret: how much more reward the exact [plan](planner.md) with the same actions has, on the three bundled test pools,
{repeats} repeats. Over all {cells} cells it is {mean:.4f} on average and {worst:.4f} at the worst. Where draws are dear
and rounds free half a hundredth of it is the first round: the plan begins with 2 draws there, the network with 4.

{regret}
![The network's regret by budget and price](results/budgets/regret.png)

### All controllers at 8 to 128

{pools} pools with 128 responses a question ({names}),
each counting the same, {few} repeats, defaults throughout.

{table}
![Agreement against samples, by budget](results/budgets/fronts.png)

At the prices of the first figure, how much more reward `rl` has than whichever of all these settings of `asc`, `esc`
and `boinf` is the best at that price, on the same pools:

{against}
"""


def main() -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    bundled = [load_pool(name) for name in BUNDLED]
    folder = Path(sys.argv[1]) if sys.argv[1:] else POOLS
    pools = bundled + [load_pool(folder / f"{name}.jsonl") for name in QWEN3 if folder.is_dir()]
    regrets = regret_grid(bundled)
    found = {budget: replayed(pools, budget) for budget in BUDGETS}
    draw_regret(regrets)
    draw_fronts(found)
    write_figures(regrets, found)
    page = PAGE.format(
        repeats=MANY_REPEATS,
        cells=regrets.size,
        mean=regrets.mean(),
        worst=regrets.max(),
        regret=regret_table(regrets),
        pools=len(pools),
        names="the three bundled test pools; Qwen3-0.6B and 1.7B on AIME24, AIME25 and HMMT25",
        few=REPEATS,
        table=budget_table(found),
        against=against_table(found),
    )
    (OUT / "budgets.md").write_text(page)
    results = DOCS / "results.md"
    before, _, after = results.read_text().partition("\n## The gateway\n")
    before = before.partition("\n## Every budget\n")[0]
    results.write_text(f"{before}\n{page}\n## The gateway\n{after}")


def _specs() -> list[str]:
    """All that is replayed at each budget."""
    at_prices = [f"rl:penalty_draw={draw},penalty_round={round_}" for draw, round_ in PRICES]
    return list(dict.fromkeys([*ALL, *at_prices, *(spec for sweep in SWEEPS.values() for spec in sweep)]))


def regret_grid(pools: Sequence[Pool]) -> np.ndarray:
    """How much more reward the exact plan has, a row a budget and a column a price."""
    regrets = np.zeros((len(EXACT), len(PRICES)))
    for row, column in np.ndindex(regrets.shape):
        draw, round_ = PRICES[column]
        ours = Shipped(draw, round_)
        best = Plan(draw, round_, tuple(ours.card["actions"]))
        results = evaluate(
            pools,
            [best, ours],
            budget=EXACT[row],
            repeats=MANY_REPEATS,
            penalties=Penalties(draw, round_),
            confidence=False,
        )
        rewards = [mean_over_pools(results[way::2], "reward") or 0.0 for way in (0, 1)]
        regrets[row, column] = round(rewards[0] - rewards[1], 4) + 0.0  # and no -0.0
    return regrets


def replayed(pools: Sequence[Pool], budget: int) -> dict[str, list[Result]]:
    """All controllers on all pools, on the same draws."""
    print(f"budget {budget}", file=sys.stderr, flush=True)
    specs = _specs()
    results = evaluate(pools, specs, budget=budget, repeats=REPEATS, confidence=False)
    return {spec: results[place :: len(specs)] for place, spec in enumerate(specs)}


def reward(results: Sequence[Result], draw: float, round_: float) -> float:
    """The mean reward at penalties other than those of the replay."""
    return fmean(2 * one.agreement / 100 - 1 - draw * one.samples - round_ * one.rounds for one in results)


Found = dict[int, dict[str, list[Result]]]


def regret_table(regrets: np.ndarray) -> str:
    head = " | ".join(f"{draw:g} / {round_:g}" for draw, round_ in PRICES)
    lines = [f"| budget | {head} |", "|---" * (len(PRICES) + 1) + "|"]
    lines += [
        f"| {budget} | " + " | ".join(f"{regret:.4f}" for regret in row) + " |"
        for budget, row in zip(EXACT, regrets, strict=True)
    ]
    return "\n".join(lines) + "\n\nColumns: the penalty for a draw / for a round.\n"


def budget_table(found: Found) -> str:
    lines = ["| budget | controller | agreement % | accuracy % | samples | rounds |", "|---|---|---|---|---|---|"]
    for budget, by_spec in found.items():
        for number, spec in enumerate(ALL):
            figures = [mean_over_pools(by_spec[spec], what) or 0.0 for what in ("agreement", "accuracy")]
            costs = [mean_over_pools(by_spec[spec], what) or 0.0 for what in ("samples", "rounds")]
            texts = [f"{figure:.2f}" for figure in figures] + [f"{cost:.1f}" for cost in costs]
            lines.append(f"| {'' if number else budget} | `{spec}` | " + " | ".join(texts) + " |")
    return "\n".join(lines) + "\n"


def against_table(found: Found) -> str:
    lines = ["| penalties | 64 | the best rule there | 128 | the best rule there |", "|---|---|---|---|---|"]
    rules = [spec for method in ("asc", "esc", "boinf") for spec in SWEEPS[method]]
    for draw, round_ in PRICES:
        cells = []
        for budget in (64, 128):
            rewards = {rule: reward(found[budget][rule], draw, round_) for rule in rules}
            best = max(rewards, key=lambda rule: rewards[rule])
            ours = reward(found[budget][f"rl:penalty_draw={draw},penalty_round={round_}"], draw, round_)
            cells += [f"{ours - rewards[best]:+.4f}", f"`{best}` ({rewards[best]:.4f})"]
        lines.append(f"| {draw:g} / {round_:g} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def write_figures(regrets: np.ndarray, found: Found) -> None:
    with (OUT / "regret.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["budget", "penalty_draw", "penalty_round", "regret"])
        for row, column in np.ndindex(regrets.shape):
            rows.writerow([EXACT[row], *PRICES[column], round(float(regrets[row, column]), 6)])
    metrics = ("agreement", "accuracy", "samples", "rounds")
    with (OUT / "budgets.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["budget", "controller", *metrics])
        for budget, by_spec in found.items():
            for spec, results in by_spec.items():
                rows.writerow([budget, spec, *(round(mean_over_pools(results, what) or 0.0, 4) for what in metrics)])


def draw_regret(regrets: np.ndarray) -> None:
    figure, axes = pyplot.subplots(figsize=(WIDTH * 0.8, ROW_HEIGHT * 1.1), layout="constrained")
    picture = axes.imshow(regrets, cmap="Blues", vmin=0, vmax=0.015, aspect="auto")
    for row, column in np.ndindex(regrets.shape):
        value = float(regrets[row, column])
        axes.text(
            column,
            row,
            f"{round(value, 4) + 0:.4f}",
            ha="center",
            va="center",
            color="white" if value > 0.009 else "black",
        )
    axes.set_xticks(range(len(PRICES)), [f"{draw:g} / {round_:g}" for draw, round_ in PRICES])
    axes.set_yticks(range(len(EXACT)), [str(budget) for budget in EXACT])
    axes.set(xlabel="penalty for a draw / for a round", ylabel="budget")
    figure.colorbar(picture, label="regret against the exact plan")
    figure.savefig(OUT / "regret.png", dpi=DPI)
    pyplot.close(figure)


def draw_fronts(found: Found) -> None:
    """A panel a budget: agreement against samples, a line a sweep."""
    figure, grid = pyplot.subplots(2, 3, figsize=(WIDTH * 1.2, ROW_HEIGHT * 2), layout="constrained")
    panels: list[Axes] = list(grid.flat)
    for axes, (budget, by_spec) in zip(panels, found.items(), strict=False):
        seen: list[float] = []
        for method, specs in SWEEPS.items():
            label, colour, marker = STYLES[method]
            samples, agreement = ([mean_over_pools(by_spec[spec], what) or 0.0 for spec in specs] for what in AXES)
            axes.plot(samples, agreement, color=colour, marker=marker, label=label, markersize=5, linewidth=1.4)
            seen += [cost for cost, quality in zip(samples, agreement, strict=True) if quality >= LEAST_AGREEMENT]
        axes.set(title=f"budget {budget}", xlabel="samples", ylabel="agreement with the full vote (%)")
        margin = 0.05 * (max(seen) - min(seen))
        axes.set(xlim=(min(seen) - margin, max(seen) + margin), ylim=(LEAST_AGREEMENT, 100.4))
        axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
        axes.grid(alpha=0.3)
    panels[-1].axis("off")
    panels[-1].legend(*panels[0].get_legend_handles_labels(), loc="center", fontsize=12, frameon=False)
    figure.savefig(OUT / "fronts.png", dpi=DPI)
    pyplot.close(figure)


if __name__ == "__main__":
    main()
