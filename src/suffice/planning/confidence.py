"""The confidence that more sampling would not change the answer, for any tally."""

import numpy as np

from suffice.planning.approximate import confidence_table
from suffice.planning.model import EXACT_BUDGET, LARGEST_BUDGET, UNIVERSAL, Prior, build_model
from suffice.planning.tables import Lookup, Table
from suffice.tally import FloatArray, Tallies, Tally


def confidence(tally: Tally, prior: Prior = UNIVERSAL) -> float | None:
    """The probability that the present leader is the reference; None where the budget is too large to tell.

    It says that more sampling would not change the answer, not that the answer is right. Above a budget of 48 it is
    approximate.

    >>> tally = Tally(budget=32)
    >>> tally.add_round(["42", "42", "17", "42"])
    >>> round(confidence(tally), 2)
    0.89
    """
    if tally.budget > LARGEST_BUDGET:
        return None
    if tally.leader is None and tally.left:
        return 0.0
    return min(1.0, _table(tally.budget, prior).find("confidence", tally))


def confidences(tallies: Tallies, prior: Prior = UNIVERSAL) -> FloatArray:
    """The confidence of each row; 0 where there are no votes."""
    found = _table(tallies.budget, prior).find_many("confidence", tallies)
    # Without votes there is no leader, though nobody can take the lead from none once the budget is spent.
    return np.where((tallies.top(1)[:, 0] > 0) | (tallies.draws == tallies.budget), found, 0)


_MOST_TABLES = 8


def prepare(budget: int, prior: Prior = UNIVERSAL) -> None:
    """Make a confidence with this budget one that takes no time to speak of."""
    if budget <= LARGEST_BUDGET:
        _table(budget, prior)


def is_ready(budget: int, prior: Prior = UNIVERSAL) -> bool:
    """Whether a confidence with this budget takes no time to speak of."""
    return budget in prior.tables or budget > LARGEST_BUDGET


def _table(budget: int, prior: Prior) -> Lookup:
    table = prior.tables.get(budget)
    if table is None:
        table = _exact(budget, prior) if budget <= EXACT_BUDGET else confidence_table(budget, prior)
        while len(prior.tables) >= _MOST_TABLES:
            prior.tables.pop(next(iter(prior.tables)), None)
        prior.tables[budget] = table
    return table


def _exact(budget: int, prior: Prior) -> Table:
    model = build_model(budget, prior)
    return Table.of(model.levels, confidence=model.confidence)
