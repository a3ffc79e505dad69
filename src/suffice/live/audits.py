"""Audits: votes that are drawn to the full budget after their stop, and what they prove of others."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import scipy

from suffice.live.outcome import Outcome
from suffice.live.vote import Vote


@dataclass(frozen=True)
class Audit:
    """One vote: where it stopped, and what the full budget came to."""

    agreed: bool
    samples: int
    samples_full: int
    tokens: int
    tokens_full: int
    once_agreed: bool  # the first response alone
    model: str = ""
    topic: str = ""

    @classmethod
    def read(cls, told: Mapping[str, Any]) -> "Audit":
        """Read an audit from a line that may say more; TypeError if it is none."""
        return cls(**{name.name: told[name.name] for name in fields(cls) if name.name in told})

    @classmethod
    def of(cls, early: Outcome, full: Outcome, model: str = "", topic: str = "") -> "Audit":
        once = full.responses[0].answer == full.majority if full.composed is None else not full.changed
        taken = early.samples, full.samples, early.tokens, full.tokens
        return cls(agrees(early, full), *taken, once, model=model, topic=topic)


def agrees(early: Outcome, full: Outcome) -> bool:
    """Return whether most votes are for the same answer, or in every field that was voted on."""
    if early.composed is None or full.composed is None:
        return early.majority == full.majority
    one, other = (
        {pointer: field.value for pointer, field in outcome.fields.items() if field.confidence is not None}
        for outcome in (early, full)
    )
    return one == other


async def draw_rest(vote: Vote, ready: Callable[[], Awaitable[None]] | None = None, at_once: int = 8) -> Outcome | None:
    """Draw the rest of the budget, a few draws whenever it is ready; return its outcome, None if that failed."""
    try:
        while vote.tally.left:
            if ready:
                await ready()
            before = vote.tally.draws
            vote.launch(min(at_once, vote.tally.left))
            while vote.draws.in_flight and vote.tally.left:  # a batch may have some from before the stop
                await vote.count(await vote.draws.next())
            if vote.tally.draws == before:
                return None
    finally:
        await vote.draws.close()
    return await vote.so_far("budget")


def prove(audits: Iterable[Audit]) -> dict[str, Any]:
    """Return how often votes agree with the full budget, and what they save; `said` is that in a sentence.

    >>> prove([Audit(True, 4, 32, 400, 3200, True)] * 99 + [Audit(False, 12, 32, 1200, 3200, False)])["said"]
    'agreement 99.0 % (95 % interval 94.6–100.0, 100 audits) for 12.8 % of the full tokens; one response 99.0 %'
    """
    rows = list(audits)

    def mean(name: str) -> float | None:
        return sum(getattr(one, name) for one in rows) / len(rows) if rows else None

    agreed, once_agreed = sum(one.agreed for one in rows), sum(one.once_agreed for one in rows)
    tokens, tokens_full = sum(one.tokens for one in rows), sum(one.tokens_full for one in rows)
    # The 95 % interval of the share that agrees, exact as Clopper and Pearson's.
    apart = len(rows) - agreed
    low = float(scipy.special.betaincinv(agreed, apart + 1, 0.025)) if agreed else 0.0
    high = float(scipy.special.betaincinv(agreed + 1, apart, 0.975)) if apart else 1.0
    said = "no audits yet"
    if rows:
        said = f"agreement {100 * agreed / len(rows):.1f} % (95 % interval {100 * low:.1f}–{100 * high:.1f}, "
        said += f"{len(rows)} audits)"
        said += f" for {100 * tokens / tokens_full:.1f} % of the full tokens" if tokens_full else ""
        said += f"; one response {100 * once_agreed / len(rows):.1f} %"
    return {
        "audits": len(rows),
        "agreed": agreed,
        "agreement": mean("agreed"),
        "interval": [low, high],
        "samples": mean("samples"),
        "samples_full": mean("samples_full"),
        "tokens_saved": 1 - tokens / tokens_full if tokens_full else None,
        "once_agreed": once_agreed,
        "once_agreement": mean("once_agreed"),
        "said": said,
    }
