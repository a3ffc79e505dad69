"""The probability that answers are right, by model and topic, learned from feedback that all workers share.

Replies are remembered by their ids in a few files of bounded length, and so is what is said of them; no text is.
"""

import asyncio
import hashlib
import json
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import Any

from suffice.gateway.errors import GatewayError
from suffice.gateway.operations import metrics
from suffice.gateway.operations.state import SYNC_SECONDS, Change, FileState, Keeper, kept_in
from suffice.gateway.settings import Settings
from suffice.live import Outcome
from suffice.live.sampling import NEVER, threshold_of
from suffice.normalise import normalise
from suffice.planning.feedback import Feedback
from suffice.planning.right import Calibration

MOST_KINDS = 64
"""Cache size (LRU) in models and topics. Evicted entries stay on disk."""

BUCKETS, EACH = 64, 256
"""The number of files with replies, and of replies in each: the last ones."""

Record = dict[str, Any]


class AssuredKind:
    """Requests that are alike, for one model under one topic: their feedback, and what follows from it."""

    def __init__(self, base: Calibration, risk: float | None) -> None:
        self._base = base
        self._risk = risk
        self.promised = inf
        """The score from which on answers were last promised to be right."""
        self.version: int | None = None
        """Of what is kept, when it was last read."""
        self.feedback = Feedback()
        self._apply(base)

    def take_in(self, feedback: Feedback) -> None:
        """Learn from it: in a thread, and swapped in whole."""
        if feedback.broken > self.feedback.broken:
            self.promised = inf
        self._apply(feedback.applied_to(self._base))
        self.feedback = feedback
        metrics.RISK_EVIDENCE.set(feedback.promise.evidence if feedback.promise else 1.0)

    def _apply(self, calibration: Calibration) -> None:
        threshold = None if self._risk is None else threshold_of(calibration, self._risk)
        if threshold is not None and threshold <= 1:
            self.promised = calibration.score_at(threshold)
        self.in_force = calibration, threshold

    def summary(self) -> dict[str, Any]:
        promise, (calibration, threshold) = self.feedback.promise, self.in_force
        return {
            "labels": len(calibration.scores),
            "feedback": len(self.feedback.labels),
            "risk": self._risk,
            "threshold": None if threshold == NEVER else threshold,
            "sure_answers": promise.answers if promise else 0,
            "sure_wrong": promise.wrong if promise else 0,
            "evidence": promise.evidence if promise else 1.0,
            "broken": self.feedback.broken,
        }


class Assurance:
    """The calibrations in force, and the replies that feedback may come for."""

    def __init__(self, settings: Settings, state: FileState | None) -> None:
        self._settings = settings
        self._state = state
        self._kinds: OrderedDict[tuple[str, str], AssuredKind] = OrderedDict()
        self._memory: dict[str, bytes] = {}
        """What files would hold, where there are none."""
        self._replies: OrderedDict[str, Record] = OrderedDict()
        """Those that no file knows yet."""
        self.keeper = Keeper("suffice-right", self._share, "feedback can't be kept")

    async def _kind(self, model: str | None, topic: str) -> AssuredKind | None:
        """Return the kind of a request, with its kept feedback; None if no calibration fits."""
        name = (model or "", topic)
        kind = self._kinds.get(name)
        if kind is None:
            rules = self._settings.calibrations
            fits = (one for one in rules if one.model in (None, model) and one.topic in (None, topic))
            if (rule := next(fits, None)) is None:
                return None
            kind = self._kinds[name] = AssuredKind(rule.calibration, self._settings.risk)
            if len(self._kinds) > MOST_KINDS:
                self._kinds.popitem(last=False)
        self._kinds.move_to_end(name)
        if self._state and kind.version is None:
            await self.keeper.share()
        return kind

    async def begin(self, model: str | None, topic: str) -> "AssuredVote | None":
        """Begin a vote with the calibration in force; None if none fits."""
        kind = await self._kind(model, topic)
        return AssuredVote(self, model or "", topic, *kind.in_force) if kind else None

    def remember(self, reply: str, record: Record) -> None:
        """Remember a reply, for feedback."""
        self._replies[reply] = record
        self._replies.move_to_end(reply)
        if len(self._replies) > BUCKETS * EACH:
            self._replies.popitem(last=False)

    async def take(self, caller: str, told: Any) -> dict[str, Any]:
        """Take in feedback on a reply; GatewayError if it is malformed, or on no reply of the caller's."""
        reply, right, gold = _read(told)
        name = _remembered_as(caller, reply)
        record = await self.keeper.aside(self._claim, name)
        if record is None and self._state:  # another worker may not have told yet
            await asyncio.sleep(SYNC_SECONDS)
            record = await self.keeper.aside(self._claim, name)
        if record is None:
            message = "no such reply is remembered for this key: it was too long ago, or no vote with a calibration"
            raise GatewayError(404, message, code="not_found")
        verdict = record["answer"] == _mark(gold) if right is None else right
        if record["told"]:
            return {"id": reply, "right": verdict, "taken": False}
        metrics.FEEDBACK.labels("yes" if verdict else "no", "yes" if record["sure"] else "no").inc()
        kind = await self._kind(record["model"], record["topic"])
        if kind is None:
            raise GatewayError(404, "there is no calibration for it any more", code="not_found")
        await self.keeper.aside(self._learn, kind, record, verdict)
        return {"id": reply, "right": verdict, "taken": True, "labels": len(kind.in_force[0].scores)}

    def summary(self) -> dict[tuple[str, str], dict[str, Any]]:
        return {name: kind.summary() for name, kind in self._kinds.items()}

    def _update(self, name: str, change: Change) -> None:
        if self._state:
            self._state.update(name, change)
        elif (changed := change(self._memory.get(name))) is not None:
            self._memory[name] = changed

    def _claim(self, reply: str) -> Record | None:
        """Return what is remembered of a reply, as it was before this feedback."""
        self._keep_replies()
        claimed: list[Record] = []

        def change(kept: bytes | None) -> bytes | None:
            records = _records(kept)
            if reply not in records:
                return None
            claimed.append(records[reply])
            return json.dumps(records | {reply: records[reply] | {"told": True}}).encode()

        self._update(_bucket(reply), change)
        return claimed[-1] if claimed else None

    def _learn(self, kind: AssuredKind, record: Record, right: bool) -> None:
        """Add feedback to that of its kind, which all workers share."""
        joined: list[Feedback] = []

        def change(kept: bytes | None) -> bytes:
            # It counts for or against what was promised, even if labels no longer prove it.
            counts = record["sure"] or record["score"] >= kind.promised
            joined.append(Feedback.read(kept).joined_by(record["score"], right, counts, self._settings.risk))
            return joined[-1].to_bytes()

        self._update(kept_in("feedback", record["model"], record["topic"]), change)
        if not joined[-1].fresh:  # it broke the promise just now: what other workers and times broke is counted there
            metrics.RISK_BROKEN.inc()
        kind.take_in(joined[-1])

    async def _share(self) -> None:
        await self.keeper.aside(self._keep_replies)
        for name in list(self._kinds):
            await self.keeper.aside(self._sync_kind, name)

    def _keep_replies(self) -> None:
        """Write down the replies that no file knows yet."""
        new: dict[str, dict[str, Record]] = {}
        for reply in list(self._replies):
            if record := self._replies.pop(reply, None):
                told = {**record, "answer": _mark(record["answer"]), "told": False}
                new.setdefault(_bucket(reply), {})[reply] = told
        for name, records in new.items():
            self._update(name, partial(_joined, records))

    def _sync_kind(self, name: tuple[str, str]) -> None:
        """Take in what other workers were told of a kind."""
        kind, file = self._kinds.get(name), kept_in("feedback", *name)
        if kind is None or self._state is None or self._state.version(file) == kind.version:
            return
        kind.version = self._state.version(file)
        found: list[Feedback] = []

        def look(kept: bytes | None) -> None:
            found.append(Feedback.read(kept))

        self._state.update(file, look)
        if found[-1] != kind.feedback:
            kind.take_in(found[-1])


@dataclass(frozen=True)
class AssuredVote:
    """A vote with a calibration, which stays the same until it has ended."""

    assurance: Assurance
    model: str
    topic: str
    calibration: Calibration
    threshold: float | None

    def remember(self, reply: str, caller: str, outcome: Outcome) -> None:
        """Remember its reply, for feedback from the caller."""
        if outcome.right is not None:
            score = self.calibration.score_at(outcome.right)
            about = {"model": self.model, "topic": self.topic}
            told = {"score": score, "sure": outcome.sure, "answer": outcome.answer}
            self.assurance.remember(_remembered_as(caller, reply), about | told)


def _read(told: Any) -> tuple[str, bool | None, str]:
    """Return the reply's id, and whether it is right, or the right answer."""
    if not isinstance(told, Mapping) or not isinstance(told.get("id"), str):
        raise GatewayError(400, '"id" must be the id of a reply', param="id")
    right, gold = told.get("right"), told.get("gold")
    if (right is None) == (gold is None):
        raise GatewayError(400, 'give "right", true or false, or "gold", the right answer', param="right")
    if right is not None and not isinstance(right, bool):
        raise GatewayError(400, '"right" must be true or false', param="right")
    if gold is not None and (isinstance(gold, bool) or not isinstance(gold, str | int | float)):
        raise GatewayError(400, '"gold" must be a text or a number', param="gold")
    if gold is not None and not str(gold).strip():
        raise GatewayError(400, '"gold" is empty: give the right answer', param="gold")
    return told["id"], right, str(gold)


def _remembered_as(caller: str, reply: str) -> str:
    """Return the name of a reply among all callers': upstreams may repeat ids."""
    return f"{caller}\n{reply}"


def _mark(answer: str | None) -> str:
    """Return a digest of an answer, to tell whether another is the same."""
    return hashlib.sha256(((answer and normalise(answer)) or answer or "").encode()).hexdigest()[:32]


def _bucket(reply: str) -> str:
    """The file that a reply is remembered in."""
    return f"replies/{int(hashlib.sha256(reply.encode()).hexdigest()[:8], 16) % BUCKETS}.json"


def _records(kept: bytes | None) -> dict[str, Record]:
    records = json.loads(kept) if kept else {}
    if not isinstance(records, dict):
        raise ValueError("these are no replies")
    return records


def _joined(new: dict[str, Record], kept: bytes | None) -> bytes:
    """The replies of a file with newer ones, as many as it may hold."""
    records = {reply: known for reply, known in _records(kept).items() if reply not in new} | new
    return json.dumps(dict(list(records.items())[-EACH:])).encode()
