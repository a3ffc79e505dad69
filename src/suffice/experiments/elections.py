"""Ours: what elections gain over the plain vote, at the stops of SC and of plans."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from suffice.controllers import Controller, get_controller
from suffice.elections import Election, LearnedWeights, check_signals, get_election
from suffice.elections.learned import common_signals, fit_strengths
from suffice.errors import PoolError
from suffice.experiments.bench import Bench, Experiment, model_of, names_of
from suffice.planning import Plan
from suffice.pools import Pool
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
    """One election at one controller's stops on one pool; accuracies are by question, in percent."""

    pool: str
    stop: str
    name: str
    election: Election
    samples: float
    accuracy: FloatArray
    gain: FloatArray
    """Over the plain vote at the full budget."""


def elections(bench: Bench) -> Page:
    found = _elected(bench)
    if not found:
        return Page("Skipped: there is no pool with plain answers.", [])
    pools = list(dict.fromkeys(one.pool for one in found))
    stops = list(dict.fromkeys(one.stop for one in found))
    groups = {pool: [pool] for pool in pools} | ({"mean": pools} if len(pools) > 1 else {})
    parts = [
        f"Accuracy in percent and, with 95 % intervals over questions, the gain over the plain vote at {stops[0]}."
    ]
    for stop in stops:
        here = [one for one in found if one.stop == stop]
        samples = {one.pool: f"{one.samples:.1f} samples on {one.pool}" for one in here}
        lines = []
        for name in dict.fromkeys(one.name for one in here):
            own = [one for one in here if one.name == name]
            lines.append([name, *(_cell(own, group) for group in groups.values())])
        table = markdown_table(["election", *groups], lines)
        parts.append(f"**At the stops of {stop}**: {', '.join(samples.values())}.\n\n{table}")
    learned = [
        (one, dict(zip(one.election.signals, one.election.strengths, strict=True)))
        for one in found
        if one.stop == stops[0] and isinstance(one.election, LearnedWeights)
    ]
    if learned:
        signals = list(dict.fromkeys(signal for _, strengths in learned for signal in strengths))
        lines = [
            [one.pool, one.name, *(f"{strengths[name]:+.2f}" if name in strengths else "" for name in signals)]
            for one, strengths in learned
        ]
        parts.append("The strengths that were learned:\n\n" + markdown_table(["for", "election", *signals], lines))
    rows = [
        {"pool": one.pool, "stop": one.stop, "election": one.name, "samples": one.samples, "accuracy": _mean([one])}
        | gap_columns({"gain": paired([one.gain])})
        for one in found
    ]
    return Page("\n\n".join(part.strip() for part in parts), rows)


def _elected(bench: Bench) -> list[ElectionResult]:
    """All elections that a pool has the signals for; weights are learned from training pools."""
    stops: dict[str, Mapping[str, Controller]] = {}
    found: list[ElectionResult] = []
    plain = [pool for pool in bench.test if not any(question.structured for question in pool.questions)]
    # the others are elected field by field
    with bench.bar("elections", sum(len(pool.questions) for pool in plain)) as advance:
        for pool in plain:
            training = bench.training_for(pool)
            names = names_of(training)
            stops[names] = stops.get(names) or _stops(bench, training)
            chosen = dict(_elections(bench, pool, training))
            base = None
            for stop, controller in stops[names].items():
                samples, right = accuracies(pool, controller, [*chosen.values()], **bench.draws)
                base = right[0] if base is None else base  # the first is the majority of the full budget
                found += [
                    ElectionResult(pool.name, stop, name, election, samples, accuracy, accuracy - base)
                    for (name, election), accuracy in zip(chosen.items(), right, strict=True)
                ]
                advance(len(pool.questions) / len(stops[names]))
    return found


def _stops(bench: Bench, training: Sequence[Pool]) -> dict[str, Controller]:
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


def _cell(results: Sequence[ElectionResult], pools: Sequence[str]) -> str:
    own = [one for one in results if one.pool in pools]
    gap = paired([one.gain for one in own]) if len(own) == len(pools) else None
    return "–" if gap is None else f"{_mean(own):.1f}, {gap_text(gap, 'accuracy')}"


def _mean(chosen: Sequence[ElectionResult]) -> float | None:
    """The mean accuracy over pools; None without gold answers."""
    known = [one.accuracy[~np.isnan(one.accuracy)] for one in chosen]
    if not all(values.size for values in known):
        return None
    return float(np.mean([values.mean() for values in known]))


EXPERIMENT = Experiment("Elections by weight", elections)
