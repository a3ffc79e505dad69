"""Plans that meet given means, over the model's prior or over pools, and a report of what was found."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from suffice.errors import OptionError, percentage, whole_number
from suffice.planning import budgets
from suffice.planning.controller import Mixture, Plan
from suffice.pools import AnyPool, Pool, get_pools
from suffice.replay.evaluate import evaluate

SEARCH_REPEATS = 40
HELD_OUT_SEED = 1
"""The search is on the draws of seed 0; what is reported is on these."""


@dataclass(frozen=True)
class Met:
    """The controller that comes nearest to what was asked for, and what to say about it."""

    controller: Plan | Mixture
    report: str


def meet(
    base: Plan,
    budget: int,
    pools: AnyPool | Sequence[AnyPool],
    mean_samples: float | None,
    mean_rounds: float | None,
    min_agreement: float | None,
) -> Met:
    """Find penalties whose best plan meets the means: over the pools, or over the prior where there are none."""
    whole_number("budget", budget)
    asked = {"mean_samples": mean_samples, "mean_rounds": mean_rounds, "min_agreement": min_agreement}
    for name, value in asked.items():
        most = 100 if name == "min_agreement" else budget
        if value is not None and not 0 < value <= most:
            raise OptionError(f"must be above 0 and at most {most}, not {value:g}", name)
    percentage("min_agreement", min_agreement or 100)
    measure = partial(_replayed_means, get_pools(pools), budget) if pools else budgets.expected_means(budget)
    if mean_rounds is not None:
        found = budgets.for_mean_samples_and_rounds(base, mean_samples or budget, mean_rounds, measure)
    elif mean_samples is not None:
        found = budgets.for_mean_samples(base, mean_samples, measure)
    else:
        found = budgets.for_agreement(base, (min_agreement or 100) / 100, measure)
    mixture = found.mixture
    controller = mixture.plans[0] if len(mixture.plans) == 1 else mixture
    return Met(controller, _report(found, bool(pools), min_agreement))


def _replayed_means(pools: Sequence[Pool], budget: int, plan: Plan) -> budgets.Means:
    """Measure a plan by replay, each pool counting the same."""
    results = evaluate(pools, plan, budget=budget, repeats=SEARCH_REPEATS, confidence=False)
    columns = [(result.samples, result.rounds, result.agreement / 100) for result in results]
    return budgets.Means(*np.mean(columns, axis=0).tolist())


def _report(found: budgets.Budgeted, on_pools: bool, agreement: float | None) -> str:
    means = found.means
    lines = [
        f"{share:7.1%} of the questions: penalty_draw={plan.penalty_draw:.5g}, penalty_round={plan.penalty_round:.5g}"
        for plan, share in zip(found.mixture.plans, found.mixture.shares, strict=True)
        if share > 0.0005
    ]
    where = "on the pools" if on_pools else "by the model"
    lines.append(
        f"Expected {where}: {means.samples:.2f} samples in {means.rounds:.2f} rounds, "
        f"{100 * means.agreement:.2f} % agreement."
    )
    if not found.met:
        lines.append("What was asked for can't be met: this is the nearest.")
    elif agreement is not None and 100 * means.agreement < agreement - 0.005:
        lines.append(f"An agreement of {agreement:g} % can't be met within these means: this is the most.")
    return "\n".join(lines)
