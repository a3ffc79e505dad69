"""What the gateway learns from its votes: a prior for each model and topic, and the plans that are made with it.

Plans are made in a thread and swapped in whole, so that no request waits for one; the files are written there too.
"""

import random
import traceback
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from math import prod
from typing import Any

from suffice.controllers import Controller, get_controller
from suffice.errors import OptionError, SufficeError
from suffice.gateway.fleet.spare import Ready, SpareDraws
from suffice.gateway.operations import metrics
from suffice.gateway.operations.state import FileState, Keeper, SharedLog, kept_in
from suffice.gateway.settings import Settings
from suffice.gateway.votes.topics import TopicLook, Topics
from suffice.live import Outcome
from suffice.live.audits import Audit, draw_rest, prove
from suffice.live.outcome import CUT_SHORT, SETTLED
from suffice.live.servers.server import Server
from suffice.live.vote import Vote
from suffice.planning import UNIVERSAL, Plan
from suffice.planning.forecast import typical_draws
from suffice.planning.learning import HEADSTART, Learner
from suffice.planning.promises import AgreementPromise, OverOneCap, SamplesPromise
from suffice.tally import Tally

MOST_KINDS = 64
"""Cache size (LRU) in models and topics."""

MOST_PLANS = 4
"""The most settings of a kind, prices and budget, with a learned plan; others have none."""

MOST_AUDITS = 20_000
"""The most audits that are remembered."""

ONCE = get_controller("once")

Setting = tuple[Plan, int]
"""Who decides, within what budget."""


class TrafficKey:
    """Requests that are alike: for one model, under one topic."""

    def __init__(self, model: str, topic: str, settings: Settings, cap: OverOneCap | None) -> None:
        self.model = model
        self.topic = topic
        self.cap = cap
        self.learner = Learner()
        self.agreement = AgreementPromise(settings.min_agreement / 100) if settings.min_agreement else None
        self.samples = SamplesPromise(settings.max_mean_samples, settings.budget) if settings.max_mean_samples else None
        self.kept = (0, 0)
        """Votes seen, and version of the file, when it was last synchronised."""
        self.plans: dict[Setting, Plan] = {}
        """The plans in force, by what was asked for."""
        self.made: dict[tuple[Setting, float], Plan] = {}
        """Plans by what was learned last, at every price so far: prices come back."""

    @property
    def factor(self) -> float:
        """What promises multiply the penalties with."""
        promises = (self.agreement, self.samples, self.cap)
        return prod(promise.factor for promise in promises if promise)


def priced(base: Plan, factor: float) -> Plan:
    """A plan at other prices."""
    if factor == 1:
        return base
    return replace(base, penalty_draw=factor * base.penalty_draw, penalty_round=factor * base.penalty_round)


class Learning:
    """Chooses the controller of each kind's votes, by what was learned from those before."""

    def __init__(
        self, settings: Settings, state: FileState | None, is_crowded: Callable[[], bool], cap: OverOneCap | None
    ) -> None:
        self._settings = settings
        self.cap = cap
        self._state = state
        self._kinds: OrderedDict[tuple[str, str], TrafficKey] = OrderedDict()
        self._log = SharedLog(state, "audits.jsonl", Audit.read) if state else None
        self._audits: deque[Audit] = deque(maxlen=MOST_AUDITS)
        self.spare = SpareDraws(is_crowded)
        self.topics = Topics(
            settings, SharedLog(state, "looks.jsonl", lambda row: TopicLook(**row)) if state else None, cap
        )
        self._keeper = Keeper("suffice-planner", self._share, "what was learned and audited can't be shared")
        self._planning: set[TrafficKey] = set()
        self._chance = random.Random()  # noqa: S311
        self._forecasts: dict[tuple[Controller, int], float | None] = {}

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Learn in here, from what was known before on; audits that are under way at the end are left."""
        async with self._keeper.open():
            if self._settings.vote == "shadow":
                voting = self._settings.sampling.voting
                await self._keeper.aside(self._foretell, (voting.controller, voting.budget))
            try:
                yield
            finally:
                await self.spare.close()

    def key(self, model: str | None, topic: str) -> TrafficKey:
        """The kind of a request."""
        name = (model or "", topic)
        kind = self._kinds.get(name)
        if kind is None:
            kind = self._kinds[name] = TrafficKey(*name, self._settings, self.cap)
            if len(self._kinds) > MOST_KINDS:
                _, oldest = self._kinds.popitem(last=False)
                self._keeper.submit(self._sync_kind, oldest)
            self._keeper.submit(self._sync_kind, kind)
        self._kinds.move_to_end(name)
        return kind

    def controller(self, kind: TrafficKey, chosen: Controller, budget: int, learn: bool) -> Controller:
        """Return a vote's controller: for plans, the learned one that is ready, at the prices in force."""
        if self.cap and self.cap.exhausted:
            return ONCE
        if not isinstance(chosen, Plan) or chosen.prior != UNIVERSAL:
            return chosen
        setting = (chosen, budget)
        if setting not in kind.plans and len(kind.plans) < MOST_PLANS:
            kind.plans[setting] = chosen
        self._plan_if_outdated(kind)
        ready = kind.plans.get(setting, chosen)
        return ready if learn or ready.prior == UNIVERSAL else chosen

    def forecast(self, kind: TrafficKey, chosen: Controller, budget: int) -> float | None:
        """Forecast the samples of a vote, by those before it, or else by typical questions.

        Until that is worked out for its setting, it is another setting's; None where there is none yet.
        """
        if len(kind.learner) >= HEADSTART:
            return kind.learner.mean_draws
        setting = (chosen, budget)
        if setting not in self._forecasts and len(self._forecasts) < MOST_KINDS:
            self._forecasts[setting] = None
            self._keeper.submit(self._foretell, setting)
        return self._forecasts.get(setting) or next(filter(None, self._forecasts.values()), None)

    def _foretell(self, setting: tuple[Controller, int]) -> None:
        self._forecasts[setting] = typical_draws(*setting)

    def ended(self, kind: TrafficKey, vote: Vote, server: Server, outcome: Outcome, learn: bool) -> None:
        """Learn from a vote that its tally has ended, and perhaps audit it."""
        cut_short = outcome.stop_reason in CUT_SHORT and outcome.samples > 0
        if outcome.stop_reason not in SETTLED and not cut_short:
            return
        if kind.samples and not cut_short:
            kind.samples.observe(outcome.samples)

        def learned() -> None:
            # Fields are not learned from: an object's are of many kinds.
            if learn and not cut_short and self._settings.learn and outcome.composed is None:
                kind.learner.observe(vote.tally)

        if self._chance.random() < self._settings.audit:
            # What is learned of it is learned when it is over: an audit is a full tally.
            self.spare.begin(server, partial(self._audit, vote, outcome, kind), learned)
        else:
            learned()
        self._plan_if_outdated(kind)

    def _plan_if_outdated(self, kind: TrafficKey) -> None:
        """Make plans anew where there is news, or the price has changed."""
        factor = kind.factor
        in_force = all(_prices(plan) == _prices(priced(base, factor)) for (base, _), plan in kind.plans.items())
        outdated = not in_force or (self._settings.learn and kind.learner.due)
        if outdated and kind not in self._planning:
            self._planning.add(kind)
            self._keeper.submit(self._plan, kind)

    def _plan(self, kind: TrafficKey) -> None:
        """Make the plans of a kind, in the planner's thread; each is used when it is ready."""
        try:
            if self._settings.learn and kind.learner.due:
                kind.made.clear()
            factor = kind.factor
            for setting in list(kind.plans):
                if (setting, factor) not in kind.made:
                    kind.made[setting, factor] = self._made(kind, *setting, factor)
                kind.plans[setting] = kind.made[setting, factor]
        except Exception:  # votes go on with the plans that there are
            traceback.print_exc()
        finally:
            self._planning.discard(kind)

    def _made(self, kind: TrafficKey, base: Plan, budget: int, factor: float) -> Plan:
        """A plan by what was learned, at a price, ready to decide."""
        plan = priced(base, factor)
        if self._settings.learn and kind.learner.seen:
            plan = kind.learner.plan(plan, budget)
        plan.next_round(Tally(budget))
        metrics.PLANS.inc()
        return plan

    async def _share(self) -> None:
        for kind in list(self._kinds.values()):
            await self._keeper.aside(self._sync_kind, kind)
        if self._log:
            self._take_in(await self._keeper.aside(self._log.news))
        self.topics.share()

    def _sync_kind(self, kind: TrafficKey) -> None:
        """Exchange what was learned of a kind with the file, if there is news."""
        if self._state is None or not self._settings.learn:
            return
        name = kept_in("learned", kind.model, kind.topic)
        try:
            if (kind.learner.seen, self._state.version(name)) != kind.kept:
                kind.learner.sync(partial(self._state.update, name))
                kind.kept = kind.learner.seen, self._state.version(name)
        except (OSError, OptionError) as error:
            self._keeper.complain(f"what was learned can't be kept: {error}")

    async def _audit(self, vote: Vote, outcome: Outcome, kind: TrafficKey, ready: Ready) -> bool:
        """Draw the rest of a vote's budget, and take the audit in, in the order of the file."""
        try:
            full = await draw_rest(vote, ready)
        except SufficeError:
            return False
        if full is None:
            return False
        metrics.AUDIT_TOKENS.inc(full.tokens - outcome.tokens)
        audit = Audit.of(outcome, full, kind.model, kind.topic)
        metrics.AUDITS.labels("yes" if audit.agreed else "no").inc()
        metrics.AUDITS_ONCE.labels("yes" if audit.once_agreed else "no").inc()
        if self._log is None:
            self._take_in([audit])
            return True
        try:
            await self._keeper.aside(self._log.append, audit)
            self._take_in(await self._keeper.aside(self._log.news))
        except OSError as error:
            self._keeper.complain(f"audits can't be kept: {error}")
            self._take_in([audit])
        return True

    def _take_in(self, audits: Iterable[Audit]) -> None:
        for audit in audits:
            self._audits.append(audit)
            kind = self.key(audit.model, audit.topic)
            if kind.agreement:
                kind.agreement.observe(audit.agreed)
                self._plan_if_outdated(kind)

    def summary(self) -> dict[str, Any]:
        """What audits prove, by model and topic, and what is in force."""
        by_kind: dict[tuple[str, str], list[Audit]] = {name: [] for name in self._kinds}
        for audit in self._audits:
            by_kind.setdefault((audit.model, audit.topic), []).append(audit)
        return {
            "share": self._settings.audit,
            "pending": self.spare.pending,
            "dropped": self.spare.dropped,
            "all": prove(self._audits),
            "kinds": [
                {"model": name[0], "topic": name[1], **prove(audits), **self._in_force(self._kinds.get(name))}
                for name, audits in by_kind.items()
            ],
        }

    def _in_force(self, kind: TrafficKey | None) -> dict[str, Any]:
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
            "min_agreement": self._settings.min_agreement and self._settings.min_agreement / 100,
            "max_mean_samples": self._settings.max_mean_samples,
        }


def _prices(plan: Plan) -> tuple[float, float]:
    return plan.penalty_draw, plan.penalty_round
