"""Which mode, order, extra and penalties suit a pool: the cheapest that is quick enough, or the quickest in budget."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from suffice.errors import OptionError, percentage
from suffice.executors import AnyExecutor
from suffice.flow import Flow
from suffice.pools import AnyPool, get_pools
from suffice.replay.evaluate import AnyController, Replay, Result, Variant, mean_over_pools, replay_variants
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
    """The choice to make, those that no other beats in both latency and tokens, all that were tried, and asking once.

    >>> advice = advise("smollm2-135m__arithmetic", ["plan"], max_latency=400, repeats=2)
    >>> advice.chosen in advice.front, len(advice.choices)
    (True, 8)
    """

    chosen: Choice
    front: list[Choice]
    choices: list[Choice]
    once: Choice
    """What everybody compares with, however seldom it agrees."""


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

    Args:
        pools: As in `evaluate`; they must tell the tokens of every response.
        controllers: What is tried, plans with several penalties unless given; those that mean whole rounds are tried in
            rounds alone.
        max_latency: The most tokens on the critical path: of what keeps to it the cheapest is advised.
        max_tokens: The most tokens for a question, on average: of what keeps to it the quickest is advised. One of the
            two is given.
        min_agreement: How often to agree with the vote of the full budget, in percent.
        budget, repeats, seed, slots, executor: As in `evaluate`.
        progress: Called with the share of the work that each step was.

    Raises:
        OptionError: Where nothing that was tried keeps to the limits, or an argument is out of range.
        PoolError: As in `evaluate`, as is ControllerError.

    >>> advise("smollm2-135m__arithmetic", ["plan", "asc"], max_tokens=1000, repeats=2).chosen.controller
    'plan'
    """
    if (max_latency is None) == (max_tokens is None):
        raise OptionError("must be given, or max_tokens, one of the two", "max_latency")
    percentage("min_agreement", min_agreement)
    loaded = get_pools(pools)
    every = [Variant.of(controller, flow) for flow in FLOWS for controller in controllers]
    variants = [variant for variant in every if not (variant.flow and variant.controller.needs_rounds)]
    variants.append(Variant.of("once", None))
    total = len(variants) * sum(len(pool.questions) for pool in loaded)
    setting = Replay(budget, repeats, seed, confidence=False, slots=slots)
    found = replay_variants(loaded, variants, setting, lambda questions: progress(questions / total), executor)
    *choices, once = map(_choice, variants, zip(*found, strict=True))
    agreeing = [choice for choice in choices if choice.agreement >= min_agreement]
    if not agreeing:
        most = max(choice.agreement for choice in choices)
        raise OptionError(f"of {min_agreement:g} is more than anything in the sweep has: {most:.2f}", "min_agreement")
    limited, limit = ("tokens", max_tokens) if max_latency is None else ("latency", max_latency)
    return Advice(_best(agreeing, limited, limit or 0), front(agreeing), choices, once)


def _choice(variant: Variant, results: Sequence[Result]) -> Choice:
    latency, tokens = mean_over_pools(results, "latency_tokens"), mean_over_pools(results, "spent_tokens")
    if latency is None or tokens is None:
        raise OptionError("must tell the tokens of every response", "pools")
    agreement, accuracy = mean_over_pools(results, "agreement") or 0.0, mean_over_pools(results, "accuracy")
    return Choice(variant.flow, variant.name, latency, tokens, agreement, accuracy)


def front(choices: Sequence[Choice]) -> list[Choice]:
    """Those that no other beats in both latency and tokens, quickest first."""
    best: list[Choice] = []
    for choice in sorted(choices, key=lambda one: (one.latency, one.tokens)):
        if not best or choice.tokens < best[-1].tokens:
            best.append(choice)
    return best


def _best(choices: Sequence[Choice], limited: str, limit: float) -> Choice:
    """The cheapest within the latency, or the quickest within the tokens."""
    free, least = ("tokens", "quickest") if limited == "latency" else ("latency", "cheapest")
    fitting = [one for one in choices if getattr(one, limited) <= limit]
    if not fitting:
        taken = min(getattr(one, limited) for one in choices)
        raise OptionError(f"of {limit:g}: the {least} in the sweep takes {taken:.0f} tokens", f"max_{limited}")
    return min(fitting, key=lambda one: (getattr(one, free), getattr(one, limited)))
