"""Learning the prior from traffic: what kind of questions come, by how their answers repeat; no labels.

A vote stops by what was seen alone, so the likelihood of a stopped tally is that of its partition: what is learned from
stopped votes is as valid as what is learned from full ones.
"""

import hashlib
import json
import threading
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from suffice.planning.confidence import prepare
from suffice.planning.controller import Plan, planned
from suffice.planning.model import CONCENTRATIONS, DISCOUNTS, LARGEST_BUDGET, UNIVERSAL, Prior, log_likelihood
from suffice.tally import FloatArray, IntArray, Tally

HEADSTART = 32
"""The universal prior counts as if it had seen so many questions."""

FLOOR = 0.02
"""The universal prior's weight is never less than this: what it thinks possible stays so."""

MEMORY = 3000
"""So many questions are remembered, the last ones."""

FEWEST = 2
"""No learned plan stops with fewer draws: a single one shows nothing."""

FIRST, LAST = 16, 250
"""A new plan is due after so many questions at first, and at the latest; between, when there are a quarter more."""

ROUNDS = 500
"""Of expectation and maximisation."""

ALARM = 9.0
"""The traffic has changed when some other kind of it explains the last questions better by so many nats.

On 30,000 questions of traffic that stays the same there was no false alarm; one would cost only learning again."""

ARMED = 100
"""So many questions are needed to know what the traffic was before."""

SHARP = 4
"""The universal prior's head start in what the traffic is tested against: that shall be no vaguer than it was."""

FORMAT = "suffice-learned-1"

Partition = tuple[int, ...]
"""The sizes of its parts, largest first."""


class _State(NamedTuple):
    """What is kept: how many votes were observed, how often the traffic changed, and the last votes."""

    seen: int
    changes: int
    known: list[Partition]


_CONCENTRATION, _DISCOUNT = np.divmod(np.arange(CONCENTRATIONS.size * DISCOUNTS.size), DISCOUNTS.size)
_BAND = _CONCENTRATION // 2 * 3 + np.minimum(_DISCOUNT // 3, 2)
_MEMBERS = np.unique(_BAND)[:, None] == _BAND
BANDS: FloatArray = _MEMBERS / _MEMBERS.sum(axis=1, keepdims=True)
"""Kinds of questions that traffic may turn to: neighbouring points of the grid, a row of weights each."""


class Learner:
    """Remembers the partitions of the last votes, and finds the prior that they speak for.

    Every finished vote is observed once, as it ended: an audited one with all its draws. `observe` and `due` take
    microseconds; `plan` some tenths of a second up to a budget of 32 and seconds above. All are safe in any thread.

    >>> learner = Learner()
    >>> tally = Tally(budget=8)
    >>> tally.add_round(["7", "7"])
    >>> for _ in range(200):
    ...     learner.observe(tally)
    >>> Plan().decide(tally), learner.due, learner.plan(Plan(), budget=8).decide(tally), learner.due
    (1, True, 0, False)
    """

    def __init__(self) -> None:
        self.seen = 0
        """How many votes were observed, here and by those that it is synchronised with."""
        self.changes = 0
        """How often the traffic has changed."""
        self._lock = threading.Lock()
        self._known: deque[Partition] = deque(maxlen=MEMORY)
        self._fresh = 0  # so many of the last are not in the file
        self._news = 0  # so many came since the last plan
        self._dropped = False  # what the file has is of traffic that is no more
        self._urgent = False
        self._expect(UNIVERSAL)

    def __len__(self) -> int:
        return len(self._known)

    def observe(self, tally: Tally) -> None:
        """Learn from a finished vote; one with a single draw says nothing."""
        if tally.draws >= FEWEST:
            self.observe_partition(partition(tally))

    def observe_partition(self, parts: Partition) -> None:
        """The same by the sizes of the parts, largest first."""
        with self._lock:
            self._known.append(parts)
            self.seen += 1
            self._fresh += 1
            self._news += 1
            self._test(parts)

    def _test(self, parts: Partition) -> None:
        """Notice where the last questions are of another kind: cumulative sums of log likelihood ratios, one a band.

        Each is of traffic half of which is of that band, against what is expected.
        """
        if parts not in self._surprises:
            likely = likelihoods(parts)
            self._surprises[parts] = np.log((1 + BANDS @ likely / (likely @ self._expected)) / 2)
        self._evidence += self._surprises[parts]
        self._run += 1
        over = self._evidence <= 0
        self._evidence[over] = self._run[over] = 0
        strongest = int(self._evidence.argmax())
        run = int(self._run[strongest])
        if self._evidence[strongest] > ALARM and len(self._known) - run >= ARMED:
            self._known = deque(list(self._known)[-run:], MEMORY)
            self._fresh = min(self._fresh, run)
            self._dropped = self._urgent = True
            self.changes += 1
            self._expect(UNIVERSAL)

    def _expect(self, prior: Prior) -> None:
        """Test the traffic against this prior from now on."""
        self._expected: FloatArray = np.array(prior.weights)
        self._surprises: dict[Partition, FloatArray] = {}
        self._evidence: FloatArray = np.zeros(len(BANDS))
        self._run: IntArray = np.zeros(len(BANDS), int)

    @property
    def mean_draws(self) -> float:
        with self._lock:
            return float(np.mean([sum(parts) for parts in self._known])) if self._known else 0.0

    @property
    def due(self) -> bool:
        """Whether there is enough news for another plan."""
        return self._urgent or self._news >= min(max(FIRST, len(self._known) // 4), LAST)

    def prior(self) -> Prior:
        """The prior that what is remembered speaks for; the universal one where nothing is."""
        return learned_prior(self._counts())

    def plan(self, base: Plan, budget: int) -> Plan:
        """The base's penalties and actions under the prior of now, ready to decide and to tell the confidence."""
        with self._lock:
            self._news, self._urgent = 0, False
        known = self._counts()
        prior, expected = learned_prior(known), learned_prior(known, SHARP)
        with self._lock:
            self._expect(expected)
        learned = replace(base, prior=prior, fewest=max(base.fewest, FEWEST))
        planned(budget, learned)
        prepare(budget, prior)
        return learned

    def _counts(self) -> Counter[Partition]:
        with self._lock:
            return Counter(self._known)

    def sync(self, update: Callable[[Callable[[bytes | None], bytes | None]], object]) -> None:
        """Add what is new here to what is kept, and take in what others have added: then all know the same.

        `update` replaces the bytes that are kept by what a function makes of them; None is for nothing: none are kept
        yet, or what is kept shall stay. The function raises ValueError where what is kept is broken.
        """
        written = changes = 0

        def merge(data: bytes | None) -> bytes | None:
            nonlocal written, changes
            saved = None if data is None else _unpacked(data)
            with self._lock:
                merged = self._merged(saved)
                self._news += merged.seen - self.seen
                self._urgent |= merged.changes > self.changes
                self.seen, self.changes, known = merged
                self._known = deque(known, MEMORY)
                written, changes = self._fresh, self.changes
            return None if merged == saved else _packed(merged)

        update(merge)
        with self._lock:  # votes may have ended in the meantime
            self._fresh = max(0, self._fresh - written)
            self._dropped = self.changes > changes

    def _merged(self, saved: _State | None) -> _State:
        here = _State(self.seen, self.changes, list(self._known))
        if saved is None:
            return here
        fresh = here.known[max(0, len(here.known) - self._fresh) :]
        known = here.known if self._dropped else [*saved.known, *fresh][-MEMORY:]
        return _State(max(here.seen, saved.seen + len(fresh)), max(here.changes, saved.changes), known)


def partition(tally: Tally) -> Partition:
    """A tally's partition: each draw without an answer is a part of its own."""
    votes = tuple(filter(None, tally.top(tally.draws)))
    return votes + (1,) * (tally.draws - sum(votes))


@lru_cache(maxsize=8192)
def likelihoods(parts: Partition) -> FloatArray:
    """How likely a partition is at each point of the grid, in proportion."""
    logs = log_likelihood(parts).ravel()
    return np.exp(logs - logs.max())


def learned_prior(known: Counter[Partition], headstart: float = HEADSTART) -> Prior:
    """The likeliest prior, given the universal one's head start and floor."""
    if not known:
        return Prior(passing=True)
    rows, counts = np.array([likelihoods(parts) for parts in known]), np.array(list(known.values()), float)
    weights = FLOOR / BANDS.shape[1] + (1 - FLOOR) * maximise(rows, counts, headstart)
    return Prior(tuple((weights / weights.sum()).tolist()), passing=True)


def maximise(likelihoods: FloatArray, counts: FloatArray, universal: float = 0) -> FloatArray:
    """The weights under which rows of likelihoods, that occur so often, are likeliest.

    The universal prior counts as so many more whose point of the grid is known: then there is one best solution.
    """
    start: FloatArray = np.array(UNIVERSAL.weights)
    weights = start
    for _ in range(ROUNDS):
        expected = (counts / (likelihoods @ weights)) @ likelihoods
        weights = (universal * start + weights * expected) / (universal + counts.sum())
    return weights / weights.sum()


def _packed(state: _State) -> bytes:
    numbers = {parts: number for number, parts in enumerate(dict.fromkeys(state.known))}
    order = [numbers[one] for one in state.known]
    told = {"seen": state.seen, "changes": state.changes, "partitions": list(numbers), "order": order}
    body = json.dumps(told).encode()
    return f"{FORMAT} {hashlib.sha256(body).hexdigest()}\n".encode() + body


def _unpacked(data: bytes) -> _State:
    head, _, body = data.partition(b"\n")
    if head != f"{FORMAT} {hashlib.sha256(body).hexdigest()}".encode():
        raise ValueError("this is not whole, or of another version")
    told = json.loads(body)
    partitions = [tuple(parts) for parts in told["partitions"]]
    if any(not parts or min(parts) < 1 or sum(parts) > LARGEST_BUDGET for parts in partitions):
        raise ValueError("there is a partition in it that is none")
    return _State(told["seen"], told["changes"], [partitions[number] for number in told["order"]])
