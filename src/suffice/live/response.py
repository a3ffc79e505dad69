"""A response, and how it is read from what a server sends."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from suffice.answers import Extractor, ToolExtractor


@dataclass(frozen=True)
class Response:
    """One sampled completion; `reasoning` is what the model thought aloud, apart from its text."""

    text: str | None
    finish_reason: str | None = None
    tokens: int | None = None
    reasoning: str | None = None
    answer: str | None = None
    draw: int = 0
    """Its number among the question's draws, in the order in which they were started."""
    prompt_tokens: int = 0
    """Those of its request; of a request for several, the first has them."""
    seconds: float = 0.0
    """How long its request took."""
    choice: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    """The choice as the server sent it, and the completion around it, for whoever passes them on."""
    completion: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def to_json(self) -> dict[str, Any]:
        """The fields, as JSON has them."""
        return {name: value for name, value in vars(self).items() if name not in ("choice", "completion")}

    def extract(self, extractor: Extractor) -> str | None:
        """The final answer as it was written; None where the response was cut off or gave none."""
        if self.finish_reason in ("length", "content_filter"):
            return None
        if isinstance(extractor, ToolExtractor):
            return extractor.extract(self.choice.get("message", {}).get("tool_calls"))
        # Thoughts stand in only where a server put all that the model said among them.
        said = self.text if self.text and self.text.strip() else self.reasoning
        found = extractor(said) if said else None
        return None if found is None else str(found)


class MalformedError(Exception):
    """What a server sent is no chat completion."""


def read_responses(body: bytes, asked: int) -> list[Response]:
    """The responses in the body of a chat completion, at most as many as were asked for."""
    try:
        message = json.loads(body)
        choices = message["choices"][:asked]
        read = [_read_choice(choice) for choice in choices]
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        raise MalformedError(f"no chat completion: {body[:80].decode(errors='replace')!r}") from None
    if not read:
        raise MalformedError("a chat completion with no choices")
    usage = message.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    counts = _share_out(_whole(usage.get("completion_tokens")), read, "timings" in message)
    responses = [
        Response(text, finish_reason, tokens, reasoning, choice=choice, completion=message)
        for (text, reasoning, finish_reason), tokens, choice in zip(read, counts, choices, strict=True)
    ]
    responses[0] = replace(responses[0], prompt_tokens=_whole(usage.get("prompt_tokens")) or 0)
    return responses


def _read_choice(choice: Any) -> tuple[str | None, str | None, str | None]:
    """The text, the reasoning and the finish reason of one choice."""
    message = choice["message"]
    text = message.get("content")
    reasoning = message.get("reasoning_content") or message.get("reasoning")
    if text is not None and not isinstance(text, str):
        raise TypeError
    if text is not None and ("</think>" in text or text.lstrip().startswith("<think>")):
        # A server that does not take the thoughts out of the text itself; some leave out where they begin.
        reasoning, ended, text = text.lstrip().removeprefix("<think>").rpartition("</think>")
        reasoning, text = (reasoning, text) if ended else (text, None)
    return _whole_characters(text), _whole_characters(reasoning), choice.get("finish_reason")


def _whole_characters(text: Any) -> str | None:
    """The text with halves of characters replaced, which no file could hold."""
    if not isinstance(text, str):
        return None
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _whole(count: Any) -> int | None:
    return count if isinstance(count, int) and not isinstance(count, bool) and count >= 0 else None


def _share_out(
    total: int | None, read: Sequence[tuple[str | None, str | None, str | None]], counts_one: bool
) -> list[int | None]:
    """The tokens of each choice, of which a server tells the sum: in proportion to length.

    llama.cpp, known by its `timings`, tells those of the first choice alone.
    """
    if total is None:
        return [None] * len(read)
    lengths = [len(text or "") + len(reasoning or "") for text, reasoning, _ in read]
    if counts_one:
        return [total, *(round(total * length / max(lengths[0], 1)) for length in lengths[1:])]
    ends = [round(total * sum(lengths[: place + 1]) / max(sum(lengths), 1)) for place in range(len(lengths))]
    ends[-1] = total
    return [end - start for start, end in zip([0, *ends], ends, strict=False)]
