"""What the gateway learns from its votes: a prior for each model and topic, and the plans that are made with it.

Plans are made in a thread and swapped in whole, so that no request waits for one; the files are written there too.
"""

import asyncio
import hashlib
import json
import random
import sys
import traceback
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from suffice.controllers import Controller
from suffice.gateway import metrics
from suffice.gateway.audits import AuditLog, Auditor
from suffice.gateway.settings import Settings
from suffice.gateway.votes import Held
from suffice.live.audits import Audit, Proof
from suffice.live.outcome import SETTLED
from suffice.planning import UNIVERSAL, Plan
from suffice.planning.learning import Learner
from suffice.planning.promises import AgreementPromise, SamplesPromise
from suffice.tally import Tally

T = TypeVar("T")

MOST_KINDS = 64
"""So many models and topics are learned of; the one that was not asked for longest makes room."""

MOST_PLANS = 4
"""So many settings of a kind, prices and budget, have a learned plan; others are planned without."""

SYNC_SECONDS = 2.0
"""So long it takes at most until another worker, and the disk, know what was learned here."""

MOST_AUDITS = 20_000
"""So many are remembered, the last ones."""

Setting = tuple[Plan, int]
"""Who decides, within what budget."""


class Kind:
    """Requests that are alike: for one model, under one topic."""

    def __init__(self, model: str, topic: str, settings: Settings) -> None:
        self.model = model
        self.topic = topic
        self.learner = Learner()
        self.agreement = AgreementPromise(settings.promised_share) if settings.promised_share else None
        self.samples = SamplesPromise(settings.max_mean_samples, settings.budget) if settings.max_mean_samples else None
        self.known_on_disk = (0, 0)
        """How much was learned, and when the file was written, when it was last kept."""
        self.plans: dict[Setting, Plan] = {}
        """The plans in force, by what was asked for."""

    @property
    def factor(self) -> float:
        """What the promise multiplies the penalties with."""
        promise = self.agreement or self.samples
        return promise.factor if promise else 1.0

    def priced(self, base: Plan) -> Plan:
        """A plan at the prices in force."""
        factor = self.factor
        if factor == 1:
            return base
        return replace(base, penalty_draw=factor * base.penalty_draw, penalty_round=factor * base.penalty_round)


class Learning:
    """Who decides on the votes of each kind, by what was learned from those before."""

    def __init__(self, settings: Settings, folder: Path | None, is_crowded: Callable[[], bool]) -> None:
        self._settings = settings
        self._folder = folder / "learned" if folder else None
        self._kinds: OrderedDict[tuple[str, str], Kind] = OrderedDict()
        self._log = AuditLog(folder / "audits.jsonl" if folder else None)
        self._audits: deque[Audit] = deque(maxlen=MOST_AUDITS)
        self.auditor = Auditor(self._audited, is_crowded)
        self._planner = ThreadPoolExecutor(1, "suffice-planner")
        self._planning: set[Kind] = set()
        self._complained = False
        self._chance = random.Random()  # noqa: S311
        self._keeping: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Begin, with what was known before."""
        self._take_in(await self._aside(self._log.news))
        self._keeping = asyncio.create_task(self._keep())

    async def close(self) -> None:
        """End what nobody waits for, and keep what was learned."""
        await self.auditor.close()
        if self._keeping:
            self._keeping.cancel()
            await asyncio.wait({self._keeping})
        await self._aside(self._sync)
        self._planner.shutdown(wait=False, cancel_futures=True)

    def kind(self, model: str | None, topic: str) -> Kind:
        """The kind of a request."""
        name = (model or "", topic)
        kind = self._kinds.get(name)
        if kind is None:
            kind = self._kinds[name] = Kind(*name, self._settings)
            if len(self._kinds) > MOST_KINDS:
                _, oldest = self._kinds.popitem(last=False)
                self._planner.submit(self._sync_kind, oldest)
            self._planner.submit(self._sync_kind, kind)
        self._kinds.move_to_end(name)
        return kind

    def controller(self, kind: Kind, chosen: Controller, budget: int, learn: bool) -> Controller:
        """Who decides on a vote: for plans, the plan of its kind that is ready, at the prices in force."""
        if not isinstance(chosen, Plan) or chosen.prior != UNIVERSAL:
            return chosen
        setting = (chosen, budget)
        if setting not in kind.plans and len(kind.plans) < MOST_PLANS:
            kind.plans[setting] = chosen
            if self._is_outdated(kind):
                self._plan_soon(kind)
        ready = kind.plans.get(setting, chosen)
        return ready if learn or ready.prior == UNIVERSAL else chosen

    def ended(self, kind: Kind, held: Held, learn: bool) -> None:
        """Learn from a vote that has ended, and perhaps audit it."""
        outcome = held.outcome
        if outcome is None or outcome.stop_reason not in SETTLED:
            return
        if kind.samples:
            kind.samples.observe(outcome.samples)
        if self._chance.random() < self._settings.audit:
            # What is learned of it is learned when it is over: an audit is a full tally.
            self.auditor.audit(held, kind.model, kind.topic, lambda: self._learn(kind, held, learn))
        else:
            self._learn(kind, held, learn)
        if self._is_outdated(kind):
            self._plan_soon(kind)

    def _learn(self, kind: Kind, held: Held, learn: bool) -> None:
        """Fields are not learned from: an object's are of many kinds."""
        if learn and self._settings.learn and held.outcome and held.outcome.composed is None:
            kind.learner.observe(held.tally)

    def _is_outdated(self, kind: Kind) -> bool:
        """Whether plans should be made anew: there is news, or the price has changed."""
        priced = all(_prices(plan) == _prices(kind.priced(base)) for (base, _), plan in kind.plans.items())
        return not priced or (self._settings.learn and kind.learner.due)

    def _plan_soon(self, kind: Kind) -> None:
        if kind not in self._planning:
            self._planning.add(kind)
            self._planner.submit(self._plan, kind)

    def _plan(self, kind: Kind) -> None:
        """Make the plans of a kind, in the planner's thread; each is swapped in when it is ready."""
        try:
            for base, budget in list(kind.plans):
                plan = kind.priced(base)
                if self._settings.learn and kind.learner.seen:
                    plan = kind.learner.plan(plan, budget)
                plan.next_round(Tally(budget))
                kind.plans[base, budget] = plan
                metrics.PLANS.inc()
        except Exception:  # votes go on with the plans that there are
            traceback.print_exc()
        finally:
            self._planning.discard(kind)

    async def _keep(self) -> None:
        """Let the disk and other workers know, now and then."""
        while True:
            await asyncio.sleep(SYNC_SECONDS)
            self._take_in(await self._aside(self._sync))

    async def _aside(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._planner, work)

    def _sync(self) -> list[Audit]:
        for kind in list(self._kinds.values()):
            self._sync_kind(kind)
        return self._log.news()

    def _sync_kind(self, kind: Kind) -> None:
        """Keep what was learned of a kind, and take in what other workers have, where there is any news."""
        if self._folder is None or not self._settings.learn:
            return
        path = self._folder / f"{_mark(kind.model, kind.topic)}.json"
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if (kind.learner.seen, _written(path)) != kind.known_on_disk:
                kind.learner.sync(path)
                kind.known_on_disk = kind.learner.seen, _written(path)
        except OSError as error:
            self._complain(f"{self._folder}: what was learned can't be kept there: {error}")

    def _complain(self, sentence: str) -> None:
        if not self._complained:
            print(f"suffice: {sentence}", file=sys.stderr, flush=True)
        self._complained = True

    async def _audited(self, audit: Audit) -> None:
        """Take an audit in, where the file's order puts it: it is the same for all workers."""
        metrics.AUDITS.labels("yes" if audit.agreed else "no").inc()
        try:
            await self._aside(lambda: self._log.append(audit))
            self._take_in(await self._aside(self._log.news))
        except OSError as error:
            self._complain(f"audits can't be kept: {error}")
            self._take_in([audit])

    def _take_in(self, audits: Iterable[Audit]) -> None:
        for audit in audits:
            self._audits.append(audit)
            kind = self.kind(audit.model, audit.topic)
            if kind.agreement:
                kind.agreement.observe(audit.agreed)
                if self._is_outdated(kind):
                    self._plan_soon(kind)

    def told(self) -> dict[str, Any]:
        """What audits prove, by model and topic, and what is in force."""
        by_kind: dict[tuple[str, str], list[Audit]] = {name: [] for name in self._kinds}
        for audit in self._audits:
            by_kind.setdefault((audit.model, audit.topic), []).append(audit)
        return {
            "share": self._settings.audit,
            "pending": self.auditor.pending,
            "dropped": self.auditor.dropped,
            "all": _proved(self._audits),
            "kinds": [
                {"model": name[0], "topic": name[1], **_proved(audits), **self._in_force(self._kinds.get(name))}
                for name, audits in by_kind.items()
            ],
        }

    def _in_force(self, kind: Kind | None) -> dict[str, Any]:
        """What decides on a kind's votes now."""
        if kind is None:
            return {}
        plan = next(iter(kind.plans.values()), None)
        return {
            "learned_from": len(kind.learner),
            "changes": kind.learner.changes,
            "penalty_draw": plan.penalty_draw if plan else None,
            "penalty_round": plan.penalty_round if plan else None,
            "price_factor": kind.factor,
            "min_agreement": self._settings.promised_share or None,
            "max_mean_samples": self._settings.max_mean_samples,
        }


def _proved(audits: Iterable[Audit]) -> dict[str, Any]:
    proof = Proof.of(audits)
    return proof.to_json() | {"said": str(proof)}


def _prices(plan: Plan) -> tuple[float, float]:
    return plan.penalty_draw, plan.penalty_round


def _mark(model: str, topic: str) -> str:
    """A file's name for a kind: any text may be a model's name."""
    return hashlib.sha256(json.dumps([model, topic]).encode()).hexdigest()[:32]


def _written(path: Path) -> int:
    """When a file was written; 0 where there is none."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0
