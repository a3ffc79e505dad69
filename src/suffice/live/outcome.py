"""How a vote stands, and what it came to: the answer, and what it took."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from suffice.answers import Kind
from suffice.live.ballots import FieldOutcome
from suffice.notebook import bars, many, short
from suffice.response import Response
from suffice.tally import Tally

SETTLED = ("controller", "budget")  # stop reasons of decided votes, which alone save and teach anything
CUT_SHORT = ("patience", "deadline")  # those of votes that had no more time


class OverOne(NamedTuple):
    """What a vote took over its first response: samples, tokens, and those of prompts sent again."""

    samples: int
    tokens: int
    prompt_tokens: int


def with_prompts(saved: int, again: int) -> str:
    """Return what saved tokens come to, beside those of prompts that were sent again.

    >>> with_prompts(276, 38), with_prompts(587, 1036)
    ('with prompts sent again it took 238 tokens less', 'with prompts sent again it took 449 tokens more')
    """
    more = again - saved
    return f"with prompts sent again it took {abs(more):,} tokens {'more' if more > 0 else 'less'}"


@dataclass(frozen=True)
class Outcome:
    r"""The answer to one question, with its votes and what they took.

    `confidence` is the probability that the full budget would elect the same answer, None where the budget is too
    large, or the deadline was too short, to tell; `certainty` that unlimited sampling would, None where there is no
    answer. `share` is the answer's part of the samples; `by_round` has the draws of each round. `response` is a typical
    one of those that gave the answer, or, where there is none, the first that is complete.

    >>> import openai, suffice
    >>> from suffice.testing import FakeServer
    >>> with FakeServer(lambda request, number: r"\boxed{42}") as server:
    ...     with openai.OpenAI(base_url=server.base_url, api_key="none") as client:
    ...         outcome = suffice.sample(client, [{"role": "user", "content": "What is 6 * 7?"}], model="fake")
    >>> outcome.answer, outcome.votes, outcome.by_round, outcome.stop_reason
    ('42', {'42': 4}, (4,), 'controller')
    """

    answer: str | None
    response: Response | None
    votes: dict[str, int]
    share: float
    confidence: float | None
    certainty: float | None
    by_round: tuple[int, ...]
    prompt_tokens: int
    completion_tokens: int
    seconds: float
    stop_reason: str
    """One of controller, budget, no answer, repeats, patience, deadline, cancelled, failed."""
    failures: tuple[str, ...]
    responses: tuple[Response, ...]
    budget: int
    launched: int = 0
    """The draws that were started; those that don't count were cancelled at the stop, or failed."""
    cancelled_tokens: int = 0
    """The tokens of cancelled draws, among those of the completion."""
    runs_on: bool = False
    """Whether cancelled draws may run on, at a server that does not stream."""
    value: Any = None
    """The elected object, where the answer has fields."""
    fields: Mapping[str, FieldOutcome] = field(default_factory=dict)
    """Its leaves, by JSON pointer."""
    composed: bool | None = None
    """Whether the object was put together from several responses."""
    parsed: Any = None
    """The object as an instance of the model given to `parse`."""
    majority: str | None = None
    """The answer with most votes; the election may have weighed another one more."""
    evidence: Kind | None = None
    """What showed the answers: slot, option, short, conclusion, boxed, schema, tool or asked."""
    weighed: bool = False
    """Whether votes were weighed; confidence and certainty are the majority's in any case."""
    changed: bool = False
    """Whether the first response gives another answer."""
    named: bool = True
    """Whether the client named the budget, or asked for a vote: only then is anything saved."""
    right: float | None = None
    """The probability that the answer is right, by a calibration; None without one, or without an answer."""
    sure: bool | None = None
    """Whether that is enough for the risk; None if no risk is named."""
    calibrated: bool = False
    """Whether there was a calibration."""
    untaken: int = 0
    """The draws that were cancelled while no server had them: they cost nothing."""

    def __repr__(self) -> str:
        answer = "None" if self.answer is None else short(repr(self.answer))
        sure = "" if self.confidence is None else f", {self.confidence:.1%} sure"
        drawn = f"{many(self.samples, 'sample')} in {many(self.rounds, 'round')}"
        return f"Outcome({answer}, {drawn}{sure}, stopped by: {self.stop_reason})"

    def _repr_html_(self) -> str:
        return bars(repr(self), self.votes, self.samples)

    @property
    def samples(self) -> int:
        """The number of draws made."""
        return sum(self.by_round)

    @property
    def rounds(self) -> int:
        """The number of rounds."""
        return len(self.by_round)

    @property
    def tokens(self) -> int:
        """The tokens of all responses drawn."""
        return self.completion_tokens

    @property
    def samples_saved(self) -> int:
        """The draws left of the budget, if the client asked for it and the vote was decided; else 0."""
        return self.budget - self.samples if self.named and self.stop_reason in SETTLED else 0

    @property
    def tokens_saved(self) -> int:
        """The tokens of those draws, by the mean of the others; of responses alone."""
        return round(self.tokens / max(self.samples, 1) * self.samples_saved)

    @property
    def over_one(self) -> OverOne:
        """Cost above a single response, without follow-up requests."""
        if not self.responses:
            return OverOne(0, 0, 0)
        prompt = max(response.prompt_tokens - response.final_prompt_tokens for response in self.responses)
        first = (self.responses[0].tokens or 0) - self.responses[0].final_tokens
        # What came too late was paid for too.
        spent = max(self.samples, self.launched - len(self.failures) - self.untaken)
        return OverOne(spent - 1, self.completion_tokens - first, self.prompt_tokens - prompt)

    @property
    def by_voter(self) -> dict[str, dict[str, int]]:
        """The votes of each voter of a panel; empty for one model."""
        votes: dict[str, dict[str, int]] = {one.voter: {} for one in self.responses if one.voter}
        for one in self.responses:
            if one.voter and one.answer is not None:
                votes[one.voter][one.answer] = votes[one.voter].get(one.answer, 0) + 1
        return votes

    @property
    def usage_estimated(self) -> bool:
        """Whether some tokens are estimated: those that no server counted, and those of cancelled draws."""
        return self.cancelled_tokens > 0 or any(response.estimated for response in self.responses)

    def to_json(self) -> dict[str, Any]:
        """The outcome as one JSON object."""
        return (
            self.summary()
            | {
                "tokens": self.tokens,
                "prompt_tokens": self.prompt_tokens,
                "completion_tokens": self.completion_tokens,
                "response": self.response.to_json() if self.response else None,
                "failures": list(self.failures),
                "runs_on": self.runs_on,
            }
            | ({} if self.composed is None else {"value": self.value})
        )

    def summary(self) -> dict[str, Any]:
        """What the client is told beside the response."""
        fields = {pointer: one.to_json() for pointer, one in self.fields.items()}
        return (
            {
                "answer": self.answer,
                "certainty": self.certainty,
                "confidence": self.confidence,
                "evidence": self.evidence,
                "votes": self.votes,
                "share": self.share,
                "samples": self.samples,
                "rounds": self.rounds,
                "draws": list(self.by_round),
                "stop_reason": self.stop_reason,
                "budget": self.budget,
                "over_one": self.over_one._asdict(),
                "changed": self.changed,
                "seconds": round(self.seconds, 3),
                "launched": self.launched,
                "cancelled_tokens": self.cancelled_tokens,
                "usage_estimated": self.usage_estimated,
            }
            | self.savings()
            | ({"majority": self.majority} if self.weighed else {})
            | ({"by_voter": self.by_voter} if self.by_voter else {})
            | self.assurance()
            | ({} if self.composed is None else {"fields": fields, "composed": self.composed})
        )

    def savings(self) -> dict[str, int]:
        """What was saved, if the client named the budget."""
        return {"samples_saved": self.samples_saved, "tokens_saved": self.tokens_saved} if self.named else {}

    def assurance(self) -> dict[str, float | bool | None]:
        """The probability to be right, if there was a calibration, and whether it is enough."""
        sure = {} if self.sure is None else {"sure": self.sure}
        return {"right": self.right} | sure if self.calibrated else {}


@dataclass(frozen=True)
class Moment:
    """How a vote stands after an arrival, after a decision, or, with its `outcome`, at the end."""

    tally: Tally
    in_flight: int
    decision: int | None = None
    confidence: float | None = None
    certainty: float | None = None
    fields: Mapping[str, Tally] = field(default_factory=dict)
    outcome: Outcome | None = None


class Progress(NamedTuple):
    """Draws asked for, draws arrived and tokens so far."""

    asked: int
    arrived: int
    tokens: int


Watch = Callable[[Moment], None]
