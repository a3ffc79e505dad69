"""Elections side by side: what each gains over the plain vote, at the stops of SC, of the plan and of half as many."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from suffice.controllers import Controller, get_controller
from suffice.elections import Election, LearnedWeights, check_signals, get_election
from suffice.elections.learned import common_signals, fit_strengths
from suffice.errors import PoolError
from suffice.experiments.bench import Bench, Experiment, model_of
from suffice.planning import Plan
from suffice.pools import Pool
from suffice.replay import Difference
from suffice.replay.compare import paired
from suffice.replay.targets import meet
from suffice.replay.weighing import accuracies
from suffice.report.markdown import Page, gap_columns, gap_text, markdown_table
from suffice.tally import FloatArray

MAJORITY = "majority"
NAMED = (
    MAJORITY,
    *(f"weighted:signal={signal},strength=0.4" for signal in ("logprob", "confidence", "tail", "lowest")),
    *(f"deepconf:signal={signal},keep={keep}" for signal in ("tail", "confidence", "lowest") for keep in (10, 90, 100)),
    "cisc:signal=logprob,temperature=0.1",
    "cisc:signal=tail,temperature=1",
    "weighted:signal=length,strength=-0.4",
    "weighted:signal=length,strength=0.4",
)


@dataclass(frozen=True)
class ElectionResult:
    """One election at one controller's stops on one pool: its accuracy by question, in percent, and the samples."""

    pool: str
    stop: str
    election: str
    samples: float
    accuracy: FloatArray
    strengths: Mapping[str, float]
    """Those of learned weights."""


def elections(bench: Bench) -> list[ElectionResult]:
    """All elections that each test pool has the signals for; weights are learned from the training pools."""
    stops: dict[tuple[str, ...], Mapping[str, Controller]] = {}
    found: list[ElectionResult] = []
    plain = [pool for pool in bench.test if not any(question.structured for question in pool.questions)]
    # the others are elected field by field
    with bench.bar("elections", sum(len(pool.questions) for pool in plain)) as advance:
        for pool in plain:
            training = bench.training_for(pool)
            names = tuple(one.name for one in training)
            stops[names] = stops.get(names) or _stops(bench, training)
            chosen = dict(_elections(bench, pool, training))
            for stop, controller in stops[names].items():
                samples, right = accuracies(
                    pool, controller, [*chosen.values()], bench.budget, bench.repeats, bench.seed
                )
                found += [
                    ElectionResult(pool.name, stop, name, samples, accuracy, _strengths(chosen[name]))
                    for name, accuracy in zip(chosen, right, strict=True)
                ]
                advance(len(pool.questions) / len(stops[names]))
    return found


def gain(found: Sequence[ElectionResult], pools: Sequence[str], stop: str, election: str) -> Difference | None:
    """Over the plain vote at the full budget, on these pools; None where one of them hasn't got this election."""
    table = {(one.pool, one.stop, one.election): one.accuracy for one in found}
    base = next(one.stop for one in found)
    if any((pool, stop, election) not in table for pool in pools):
        return None
    return paired([table[pool, stop, election] - table[pool, base, MAJORITY] for pool in pools])


def _stops(bench: Bench, training: Sequence[Pool]) -> dict[str, Controller]:
    """The full budget, the plan, and the plan whose penalty makes it take half of the budget on the training pools."""
    half = meet(Plan(), bench.budget, training, bench.budget / 2, None, None).controller
    return {
        f"SC@{bench.budget}": get_controller(f"sc:draws={bench.budget}"),
        "plan": get_controller("plan"),
        f"plan for {bench.budget / 2:g} samples": half,
    }


def _elections(bench: Bench, pool: Pool, training: Sequence[Pool]) -> Iterator[tuple[str, Election]]:
    for spec in NAMED:
        election = get_election(spec)
        try:
            check_signals(election, pool)
        except PoolError:
            continue
        yield spec, election
    others = [] if bench.leave_one_out else [one for one in bench.train if model_of(one) != model_of(pool)]
    same = [one for one in training if model_of(one) == model_of(pool)]
    for teachers, source in ((same, "the same model"), (others, "another model")):
        names = common_signals([pool, *teachers]) if teachers else []
        questions = [question for one in teachers for question in one.questions]
        for target in ("gold", "majority"):
            right = [question.gold if target == "gold" else question.majority for question in questions]
            strengths = fit_strengths(questions, right, names)
            if names and not np.isnan(strengths).any():
                yield f"learned from {source}, by {target}", LearnedWeights(tuple(names), tuple(strengths.tolist()))


def _strengths(election: Election) -> dict[str, float]:
    learned = election if isinstance(election, LearnedWeights) else LearnedWeights()
    return dict(zip(learned.signals, learned.strengths, strict=True))


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


EXPERIMENT = Experiment("Elections by weight", elections, elections_page)
