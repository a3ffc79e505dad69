"""A response: one sampled completion, as it travels from the server to the tally and the journal."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Response:
    """One sampled completion; `reasoning` is what the model thought aloud, apart from its text.

    >>> Response("So it is", finish_reason="length").is_complete
    False
    """

    text: str | None
    finish_reason: str | None = None
    tokens: int | None = None
    reasoning: str | None = None
    tool_calls: Sequence[Any] | None = None
    """What it wants to call, as a chat completion's message has it."""
    signals: Mapping[str, float] = field(default_factory=dict)
    """Numbers that say something of its worth, by name: what its log probabilities come to, where they were asked for.

    They are `logprob`, `confidence`, `tail` and `lowest`: those that the server tells enough for.
    """
    final: str | None = None
    """What the model said when it was asked for the answer alone, where it was; those tokens are among its own."""
    final_tokens: int = 0
    final_prompt_tokens: int = 0
    """Of the tokens and prompt tokens, those that asking for the answer alone took."""
    answer: str | None = None
    voter: str | None = None
    """Who of a panel gave it."""
    draw: int = 0
    """Its number among the question's draws, in the order in which they were started."""
    prompt_tokens: int = 0
    """Those of its request; of a request for several, the first has them."""
    seconds: float = 0.0
    """How long its request took, once the server let it in."""
    estimated: bool = False
    """Whether nobody counted the tokens, so that they are estimated by the length."""
    choice: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    """The choice as the server sent it, and the reply around it, for whoever passes them on."""
    reply: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def is_complete(self) -> bool:
        """Whether it ended by itself, and was not cut off."""
        return self.finish_reason not in ("length", "content_filter")

    @property
    def said(self) -> str | None:
        """What is searched for the answer: thoughts stand in only where a server put all that was said among them."""
        return self.text if self.text and self.text.strip() else self.reasoning

    def to_json(self) -> dict[str, Any]:
        """The fields, as JSON has them."""
        return {name: value for name, value in vars(self).items() if name not in ("choice", "reply")}


def typical(responses: Sequence[Response]) -> Response | None:
    """The complete one of median length, and of two such the earlier; one that was cut off only where all were.

    >>> typical([Response("It is 7, as you can see from a long and winding road of thoughts."), Response("7"),
    ...          Response("So it is 7.")]).text
    'So it is 7.'
    """
    said = [one for one in responses if one.is_complete and one.said] or list(responses)
    if not said:
        return None
    by_length = sorted(range(len(said)), key=lambda place: (len(said[place].said or ""), place))
    length = len(said[by_length[(len(said) - 1) // 2]].said or "")
    return next(one for one in said if len(one.said or "") == length)


def first_whole(responses: Sequence[Response]) -> Response | None:
    """Return what stands for a vote without an answer: the first complete response that says something, or any."""
    whole = [one for one in responses if one.is_complete and (one.said or one.tool_calls)]
    return next(iter([*whole, *responses]), None)
