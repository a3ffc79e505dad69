"""Audits: votes that are drawn to the full budget after their stop, and what they prove of all others."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from scipy.special import betaincinv

from suffice.live.outcome import Outcome


@dataclass(frozen=True)
class Audit:
    """One vote: where it stopped, and what the full budget came to."""

    agreed: bool
    samples: int
    samples_full: int
    tokens: int
    tokens_full: int
    model: str = ""
    topic: str = ""

    @classmethod
    def read(cls, told: Mapping[str, Any]) -> "Audit":
        """An audit as it was written, with whatever else is said of it; TypeError where it is none."""
        return cls(**{name.name: told[name.name] for name in fields(cls) if name.name in told})

    @classmethod
    def of(cls, early: Outcome, full: Outcome, model: str = "", topic: str = "") -> "Audit":
        """The audit that compares the two."""
        return cls(
            agrees(early, full), early.samples, full.samples, early.tokens, full.tokens, model=model, topic=topic
        )

    def to_json(self) -> dict[str, Any]:
        """As one JSON object."""
        return asdict(self)


def agrees(early: Outcome, full: Outcome) -> bool:
    """Whether two outcomes agree: most votes are for the same answer, or in every field that was voted on."""
    if early.composed is None or full.composed is None:
        return early.majority == full.majority
    one, other = (
        {pointer: field.value for pointer, field in outcome.fields.items() if field.confidence is not None}
        for outcome in (early, full)
    )
    return one == other


@dataclass(frozen=True)
class Proof:
    """What audits prove: how often votes agree with the full budget, and what they save."""

    audits: int
    agreed: int
    samples: int
    samples_full: int
    tokens: int
    tokens_full: int

    @classmethod
    def of(cls, audits: Iterable[Audit]) -> "Proof":
        """Of all of these.

        >>> proof = Proof.of([Audit(True, 4, 32, 400, 3200)] * 99 + [Audit(False, 12, 32, 1200, 3200)])
        >>> str(proof)
        'agreement 99.0 % (95 % interval 94.6–100.0, 100 audits), tokens saved 87.2 % (measured)'
        """
        rows = list(audits)
        names = ("agreed", "samples", "samples_full", "tokens", "tokens_full")
        return cls(len(rows), *(sum(getattr(one, name) for one in rows) for name in names))

    @property
    def agreement(self) -> float | None:
        """The share that agrees."""
        return self.agreed / self.audits if self.audits else None

    @property
    def interval(self) -> tuple[float, float]:
        """Where the true share is, with 95 % confidence (Clopper and Pearson's exact interval)."""
        low = betaincinv(self.agreed, self.audits - self.agreed + 1, 0.025) if self.agreed else 0.0
        high = betaincinv(self.agreed + 1, self.audits - self.agreed, 0.975) if self.agreed < self.audits else 1.0
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
        }

    def __str__(self) -> str:
        if self.agreement is None:
            return "no audits yet"
        low, high = self.interval
        saved = "" if self.tokens_saved is None else f", tokens saved {100 * self.tokens_saved:.1f} % (measured)"
        share = f"agreement {100 * self.agreement:.1f} % (95 % interval {100 * low:.1f}–{100 * high:.1f}, "
        return f"{share}{self.audits} audits){saved}"
