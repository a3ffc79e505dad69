"""Learning within a batch: which plan serves a question, so that a batch that is killed and resumed decides the same.

Questions come in generations, by their place in the file. Those of one generation are served by a plan that has learned
from all before the one before, in the order of the file: so the next can begin while the last are still under way, and
who finished first makes no difference. What could not be learned from is in the journal before a plan is used.
"""

import asyncio
from bisect import bisect_right
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace

from suffice.errors import OptionError
from suffice.live.ballots import in_thread
from suffice.live.outcome import SETTLED
from suffice.live.vote import Voting
from suffice.planning import Plan
from suffice.planning.learning import FEWEST, FIRST, LAST, Learner, Partition

LAG = 2
"""A generation's plan has learned from all up to so many generations before."""


def generations(questions: int) -> list[int]:
    """Where each generation begins."""
    starts = [0]
    while starts[-1] < questions:
        starts.append(starts[-1] + min(max(FIRST, starts[-1] // 4), LAST))
    return starts[:-1] or [0]


def lesson_of(outcome: Mapping[str, object]) -> Partition | None:
    """The partition of a vote that a plan ended, by its outcome; None where there is nothing to learn."""
    votes, samples = outcome.get("votes"), outcome.get("samples")
    if not isinstance(votes, dict) or not isinstance(samples, int) or samples < FEWEST:
        return None
    if outcome.get("stop_reason") not in SETTLED:
        return None
    counts = sorted(votes.values(), reverse=True)
    return (*counts, *(1,) * (samples - sum(counts)))


class Lessons:
    """The plans of a batch's generations, each made when it is first needed."""

    def __init__(
        self,
        voting: Voting,
        questions: Sequence[str],
        lessons: dict[str, Partition | None],
        left_out: Mapping[int, list[str]],
        record: Callable[[int, list[str]], Awaitable[None]],
    ) -> None:
        if not isinstance(voting.controller, Plan) or voting.extractor.structure:
            raise OptionError("is for the controller plan, and for answers without fields", "learn")
        self._voting = voting
        self._base = voting.controller
        self._lessons = lessons
        self._left_out = left_out
        self._record = record
        starts = generations(len(questions))
        self._generations = [list(questions[start:end]) for start, end in zip(starts, [*starts[1:], None], strict=True)]
        self._of = {name: bisect_right(starts, place) - 1 for place, name in enumerate(questions)}
        self._open = [{name for name in members if name not in lessons} for members in self._generations]
        self._ended = asyncio.Event()
        self._learner = Learner()
        self._plans: list[Plan] = []
        self._turn = asyncio.Lock()

    async def voting(self, question: str) -> Voting:
        generation = self._of[question]
        if generation >= len(self._plans):
            async with self._turn:  # plans are made in order, since each learns from those before
                while generation >= len(self._plans):
                    self._plans.append(await self._next_plan())
        return replace(self._voting, controller=self._plans[generation])

    def end(self, question: str) -> None:
        """Note that a vote is over, for now at least; without a lesson it has failed."""
        self._open[self._of[question]].discard(question)
        self._ended.set()

    async def _next_plan(self) -> Plan:
        generation = len(self._plans)
        if generation < LAG:
            return self._base
        while self._open[generation - LAG]:
            self._ended.clear()
            await self._ended.wait()
        members = self._generations[generation - LAG]
        left_out = self._left_out.get(generation)
        if left_out is None:
            left_out = [name for name in members if self._lessons.get(name) is None]
            await self._record(generation, left_out)
        for name in members:
            lesson = self._lessons.get(name)
            if lesson and name not in left_out:
                self._learner.observe_partition(lesson)
        return await in_thread(self._learner.plan, self._base, self._voting.budget)
