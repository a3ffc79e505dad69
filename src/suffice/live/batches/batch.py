"""Many questions: collecting a pool and answering a file, with a journal of what arrived."""

import asyncio
import json
import math
import zlib
from array import array
from bisect import bisect
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from suffice.errors import CapReachedError, GaveUpError, OptionError
from suffice.jsonl import quoted
from suffice.live.ballots import read_gold
from suffice.live.batches.asker import BatchConfig, Line, LostError, Shard
from suffice.live.batches.journal import Journal
from suffice.live.batches.lessons import Lessons, lesson_of
from suffice.live.batches.questions import Asked
from suffice.planning.learning import Partition
from suffice.pools.pool import signal_columns
from suffice.response import Response
from suffice.settings import setting

FEWEST_FAILURES = 10
"""So many draws in a row must fail before all is given up."""


@dataclass
class Spent:
    """What the work has taken so far, and what it may."""

    price_per_million_tokens: float = setting(0.0, "What tokens of responses cost.")
    price_per_million_prompt_tokens: float = setting(0.0, "What tokens of prompts cost.")
    max_tokens_total: int | None = setting(
        None, "Start nothing more once so many tokens, prompts and all, are spent.", "N"
    )
    max_cost: float | None = setting(None, "Start nothing more once so much money is spent.", "N")
    prices: Mapping[str, float] = field(default_factory=dict)
    """Of a million tokens of responses, by voter of a panel."""
    responses: int = 0
    cut_off: int = 0
    """Responses that reached the most tokens before they gave an answer."""
    prompt_tokens: int = 0
    tokens: int = 0
    paid: float = 0.0
    """For voters' responses, at their own prices."""
    failures: list[str] = field(default_factory=list)
    _failed_in_a_row: int = 0
    _failing: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        for name in ("price_per_million_tokens", "price_per_million_prompt_tokens", "max_tokens_total", "max_cost"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < math.inf:
                raise OptionError(f"must be 0 or more, not {value:g}", name)

    @property
    def cost(self) -> float:
        responses = self.price_per_million_tokens * self.tokens
        return self.paid + (responses + self.price_per_million_prompt_tokens * self.prompt_tokens) / 1e6

    @property
    def exhausted(self) -> bool:
        tokens = self.tokens + self.prompt_tokens
        too_many = self.max_tokens_total is not None and tokens >= self.max_tokens_total
        return too_many or (self.max_cost is not None and self.cost >= self.max_cost)

    def add(self, response: Response) -> None:
        self.responses += 1
        self.prompt_tokens += response.prompt_tokens
        self.tokens += response.tokens or 0
        self.paid += self.prices.get(response.voter or "", 0.0) * (response.tokens or 0) / 1e6
        self._failed_in_a_row = 0
        self._failing.clear()

    def fail(self, message: str, question: str, at_once: int, unreachable: bool) -> None:
        """Count a draw that failed, and give up where they all do, question after question.

        Failures of one question give up no others, unless the server can't be reached at all.
        """
        self.failures.append(message)
        self._failing.add(question)
        self._failed_in_a_row += unreachable
        if max(self._failed_in_a_row, len(self._failing)) >= max(FEWEST_FAILURES, at_once):
            raise GaveUpError(f"nothing but failures, the last with: {message}; run again to go on")


class Batch:
    """Questions that share a journal, and those who ask them; it is the ledger of these."""

    def __init__(
        self,
        shards: Sequence[Shard],
        config: BatchConfig,
        journal: Journal,
        spent: Spent,
        progress: Callable[[int], None] = lambda steps: None,
    ) -> None:
        self.spent = spent
        self._shards = shards
        self._config = config
        self._journal = journal
        self._progress = progress
        self._step = 0
        # Of each question's responses no text is kept, only where it is in the journal.
        self._places: dict[str, array[int]] = defaultdict(lambda: array("q"))
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
                    self._remember(entry["id"], place, entry)
        except (TypeError, LookupError):
            raise OptionError(f"{journal.path}: there is a line in it that is no journal's; move it away") from None

    @property
    def exhausted(self) -> bool:
        return self.spent.exhausted

    async def record(self, question: Asked, entry: Line) -> None:
        place = await self._add(question, entry)
        self._remember(question.id, place, entry)
        self._progress(self._step)

    async def fail(self, question: Asked, message: str, unreachable: bool) -> None:
        self.spent.fail(message, question.id, sum(shard.at_once for shard in self._shards), unreachable)

    async def _add(self, question: Asked, entry: Line) -> int:
        return await self._journal.add({"id": question.id, "question": question.digest, **entry})

    def _remember(self, identity: str, place: int, entry: Line) -> None:
        response = Response(**entry["response"])
        self._places[identity].append(place)
        self.spent.add(response)
        self.spent.cut_off += entry["extracted"] is None and response.finish_reason == "length"

    def _remember_outcome(self, identity: str, place: int, outcome: Line) -> None:
        self._outcomes[identity] = place
        self._lessons[identity] = lesson_of(outcome)
        self._places.pop(identity, None)  # nobody asks for its responses any more

    def read(self, question: Asked) -> Iterator[tuple[Response, str | None]]:
        """Read what the journal has of a question: responses, and what was extracted from each."""
        for place in self._places[question.id]:
            entry = self._journal.at(place)
            yield Response(**entry["response"]), entry["extracted"]

    async def collect(self, questions: Sequence[Asked], samples: int) -> Iterator[Line]:
        """Draw so many responses to each question; return the pool's lines of those that have them all."""
        self._check_same(questions)
        self._progress(self.spent.responses)
        self._step = 1

        def wanting(question: Asked) -> bool:
            return len(self._places.get(question.id, ())) < samples

        async def work(question: Asked, shard: Shard) -> None:
            missing = sorted(set(range(samples)) - {response.draw for response, _ in self.read(question)})
            await shard.collect(question, missing, self)

        await self._each(questions, wanting, work, lambda limit: math.ceil(limit / samples) + 1)
        return (self._pool_line(one) for one in questions if not wanting(one))

    def _pool_line(self, question: Asked) -> Line:
        """A question's line in the pool, with its answers by the numbers of the draws."""
        structured = self._config.sampling.extractor.structure
        keys = self._config.sampling.extractor.keys()
        read = sorted(self.read(question), key=lambda one: one[0].draw)
        responses = [response for response, _ in read]
        answers: list[Any] = [keys.key(extracted) for _, extracted in read]
        gold: Any = keys.find(question.gold)
        if structured:
            answers = [answer and json.loads(answer) for answer in answers]
            gold = read_gold(question.gold)
        tokens = [response.tokens for response in responses]
        line: Line = {"id": question.id, "gold": gold, "answers": answers, "tokens": tokens}
        line["question"] = question.question
        if structured and structured.ignore:
            line["ignore"] = list(structured.ignore)
        if self._config.sampling.signals:
            signals = signal_columns(response.signals for response in responses)
            line |= {"signals": signals} if signals else {}
        if self._config.keep_text:
            line["texts"] = [response.text for response in responses]
        return line

    async def answer(self, questions: Sequence[Asked], learn: bool = False) -> Iterator[Line]:
        """Answer each question; return the outcomes of those that no limit on spending cut short."""
        self._check_same(questions)
        lessons = None
        if learn:
            names = [question.id for question in questions]
            voting = self._config.sampling.voting
            lessons = Lessons(voting, names, self._lessons, self._left_out, self._leave_out)
        self._progress(len(self._outcomes))
        failed: dict[str, Line] = {}

        async def work(question: Asked, shard: Shard) -> None:
            try:
                learned = await lessons.voting(question.id) if lessons else None
            except CapReachedError:
                return
            there = [response for response, _ in self.read(question)]
            answered = await shard.answer(question, there, self, learned)
            if answered and answered.complaint is None:
                place = await self._add(question, {"outcome": answered.line})
                self._remember_outcome(question.id, place, answered.line)
                self._progress(1)
            elif answered:
                failed[question.id] = answered.line
                self.spent.failures += filter(None, [answered.complaint])
            if lessons:
                lessons.end(question.id)

        await self._each(questions, lambda question: question.id not in self._outcomes, work, lambda limit: limit)
        return self._outcome_lines(questions, failed)

    def _outcome_lines(self, questions: Sequence[Asked], failed: Mapping[str, Line]) -> Iterator[Line]:
        for question in questions:
            if question.id in self._outcomes:
                yield self._journal.at(self._outcomes[question.id])["outcome"]
            elif question.id in failed:
                yield failed[question.id]

    async def _leave_out(self, generation: int, names: list[str]) -> None:
        if self.spent.exhausted:  # what was not begun may be yet: it isn't left out for good
            raise CapReachedError
        await self._journal.add({"generation": generation, "left_out": names})

    def _check_same(self, questions: Sequence[Asked]) -> None:
        """Refuse questions that are not those of the journal; new ones are new work."""
        left = dict(self._digests)
        changed = [one.id for one in questions if left and left.pop(one.id, one.digest) != one.digest]
        if changed or left:
            change = "is another question now" if changed else "is no longer asked"
            first = quoted([*changed, *left][0])
            raise OptionError(
                f"{self._journal.path} was begun with other questions: {first} {change}; "
                "go on with those, or use another output"
            )

    async def _each(
        self,
        questions: Sequence[Asked],
        wanting: Callable[[Asked], bool],
        work: Callable[[Asked, Shard], Awaitable[None]],
        at_once: Callable[[int], int],
    ) -> None:
        """Work on the questions in order, so many at once in each shard that no server is idle.

        A question that a shard lost goes on from what the journal has.
        """
        shares = self._shared_out(questions, wanting)

        async def worker(shard: Shard, waiting: deque[int]) -> None:
            while waiting:
                question = questions[waiting.popleft()]
                while wanting(question):
                    with suppress(LostError):
                        await work(question, shard)
                        break

        try:
            async with asyncio.TaskGroup() as group:
                for shard, waiting in zip(self._shards, shares, strict=True):
                    for _ in range(min(at_once(shard.at_once), len(waiting))):
                        group.create_task(worker(shard, waiting))
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None

    def _shared_out(self, questions: Sequence[Asked], wanting: Callable[[Asked], bool]) -> list[deque[int]]:
        """The places of the questions of each shard, which is chosen by a question's id alone."""
        bounds = list(accumulate(shard.weight for shard in self._shards))
        shares = [deque[int]() for _ in self._shards]
        for place, question in enumerate(questions):
            if wanting(question):
                chance = zlib.crc32(question.id.encode()) / (1 << 32)
                shares[bisect(bounds, chance * bounds[-1], hi=len(bounds) - 1)].append(place)
        return shares
