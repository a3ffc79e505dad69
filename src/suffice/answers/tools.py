"""Tool calls as answers: what an agent is about to do, in one spelling."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from suffice.errors import OptionError

NO_CALL = "no tool call"
"""The answer of a response that calls none."""


@dataclass(frozen=True)
class ToolExtractor:
    """Reads a response's tool calls: their names and arguments, or the names alone, less arguments to ignore."""

    names_only: bool = False
    ignore: frozenset[str] = frozenset()

    def __call__(self, text: str) -> str | None:
        """The answer in tool calls that are written as JSON."""
        try:
            return self.extract(json.loads(text))
        except (ValueError, RecursionError):
            return None

    def extract(self, tool_calls: Any) -> str | None:
        """The answer in a message's `tool_calls`; None where they can't be read.

        To call no tool is a choice too, and has votes of its own.
        """
        if not tool_calls:
            return NO_CALL
        try:
            return " ".join([self._call(call["function"]) for call in tool_calls])
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
            return None

    def _call(self, function: dict[str, Any]) -> str:
        if self.names_only:
            return str(function["name"])
        arguments = json.loads(function.get("arguments") or "{}")
        kept = {name: value for name, value in arguments.items() if name not in self.ignore}
        return f"{function['name']}({json.dumps(_plain(kept), sort_keys=True, ensure_ascii=False)})"


def _plain(value: Any) -> Any:
    """The same value, with whole numbers written as such."""
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_plain(part) for part in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def tool_extractor(answer: str, ignore: Sequence[str] = ()) -> ToolExtractor:
    """The extractor that `tool` or `tool:name` describes."""
    if answer not in ("tool", "tool:name"):
        raise OptionError(f'unknown extractor "{answer}": for tool calls there are tool and tool:name')
    return ToolExtractor(answer == "tool:name", frozenset(ignore))
