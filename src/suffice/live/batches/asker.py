"""Asking questions, here or on another machine: a ledger keeps every response as it arrives."""

import asyncio
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import count, islice
from typing import Any, NamedTuple, Protocol

from suffice.controllers import question_random
from suffice.errors import CapReachedError, SampleError
from suffice.live.audits import Audit, draw_rest
from suffice.live.batches.questions import Asked
from suffice.live.draws import Draws, Failure, ServerDraws, Unfinished
from suffice.live.outcome import SETTLED, Outcome
from suffice.live.prompts import Messages, put
from suffice.live.sampling import Sampling
from suffice.live.servers.hosts import DrawRequest
from suffice.live.servers.retry import StatusError
from suffice.live.servers.server import Server
from suffice.live.vote import Vote, Voting
from suffice.response import Response
from suffice.tally import Tally

Line = dict[str, Any]


class LostError(Exception):
    """The shard that asked a question died; what arrived before is in the ledger."""


class Ledger(Protocol):
    """Keeps responses, and counts them and failures."""

    @property
    def exhausted(self) -> bool:
        """Whether a limit on spending is reached."""

    async def record(self, question: Asked, entry: Line) -> None:
        """Keep a response, as a journal has it; when this returns, it is kept."""

    async def fail(self, question: Asked, message: str, unreachable: bool) -> None:
        """Count a draw that failed, and whether it was for want of a server that answers."""


class Answered(NamedTuple):
    """An outcome as a line, and where it is not worth keeping a complaint, which may be empty."""

    line: Line
    complaint: str | None = None


class Shard(Protocol):
    """Asks the questions whose ids fall to it."""

    at_once: int
    """The most draws in flight at once."""
    weight: float
    """Its share of the questions, beside those of others."""

    async def collect(self, question: Asked, missing: Sequence[int], ledger: Ledger) -> None:
        """Bring in the draws of these numbers."""

    async def answer(
        self, question: Asked, there: Sequence[Response], ledger: Ledger, learned: Voting | None = None
    ) -> Answered | None:
        """Answer a question of which some responses are there; None where a limit on spending cut it short.

        Without `learned` the vote is held as the configuration says.
        """


@dataclass(frozen=True)
class BatchConfig:
    """What all questions of a batch have in common."""

    fields: Mapping[str, Any]
    prompt: Messages
    sampling: Sampling = field(default_factory=Sampling)
    keep_text: bool = True
    audit: float = 0.0
    """The share of the questions that is drawn to the full budget after the vote."""

    def request(self, question: Asked) -> dict[str, Any]:
        return {**self.fields, "messages": put(question.question, self.prompt)}

    def entries(self, question: Asked, responses: Sequence[Response]) -> list[Line]:
        """What a journal keeps of responses."""
        extractor = self.sampling.extractor.for_request(self.request(question)["messages"])
        less = {} if self.keep_text else dict.fromkeys(("text", "reasoning", "tool_calls"))
        return [{"extracted": extractor.extract(one), "response": one.to_json() | less} for one in responses]


class Recorder(Draws):
    """Draws whose responses are in the ledger before they are taken; known ones come first."""

    def __init__(
        self, config: BatchConfig, question: Asked, ledger: Ledger, draws: Draws, there: Iterable[Response]
    ) -> None:
        super().__init__()
        self._config = config
        self._question = question
        self._ledger = ledger
        self._draws = draws
        self._there = iter(there)
        self._recorded: deque[Response | Failure] = deque()

    @property
    def in_flight(self) -> int:
        return self.ready + self._draws.in_flight

    @property
    def unfinished(self) -> Unfinished:
        return self._draws.unfinished

    @property
    def ready(self) -> int:
        return len(self._recorded)

    @property
    def room(self) -> int:
        return self._draws.room

    def launch(self, draws: int, tally: Tally, *, single: bool = False, streamed: bool = False) -> list[int]:
        """Start so many draws, less those that are there."""
        there = list(islice(self._there, draws))
        self._recorded.extend(there)
        numbers = [response.draw for response in there]
        if draws > len(there):
            if self._ledger.exhausted:
                raise CapReachedError
            numbers += self._draws.launch(draws - len(there), tally, single=single, streamed=streamed)
        return numbers

    async def next(self) -> Response | Failure:
        if not self._recorded:
            await self._record()
        return self._recorded.popleft()

    async def _record(self) -> None:
        """Put what has arrived into the ledger, together: each would wait for the disk."""
        arrived = [await self._draws.next()]
        while self._draws.ready:
            arrived.append(await self._draws.next())
        for one in arrived:
            if isinstance(one, Failure):
                answers = isinstance(one.cause, StatusError) and one.cause.status < 500
                await self._ledger.fail(self._question, one.message, unreachable=not answers)
        responses = [one for one in arrived if isinstance(one, Response)]
        entries = await asyncio.to_thread(self._config.entries, self._question, responses)
        await asyncio.gather(*(self._ledger.record(self._question, entry) for entry in entries))
        self._recorded.extend(arrived)

    async def close(self) -> None:
        await self._draws.close()


class Asker:
    """A shard in this process: asks questions of a server."""

    weight = 1.0

    def __init__(self, server: Server, config: BatchConfig, voting: Voting | None = None) -> None:
        self._server = server
        self._config = config
        self._voting = voting or config.sampling.voting
        self.at_once = server.limiter.limit

    async def collect(self, question: Asked, missing: Sequence[int], ledger: Ledger) -> None:
        # Each draw is a request of its own, so that every count of tokens is exact.
        request = DrawRequest(self._config.request(question), single=True, signals=self._config.sampling.signals)
        follow_up = self._config.sampling.extractor.follow_up
        drawn = ServerDraws(self._server.for_question(), request, iter(missing), follow_up)
        draws = Recorder(self._config, question, ledger, drawn, ())
        try:
            draws.launch(len(missing), Tally())
            while draws.in_flight:
                await draws.next()
        finally:
            await draws.close()

    async def answer(
        self, question: Asked, there: Sequence[Response], ledger: Ledger, learned: Voting | None = None
    ) -> Answered | None:
        vote = (learned or self._voting).begin(
            self._server.for_question(),
            self._config.request(question),
            question_random(0, question.id),
            through=lambda draws: Recorder(self._config, question, ledger, draws, there),
            numbers=count(max((response.draw for response in there), default=-1) + 1),
        )
        complaint = None
        try:
            outcome = await vote.outcome(self._config.sampling.deadline_seconds)
        except CapReachedError:
            return None
        except SampleError as error:
            outcome, complaint = error.outcome, ""
        told, graded = outcome.to_json(), vote.ballot.graded(question.gold)
        if "right" in told:  # the probability: what gold says of the answer is beside it
            graded["graded"] = graded.pop("right")
        line = {"id": question.id, **graded, **told}
        if complaint is None and not outcome.samples:
            complaint = "no response before the deadline"
        audited = question_random(1, question.id).random() < self._config.audit
        if audited and outcome.stop_reason in SETTLED:
            line["audit"] = await _audit(question, vote, outcome)
        return Answered(line, complaint)


async def _audit(question: Asked, vote: Vote, outcome: Outcome) -> Line | None:
    """Compare the vote with the full budget; None where that could not be drawn."""
    try:
        full = await draw_rest(vote, at_once=outcome.budget)
    except CapReachedError:
        return None
    if full is None:
        return None
    right = vote.ballot.graded(question.gold)["right"]
    return asdict(Audit.of(outcome, full)) | {"answer_full": full.answer, "right_full": right}
