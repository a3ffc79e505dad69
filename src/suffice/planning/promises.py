"""Promises that hold whatever comes: the price of a draw follows what is seen, by dual ascent.

The penalties of a plan are multiplied by a factor. Where an agreement is promised, every audit that disagrees lowers
it and every one that agrees raises it a little, never above 1; at the end of its range draws are free and the full
budget is drawn, which agrees with itself. So of any number of audits in a row, at most `SLACK` more disagree than was
promised, whatever the traffic does: no assumption is made about it.
"""

from dataclasses import dataclass

STEP = 0.5
"""How far a whole disagreement moves the pressure; at 1 draws are free."""

SLACK = 1 / STEP + 1
"""So many more audits than promised may disagree, over any stretch of them."""

LEVELS = 8
"""The factor is halved from level to level, and 0 at the last: as many plans are made at most."""


@dataclass
class AgreementPromise:
    """At least this share of votes shall elect what the full budget would.

    >>> promise = AgreementPromise(0.99)
    >>> promise.observe(agreed=False)
    >>> promise.factor
    0.125
    >>> for _ in range(100):
    ...     promise.observe(agreed=True)
    >>> promise.factor
    1.0
    """

    target: float
    pressure: float = 0.0

    def observe(self, agreed: bool) -> None:
        """Take an audit in."""
        self.pressure = max(0.0, self.pressure + STEP * (self.target - agreed))

    @property
    def factor(self) -> float:
        """What the penalties are multiplied with."""
        level = int(self.pressure * (LEVELS - 1))
        return 0.0 if level >= LEVELS - 1 else 0.5**level


@dataclass
class SamplesPromise:
    """No more than so many samples a vote, in the mean, shall be drawn.

    >>> promise = SamplesPromise(8, budget=32)
    >>> for _ in range(100):
    ...     promise.observe(samples=16)
    >>> promise.factor
    128.0
    """

    target: float
    budget: int
    pressure: float = 0.0

    def observe(self, samples: int) -> None:
        """Take a vote in; there are many more votes than audits, so that each moves less."""
        self.pressure = min(1.0, max(0.0, self.pressure + STEP / 8 * (samples - self.target) / self.budget))

    @property
    def factor(self) -> float:
        """What the penalties are multiplied with."""
        return 2.0 ** int(self.pressure * (LEVELS - 1))
