"""Dialects: the shapes of requests and replies; `register_dialect` adds another one."""

from suffice.live.dialects.base import ClientRequest as ClientRequest
from suffice.live.dialects.base import Dialect as Dialect
from suffice.live.dialects.base import FieldError as FieldError
from suffice.live.dialects.base import MalformedError as MalformedError
from suffice.live.dialects.chat import CHAT as CHAT
from suffice.live.dialects.messages import MESSAGES
from suffice.live.dialects.responses import RESPONSES

DIALECTS: dict[str, Dialect] = {one.name: one for one in (CHAT, RESPONSES, MESSAGES)}


def register_dialect(dialect: Dialect) -> Dialect:
    """Route a dialect in the gateway, and draw from upstreams that speak it.

    A gateway that is made afterwards knows it; `suffice --import my_dialect.py serve` is one.
    """
    DIALECTS[dialect.name] = dialect
    return dialect
