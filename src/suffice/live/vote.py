"""A vote: a response joins the tally when it arrives, and the controller decides when its round is in."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any, TypeVar

import numpy as np

from suffice.answers import Extractor, Keys
from suffice.controllers import Controller
from suffice.errors import OptionError, SampleError
from suffice.flow import Flow
from suffice.live.draws import Draws, Failure, ServerDraws
from suffice.live.outcome import Outcome
from suffice.live.server import Asking, Server
from suffice.planning import confidence, is_ready, prepare
from suffice.response import Response
from suffice.tally import Tally


@dataclass(frozen=True)
class Voting:
    """How votes are held: who decides, what the answer is, within what budget, in rounds or in flow."""

    controller: Controller
    extractor: Extractor
    budget: int = 32
    flow: Flow | None = None

    def __post_init__(self) -> None:
        if self.budget < 1:
            raise OptionError(f"must be at least 1, not {self.budget}", "budget")
        if self.flow:
            self.flow.check(self.controller)

    def begin(
        self,
        server: Server,
        fields: Mapping[str, Any],
        random: np.random.Generator,
        watch: "Watch | None" = None,
        through: Callable[[ServerDraws], Draws] = lambda draws: draws,
        **draws: Any,
    ) -> "Vote":
        """A vote on what a server says to a request of these fields; its draws may be seen `through` others."""
        asking = Asking(fields, streamed=self.flow is not None)
        return Vote(self, through(ServerDraws(server, asking, **draws)), random, watch)


@dataclass(frozen=True)
class Moment:
    """How a vote stands: after a response arrived, or, where `decision` is given, after the controller decided."""

    tally: Tally
    in_flight: int
    decision: int | None = None
    confidence: float | None = None


Watch = Callable[[Moment], None]

_THREADS = ThreadPoolExecutor(8, "suffice-think")
"""Plans are made and answers read here, and not on the event loop, which others share."""

_READERS = ThreadPoolExecutor(8, "suffice-read")
"""Extractors that may take their time have threads of their own, and hold up nobody else's."""

T = TypeVar("T")


async def _think(task: Callable[..., T], *arguments: Any) -> T:
    return await asyncio.get_running_loop().run_in_executor(_THREADS, task, *arguments)


class Vote:
    """One question under way."""

    def __init__(self, voting: Voting, draws: Draws, random: np.random.Generator, watch: Watch | None = None) -> None:
        self.tally = Tally(voting.budget)
        self.keys = Keys(voting.extractor.exact)
        self._controller = voting.controller.for_question(random)
        self._draws = draws
        self._extractor = voting.extractor
        self._watch = watch
        self._flow = voting.flow
        self._launched = 0
        self._uncounted: dict[int, Response | Failure] = {}
        self._responses: list[Response] = []
        self._failures: list[Failure] = []
        self._begun = time.monotonic()

    async def outcome(self, deadline_seconds: float | None = None) -> Outcome:
        """Draw until the controller, the budget or the deadline stops it."""
        prepared = None
        if not self._can_tell:
            # The first confidence with a budget takes a while: it is prepared while the first responses are on the way.
            prepared = asyncio.create_task(_think(prepare, self.tally.budget))
        try:
            async with asyncio.timeout(deadline_seconds) as deadline:
                stop_reason = await (self._flowing(self._flow) if self._flow else self._rounds())
                if prepared:
                    await prepared
        except asyncio.CancelledError as cancelled:
            await self._draws.close()
            cancelled.outcome = self._so_far("cancelled")  # type: ignore[attr-defined]
            raise
        except TimeoutError:
            if not deadline.expired():
                raise
            stop_reason = "deadline"
        finally:
            await self._draws.close()
        if stop_reason == "failed":
            last = self._failures[-1]
            message = f"all draws of a round failed, the last with: {last.message}"
            raise SampleError(message, self._so_far(stop_reason), last.cause)
        return self._so_far(stop_reason)

    async def _rounds(self) -> str:
        """Rounds until there is no more to draw; the reason for that."""
        while asked := await self._decide():
            before = self.tally.draws
            self._launched += len(self._draws.launch(asked))
            while self._draws.in_flight:
                await self._take()
            if self.tally.draws == before:
                return "failed"
            self.tally.end_round()
        return "controller" if self.tally.left else "budget"

    async def _flowing(self, flow: Flow) -> str:
        """Draws in flight as the controller asks, and a decision on every arrival; the reason for the stop."""
        awaited: deque[int] = deque()  # in the order in which they were started
        failed_in_a_row = 0
        while asked := await self._decide():
            wanted = flow.wanted(asked, self.tally, len(awaited))
            if wanted:
                self._end_round()
                awaited.extend(self._draws.launch(wanted))
                self._launched += wanted
            arrived = await self._draws.next()
            failed_in_a_row = failed_in_a_row + 1 if isinstance(arrived, Failure) else 0
            if failed_in_a_row > asked + flow.extra:
                self._failures.append(arrived)  # type: ignore[arg-type]
                return "failed"
            self._uncounted[arrived.draw] = arrived
            in_order = takewhile(self._uncounted.__contains__, list(awaited))
            for draw in [arrived.draw] if flow.order == "arrival" else in_order:
                awaited.remove(draw)
                await self._count(self._uncounted.pop(draw))
        self._end_round()
        return "controller" if self.tally.left else "budget"

    def _end_round(self) -> None:
        if self.tally.round_ends[-1:] != [self.tally.draws] and self.tally.draws:
            self.tally.end_round()

    async def _decide(self) -> int:
        """The controller's word; from a thread where it may have to plan first."""
        asked = 0
        if self.tally.left:
            decide = self._controller.next_round
            quick = self._controller.is_quick(self.tally.budget)
            asked = decide(self.tally) if quick else await _think(decide, self.tally)
        if self._watch:
            sure = confidence(self.tally) if self._can_tell else await _think(confidence, self.tally)
            self._watch(Moment(self.tally, 0, asked, sure))
        return asked

    @property
    def _can_tell(self) -> bool:
        return is_ready(self.tally.budget)

    async def _take(self) -> None:
        """Count the next draw to arrive."""
        await self._count(await self._draws.next())

    async def _count(self, arrived: Response | Failure) -> None:
        """Let a draw join the tally, or the failures."""
        if isinstance(arrived, Failure):
            self._failures.append(arrived)
        else:
            answer = await self._read(arrived)
            self.tally.add(answer)
            self._responses.append(replace(arrived, answer=answer))
        if self._watch:
            self._watch(Moment(self.tally, self._draws.in_flight))

    async def _read(self, response: Response) -> str | None:
        """The key of a response's answer; in a thread where that may take its time."""
        if self._extractor.quick:
            found = self._extractor.extract(response)
        else:
            loop = asyncio.get_running_loop()
            found = await loop.run_in_executor(_READERS, self._extractor.extract, response)
        return self.keys.key(found) if self.keys.is_settled(found) else await _think(self.keys.key, found)

    def _so_far(self, stop_reason: str) -> Outcome:
        tally = self.tally
        ends = [*tally.round_ends] + [tally.draws] * (tally.round_ends[-1:] != [tally.draws] and tally.draws > 0)
        answer = tally.leader
        arrived = [one for one in self._uncounted.values() if isinstance(one, Response)]
        unused = self._draws.cancelled_tokens + sum(one.tokens or 0 for one in arrived)
        return Outcome(
            answer=answer,
            response=next((one for one in self._responses if one.answer == answer), None),
            votes=tally.votes,
            share=tally.votes.get(answer or "", 0) / max(tally.draws, 1),
            confidence=None if not self._can_tell else 0.0 if answer is None else confidence(tally),
            by_round=tuple(end - start for start, end in zip([0, *ends], ends, strict=False)),
            prompt_tokens=sum(one.prompt_tokens for one in [*self._responses, *arrived]),
            completion_tokens=sum(one.tokens or 0 for one in self._responses) + unused,
            seconds=time.monotonic() - self._begun,
            stop_reason=stop_reason,
            failures=tuple(failure.message for failure in self._failures),
            responses=tuple(self._responses),
            budget=tally.budget,
            launched=self._launched,
            cancelled_tokens=unused,
            runs_on=self._draws.runs_on,
        )
