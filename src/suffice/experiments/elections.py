"""Elections side by side: what each gains over the plain vote, at the stops of SC, of the plan and of half as many."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from suffice.controllers import Controller, get_controller
from suffice.elections import Election, LearnedWeights, check_signals, get_election
from suffice.elections.learned import common_signals, fit_strengths
from suffice.errors import PoolError
from suffice.experiments.bench import Bench, model_of
from suffice.planning import Plan
from suffice.pools import Pool
from suffice.replay import Difference
from suffice.replay.compare import paired
from suffice.replay.targets import meet
from suffice.replay.weighing import accuracies
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
