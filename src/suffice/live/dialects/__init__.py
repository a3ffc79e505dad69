"""Dialects: the shapes of requests and replies. Another one is a file beside these, or of yours, that registers it."""

from suffice.live.dialects.base import ClientRequest, Dialect, FieldError, MalformedError
from suffice.live.dialects.chat import CHAT
from suffice.live.dialects.messages import MESSAGES
from suffice.live.dialects.responses import RESPONSES

DIALECTS: dict[str, Dialect] = {one.name: one for one in (CHAT, RESPONSES, MESSAGES)}


def register_dialect(dialect: Dialect) -> Dialect:
    """Route a dialect in the gateway, and draw from upstreams that speak it.

    A gateway that is made afterwards knows it; `suffice --import my_dialect.py serve` is one.
    """
    DIALECTS[dialect.name] = dialect
    return dialect


__all__ = [
    "CHAT",
    "DIALECTS",
    "MESSAGES",
    "RESPONSES",
    "ClientRequest",
    "Dialect",
    "FieldError",
    "MalformedError",
    "register_dialect",
]
