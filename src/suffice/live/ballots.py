"""Ballots: votes on one answer, or on every field of a structured one."""

import asyncio
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np

from suffice.answers import Evidence, Kind, Structure, normalise
from suffice.answers.structure import spelled
from suffice.controllers import Controller
from suffice.elections import Election, FieldTallies, field_accuracy, typical
from suffice.planning import Prior, certainty, confidence, is_certainty_known, is_ready
from suffice.response import Response, first_whole
from suffice.tally import NONE, Tally

if TYPE_CHECKING:
    from suffice.live.vote import Voting

# Plans are made and elections held in threads, for others share the event loop; what extractors do holds none up.
_THREADS = ThreadPoolExecutor(8, "suffice-think")
_READERS = ThreadPoolExecutor(8, "suffice-read")

LONG = 80  # characters; two longer texts that are the same to the letter are copies, and not the same by chance

T = TypeVar("T")


async def in_thread(
    task: Callable[..., T], *arguments: Any, unless: bool = False, threads: ThreadPoolExecutor = _THREADS
) -> T:
    """Do what may take a while in a thread, unless it is known to be quick."""
    if unless:
        return task(*arguments)
    return await asyncio.get_running_loop().run_in_executor(threads, task, *arguments)


@dataclass(frozen=True)
class FieldOutcome:
    """One leaf of an elected object: its value, and how sure that is."""

    value: Any
    votes: int
    share: float
    confidence: float | None
    certainty: float | None

    def to_json(self) -> dict[str, Any]:
        return dict(vars(self))


@dataclass(frozen=True)
class BallotResult:
    """What a ballot elects: the part of the outcome that it knows, by the same names."""

    answer: str | None
    response: Response | None
    confidence: float | None
    certainty: float | None
    share: float = 0.0
    majority: str | None = None
    changed: bool = False
    weighed: bool = False
    right: float | None = None
    value: Any = None
    fields: Mapping[str, FieldOutcome] = field(default_factory=dict)
    composed: bool | None = None


class Ballot:
    """The responses to one question, as votes on one answer, which an election may weigh."""

    may_repeat: ClassVar[bool] = False  # long samples may be the same to the letter by chance
    quick: ClassVar[bool] = True  # else counting is left to a thread

    def __init__(self, voting: "Voting", prior: Prior) -> None:
        self.tally = Tally(voting.budget)  # of whole answers
        self._prior = prior
        self._certainty_prior = voting.certainty_prior or prior
        self._election = voting.election
        self._calibration = voting.calibration
        self._extractor = voting.extractor
        self._answer: str | None = None
        self._keys = voting.extractor.keys()
        self._seen: list[Evidence] = []
        self._texts: list[str] = []
        self._spellings: dict[str, Counter[str]] = {}
        self._names: dict[str, str] = {}

    async def add(self, response: Response) -> str | None:
        """Count a response, and return the key of its answer."""
        reader = self._extractor
        found = await in_thread(reader.evidence, response, unless=reader.quick, threads=_READERS)
        answer = await self._key(found.answer if found else None)
        self._texts.append(response.said or "")
        if found and answer is not None:
            self._seen.append(found)
            self._spellings.setdefault(answer, Counter())[self._spelled(found.answer)] += 1
        self.tally.add(answer, response.voter)
        return answer

    def _spelled(self, answer: str) -> str:
        return answer if self._extractor.exact else normalise(answer) or answer

    def name(self, key: str) -> str:
        """Return the commonest spelling of an answer, which stays its name from the first election on."""
        spellings = self._spellings.get(key)
        return self._names.setdefault(key, spellings.most_common(1)[0][0]) if spellings else key

    def end_round(self) -> None:
        self.tally.end_round()

    def next_round(self, controller: Controller) -> int:
        return controller.next_round(self.tally)

    @property
    def field_tallies(self) -> Mapping[str, Tally]:
        """The tally of each field, by JSON pointer; none for an answer without fields."""
        return {}

    @property
    def evidence(self) -> Kind | None:
        kinds = Counter(one.kind for one in self._seen)
        return kinds.most_common(1)[0][0] if kinds else None

    async def _key(self, found: str | None) -> str | None:
        """Return the key of an answer; others go on while formulas are compared for it."""
        finding, same = self._keys.finding(found), None
        while True:
            try:
                comparison = finding.send(same)
            except StopIteration as key:
                return key.value  # type: ignore[no-any-return]
            try:
                async with asyncio.timeout(comparison.patience):
                    same = await asyncio.wrap_future(comparison.begin())
            except TimeoutError:
                same = None

    def sureness(self) -> tuple[float | None, float | None]:
        """Return confidence and certainty now, those of the least sure field."""
        if any(self.tally.voters):
            return None, None
        tallies = self.field_tallies.values() or [self.tally]
        sure = _least(confidence(tally, self._prior) for tally in tallies)
        return sure, _least(certainty(tally, self._certainty_prior) for tally in tallies)

    def _sureness(self, tally: Tally, leads: bool = True) -> tuple[float | None, float | None]:
        """Return confidence and certainty of a leader; the model of answers is of one voter alone."""
        if not leads or any(tally.voters):
            return None, None
        ready = is_ready(tally.budget, self._prior)
        sure = None if not ready else 0.0 if tally.leader is None else confidence(tally, self._prior)
        return sure, certainty(tally, self._certainty_prior)

    @property
    def elects_at_once(self) -> bool:
        return self.quick and is_certainty_known(self.tally, self._certainty_prior)

    def elect(self, responses: Sequence[Response], once: bool = False) -> BallotResult:
        """Elect the majority, or what weighs most; copies of one response count `once` for how sure that is."""
        self._answer = majority = self.tally.leader
        weighed = self._election is not None
        if majority is None:
            return BallotResult(None, first_whole(responses), *self._sureness(self.tally), weighed=weighed)
        answer = self._answer = _weighed(self._election, responses) if self._election else majority
        givers = [one for one in responses if one.answer == answer]
        name = self.name(answer)
        spelled_so = [one for one in givers if self._spelled(self._extractor.extract(one) or "") == name]
        # A client may look for the answer where most responses have it.
        ends_with_it = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)[^\w\n]*$", re.IGNORECASE)
        ending_so = [one for one in spelled_so if ends_with_it.search(one.said or "")]
        tally = leader_alone(self.tally) if once else self.tally
        return BallotResult(
            name,
            typical(ending_so or spelled_so or givers),
            *self._sureness(tally),
            share=len(givers) / self.tally.draws,
            majority=self.name(majority),
            changed=self.tally.answers[0] != answer,
            weighed=weighed,
            right=self._right(tally, givers) if answer == majority else None,
        )

    def _right(self, tally: Tally, givers: Sequence[Response]) -> float | None:
        if self._calibration is None:
            return None
        name = self._calibration.signal.name if self._calibration.signal else ""
        signals = [one.signals[name] for one in givers if name in one.signals]
        return self._calibration.right(tally, sum(signals) / len(signals) if signals else None)

    def graded(self, gold: str | None) -> dict[str, Any]:
        """Return the key of the gold answer, and whether the elected one is right."""
        found = self._keys.find(gold)
        return {"gold": found, "right": None if found is None else self._answer == found}


class FieldBallot(Ballot):
    """Votes on the fields of a structured answer, each with a tally of its own."""

    may_repeat = True
    quick = False

    def __init__(self, voting: "Voting", prior: Prior, structure: Structure) -> None:
        super().__init__(voting, prior)
        self._structure = structure
        self._fields = FieldTallies(
            voting.budget, ignore=structure.ignore, compare=structure.compare, allows=structure.allows
        )

    async def add(self, response: Response) -> str | None:
        """Add all leaves to their tallies at once, since a vote may be cut short at any moment."""
        self._fields = await in_thread(
            lambda: self._fields.joined_by(self._structure.value(response)), threads=_READERS
        )
        self.tally.add(self._fields.key)
        return self._fields.key

    def end_round(self) -> None:
        self._fields.end_round()
        self.tally.end_round()

    def next_round(self, controller: Controller) -> int:
        return self._fields.next_round(controller) if self.tally.draws else controller.next_round(self.tally)

    @property
    def evidence(self) -> Kind | None:
        return self._structure.kind if self.tally.leader is not None else None

    @property
    def field_tallies(self) -> Mapping[str, Tally]:
        return self._fields.tallies

    def elect(self, responses: Sequence[Response], once: bool = False) -> BallotResult:
        """Elect an object by its fields, as sure as the least sure of them."""
        election = self._fields.elect(self._structure.compose)
        self.tally = self._fields.whole  # until now free text was among what is compared
        if election is None:
            return BallotResult(None, first_whole(responses), *self._sureness(self.tally))
        fields = {
            pointer: FieldOutcome(
                one.value,
                one.votes,
                one.share,
                *self._sureness(leader_alone(one.tally) if once else one.tally, one.leads),
            )
            for pointer, one in election.fields.items()
        }
        voted = {pointer: one for pointer, one in election.fields.items() if one.kind == "voted"}
        sure = [fields[pointer] for pointer in voted] if all(one.leads for one in voted.values()) else []
        place, votes = election.response, 0
        if place is None:
            place = self.tally.answers.index(self.tally.leader)
        else:
            votes = self.tally.votes[self.tally.answers[place] or ""]
        name = spelled(election.value)
        return BallotResult(
            name,
            responses[place],
            _least(one.confidence for one in sure),
            _least(one.certainty for one in sure),
            share=votes / self.tally.draws,
            majority=name,
            changed=any(one.tally.answers[0] != one.choice for one in voted.values()),
            value=election.value,
            fields=fields,
            composed=election.composed,
        )

    def graded(self, gold: str | None) -> dict[str, Any]:
        value = read_gold(gold)
        if value is None:
            return {"gold": None, "right": None, "fields_right": None}
        elected = self._fields.elect(self._structure.compose)
        told, compared = self._structure, self._fields.answers
        accuracy = field_accuracy(elected and elected.value, value, compared, ignore=told.ignore, compare=told.compare)
        return {"gold": value, "right": accuracy.whole, "fields_right": round(accuracy.share, 4)}


def read_gold(gold: str | None) -> Any:
    """Read a gold answer with fields; one that is no JSON is a text."""
    try:
        return None if gold is None else json.loads(gold)
    except ValueError:
        return gold


def _weighed(election: Election, responses: Sequence[Response]) -> str:
    """Elect by weight among responses of which one has an answer."""
    labels = list(dict.fromkeys(one.answer for one in responses if one.answer is not None))
    codes = np.array([NONE if one.answer is None else labels.index(one.answer) for one in responses])
    signals = {name: np.array([one.signals.get(name, np.nan) for one in responses]) for name in election.signals}
    tokens = np.array([np.nan if one.tokens is None else one.tokens for one in responses])
    return labels[int(election.elect(codes, signals, tokens))]


def _least(figures: Iterable[float | None]) -> float | None:
    return min((figure for figure in figures if figure is not None), default=None)


def leader_alone(tally: Tally) -> Tally:
    one = Tally(tally.budget)
    one.add(tally.leader)
    return one
