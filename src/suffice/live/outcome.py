"""What a vote came to: the answer, and what it took."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from suffice.live.ballots import FieldOutcome
from suffice.notebook import bars, many, short
from suffice.response import Response

STOP_REASONS = ("controller", "budget", "no answer", "repeats", "deadline", "cancelled", "failed")
"""Who ended a vote: the controller, the budget, that there is nothing to vote on or nothing new, time, or a mishap."""

SETTLED = ("controller", "budget")
"""Those of votes that were decided. One that was given up saved nothing, teaches nothing, and is not audited."""


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
    failures: tuple[str, ...]
    responses: tuple[Response, ...]
    budget: int
    launched: int = 0
    """How many draws were started; those that were not counted were cancelled at the stop, or failed."""
    cancelled_tokens: int = 0
    """What those had generated until then; among the completion's tokens."""
    runs_on: bool = False
    """Whether the server does not stream, so that what was cancelled may have run on there."""
    value: Any = None
    """The elected object, where the answer has fields."""
    fields: Mapping[str, FieldOutcome] = field(default_factory=dict)
    """Its leaves, by JSON pointer."""
    composed: bool | None = None
    """Whether it was put together from several responses, or is one of them as it came."""
    parsed: Any = None
    """The object as an instance of the model that `parse` was given."""
    majority: str | None = None
    """The answer with most votes: another one than `answer` only where the election weighed them."""
    weighed: bool = False
    """Whether it did; confidence and certainty are those of the majority in any case."""

    def __repr__(self) -> str:
        answer = "None" if self.answer is None else short(repr(self.answer))
        sure = "" if self.confidence is None else f", {self.confidence:.1%} sure"
        drawn = f"{many(self.samples, 'sample')} in {many(self.rounds, 'round')}"
        return f"Outcome({answer}, {drawn}{sure}, stopped by: {self.stop_reason})"

    def _repr_html_(self) -> str:
        return bars(repr(self), self.votes, self.samples)

    @property
    def samples(self) -> int:
        """How many draws were made."""
        return sum(self.by_round)

    @property
    def rounds(self) -> int:
        """How many rounds there were."""
        return len(self.by_round)

    @property
    def tokens(self) -> int:
        """The tokens of all responses drawn."""
        return self.completion_tokens

    @property
    def samples_saved(self) -> int:
        """How many more the full budget would have taken; none where the vote was given up."""
        return self.budget - self.samples if self.stop_reason in SETTLED else 0

    @property
    def tokens_saved(self) -> int:
        """What those would have taken, by the mean of what was drawn."""
        return round(self.tokens / max(self.samples, 1) * self.samples_saved)

    @property
    def usage_estimated(self) -> bool:
        """Whether some of the tokens are estimated: those that no server counted, and those of cancelled draws."""
        return self.cancelled_tokens > 0 or any(response.estimated for response in self.responses)

    def to_json(self) -> dict[str, Any]:
        """The outcome as one JSON object."""
        return (
            {
                "answer": self.answer,
                "confidence": self.confidence,
                "certainty": self.certainty,
                "share": self.share,
                "votes": self.votes,
                "samples": self.samples,
                "rounds": self.rounds,
                "draws": list(self.by_round),
                "tokens": self.tokens,
                "prompt_tokens": self.prompt_tokens,
                "completion_tokens": self.completion_tokens,
                "usage_estimated": self.usage_estimated,
                "samples_saved": self.samples_saved,
                "tokens_saved": self.tokens_saved,
                "seconds": round(self.seconds, 3),
                "stop_reason": self.stop_reason,
                "response": self.response.to_json() if self.response else None,
                "failures": list(self.failures),
                "budget": self.budget,
                "launched": self.launched,
                "cancelled_tokens": self.cancelled_tokens,
                "runs_on": self.runs_on,
            }
            | self.told_of_majority()
            | self._structured()
        )

    def told_of_majority(self) -> dict[str, str | None]:
        """The plain winner beside the elected one, where the election weighed the votes."""
        return {"majority": self.majority} if self.weighed else {}

    def _structured(self) -> dict[str, Any]:
        if self.composed is None:
            return {}
        fields = {pointer: one.to_json() for pointer, one in self.fields.items()}
        return {"value": self.value, "fields": fields, "composed": self.composed}
