"""Dialects: the shapes of requests and replies. Another one is a file beside these, and a line here."""

from suffice.live.dialects.base import Dialect, MalformedError
from suffice.live.dialects.chat import ChatCompletions
from suffice.live.dialects.messages import Messages
from suffice.live.dialects.responses import Responses

DIALECTS: dict[str, Dialect] = {dialect.name: dialect for dialect in (ChatCompletions(), Responses(), Messages())}
CHAT = DIALECTS["chat"]

__all__ = ["CHAT", "DIALECTS", "ChatCompletions", "Dialect", "MalformedError", "Messages", "Responses"]
