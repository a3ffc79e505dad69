"""How a question is put to a model."""

import json
from pathlib import Path
from typing import Any

from suffice.errors import OptionError
from suffice.live.servers.local import NAME
from suffice.paths import is_there

Messages = list[dict[str, Any]]

PAPER = "{question}\n\nPlease reason step by step, and put your final answer within \\boxed{}."

WORKED: Messages = [
    {"role": "user", "content": "What is 12 + 9?"},
    {"role": "assistant", "content": "12 + 9 = 21, so the answer is \\boxed{21}."},
    {"role": "user", "content": "What is 6 * 7?"},
    {"role": "assistant", "content": "6 * 7 = 42, so the answer is \\boxed{42}."},
    {"role": "user", "content": "A box holds 5 pens. How many pens are in 3 boxes?"},
    {"role": "assistant", "content": "3 boxes hold 3 * 5 = 15 pens, so the answer is \\boxed{15}."},
    {"role": "user", "content": "{question}"},
]
"""Worked examples as earlier turns: a very small model boxes its answer only after having seen it done."""

SUITED: dict[str, tuple[str, dict[str, Any]]] = {NAME: ("worked", {"max_tokens": 256})}
"""The prompt and fields of a request that suit a model better than the paper's prompt."""

_NAMED: dict[str, Messages] = {"paper": [{"role": "user", "content": PAPER}], "worked": WORKED}


def get_prompt(spec: str) -> Messages:
    """Return the messages of `paper`, `worked`, a text with {question} in it, or a file with one.

    A file .json has a list of messages with role and content.
    """
    if spec in _NAMED:
        return _NAMED[spec]
    if "{question}" in spec:
        return [{"role": "user", "content": spec}]
    path = Path(spec)
    if not is_there(path):
        raise OptionError(
            f'"{spec}": there is no {{question}} in it, and no such file; give one or the other', "prompt"
        )
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise OptionError(f"{spec}: it can't be read: {error}", "prompt") from None
    if "{question}" not in text:
        raise OptionError(f"{spec}: there is no {{question}} in it, for the question to stand in", "prompt")
    if path.suffix != ".json":
        return [{"role": "user", "content": text}]
    try:
        messages: Messages = json.loads(text)
        whole = all(isinstance(one["role"], str) and isinstance(one["content"], str) for one in messages)
    except (ValueError, TypeError, LookupError):
        whole = False
    if not whole:
        raise OptionError(f"{spec}: it must be a JSON list of objects with role and content", "prompt")
    return messages


def suited(model: str) -> tuple[str, dict[str, Any]]:
    """Return the prompt of a model, and the fields that go with it."""
    return SUITED.get(model, ("paper", {}))


def put(question: str, prompt: Messages) -> Messages:
    return [{**message, "content": message["content"].replace("{question}", question)} for message in prompt]
