"""Dialects: the shapes of requests and replies. Another one is a file beside these, and a line here."""

from suffice.live.dialects.base import Dialect, MalformedError
from suffice.live.dialects.chat import ChatCompletions

DIALECTS: dict[str, Dialect] = {dialect.name: dialect for dialect in (ChatCompletions(),)}
CHAT = DIALECTS["chat"]

__all__ = ["CHAT", "DIALECTS", "ChatCompletions", "Dialect", "MalformedError"]
