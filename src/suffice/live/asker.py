"""Asking questions, one at a time: every response is told to a ledger as it arrives, here or from another machine."""

import asyncio
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, islice
from typing import Any, NamedTuple, Protocol

from suffice.answers import Extractor
from suffice.controllers import question_random
from suffice.errors import CapReachedError, SampleError
from suffice.live.audits import Audit
from suffice.live.draws import Draws, Failure, ServerDraws
from suffice.live.facts import Asking
from suffice.live.outcome import SETTLED, Outcome
from suffice.live.prompts import Messages, put
from suffice.live.questions import Asked
from suffice.live.server import Server, StatusError
from suffice.live.vote import Vote, Voting
from suffice.response import Response

Line = dict[str, Any]

NOT_KEPT = {"text": None, "reasoning": None, "tool_calls": None}


class LostError(Exception):
    """Whoever asked a question is gone; what arrived before is in the ledger."""


class Ledger(Protocol):
    """Where responses and failures are told to."""

    @property
    def exhausted(self) -> bool:
        """Whether a limit on spending is reached."""

    async def record(self, question: Asked, entry: Line) -> None:
        """Take a response, as a journal has it; when this returns, it is kept."""

    def fail(self, question: Asked, message: str, unreachable: bool) -> None:
        """Take a draw that failed, and whether it was for want of a server that answers."""


class Answered(NamedTuple):
    """An outcome as a line; with a complaint, which may be empty, where there is none that is worth keeping."""

    line: Line
    complaint: str | None = None


class Shard(Protocol):
    """One who asks questions: each question has one of them, by its id, and the weight is the share of questions."""

    @property
    def at_once(self) -> int:
        """How many of its draws may be in flight at once."""

    @property
    def weight(self) -> float:
        """Its share of the questions, beside those of others."""

    async def collect(self, question: Asked, missing: Sequence[int], ledger: Ledger) -> None:
        """Bring in the draws of these numbers."""

    async def answer(
        self, question: Asked, there: Sequence[Response], ledger: Ledger, learned: Voting | None = None
    ) -> Answered | None:
        """Answer a question of which these responses are there already; None where a limit on spending cut it short.

        How the vote is held is as all are, or as has been learned from others.
        """


@dataclass(frozen=True)
class Terms:
    """How questions are asked: what is the same for all of them."""

    fields: Mapping[str, Any]
    prompt: Messages
    extractor: Extractor
    keep_text: bool = True
    voting: Any = None
    """How votes are held, where there are any."""
    deadline_seconds: float | None = None
    audit: float = 0.0
    """The share of the questions that is drawn to the full budget after the vote."""
    signals: bool = False
    """Whether responses are collected with their signals."""

    def request(self, question: Asked) -> dict[str, Any]:
        """The fields of a request."""
        return {**self.fields, "messages": put(question.question, self.prompt)}

    async def entry(self, question: Asked, response: Response) -> Line:
        """What a journal keeps of a response."""
        extractor = self.extractor.for_request(self.request(question)["messages"])
        extracted = await asyncio.to_thread(extractor.extract, response)
        return {"extracted": extracted, "response": response.to_json() | ({} if self.keep_text else NOT_KEPT)}


class Recorder:
    """Draws whose responses are in the ledger before they are taken; those that are there already come first."""

    def __init__(self, terms: Terms, question: Asked, ledger: Ledger, draws: Draws, there: Iterable[Response]) -> None:
        self._terms = terms
        self._question = question
        self._ledger = ledger
        self._draws = draws
        self._there = deque(there)
        self._ready = 0

    @property
    def in_flight(self) -> int:
        """How many draws were launched and not yet taken."""
        return self._ready + self._draws.in_flight

    @property
    def arriving_tokens(self) -> int:
        """What the draws in flight have generated so far, where they stream."""
        return self._draws.arriving_tokens

    @property
    def cancelled_tokens(self) -> int:
        """What draws had generated that were ended before they arrived."""
        return self._draws.cancelled_tokens

    @property
    def runs_on(self) -> bool:
        """Whether draws that are ended may run on, on the server."""
        return self._draws.runs_on

    def launch(self, draws: int) -> list[int]:
        """Start so many draws, less those that are there."""
        ready = min(draws, len(self._there) - self._ready)
        numbers = [response.draw for response in islice(self._there, self._ready, self._ready + ready)]
        self._ready += ready
        if draws > ready:
            if self._ledger.exhausted:
                raise CapReachedError
            numbers += self._draws.launch(draws - ready)
        return numbers

    async def next(self) -> Response | Failure:
        """Wait for the next draw to arrive, and take it."""
        if self._ready:
            self._ready -= 1
            return self._there.popleft()
        arrived = await self._draws.next()
        if isinstance(arrived, Failure):
            answers = isinstance(arrived.cause, StatusError) and arrived.cause.status < 500
            self._ledger.fail(self._question, arrived.message, unreachable=not answers)
        else:
            await self._ledger.record(self._question, await self._terms.entry(self._question, arrived))
        return arrived

    async def close(self) -> None:
        """End what is in flight, at once."""
        await self._draws.close()


class Asker:
    """A shard in this process: asks questions of a server."""

    weight = 1.0

    def __init__(self, server: Server, terms: Terms) -> None:
        self._server = server
        self._terms = terms

    @property
    def at_once(self) -> int:
        """How many draws may be in flight at once."""
        return self._server.limiter.limit

    async def collect(self, question: Asked, missing: Sequence[int], ledger: Ledger) -> None:
        """Bring in the draws of these numbers."""
        # Each draw is a request of its own, so that every count of tokens is exact.
        asking = Asking(self._terms.request(question), single=True, signals=self._terms.signals)
        draws = Recorder(self._terms, question, ledger, ServerDraws(self._server.for_question(), asking, missing), ())
        try:
            draws.launch(len(missing))
            while draws.in_flight:
                await draws.next()
        finally:
            await draws.close()

    async def answer(
        self, question: Asked, there: Sequence[Response], ledger: Ledger, learned: Voting | None = None
    ) -> Answered | None:
        """Answer a question of which these responses are there already; None where a limit on spending cut it short."""
        vote = (learned or self._terms.voting).begin(
            self._server.for_question(),
            self._terms.request(question),
            question_random(0, question.id),
            through=lambda draws: Recorder(self._terms, question, ledger, draws, there),
            numbers=count(max((response.draw for response in there), default=-1) + 1),
        )
        try:
            outcome = await vote.outcome(self._terms.deadline_seconds)
        except CapReachedError:
            return None
        except SampleError as error:
            return Answered(_line(question, vote, error.outcome.to_json()), "")
        line = _line(question, vote, outcome.to_json())
        if not outcome.samples:
            return Answered(line, "no response before the deadline")
        audited = question_random(1, question.id).random() < self._terms.audit
        if audited and outcome.stop_reason in SETTLED:
            line["audit"] = await _audit(question, vote, outcome)
        return Answered(line)


async def _audit(question: Asked, vote: Vote, outcome: Outcome) -> Line | None:
    """What the full budget elects, beside what the vote did; nothing where it could not be drawn."""
    try:
        full = await vote.rest(at_once=outcome.budget)
    except CapReachedError:
        full = None
    if full is None:
        return None
    right = vote.ballot.graded(question.gold)["right"]
    return Audit.of(outcome, full).to_json() | {"answer_full": full.answer, "right_full": right}


def _line(question: Asked, vote: Vote, outcome: Line) -> Line:
    return {"id": question.id, **vote.ballot.graded(question.gold), **outcome}
