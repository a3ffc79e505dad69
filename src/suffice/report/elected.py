"""The page of elections: accuracy by pool and election, with what each gains over the plain vote of the full budget."""

from collections.abc import Sequence

import numpy as np

from suffice.experiments import Bench
from suffice.experiments.elections import ElectionResult, gain
from suffice.report.markdown import Page, gap_columns, gap_text, markdown_table


def elections_page(found: Sequence[ElectionResult], bench: Bench) -> Page:
    """Ours: which election gains what: a table a stop, and the learned strengths."""
    if not found:
        return Page("Skipped: there is no pool with plain answers.", [])
    pools = list(dict.fromkeys(one.pool for one in found))
    stops = list(dict.fromkeys(one.stop for one in found))
    about = f"Accuracy in percent and, with 95 % intervals over questions, the gain over the plain vote at {stops[0]}."
    parts = [about]
    for stop in stops:
        here = [one for one in found if one.stop == stop]
        taken = {one.pool: one.samples for one in here}
        samples = ", ".join(f"{taken[pool]:.1f} samples on {pool}" for pool in pools)
        names = list(dict.fromkeys(one.election for one in here))
        rows = [[name, *(_cell(found, [pool], stop, name) for pool in pools)] for name in names]
        heads = ["election", *pools]
        if len(pools) > 1:
            heads.append("mean")
            for row in rows:
                row.append(_cell(found, pools, stop, row[0]))
        parts.append(f"**At the stops of {stop}**: {samples}.\n\n{markdown_table(heads, rows)}")
    if learned := [one for one in found if one.strengths and one.stop == stops[0]]:
        signals = list(dict.fromkeys(signal for one in learned for signal in one.strengths))
        rows = [[one.pool, one.election, *(_strength(one, signal) for signal in signals)] for one in learned]
        parts.append("The strengths that were learned:\n\n" + markdown_table(["for", "election", *signals], rows))
    rows_of_csv = [
        {"pool": one.pool, "stop": one.stop, "election": one.election, "samples": one.samples, "accuracy": _mean([one])}
        | gap_columns({"gain": gain(found, [one.pool], one.stop, one.election)})
        for one in found
    ]
    return Page("\n\n".join(part.strip() for part in parts), rows_of_csv)


def _strength(one: ElectionResult, signal: str) -> str:
    return f"{one.strengths[signal]:+.2f}" if signal in one.strengths else ""


def _cell(found: Sequence[ElectionResult], pools: Sequence[str], stop: str, election: str) -> str:
    chosen = [one for one in found if (one.stop, one.election) == (stop, election) and one.pool in pools]
    gap = gain(found, pools, stop, election)
    return "–" if gap is None else f"{_mean(chosen):.1f}, {gap_text(gap, 'accuracy')}"


def _mean(chosen: Sequence[ElectionResult]) -> float | None:
    """The accuracy, the plain mean over pools; None where there is no gold answer."""
    known = [one.accuracy[~np.isnan(one.accuracy)] for one in chosen]
    return float(np.mean([values.mean() for values in known])) if all(values.size for values in known) else None
