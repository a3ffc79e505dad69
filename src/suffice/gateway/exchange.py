"""What happens to a request: facts in the order in which they become known, and the log line built from them."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from starlette.requests import Request

from suffice.live import Outcome, Progress


class Identified(NamedTuple):
    """The request came with the key of this name."""

    key: str


class AskedFor(NamedTuple):
    """The model and the number of responses that the client asks for."""

    model: str | None
    samples: int


class NotVoted(NamedTuple):
    """There is no vote, for this reason."""

    why: str


class DrawBegun(NamedTuple):
    """A single draw is under way."""

    progress: Callable[[], Progress]


class VoteBegun(NamedTuple):
    """A vote is under way."""

    controller: str
    budget: int
    progress: Callable[[], Progress]


class SentTo(NamedTuple):
    """An upstream was asked."""

    upstream: str


class Voted(NamedTuple):
    """A vote ended, or was interrupted."""

    outcome: Outcome
    question: Sequence[Mapping[str, Any]] | None
    """The messages, if texts are logged."""


class Counted(NamedTuple):
    """The tokens of a single reply."""

    prompt_tokens: int
    tokens: int
    estimated: bool


class Foretold(NamedTuple):
    """What `auto` would have done with a request in the shadow."""

    would_vote: bool
    evidence: str | None
    expected_samples: float
    expected_tokens: int


class NoReply(NamedTuple):
    """The request ended without its reply: cancelled, refused or in an error."""

    kind: str
    error: str | None = None


Fact = Identified | AskedFor | NotVoted | DrawBegun | VoteBegun | SentTo | Voted | Counted | Foretold | NoReply
F = TypeVar("F", bound=Fact)


class Exchange:
    """A request under way, and the facts of it."""

    def __init__(self, request: Request, kind: str) -> None:
        self.request = request
        self._kind = kind
        self._begun = time.monotonic()
        self._facts: list[Fact] = []

    def add(self, fact: Fact) -> None:
        """Note a fact."""
        self._facts.append(fact)

    def last(self, kind: type[F]) -> F | None:
        """Return the last fact of a kind."""
        return next((fact for fact in reversed(self._facts) if isinstance(fact, kind)), None)

    @property
    def key(self) -> str | None:
        """The name of its key; None if no key is asked for."""
        identified = self.last(Identified)
        return identified.key if identified else None

    @property
    def progress(self) -> Progress | None:
        """How far the draws under way are."""
        under_way = self.last(VoteBegun) or self.last(DrawBegun)
        return under_way.progress() if under_way else None

    def log(self, status: int | None = None) -> "RequestLog":
        """Build the log line of the request, which was answered with this status; None if it is under way."""
        asked, voting, voted = self.last(AskedFor), self.last(VoteBegun), self.last(Voted)
        ended, sent, not_voted = self.last(NoReply), self.last(SentTo), self.last(NotVoted)
        return RequestLog(
            time=round(time.time(), 3),
            method=self.request.method,
            path=self.request.url.path[:200],
            status=status,
            seconds=round(time.monotonic() - self._begun, 4),
            kind=ended.kind if ended else "vote" if voting else self._kind,
            key=self.key,
            asked=asked,
            upstream=sent.upstream if sent else None,
            no_vote=not_voted.why if not_voted else None,
            controller=voting.controller if voting else None,
            budget=voting.budget if voting else None,
            outcome=voted.outcome if voted else None,
            question=voted.question if voted else None,
            counted=self.last(Counted),
            foretold=self.last(Foretold),
            error=ended.error if ended else None,
        )


@dataclass(frozen=True)
class RequestLog:
    """One line of the access log."""

    time: float
    method: str
    path: str
    status: int | None
    seconds: float
    kind: str
    key: str | None
    asked: AskedFor | None
    upstream: str | None
    no_vote: str | None
    controller: str | None
    budget: int | None
    outcome: Outcome | None
    question: Sequence[Mapping[str, Any]] | None
    counted: Counted | None
    foretold: Foretold | None
    error: str | None

    @property
    def is_of_a_model(self) -> bool:
        """Whether a model was asked; the gateway's own pages and figures are not."""
        return self.method == "POST" and self.path.startswith("/v1/") and not self.path.startswith("/v1/suffice/")

    def to_json(self, *, texts: bool = True) -> dict[str, Any]:
        """Return the line as one flat object, without the questions, answers and errors if `texts` is false."""
        plain = {"time": self.time, "method": self.method, "path": self.path, "status": self.status}
        line: dict[str, Any] = {**plain, "seconds": self.seconds, "kind": self.kind}
        if self.asked:
            line["model"] = self.asked.model and self.asked.model[:100]
        named = ("key", "upstream", "no_vote", "controller", "budget")
        line |= {name: value for name in named if (value := getattr(self, name)) is not None}
        if self.counted:
            line |= self._tokens(self.counted)
        if self.outcome:
            line |= _vote(self.outcome)
        if self.foretold:
            line |= self.foretold._asdict()
        if texts and self.outcome and self.question is not None:
            line |= {"question": self.question, "answer": self.outcome.answer}
        if texts and self.error is not None:
            line["error"] = self.error
        return line

    def _tokens(self, counted: Counted) -> dict[str, Any]:
        samples = self.asked.samples if self.asked else 1
        line: dict[str, Any] = {"samples": samples} if counted.prompt_tokens + counted.tokens else {}
        line |= {"prompt_tokens": counted.prompt_tokens, "tokens": counted.tokens}
        return line | ({"usage_estimated": True} if counted.estimated else {})


def _vote(outcome: Outcome) -> dict[str, Any]:
    """What the log has of a vote."""
    over_one = {f"over_one_{name}": count for name, count in outcome.over_one._asdict().items()}
    return {
        "samples": outcome.samples,
        "rounds": outcome.rounds,
        "prompt_tokens": outcome.prompt_tokens,
        "tokens": outcome.tokens,
        **({"usage_estimated": True} if outcome.usage_estimated else {}),
        **over_one,
        "changed": outcome.changed and outcome.stop_reason != "cancelled",
        **outcome.savings(),
        "confidence": outcome.confidence,
        "certainty": outcome.certainty,
        **outcome.assurance(),
        "stop_reason": outcome.stop_reason,
        "evidence": outcome.evidence,
        "given_up": outcome.given_up,
        "failures": len(outcome.failures),
    }
