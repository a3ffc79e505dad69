"""Many questions on one server: collecting a pool, and answering a file of questions."""

import asyncio
import json
import math
from array import array
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count, islice
from typing import Any

from suffice.answers import Extractor, Keys
from suffice.controllers import question_random
from suffice.errors import CapReachedError, GaveUpError, OptionError, SampleError
from suffice.jsonl import quoted
from suffice.live.audits import Audit
from suffice.live.ballots import read_gold
from suffice.live.draws import Draws, Failure, ServerDraws
from suffice.live.facts import Asking
from suffice.live.journal import Journal
from suffice.live.lessons import Lessons, lesson_of
from suffice.live.outcome import Outcome
from suffice.live.prompts import Messages, put
from suffice.live.questions import Asked
from suffice.live.server import Server, StatusError
from suffice.live.vote import Vote, Voting
from suffice.planning.learning import Partition
from suffice.response import Response

FEWEST_FAILURES = 10
"""So many draws in a row must fail before all is given up."""

Line = dict[str, Any]


@dataclass
class Spent:
    """What the work has taken so far, and what it may."""

    price: float = 0.0
    """Of a million tokens of responses."""
    prompt_price: float = 0.0
    """Of a million tokens of prompts."""
    max_tokens: int | None = None
    max_cost: float | None = None
    responses: int = 0
    prompt_tokens: int = 0
    tokens: int = 0
    failures: list[str] = field(default_factory=list)
    _failed_in_a_row: int = 0
    _failing: set[str] = field(default_factory=set)

    @property
    def cost(self) -> float:
        """The price of all tokens."""
        return (self.price * self.tokens + self.prompt_price * self.prompt_tokens) / 1e6

    @property
    def exhausted(self) -> bool:
        """Whether a limit is reached."""
        tokens = self.tokens + self.prompt_tokens
        too_many = self.max_tokens is not None and tokens >= self.max_tokens
        return too_many or (self.max_cost is not None and self.cost >= self.max_cost)

    def add(self, response: Response) -> None:
        """Count a response."""
        self.responses += 1
        self.prompt_tokens += response.prompt_tokens
        self.tokens += response.tokens or 0
        self._failed_in_a_row = 0
        self._failing.clear()

    def fail(self, failure: Failure, question: str, at_once: int) -> None:
        """Count a draw that failed, and give up where they all do, question after question.

        What a server says about one question is no reason to give up others; that it can't be reached at all is.
        """
        self.failures.append(failure.message)
        self._failing.add(question)
        self._failed_in_a_row += not isinstance(failure.cause, StatusError) or failure.cause.status >= 500
        if max(self._failed_in_a_row, len(self._failing)) >= max(FEWEST_FAILURES, at_once):
            raise GaveUpError(f"nothing but failures, the last with: {failure.message}; run again to go on")


@dataclass
class Drawn:
    """What the journal has of a question: no text, only where it is."""

    places: "array[int]" = field(default_factory=lambda: array("q"))
    draws: "array[int]" = field(default_factory=lambda: array("q"))

    def add(self, place: int, draw: int) -> None:
        """One more response, at that place in the file."""
        self.places.append(place)
        self.draws.append(draw)


class Recorder:
    """Draws whose responses are in the journal before they are taken; those that are there already come first."""

    def __init__(self, batch: "Batch", question: Asked, draws: Draws, there: Iterable[Response]) -> None:
        self._batch = batch
        self._question = question
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
        """Start so many draws, less those that the journal has."""
        ready = min(draws, len(self._there) - self._ready)
        numbers = [response.draw for response in islice(self._there, self._ready, self._ready + ready)]
        self._ready += ready
        if draws > ready:
            if self._batch.spent.exhausted:
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
            self._batch.spent.fail(arrived, self._question.id, self._batch.server.limiter.limit)
        else:
            arrived = await self._batch.record(self._question, arrived)
        return arrived

    async def close(self) -> None:
        """End what is in flight, at once."""
        await self._draws.close()


class Batch:
    """Questions that share a server, the fields of its requests, a prompt and a journal."""

    def __init__(
        self,
        server: Server,
        fields: Mapping[str, Any],
        journal: Journal,
        prompt: Messages,
        extractor: Extractor,
        spent: Spent,
        *,
        keep_text: bool = True,
        progress: Callable[[int], None] = lambda steps: None,
    ) -> None:
        self.server = server
        self.spent = spent
        self._fields = fields
        self._journal = journal
        self._prompt = prompt
        self._extractor = extractor
        self._keep_text = keep_text
        self._progress = progress
        self._there: dict[str, Drawn] = defaultdict(Drawn)
        self._outcomes: dict[str, int] = {}
        self._digests: dict[str, str] = {}
        self._lessons: dict[str, Partition | None] = {}
        self._left_out: dict[int, list[str]] = {}
        try:
            for place, entry in journal.entries():
                if "generation" in entry:
                    self._left_out[entry["generation"]] = entry["left_out"]
                    continue
                self._digests[entry["id"]] = entry["question"]
                if "outcome" in entry:
                    self._remember_outcome(entry["id"], place, dict(entry["outcome"]))
                else:
                    _ = entry["extracted"]
                    self._remember(entry["id"], place, Response(**entry["response"]))
        except (TypeError, LookupError):
            raise OptionError(f"{journal.path}: there is a line in it that is no journal's; move it away") from None

    def _check_same(self, questions: Sequence[Asked]) -> None:
        """Refuse questions that were others when the journal was begun; new ones are new work."""
        now = {question.id: question.digest for question in questions}
        for identity, digest in self._digests.items():
            if now.get(identity) != digest:
                change = "is another question now" if identity in now else "is no longer asked"
                raise OptionError(
                    f"{self._journal.path} was begun with other questions: {quoted(identity)} {change}; "
                    "go on with those, or use another output"
                )

    async def record(self, question: Asked, response: Response) -> Response:
        """Put a response into the journal, and count it."""
        extractor = self._extractor.for_request(self._request(question)["messages"])
        extracted = await asyncio.to_thread(extractor.extract, response)
        kept = response.to_json() | ({} if self._keep_text else {"text": None, "reasoning": None, "tool_calls": None})
        place = await self._add(question, {"extracted": extracted, "response": kept})
        self._remember(question.id, place, response)
        return response

    async def _add(self, question: Asked, entry: Line) -> int:
        return await self._journal.add({"id": question.id, "question": question.digest, **entry})

    def _remember(self, identity: str, place: int, response: Response) -> None:
        self._there[identity].add(place, response.draw)
        self.spent.add(response)

    def _remember_outcome(self, identity: str, place: int, outcome: Line) -> None:
        self._outcomes[identity] = place
        self._lessons[identity] = lesson_of(outcome)
        self._there.pop(identity, None)  # nobody asks for its responses any more

    def read(self, question: Asked) -> Iterator[tuple[Response, str | None]]:
        """The responses to a question that the journal has, and what was extracted from each."""
        for place in self._there[question.id].places:
            entry = self._journal.at(place)
            yield Response(**entry["response"]), entry["extracted"]

    def _request(self, question: Asked) -> dict[str, Any]:
        return {**self._fields, "messages": put(question.question, self._prompt)}

    async def collect(self, questions: Sequence[Asked], samples: int) -> Iterator[Line]:
        """Draw so many responses to each question; the pool's lines, of the questions that have them all.

        Lines are read from the journal one by one, as those of outcomes are.
        """
        self._check_same(questions)
        self._progress(self.spent.responses)

        async def work(question: Asked) -> None:
            missing = sorted(set(range(samples)) - set(self._there[question.id].draws))
            asking = Asking(self._request(question), single=True)  # so that every count of tokens is exact
            draws = Recorder(self, question, ServerDraws(self.server.for_question(), asking, missing), ())
            try:
                draws.launch(len(missing))
                while draws.in_flight:
                    if isinstance(await draws.next(), Response):
                        self._progress(1)
            finally:
                await draws.close()

        wanting = [question for question in questions if len(self._there[question.id].draws) < samples]
        await _each(wanting, work, at_once=math.ceil(self.server.limiter.limit / samples) + 1)
        return (self._pool_line(one) for one in questions if len(self._there[one.id].draws) >= samples)

    def _pool_line(self, question: Asked) -> Line:
        """A question's line in the pool; its answers stand in the order in which they were asked for."""
        structured = self._extractor.structure
        keys = Keys(self._extractor.exact)
        read = sorted(self.read(question), key=lambda one: one[0].draw)
        responses = [response for response, _ in read]
        line: Line = {
            "id": question.id,
            "gold": None,
            "answers": [keys.key(extracted) for _, extracted in read],
            "tokens": [response.tokens for response in responses],
            "question": question.question,
        }
        line["gold"] = keys.find(question.gold)
        if structured:
            line["answers"] = [answer and json.loads(answer) for answer in line["answers"]]
            line["gold"] = read_gold(question.gold)
            line |= {"ignore": list(structured.ignore)} if structured.ignore else {}
        return line | ({"texts": [response.text for response in responses]} if self._keep_text else {})

    async def answer(
        self,
        questions: Sequence[Asked],
        voting: Voting,
        deadline_seconds: float | None = None,
        learn: bool = False,
        audit: float = 0.0,
    ) -> Iterator[Line]:
        """Answer each question; the outcomes of those that were begun and not cut short by a limit on spending.

        With `learn` the plan learns from the questions before; a share of `audit` is drawn to the full budget too.
        """
        self._check_same(questions)
        lessons = self._lessons_for(questions, voting) if learn else None
        self._progress(len(self._outcomes))
        failed: dict[str, Line] = {}

        async def work(question: Asked) -> None:
            if lessons is None:
                await hold(question, voting)
                return
            try:
                learned = await lessons.voting(question.id)
            except CapReachedError:
                return
            await hold(question, learned)
            lessons.end(question.id, self._lessons.get(question.id))

        async def hold(question: Asked, voting: Voting) -> None:
            there = [response for response, _ in self.read(question)]
            first = max((response.draw for response in there), default=-1) + 1
            vote = voting.begin(
                self.server.for_question(),
                self._request(question),
                question_random(0, question.id),
                through=lambda draws: Recorder(self, question, draws, there),
                numbers=count(first),
            )
            try:
                outcome = await vote.outcome(deadline_seconds)
            except CapReachedError:
                return
            except SampleError as error:
                failed[question.id] = self._line(question, vote, error.outcome.to_json())
                return
            line = self._line(question, vote, outcome.to_json())
            if not outcome.samples:  # the deadline came first
                failed[question.id] = line
                self.spent.failures.append("no response before the deadline")
                return
            if question_random(1, question.id).random() < audit and outcome.stop_reason in ("controller", "budget"):
                line["audit"] = await self._audit(question, vote, outcome)
            self._remember_outcome(question.id, await self._add(question, {"outcome": line}), line)
            self._progress(1)

        wanting = [question for question in questions if question.id not in self._outcomes]
        await _each(wanting, work, at_once=self.server.limiter.limit)
        return self._outcome_lines(questions, failed)

    @staticmethod
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

    def _outcome_lines(self, questions: Sequence[Asked], failed: Mapping[str, Line]) -> Iterator[Line]:
        for question in questions:
            if question.id in self._outcomes:
                yield self._journal.at(self._outcomes[question.id])["outcome"]
            elif question.id in failed:
                yield failed[question.id]

    def _lessons_for(self, questions: Sequence[Asked], voting: Voting) -> Lessons:
        async def record(generation: int, left_out: list[str]) -> None:
            if self.spent.exhausted:  # what was not begun may be yet: it isn't left out for good
                raise CapReachedError
            await self._journal.add({"generation": generation, "left_out": left_out})

        names = [question.id for question in questions]
        return Lessons(voting, names, dict(self._lessons), self._left_out, record)

    @staticmethod
    def _line(question: Asked, vote: Vote, outcome: Line) -> Line:
        return {"id": question.id, **vote.ballot.graded(question.gold), **outcome}


async def _each(questions: Iterable[Asked], work: Callable[[Asked], Awaitable[None]], at_once: int) -> None:
    """Work on the questions in order, so many at once: enough that the server is never idle."""
    waiting = deque(questions)

    async def worker() -> None:
        while waiting:
            await work(waiting.popleft())

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(min(at_once, len(waiting))):
                group.create_task(worker())
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
