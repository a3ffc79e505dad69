"""Errors in the shape of a dialect, for whoever asked."""

import json
from typing import Any

from starlette.responses import Response

from suffice.live.dialects import Dialect, MalformedError
from suffice.live.dialects.base import as_json
from suffice.live.servers.retry import StatusError, TooLongError

REDIRECTED = "the upstream sends requests on to another address, which is not followed"


class GatewayError(Exception):
    """A request that is not answered, and why."""

    def __init__(
        self, status: int, message: str, *, kind: str = "invalid_request_error", param: str | None = None,
        code: str | None = None, headers: dict[str, str] | None = None, body: bytes = b"", reply: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(message)
        self.status = status
        self.headers = headers or {}
        self.brief = code or kind
        """What is said of it in the log, where no text of others belongs."""
        self._told = (message, kind, param, code)
        self._reply = {} if reply is None else {"reply": reply}
        """The id of the reply that is kept back."""
        self._body: dict[str, Any] | None = json.loads(body) if body else None

    def payload(self, dialect: Dialect) -> dict[str, Any]:
        """Return the upstream's own error if the dialect knows its shape, else ours in the dialect's."""
        told = dialect.error(*self._told)
        if self._body and told.get("type") in (None, self._body.get("type")):
            return self._body
        return {**told, "error": {**told["error"], **self._reply}}

    def response(self, dialect: Dialect) -> Response:
        return Response(as_json(self.payload(dialect)), self.status, self.headers, "application/json")


def from_upstream(cause: Exception | None, message: str) -> GatewayError:
    """Return the error for a client: the upstream's status and words, if it sent any."""
    if isinstance(cause, StatusError) and cause.status < 400:
        return GatewayError(502, REDIRECTED, kind="upstream_error", code="redirected")
    if isinstance(cause, StatusError):
        headers = {name: cause.headers[name] for name in ("retry-after",) if name in cause.headers}
        body = b"" if message_in(cause.body) is None else cause.body
        return GatewayError(cause.status, message, kind="upstream_error", headers=headers, body=body)
    if isinstance(cause, TimeoutError):
        return GatewayError(504, f"the upstream is too slow: {message}", kind="upstream_error", code="timeout")
    if isinstance(cause, MalformedError | TooLongError):
        return GatewayError(502, "the upstream's reply can't be read", kind="upstream_error", code="bad_reply")
    return GatewayError(502, f"the upstream can't be reached: {message}", kind="upstream_error", code="unreachable")


def message_in(body: bytes) -> str | None:
    """Return the message of an error in OpenAI's or Anthropic's shape; None if there is none."""
    try:
        message = json.loads(body)["error"]["message"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
    return message if isinstance(message, str) else None
