"""Writes docs/paper.md: the paper's figures beside ours, which of its claims hold, and why others don't; minutes.

    python benchmarks/beside.py [POOLS] [--cache DIR]…

It reads what benchmarks/results.py left in docs/results, and replays rules and plans on the bundled pools and on those
of the folder POOLS. The caches are where controllers of the paper's preset for the gold target may be; none is trained.
"""

import argparse
import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean

import numpy as np
from scipy.stats import rankdata, spearmanr

from suffice import Controller, Pool, bundled_pools, evaluate, load_controller, load_pool
from suffice.controllers import LearnedController
from suffice.experiments.explain import entropy, share_right
from suffice.penalties import Penalties
from suffice.planning import Plan
from suffice.replay import Result, mean_over_pools
from suffice.report.markdown import markdown_table

DOCS = Path(__file__).parents[1] / "docs"
POOLS = Path(__file__).parents[2] / "shared" / "pools"
MODELS = ("qwen3-0.6b", "qwen3-1.7b")
BENCHMARKS = ("aime24", "aime25", "hmmt25")
TRAINED_ON = "qwen2.5-coder-1.5b__train"
TESTED_ON = [f"qwen2.5-coder-1.5b__{name}" for name in ("dapo", "gsm8k", "math500")]
FIXED = (1, 4, 6, 8, 12, 16, 32)
TABLE_1, TABLE_5 = ("accuracy", "rounds", "samples"), ("sequential_tokens", "total_tokens")

# Tables 1 and 5 of the paper: accuracy, rounds, samples; thousands of sequential and of all tokens.
PAPER: Mapping[str, Mapping[str, Sequence[tuple[float, ...]]]] = {
    "qwen3-0.6b": {
        "SC@32": [(22.6, 1.0, 32.0, 24.7, 495.6), (30.1, 1.0, 32.0, 23.5, 441.1), (16.4, 1.0, 32.0, 23.8, 458.8)],
        "ASC": [(22.6, 27.1, 27.1, 437.1, 437.1), (30.1, 24.2, 24.2, 359.5, 359.5), (16.4, 23.2, 23.2, 349.4, 349.4)],
        "ESC": [(22.3, 6.1, 30.7, 138.9, 480.3), (29.8, 5.8, 28.9, 121.0, 415.2), (16.4, 5.9, 29.7, 127.9, 436.9)],
        "RL-guided": [(22.6, 5.5, 21.9, 115.7, 356.0), (30.0, 5.0, 19.9, 97.3, 298.7), (16.4, 4.5, 18.0, 89.8, 272.7)],
    },
    "qwen3-1.7b": {
        "SC@32": [(68.3, 1.0, 32.0, 26.2, 494.1), (44.1, 1.0, 32.0, 25.8, 511.5), (25.9, 1.0, 32.0, 27.7, 587.8)],
        "ASC": [(68.2, 17.7, 17.7, 317.7, 317.7), (44.2, 18.7, 18.7, 358.8, 358.8), (26.0, 20.2, 20.2, 420.6, 420.6)],
        "ESC": [(67.3, 4.7, 23.6, 118.7, 412.8), (44.1, 4.6, 22.8, 116.6, 421.7), (26.4, 4.9, 24.6, 135.4, 505.8)],
        "RL-guided": [(67.6, 2.9, 11.0, 67.6, 210.2), (44.6, 3.5, 14.0, 83.9, 271.6), (26.7, 3.5, 14.0, 90.0, 296.0)],
    },
}
# Table 2, the averages: accuracy, rounds, samples.
PAPER_TARGETS = {"running": (54.6, 2.8, 10.9), "full": (54.6, 2.8, 11.7), "gold": (53.7, 4.1, 17.0)}

OURS = {"qwen3": "`fast`", "qwen3-paper-last": "`paper`, last network", "qwen3-paper-best": "`paper`, best network"}
"""Folders of docs/results, by the training of the learned controllers in them."""

Row = Mapping[str, str]
Rows = Mapping[tuple[str, str], Row]


def rows(folder: str, name: str = "main") -> Rows:
    """What an experiment measured, by pool and method; nothing where it was not run."""
    path = DOCS / "results" / folder / f"{name}.csv"
    if not path.exists():
        return {}
    with path.open() as lines:
        return {(row["pool"], row["method"]): row for row in csv.DictReader(lines)}


def cell(row: Row, metrics: Sequence[str]) -> str:
    """Figures with their deviations over seeds; tokens in thousands."""
    texts = []
    for metric in metrics:
        scale = 1000 if metric.endswith("tokens") else 1
        spread = row.get(f"{metric}_std")
        texts.append(f"{float(row[metric]) / scale:.1f}" + (f" ±{float(spread) / scale:.1f}" if spread else ""))
    return " / ".join(texts)


def beside(metrics: Sequence[str], first: int) -> str:
    """For each model and method the paper's figures, then ours."""
    lines = []
    for model, methods in PAPER.items():
        for method, theirs in methods.items():
            figures = [" / ".join(f"{one:.1f}" for one in row[first : first + len(metrics)]) for row in theirs]
            lines.append([model, method, "the paper", *figures])
            for folder, training in OURS.items():
                ours = rows(folder)
                found = [ours.get((f"{model}__{name}", method)) for name in BENCHMARKS]
                if (method == "RL-guided" or folder == "qwen3") and all(found):
                    seeds = found[0]["seeds"] if found[0] else ""
                    how = f"here, {training}, {seeds} seed{'s' * (seeds != '1')}" if method == "RL-guided" else "here"
                    lines.append(["", "", how, *(cell(row, metrics) for row in found if row)])
    return markdown_table(["", "", "", *BENCHMARKS], lines)


def mean(folder: str, method: str, metric: str, model: str = "") -> float:
    """Over the pools of a model, or of both."""
    found = rows(folder)
    return fmean(float(row[metric]) for (pool, name), row in found.items() if name == method and pool.startswith(model))


def rounds_by_actions(pools: Mapping[str, Sequence[Pool]]) -> str:
    """What the best plan takes with the paper's actions, with fours alone, and where a round costs a little."""
    ways: dict[str, str | Controller] = {
        "ESC": "esc",
        "plan: 1, 2 or 4 draws": Plan(Penalties.draw, 0.0, (1, 2, 4)),
        "plan: 4 draws": Plan(Penalties.draw, 0.0, (4,)),
        "plan: 1, 2 or 4, a round at 0.001": Plan(Penalties.draw, 0.001, (1, 2, 4)),
        "plan: 1, 2 or 4, a round at 0.005": Plan(Penalties.draw, 0.005, (1, 2, 4)),
    }
    lines = []
    for name, controller in ways.items():
        cells = []
        for tested in pools.values():
            results = evaluate(tested, [controller])
            figures = [_mean(results, metric) for metric in ("rounds", "samples", "agreement", "reward")]
            cells.append("{:.1f} / {:.1f} / {:.1f} / {:.4f}".format(*figures))
        lines.append([name, *cells])
    return markdown_table(["rounds / samples / agreement % / reward", *pools], lines)


def explanation(pools: Sequence[Pool]) -> tuple[str, float]:
    """How the planner's samples go with entropy and accuracy, pool by pool; and what the second goes with."""
    lines, hard, strength = [], [], []
    for pool in pools:
        shares = np.array([share_right(question) for question in pool.questions], float)
        samples = evaluate(pool, ["plan"])[0].by_question["samples"]
        by = np.corrcoef([rankdata(one) for one in ([entropy(q.codes) for q in pool.questions], shares, samples)])
        partial = (by[1, 2] - by[0, 1] * by[0, 2]) / np.sqrt((1 - by[0, 1] ** 2) * (1 - by[0, 2] ** 2))
        hard.append(float((shares <= 0.1).mean()))
        strength.append(-by[1, 2])
        figures = [f"{100 * shares.mean():.0f}", f"{100 * hard[-1]:.0f}"]
        lines.append([pool.name, *figures, *(f"{one:+.2f}" for one in (by[0, 2], by[1, 2], partial))])
    order = np.argsort(hard)[::-1]
    heads = [
        "pool",
        "right %",
        "questions with ≤ 10 % right, %",
        "with entropy",
        "with accuracy",
        "the same, given entropy",
    ]
    return markdown_table(heads, [lines[place] for place in order]), float(spearmanr(hard, strength).statistic)


def by_gold(accuracy: float, samples: float) -> float:
    """The reward where the gold answer is what counts, and a round costs nothing."""
    return 2 * accuracy / 100 - 1 - Penalties.draw * samples


def fixed_draws(pools: Sequence[Pool]) -> str:
    """The reward by gold of fixed numbers of draws, the best in bold."""
    lines = []
    for pool in pools:
        results = evaluate(pool, [f"sc:draws={draws}" for draws in FIXED])
        rewards = [by_gold(one.accuracy or 0, one.samples) for one in results]
        lines.append([pool.name, *(f"**{one:.3f}**" if one == max(rewards) else f"{one:.3f}" for one in rewards)])
    return markdown_table(["draws", *map(str, FIXED)], lines)


def targets(caches: Sequence[Path]) -> str:
    """Table 2: the paper's averages and ours, and what each gets by the gold reward."""
    ours, quick = kept(caches), rows("bundled", "ablation")
    lines = []
    for target, theirs in PAPER_TARGETS.items():
        cells = [" / ".join(f"{figure:.1f}" for figure in theirs), f"{by_gold(theirs[0], theirs[2]):+.3f}"]
        found = [quick[pool, target] for pool in TESTED_ON]
        figures = [fmean(float(row[metric]) for row in found) for metric in TABLE_1]
        cells += [" / ".join(f"{figure:.1f}" for figure in figures), f"{by_gold(figures[0], figures[2]):+.3f}"]
        if learned := ours.get(target):
            results = evaluate(TESTED_ON, learned)
            figures = [_mean(results, metric) for metric in TABLE_1]
            cells.append(
                " / ".join(f"{figure:.1f}" for figure in figures) + f" ({len(learned)} seed{'s' * (len(learned) > 1)})"
            )
            cells.append(f"{by_gold(figures[0], figures[2]):+.3f}")
        else:
            cells += ["–", "–"]
        lines.append([target, *cells])
    heads = ["target", "the paper", "by gold", "here, `fast`", "by gold", "here, `paper`, last network", "by gold"]
    return markdown_table(heads, lines)


def kept(caches: Sequence[Path]) -> dict[str, list[LearnedController]]:
    """By target, the last networks of the paper's preset that were trained on the bundled pool."""
    found: dict[str, list[LearnedController]] = {}
    for path in (path for cache in caches for path in sorted(cache.rglob("*-last.safetensors"))):
        controller = load_controller(path)
        assert isinstance(controller, LearnedController)
        card = controller.card
        if (card["preset"], [pool["name"] for pool in card["pools"]]) == ("paper", [TRAINED_ON]):
            found.setdefault(card["target"], []).append(controller)
    return found


def _mean(results: Sequence[Result], metric: str) -> float:
    return mean_over_pools(results, metric) or 0.0


PAGE = Path(__file__).with_suffix(".md")
"""The page, with fields for what is measured."""


def differences(folder: str, name: str = "main") -> Mapping[tuple[str, str, str], Row]:
    """The differences that an experiment left, by model, method, and what that is against."""
    with (DOCS / "results" / folder / f"{name}_differences.csv").open() as lines:
        return {(row["model"], row["method"], row["against"]): row for row in csv.DictReader(lines)}


def interval(row: Row, metric: str, places: int = 1) -> str:
    """A difference with its interval over questions."""
    value, low, high = (f"{float(row[f'{metric}{end}']):+.{places}f}" for end in ("", "_low", "_high"))
    return f"{value} [{low}, {high}]"


def verdicts() -> str:
    """A line a claim of the paper's."""

    def against(rule: str, *metrics: str) -> str:
        """By training and model: the change in percent, with the difference and its interval."""
        parts = []
        for folder, training in (("qwen3", "`fast`"), ("qwen3-paper-last", "`paper`")):
            gaps = differences(folder)
            for model in MODELS:
                texts = []
                for metric in metrics:
                    gap = interval(gaps[model, "RL-guided", rule], metric, 2 if metric == "accuracy" else 1)
                    change = mean(folder, "RL-guided", metric, model) / mean(folder, rule, metric, model) - 1
                    texts.append(f"{metric} {gap}" if metric == "accuracy" else f"{100 * change:+.0f} % ({gap})")
                parts.append(f"{training}, {model}: {', '.join(texts)}")
        return "<br>".join(parts)

    def target(name: str, metric: str) -> str:
        """What a target changes on each bundled model, with its interval."""
        gaps = differences("bundled", "ablation")
        return ", ".join(
            f"{interval(row, metric)} on {model.removeprefix('qwen2.5-')}"
            for (model, method, base), row in gaps.items()
            if (method, base) == (name, "running")
        )

    gold, running, full = (PAPER_TARGETS[name] for name in ("gold", "running", "full"))
    lines = [
        ["against ASC: a third of the rounds", "holds", against("ASC", "rounds")],
        [
            "against ASC: about 30 % fewer samples",
            "with `paper`; half of it with `fast`",
            against("ASC", "samples", "accuracy"),
        ],
        [
            "against ESC: about 10 % fewer rounds",
            "with `paper`; not with `fast`: [why](#more-rounds-than-esc)",
            against("ESC", "rounds"),
        ],
        ["against ESC: about a third fewer samples", "holds", against("ESC", "samples", "accuracy")],
        [
            "samples go with answer entropy",
            "holds",
            "on all pools, [below](#the-correlation-with-accuracy-strong-here-called-weak-there)",
        ],
        ["weakly with accuracy", "on its sampler; not in general", "the same table"],
        ["controllers transfer between models", "holds within a family", "[below](#transfer)"],
        [
            "the full majority as the target takes more samples",
            "no: a little fewer",
            f"{target('full', 'samples')}; {full[2] - running[2]:+.1f} there",
        ],
        [
            "gold as the target costs accuracy",
            "holds",
            f"{target('gold', 'accuracy')}; {gold[0] - running[0]:+.1f} there",
        ],
        ["and draws more", "no: fewer", f"{target('gold', 'samples')}; {gold[2] - running[2]:+.1f} there"],
    ]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def transfers() -> str:
    """Trained on each model, tested on each, at the paper's penalty; of all pools that there are."""
    blocks = []
    for folder in ("bundled", "qwen3"):
        path = DOCS / "results" / folder / "transfer.csv"
        if path.exists():
            with path.open() as lines:
                found = [row for row in csv.DictReader(lines) if float(row["penalty_draw"]) == Penalties.draw]
            tested = list(dict.fromkeys(row["tested"] for row in found))
            metrics = ("accuracy", "agreement", "samples", "rounds")
            table = {(row["trained"], row["tested"]): cell(row, metrics) for row in found}
            trained = list(dict.fromkeys(row["trained"] for row in found))
            shown = [[source, *(table[source, target] for target in tested)] for source in trained]
            blocks.append(markdown_table(["", *(f"tested on {one}" for one in tested)], shown))
    return "\n".join(blocks)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pools", nargs="?", type=Path, default=POOLS)
    parser.add_argument("--cache", action="append", type=Path, default=[])
    given = parser.parse_args()
    others = [pool for pool in map(load_pool, sorted(given.pools.glob("*.jsonl"))) if _is_large(pool)]
    everyone = [*others, *(load_pool(name) for name in bundled_pools() if not name.endswith("-signals"))]
    by_model = {model: [pool for pool in others if pool.name.startswith(model)] for model in MODELS}
    explained, dependence = explanation(everyone)
    last, best = (rows(f"qwen3-paper-{keep}") for keep in ("last", "best"))
    learned = [row for (_, method), row in [*last.items(), *best.items()] if method == "RL-guided"]
    figures = {
        f"{metric}_{name}": mean(folder, method, metric, "qwen3-1.7b")
        for metric in ("reward", "agreement", "rounds", "samples")
        for name, folder, method in (
            ("last", "qwen3-paper-last", "RL-guided"),
            ("best", "qwen3-paper-best", "RL-guided"),
            ("fast", "qwen3", "RL-guided"),
            ("asc", "qwen3", "ASC"),
            ("esc", "qwen3", "ESC"),
        )
    }
    plan = evaluate(by_model["qwen3-1.7b"], [Plan(Penalties.draw, 0.0, (1, 2, 4))])
    bundled = evaluate(TESTED_ON, [f"sc:draws={draws}" for draws in FIXED])
    by_draws = {
        draws: by_gold(_mean(bundled[place :: len(FIXED)], "accuracy"), draws) for place, draws in enumerate(FIXED)
    }
    best_draws, best_reward = max(by_draws.items(), key=lambda item: item[1])
    page = PAGE.read_text().format(
        verdicts=verdicts(),
        table_1=beside(TABLE_1, 0),
        table_5=beside(TABLE_5, 3),
        per_round=fmean(float(row["samples"]) / float(row["rounds"]) for row in learned),
        reward_plan=_mean(plan, "reward"),
        agreement_plan=_mean(plan, "agreement"),
        fixed_best=best_reward,
        fixed_draws=best_draws,
        lost_agreement=figures["agreement_esc"] - figures["agreement_last"],
        rounds=rounds_by_actions(by_model),
        targets=targets(given.cache),
        fixed=fixed_draws([*map(load_pool, TESTED_ON), *by_model["qwen3-1.7b"], *by_model["qwen3-0.6b"]]),
        explanation=explained,
        dependence=dependence,
        count=len(everyone),
        transfer=transfers(),
        **figures,
    )
    (DOCS / "paper.md").write_text(page)


def _is_large(pool: Pool) -> bool:
    return min(len(question.answers) for question in pool.questions) >= 32


if __name__ == "__main__":
    main()
