"""Which course a request takes: a vote, a scout that shows whether to vote, or straight on to the upstream."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from suffice.answers import asks_for_one_answer
from suffice.gateway.wishes import Wish
from suffice.live.dialects import Dialect

SUFFIXES = ("+vote", "+once")
"""By the end of a model's name a client forces a vote, or a single sample."""


@dataclass(frozen=True)
class Course:
    """What is done with a request, and, where that is no vote, why."""

    kind: Literal["vote", "scout", "relay"]
    why: str = ""
    asked: bool = True
    """Whether somebody asked for a vote; where it is only what the request says, weak evidence is none."""


VOTE = Course("vote")


def split_model(model: Any) -> tuple[str | None, str]:
    """A model's name as the upstream knows it, and the suffix it came with.

    >>> split_model("qwen+vote"), split_model("qwen")
    (('qwen', '+vote'), ('qwen', ''))
    """
    if not isinstance(model, str):
        return None, ""
    suffix = next((suffix for suffix in SUFFIXES if model.endswith(suffix)), "")
    return model.removesuffix(suffix), suffix


def course_of(vote: str, dialect: Dialect, body: Mapping[str, Any], wish: Wish, suffix: str) -> Course:
    """The course of a request, by what the operator says of votes, what the client asks for, and what it asks."""
    if vote == "off" or wish.controller == "off":
        return Course("relay", "off")
    forced = suffix if vote in ("auto", "asked") else ""
    if forced == "+once":
        return Course("relay", "once")
    if vote == "asked" and not (wish.asked or forced):
        return Course("relay", "not asked")
    obstacle = dialect.no_vote(body, wish.extractor, wish.answer_named)
    if obstacle:
        return Course("relay", obstacle)
    says_so = wish.answer_named or dialect.names_options(body) or dialect.json_wanted(body) is not None
    if vote != "auto" or forced or says_so:
        return VOTE
    if wish.answer != "auto":  # the operator's: what it finds is an answer
        return Course("scout")
    one_answer = asks_for_one_answer(dialect.messages(body))
    if one_answer is None:
        return Course("scout")
    return Course("vote", asked=False) if one_answer else Course("relay", "no answer")
