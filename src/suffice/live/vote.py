"""A vote: a response joins the tally when it arrives, and the controller decides when its round is in."""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any, NamedTuple

import numpy as np

from suffice.answers import Extractor
from suffice.controllers import Controller
from suffice.elections import LENGTH, Election, Majority, get_election
from suffice.errors import OptionError, SampleError, whole_number
from suffice.flow import Flow
from suffice.live.ballots import Elected, ballot_for, think
from suffice.live.draws import Draws, Failure, ServerDraws
from suffice.live.facts import Asking
from suffice.live.outcome import Outcome
from suffice.live.server import Server
from suffice.live.signals import NAMES
from suffice.live.tracing import TRACING, UNTRACED, Untraced
from suffice.planning import is_ready, prepare, prior_of
from suffice.response import Response
from suffice.tally import DEFAULT_BUDGET, Tally


@dataclass(frozen=True)
class Voting:
    """How votes are held: who decides, what the answer is, within what budget, in rounds or in flow."""

    controller: Controller
    extractor: Extractor
    budget: int = DEFAULT_BUDGET
    flow: Flow | None = None
    asked: bool = True
    """Whether somebody asked for a vote: then weak evidence of an answer counts too."""
    greedy: bool = False
    """Whether responses are the same whenever they are asked for."""
    streamed: bool = False
    """Whether draws are streamed in rounds too, so that whoever watches sees tokens arrive."""
    signals: bool = False
    """Whether the server is asked for log probabilities, which come with each response as its signals."""
    election: Election | None = None
    """What weighs the votes when they are in; None for the plain majority."""

    def __post_init__(self) -> None:
        whole_number("budget", self.budget)
        if self.flow:
            self.flow.check(self.controller)

    @property
    def wants_signals(self) -> bool:
        """Whether log probabilities are asked for, be it that the election weighs by them."""
        return self.signals or any(name != LENGTH for name in (self.election.signals if self.election else ()))

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
        asking = Asking(fields, streamed=self.streamed or self.flow is not None, signals=self.wants_signals)
        extractor = self.extractor.for_request(server.dialect.messages(fields), asked=self.asked)
        voting = replace(self, extractor=extractor, greedy=fields.get("temperature") == 0)
        span = TRACING.vote(server.dialect, fields, self.controller, self.budget)
        return Vote(voting, through(ServerDraws(server, asking, **draws)), random, watch, span)


def election_of(elect: str | Election, extractor: Extractor) -> Election | None:
    """The election that is asked for by name, if live responses can be weighed by it; None for the plain majority."""
    election = get_election(elect)
    if isinstance(election, Majority):
        return None
    if extractor.structure:
        raise OptionError("must be majority: by that the fields of an object are elected, each for itself", "elect")
    for name in election.signals:
        if name not in (*NAMES, LENGTH):
            raise OptionError(f'weighs by "{name}", and live responses have {", ".join(NAMES)} and {LENGTH}', "elect")
    return election


@dataclass(frozen=True)
class Moment:
    """How a vote stands: after a response arrived, or, where `decision` is given, after the controller decided."""

    tally: Tally
    in_flight: int
    decision: int | None = None
    confidence: float | None = None
    certainty: float | None = None
    fields: Mapping[str, Tally] = field(default_factory=dict)
    """The tally of each field, where the answer has fields."""


class Progress(NamedTuple):
    """How far a vote is between two moments: draws asked for, draws arrived, tokens so far."""

    asked: int
    arrived: int
    tokens: int


COMPLETE_WITHOUT, MOST_WITHOUT = 4, 12
"""A vote without an answer ends after so many complete responses, or draws of any kind.

A response that was cut off says little. On 23 pools, where those as long as the pool's longest are taken for cut off,
this costs 0.03 points of agreement and 0.002 of accuracy in the mean; to end after any 4 would cost 0.27 of agreement.
"""

LONG = 80
"""Characters in which two samples are never the same by chance."""

Watch = Callable[[Moment], None]


class Vote:
    """One question under way."""

    def __init__(
        self,
        voting: Voting,
        draws: Draws,
        random: np.random.Generator,
        watch: Watch | None = None,
        span: Untraced = UNTRACED,
    ) -> None:
        self._controller = voting.controller.for_question(random)
        self._prior = prior_of(self._controller)
        self.ballot = ballot_for(voting.extractor, voting.budget, self._prior, voting.election)
        self._draws = draws
        self._watch = watch
        self._span = span
        self._flow = voting.flow
        self._greedy = voting.greedy
        self._weighs = voting.election is not None and not voting.extractor.structure
        self._scouted = False
        self._launched = 0
        self._uncounted: dict[int, Response | Failure] = {}
        self._responses: list[Response] = []
        self._failures: list[Failure] = []
        self._begun = time.monotonic()

    @property
    def tally(self) -> Tally:
        """The votes so far."""
        return self.ballot.tally

    @property
    def progress(self) -> Progress:
        """How far it is."""
        tokens = sum(response.tokens or 0 for response in self._responses) + self._draws.arriving_tokens
        return Progress(self._launched, self.tally.draws, tokens)

    async def outcome(self, deadline_seconds: float | None = None) -> Outcome:
        """Draw until the controller, the budget or the deadline stops it."""
        with self._span.within():
            outcome = await self._until(deadline_seconds)
            self._span.ended(outcome)
            return outcome

    async def _until(self, deadline_seconds: float | None) -> Outcome:
        prepared = None
        if not self._can_tell:
            # The first confidence with a budget takes a while: it is prepared while the first responses are on the way.
            prepared = asyncio.create_task(think(prepare, self.tally.budget, self._prior))
        try:
            async with asyncio.timeout(deadline_seconds) as deadline:
                stop_reason = await (self._flowing(self._flow) if self._flow else self._rounds())
                if prepared:
                    await prepared
        except asyncio.CancelledError as cancelled:
            await self._draws.close()
            cancelled.outcome = await self._so_far("cancelled")  # type: ignore[attr-defined]
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
            raise SampleError(message, await self._so_far(stop_reason), last.cause)
        return await self._so_far(stop_reason)

    async def take(self, response: Response) -> None:
        """Begin with a response that was drawn before: the first of the first round."""
        self._launched += 1
        self._scouted = True
        await self._count(response)
        self.ballot.end_round()

    async def rest(self, ready: Callable[[], Awaitable[None]] | None = None, at_once: int = 8) -> Outcome | None:
        """Draw what is left of the budget after the stop, a few at a time, whenever that is convenient: an audit.

        The outcome of the full budget; None where it could not be drawn.
        """
        try:
            while self.tally.left:
                if ready:
                    await ready()
                before = self.tally.draws
                self._launched += len(self._draws.launch(min(at_once, self.tally.left)))
                while self._draws.in_flight:
                    await self._take()
                if self.tally.draws == before:
                    return None
        finally:
            await self._draws.close()
        return await self._so_far("budget")

    async def _rounds(self) -> str:
        """Rounds until there is no more to draw; the reason for that."""
        while asked := await self._decide():
            before = self.tally.draws
            self._launched += len(self._draws.launch(asked))
            while self._draws.in_flight:
                await self._take()
            if self.tally.draws == before:
                return "failed"
            self.ballot.end_round()
            if pointless := await self._pointless():
                return pointless
        return self._enough()

    async def _flowing(self, flow: Flow) -> str:
        """Draws in flight as the controller asks, and a decision on every arrival; the reason for the stop."""
        awaited: deque[int] = deque()  # in the order in which they were started
        failed_in_a_row = first = 0
        while asked := await self._decide():
            first = first or self.tally.draws + asked
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
            pointless = await self._pointless() if self.tally.draws >= first else None
            if pointless:
                self._end_round()
                return pointless
        self._end_round()
        return self._enough()

    def _enough(self) -> str:
        return "controller" if self.tally.left else "budget"

    async def _pointless(self) -> str | None:
        """Why more draws would tell nothing: there is no answer to vote on, or all are copies of one."""
        if not self.tally.left:
            return None
        complete = sum(response.is_complete for response in self._responses)
        if self.tally.leader is None and (complete >= COMPLETE_WITHOUT or self.tally.draws >= MOST_WITHOUT):
            return "no answer"
        if self._scouted and self.tally.draws >= COMPLETE_WITHOUT:
            await self._field_tallies()  # which takes its time where there are many
            if not self.ballot.agrees:
                return "no answer"
        return "repeats" if self._repeats() else None

    def _repeats(self) -> bool:
        """Whether all responses are the same to the letter, as at temperature 0 or from a cache."""
        texts = {response.said for response in self._responses}
        copies = len(self._responses) > 1 and len(texts) == 1
        return copies and (self._greedy or (not self.ballot.may_repeat and len(next(iter(texts)) or "") >= LONG))

    def _end_round(self) -> None:
        if self.tally.round_ends[-1:] != [self.tally.draws] and self.tally.draws:
            self.ballot.end_round()

    async def _decide(self) -> int:
        """The controller's word; from a thread where it may have to plan first."""
        asked = 0
        if self.tally.left:
            quick = self.ballot.quick and self._controller.is_quick(self.tally.budget)
            asked = self._asked() if quick else await think(self._asked)
        sure = certain = None
        if self._watch:
            sure, certain = await think(self.ballot.sureness)
        self._span.decided(self.tally, asked, sure, certain)
        if self._watch:
            self._watch(Moment(self.tally, 0, asked, sure, certain, await self._field_tallies()))
        return asked

    def _asked(self) -> int:
        if self._scouted and self.tally.draws == 1:
            # A scout is no decision of the controller's: its first round is whole only with what is missing of it.
            missing = self._controller.next_round(Tally(self.tally.budget)) - 1
            if missing > 0:
                return missing
        return self.ballot.next_round(self._controller)

    @property
    def _can_tell(self) -> bool:
        return is_ready(self.tally.budget, self._prior)

    async def _take(self) -> None:
        """Count the next draw to arrive."""
        await self._count(await self._draws.next())

    async def _count(self, arrived: Response | Failure) -> None:
        """Let a draw join the tally, or the failures."""
        if isinstance(arrived, Failure):
            self._failures.append(arrived)
        else:
            answer = await self.ballot.add(arrived)
            self._responses.append(replace(arrived, answer=answer))
        if self._watch:
            self._watch(Moment(self.tally, self._draws.in_flight, fields=await self._field_tallies()))

    async def _field_tallies(self) -> Mapping[str, Tally]:
        return self.ballot.field_tallies if self.ballot.quick else await think(lambda: self.ballot.field_tallies)

    async def _so_far(self, stop_reason: str) -> Outcome:
        ballot, once = self.ballot, stop_reason == "repeats"
        at_once = ballot.elects_at_once
        elected = ballot.elect(self._responses, once) if at_once else await think(ballot.elect, self._responses, once)
        tally = self.tally
        ends = [*tally.round_ends] + [tally.draws] * (tally.round_ends[-1:] != [tally.draws] and tally.draws > 0)
        arrived = [one for one in self._uncounted.values() if isinstance(one, Response)]
        unused = self._draws.cancelled_tokens + sum(one.tokens or 0 for one in arrived)
        return Outcome(
            answer=elected.answer,
            response=elected.response or _first_whole(self._responses),
            votes=tally.votes,
            share=_votes(tally, elected) / max(tally.draws, 1),
            confidence=elected.confidence,
            certainty=elected.certainty,
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
            value=elected.value,
            fields=elected.fields,
            composed=elected.composed,
            majority=elected.majority,
            weighed=self._weighs,
        )


def _votes(tally: Tally, elected: Elected) -> int:
    """Those of the elected answer."""
    if elected.answer is None or elected.answer == elected.majority:
        return tally.top(1)[0]
    return tally.votes[elected.answer]


def _first_whole(responses: Sequence[Response]) -> Response | None:
    """What stands for a vote without an answer: the first response that is complete and says something, or any."""
    whole = [one for one in responses if one.is_complete and (one.said or one.tool_calls)]
    return next(iter([*whole, *responses]), None)
