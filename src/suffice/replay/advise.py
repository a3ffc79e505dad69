"""Which mode, order, extra and penalties suit a pool: the cheapest that is quick enough, or the quickest in budget."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from suffice.controllers import get_controller
from suffice.errors import OptionError, percentage
from suffice.executors import AnyExecutor
from suffice.flow import Flow
from suffice.pools import AnyPool, get_pools
from suffice.replay.evaluate import AnyController, Replay, Way, mean_over_pools, replay_ways
from suffice.tally import DEFAULT_BUDGET

PENALTIES = [(draw, wait) for draw in (0.003, 0.0075, 0.015) for wait in (0.0, 0.005, 0.02)]
PLANS = [f"plan:penalty_draw={draw:g},penalty_round={wait:g}" for draw, wait in PENALTIES]
FLOWS = [None, *(Flow("launch", extra) for extra in (0, 2, 4, 8)), *(Flow("arrival", extra) for extra in (0, 2, 4))]

DEFAULT_REPEATS = 20
"""Fewer than elsewhere: the clock is slow, and there is much to sweep."""

MIN_AGREEMENT = 99.0


@dataclass(frozen=True)
class Choice:
    """One way to sample, and what it takes on the pools, in the mean over them.

    >>> Choice(Flow("launch", 2), "plan", latency=120.0, tokens=700.0, agreement=99.2, accuracy=None).flow
    Flow(order='launch', extra=2)
    """

    flow: Flow | None
    controller: str
    latency: float
    tokens: float
    agreement: float
    accuracy: float | None


@dataclass(frozen=True)
class Advice:
    """The choice to make, those that no other beats in both latency and tokens, and all that were tried.

    >>> advice = advise("smollm2-135m__arithmetic", ["plan"], max_latency=400, repeats=2)
    >>> advice.chosen in advice.front, len(advice.choices)
    (True, 8)
    """

    chosen: Choice
    front: list[Choice]
    choices: list[Choice]


def advise(
    pools: AnyPool | Sequence[AnyPool],
    controllers: Sequence[AnyController] = PLANS,
    *,
    max_latency: float | None = None,
    max_tokens: float | None = None,
    min_agreement: float = MIN_AGREEMENT,
    budget: int = DEFAULT_BUDGET,
    repeats: int = DEFAULT_REPEATS,
    seed: int = 0,
    slots: int | None = None,
    progress: Callable[[float], None] = lambda share: None,
    executor: AnyExecutor = "here",
) -> Advice:
    """Try controllers in rounds and in several flows; of what agrees often enough, advise the best.

    That is the cheapest within `max_latency` (tokens on the critical path) or the quickest within `max_tokens` (for a
    question), whichever is given. Controllers that mean whole rounds are tried in rounds. The other arguments are
    those of `evaluate`; `progress` hears which share of the work each step was.

    >>> advise("smollm2-135m__arithmetic", ["plan", "asc"], max_tokens=1000, repeats=2).chosen.controller
    'plan'
    """
    if (max_latency is None) == (max_tokens is None):
        raise OptionError("must be given, or max_tokens, one of the two", "max_latency")
    percentage("min_agreement", min_agreement)
    choices = sweep(
        pools, controllers, Replay(budget, repeats, seed, confidence=False, slots=slots), progress, executor
    )
    agreeing = [choice for choice in choices if choice.agreement >= min_agreement]
    if not agreeing:
        most = max(choice.agreement for choice in choices)
        raise OptionError(f"of {min_agreement:g} is more than anything in the sweep has: {most:.2f}", "min_agreement")
    return Advice(_best(agreeing, max_latency, max_tokens), front(agreeing), choices)


def sweep(
    pools: AnyPool | Sequence[AnyPool],
    controllers: Sequence[AnyController],
    setting: Replay,
    progress: Callable[[float], None] = lambda share: None,
    executor: AnyExecutor = "here",
) -> list[Choice]:
    """Every controller in every flow, replayed on the clock."""
    loaded = get_pools(pools)
    chosen = [(get_controller(controller), str(controller)) for controller in controllers]
    ways = [
        Way(controller, flow, name)
        for flow in FLOWS
        for controller, name in chosen
        if not (flow and controller.needs_rounds)
    ]
    total = len(ways) * sum(len(pool.questions) for pool in loaded)
    found = replay_ways(loaded, ways, setting, lambda questions: progress(questions / total), executor)
    choices = []
    for way, results in zip(ways, zip(*found, strict=True), strict=True):
        latency, tokens = mean_over_pools(results, "latency_tokens"), mean_over_pools(results, "spent_tokens")
        if latency is None or tokens is None:
            raise OptionError("must tell the tokens of every response", "pools")
        agreement = mean_over_pools(results, "agreement") or 0.0
        choices.append(Choice(way.flow, way.name, latency, tokens, agreement, mean_over_pools(results, "accuracy")))
    return choices


def front(choices: Sequence[Choice]) -> list[Choice]:
    """Those that no other beats in both latency and tokens, quickest first."""
    best: list[Choice] = []
    for choice in sorted(choices, key=lambda one: (one.latency, one.tokens)):
        if not best or choice.tokens < best[-1].tokens:
            best.append(choice)
    return best


def _best(choices: Sequence[Choice], max_latency: float | None, max_tokens: float | None) -> Choice:
    """The cheapest within the latency, or the quickest within the tokens."""
    if max_latency is not None:
        fitting = [choice for choice in choices if choice.latency <= max_latency]
        if not fitting:
            nearest = min(choice.latency for choice in choices)
            raise OptionError(
                f"of {max_latency:g}: the quickest in the sweep takes {nearest:.0f} tokens", "max_latency"
            )
        return min(fitting, key=lambda one: (one.tokens, one.latency))
    fitting = [choice for choice in choices if choice.tokens <= (max_tokens or 0)]
    if not fitting:
        nearest = min(choice.tokens for choice in choices)
        raise OptionError(f"of {max_tokens:g}: the cheapest in the sweep spends {nearest:.0f}", "max_tokens")
    return min(fitting, key=lambda one: (one.latency, one.tokens))
