"""Promises that hold whatever comes: the price of a draw follows what is seen, by dual ascent.

The penalties of a plan are multiplied by a factor. Where an agreement is promised, every audit that disagrees lowers
it and every one that agrees raises it a little, never above 1; at the end of its range draws are free and the full
budget is drawn, which agrees with itself. So of any number of audits in a row, at most `SLACK` more disagree than was
promised, whatever the traffic does: no assumption is made about it.

A promised risk can't be kept by drawing more. Feedback on answers is checked against it, and teaches calibrations.
"""

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

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
        return 2.0 ** int(self.pressure * (LEVELS - 1))


WORSE = (1.5, 2.0, 3.0, 5.0)
"""How many times the promised risk the true one may be: what evidence is gathered for."""

STRETCH = 50
"""Evidence is gathered anew from every so many answers on, so that a good past does not outweigh a bad present."""

PROOF = 20.0
"""So much evidence breaks a promise: while it is kept, there is ever so much with a chance of 1 in 20 at most."""


@dataclass
class RiskPromise:
    """At most this share of the answers that are sure enough shall be wrong.

    The evidence against it is an e-process: a mean of bets that it is broken, each of which wins nothing in the mean
    while it is kept. So it may be looked at after every answer, and the chance ever to see 20 is 1 in 20 at most. A bet
    is on how much worse the risk is, and since when: the b-th stretch of answers has 1/b(b + 1) of the stake.

    >>> promise = RiskPromise(0.1)
    >>> for place in range(1000):
    ...     promise.observe(wrong=place % 12 == 0)
    >>> promise.is_broken
    False
    >>> for place in range(60):
    ...     promise.observe(wrong=place % 3 == 0)
    >>> promise.is_broken
    True
    """

    risk: float
    answers: int = 0
    wrong: int = 0
    won: list[float] = field(default_factory=lambda: [0.0] * len(WORSE))
    """What the bets have come to, for each of `WORSE`."""

    def observe(self, wrong: bool) -> None:
        """Take in whether an answer that was sure enough is wrong."""
        stretch, place = divmod(self.answers, STRETCH)
        stake = 0.0 if place else 1 / ((stretch + 1) * (stretch + 2))
        for number, times in enumerate(WORSE):
            worse = min(times * self.risk, (1 + self.risk) / 2)
            odds = worse / self.risk if wrong else (1 - worse) / (1 - self.risk)
            self.won[number] = (self.won[number] + stake) * odds
        self.answers += 1
        self.wrong += wrong

    @property
    def evidence(self) -> float:
        """What speaks against it: 1 is nothing."""
        stretches = -(-self.answers // STRETCH)
        return sum(self.won) / len(WORSE) + 1 / (stretches + 1)

    @property
    def is_broken(self) -> bool:
        return self.evidence >= PROOF


HOUR = 3600.0
MINUTE = 60.0

ROOM = 0.08
"""By so much of what an hour allows may more be spent than the traffic so far has earned; then there are no votes."""


@dataclass
class OverOneCap:
    """Tokens over one response, at most this share of what one response to each request takes, over any hour.

    Every request earns a share of its own tokens, and what a vote takes over one response is spent of that. What is
    spent before it is earned, and what votes under way will likely spend, raises the price, and at the end of the range
    no vote begins: so over any stretch no more is spent than was earned and the room, but for what such votes take more
    than is likely.

    >>> cap = OverOneCap(0.5)
    >>> for second in range(100):
    ...     cap.observe(over_one=300, once=100, now=second)
    >>> cap.exhausted, round(cap.spent, 2)
    (True, 3.0)
    """

    share: float
    debt: float = 0.0
    """Tokens that were spent before they were earned."""
    under_way: int = 0
    """How many votes have begun that may still spend."""
    typical: float = 0.0
    """What a vote took over one response of late."""
    _minutes: deque[list[float]] = field(default_factory=deque)
    """When each minute of the last hour began, what one response to each request took in it, and what was over that."""

    @contextmanager
    def expecting(self) -> Iterator[None]:
        self.under_way += 1
        try:
            yield
        finally:
            self.under_way -= 1

    def observe(self, over_one: float, once: float, now: float) -> None:
        """Take a request in: what it took over one response, and that one response."""
        if over_one:
            self.typical += (over_one - self.typical) / 8
        if not self._minutes or now - self._minutes[-1][0] >= MINUTE:
            self._minutes.append([now, 0.0, 0.0])
        self._minutes[-1][1] += once
        self._minutes[-1][2] += over_one
        while now - self._minutes[0][0] > HOUR:
            self._minutes.popleft()
        self.debt = max(0.0, self.debt + over_one - self.share * once)

    @property
    def spent(self) -> float:
        """The share that was spent over the last hour."""
        once, over_one = (sum(minute[place] for minute in self._minutes) for place in (1, 2))
        return over_one / once if once else 0.0

    @property
    def pressure(self) -> float:
        """The part of the room that is taken; where there is less traffic than an hour ago, there is less room."""
        hour = sum(once for _, once, _ in self._minutes)
        half = sum(once for began, once, _ in self._minutes if began > self._minutes[-1][0] - HOUR / 2)
        room = ROOM * self.share * min(hour, 2 * half)
        owed = self.debt + self.under_way * self.typical
        return min(1.0, owed / room) if room else float(owed > 0)

    @property
    def exhausted(self) -> bool:
        """Whether no more may be spent now: a draw is dearer than any answer is worth."""
        return self.pressure >= 1

    @property
    def factor(self) -> float:
        """What the penalties are multiplied with; from level to level by the root of 2."""
        return float(2.0 ** (int(self.pressure * 10) / 2))
