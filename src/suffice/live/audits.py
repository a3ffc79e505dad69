"""Audits: votes that are drawn to the full budget after their stop, and what they prove of all others."""

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
    once_agreed: bool
    """Whether one response, the first, would have agreed too."""
    model: str = ""
    topic: str = ""

    @classmethod
    def read(cls, told: Mapping[str, Any]) -> "Audit":
        """An audit as it was written, with whatever else is said of it; TypeError where it is none."""
        return cls(**{name.name: told[name.name] for name in fields(cls) if name.name in told})

    @classmethod
    def of(cls, early: Outcome, full: Outcome, model: str = "", topic: str = "") -> "Audit":
        """The audit that compares the two."""
        once = full.responses[0].answer == full.majority if full.composed is None else not full.changed
        taken = early.samples, full.samples, early.tokens, full.tokens
        return cls(agrees(early, full), *taken, once, model=model, topic=topic)


def agrees(early: Outcome, full: Outcome) -> bool:
    """Whether two outcomes agree: most votes are for the same answer, or in every field that was voted on."""
    if early.composed is None or full.composed is None:
        return early.majority == full.majority
    one, other = (
        {pointer: field.value for pointer, field in outcome.fields.items() if field.confidence is not None}
        for outcome in (early, full)
    )
    return one == other


async def draw_rest(vote: Vote, ready: Callable[[], Awaitable[None]] | None = None, at_once: int = 8) -> Outcome | None:
    """Draw what is left of the budget after the stop, a few draws whenever it is ready.

    The outcome of the full budget; None where it could not be drawn.
    """
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


@dataclass(frozen=True)
class Proof:
    """What audits prove: how often votes agree with the full budget, and what they save."""

    audits: int
    agreed: int
    samples: int
    samples_full: int
    tokens: int
    tokens_full: int
    once_agreed: int

    @classmethod
    def of(cls, audits: Iterable[Audit]) -> "Proof":
        """Of all of these.

        >>> proof = Proof.of([Audit(True, 4, 32, 400, 3200, True)] * 99 + [Audit(False, 12, 32, 1200, 3200, False)])
        >>> str(proof)
        'agreement 99.0 % (95 % interval 94.6–100.0, 100 audits) for 12.8 % of the full tokens; one response 99.0 %'
        """
        rows = list(audits)
        names = ("agreed", "samples", "samples_full", "tokens", "tokens_full", "once_agreed")
        return cls(len(rows), *(sum(getattr(one, name) for one in rows) for name in names))

    @property
    def agreement(self) -> float | None:
        """The share that agrees."""
        return self.agreed / self.audits if self.audits else None

    @property
    def interval(self) -> tuple[float, float]:
        """Where the true share is, with 95 % confidence (Clopper and Pearson's exact interval)."""
        apart = self.audits - self.agreed
        low = scipy.special.betaincinv(self.agreed, apart + 1, 0.025) if self.agreed else 0.0
        high = scipy.special.betaincinv(self.agreed + 1, apart, 0.975) if apart else 1.0
        return float(low), float(high)

    @property
    def tokens_saved(self) -> float | None:
        """The share of the full budget's tokens that was not spent, as measured."""
        return 1 - self.tokens / self.tokens_full if self.tokens_full else None

    def to_json(self) -> dict[str, Any]:
        """As one JSON object."""
        return {
            "audits": self.audits,
            "agreed": self.agreed,
            "agreement": self.agreement,
            "interval": list(self.interval),
            "samples": self.samples / self.audits if self.audits else None,
            "samples_full": self.samples_full / self.audits if self.audits else None,
            "tokens_saved": self.tokens_saved,
            "once_agreed": self.once_agreed,
            "once_agreement": self.once_agreed / self.audits if self.audits else None,
        }

    def __str__(self) -> str:
        if self.agreement is None:
            return "no audits yet"
        low, high = self.interval
        share = f"agreement {100 * self.agreement:.1f} % (95 % interval {100 * low:.1f}–{100 * high:.1f}, "
        spent = f" for {100 * self.tokens / self.tokens_full:.1f} % of the full tokens" if self.tokens_full else ""
        once = f"one response {100 * self.once_agreed / self.audits:.1f} %"
        return f"{share}{self.audits} audits){spent}; {once}"
