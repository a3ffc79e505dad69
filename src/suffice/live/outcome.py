"""What a run came to: the answer, and what it took."""

from dataclasses import dataclass
from typing import Any

from suffice.errors import SufficeError
from suffice.live.response import Response

STOP_REASONS = ("controller", "budget", "deadline", "cancelled", "failed")


@dataclass(frozen=True)
class Outcome:
    """The answer to one question, with its votes and what they took.

    `confidence` is the probability that the full budget would elect the same answer, None where the budget is too
    large, or the deadline was too short, to tell; `share` is the answer's part of the samples; `draws` are those of
    each round.
    """

    answer: str | None
    response: Response | None
    votes: dict[str, int]
    share: float
    confidence: float | None
    draws: tuple[int, ...]
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

    @property
    def samples(self) -> int:
        """How many draws were made."""
        return sum(self.draws)

    @property
    def rounds(self) -> int:
        """How many rounds there were."""
        return len(self.draws)

    @property
    def tokens(self) -> int:
        """The tokens of all responses drawn."""
        return self.completion_tokens

    def to_json(self) -> dict[str, Any]:
        """The outcome as one JSON object."""
        return {
            "answer": self.answer,
            "confidence": self.confidence,
            "share": self.share,
            "votes": self.votes,
            "samples": self.samples,
            "rounds": self.rounds,
            "draws": list(self.draws),
            "tokens": self.tokens,
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "seconds": round(self.seconds, 3),
            "stop_reason": self.stop_reason,
            "response": self.response.to_json() if self.response else None,
            "failures": list(self.failures),
            "budget": self.budget,
            "launched": self.launched,
            "cancelled_tokens": self.cancelled_tokens,
            "runs_on": self.runs_on,
        }


class SampleError(SufficeError):
    """All draws of a round failed; `outcome` is what there was before, `cause` what the last failed with."""

    def __init__(self, message: str, outcome: Outcome, cause: Exception | None = None) -> None:
        super().__init__(message)
        self.outcome = outcome
        self.cause = cause
