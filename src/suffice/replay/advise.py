"""Which mode, order, extra and penalties suit a pool: the cheapest that is quick enough, or the quickest in budget."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from suffice.errors import OptionError
from suffice.flow import Flow
from suffice.planning import Plan
from suffice.pools import Pool
from suffice.replay.evaluate import evaluate, mean_over_pools

PENALTIES = [(draw, wait) for draw in (0.003, 0.0075, 0.015) for wait in (0.0, 0.005, 0.02)]
FLOWS = [None, *(Flow("launch", extra) for extra in (0, 2, 4, 8)), *(Flow("arrival", extra) for extra in (0, 2, 4))]


@dataclass(frozen=True)
class Choice:
    """One way to sample, and what it takes on the pools, in the mean over them."""

    flow: Flow | None
    plan: Plan
    latency: float
    tokens: float
    agreement: float
    accuracy: float | None

    @property
    def options(self) -> str:
        """As it is given on the command line."""
        mode = f"--mode flow --order {self.flow.order} --extra {self.flow.extra}" if self.flow else "--mode rounds"
        plan = f"plan:penalty_draw={self.plan.penalty_draw:g},penalty_round={self.plan.penalty_round:g}"
        return f"{mode} --controller {plan}"


def sweep(
    pools: Sequence[Pool],
    budget: int,
    repeats: int,
    seed: int,
    slots: int | None = None,
    progress: Callable[[int], None] = lambda steps: None,
) -> list[Choice]:
    """Every combination of the grid, replayed on the clock."""
    choices = []
    for flow in FLOWS:
        clocked = flow and Flow(flow.order, flow.extra, slots)
        plans = [Plan(draw, wait) for draw, wait in PENALTIES]
        by_pool = []
        for pool in pools:
            options = {"budget": budget, "repeats": repeats, "seed": seed, "confidence": False}
            by_pool.append(evaluate(pool, plans, flow=clocked, slots=slots, **options))  # type: ignore[arg-type]
            progress(1)
        for place, plan in enumerate(plans):
            results = [results[place] for results in by_pool]
            latency, tokens = mean_over_pools(results, "latency_tokens"), mean_over_pools(results, "spent_tokens")
            if latency is None or tokens is None:
                raise OptionError("--advise needs pools that tell the tokens of every response")
            agreement = mean_over_pools(results, "agreement") or 0.0
            choices.append(Choice(flow, plan, latency, tokens, agreement, mean_over_pools(results, "accuracy")))
    return choices


def steps(pools: Sequence[Pool]) -> int:
    """How many steps of progress a sweep makes."""
    return len(FLOWS) * len(pools)


def front(choices: Sequence[Choice]) -> list[Choice]:
    """Those that no other beats in both latency and tokens, quickest first."""
    best: list[Choice] = []
    for choice in sorted(choices, key=lambda one: (one.latency, one.tokens)):
        if not best or choice.tokens < best[-1].tokens:
            best.append(choice)
    return best


def advise(
    choices: Sequence[Choice], max_latency: float | None, max_tokens: float | None, min_agreement: float
) -> Choice:
    """The cheapest within the latency, or the quickest within the tokens, of those that agree often enough."""
    if (max_latency is None) == (max_tokens is None):
        raise OptionError("--advise needs --max-latency or --max-tokens, one of the two")
    agreeing = [choice for choice in choices if choice.agreement >= min_agreement]
    if not agreeing:
        raise OptionError(f"--min-agreement {min_agreement:g}: nothing in the sweep agrees so often; lower it")
    if max_latency is not None:
        fitting = [choice for choice in agreeing if choice.latency <= max_latency]
        nearest = min(choice.latency for choice in agreeing)
        if not fitting:
            raise OptionError(f"--max-latency {max_latency:g}: the quickest in the sweep takes {nearest:.0f} tokens")
        return min(fitting, key=lambda one: (one.tokens, one.latency))
    fitting = [choice for choice in agreeing if choice.tokens <= (max_tokens or 0)]
    if not fitting:
        nearest = min(choice.tokens for choice in agreeing)
        raise OptionError(f"--max-tokens {max_tokens:g}: the cheapest in the sweep spends {nearest:.0f}")
    return min(fitting, key=lambda one: (one.latency, one.tokens))
