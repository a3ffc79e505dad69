"""Errors in OpenAI's shape, for whoever asked."""

import json
from typing import Any

from starlette.responses import Response

from suffice.live.response import MalformedError
from suffice.live.server import StatusError, TooLongError, masked


class GatewayError(Exception):
    """A request that is not answered, and why."""

    def __init__(
        self, status: int, message: str, *, kind: str = "invalid_request_error", param: str | None = None,
        code: str | None = None, headers: dict[str, str] | None = None, body: bytes = b"",
    ) -> None:  # fmt: skip
        super().__init__(message)
        self.status = status
        self.headers = headers or {}
        self.brief = code or kind
        """What is said of it in the log, where no text of others belongs."""
        self.payload: dict[str, Any] = {"error": {"message": message, "type": kind, "param": param, "code": code}}
        if body:
            self.payload = json.loads(body)

    def response(self) -> Response:
        """The error as a reply."""
        return Response(as_json(self.payload), self.status, self.headers, "application/json")


def as_json(payload: Any) -> bytes:
    """JSON in UTF-8; with escapes where there is half a character in it, as JSON may have."""
    try:
        return json.dumps(payload, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return json.dumps(payload).encode()


def from_upstream(cause: Exception | None, message: str, secret: str = "") -> GatewayError:
    """What became of the upstream, as an error of ours: its own status and words where it had any."""
    if isinstance(cause, StatusError):
        headers = {name: cause.headers[name] for name in ("retry-after",) if name in cause.headers}
        body = masked(_openai_error(cause.body).decode(errors="replace"), secret).encode()
        return GatewayError(cause.status, message, kind="upstream_error", headers=headers, body=body)
    if isinstance(cause, TimeoutError):
        return GatewayError(504, f"the upstream is too slow: {message}", kind="upstream_error", code="timeout")
    if isinstance(cause, MalformedError | TooLongError):
        return GatewayError(502, "the upstream's reply is no chat completion", kind="upstream_error", code="bad_reply")
    return GatewayError(502, f"the upstream can't be reached: {message}", kind="upstream_error", code="unreachable")


def _openai_error(body: bytes) -> bytes:
    """The body of an error, if it has OpenAI's shape."""
    try:
        shaped = isinstance(json.loads(body)["error"]["message"], str)
    except (ValueError, LookupError, TypeError, RecursionError):
        shaped = False
    return body if shaped else b""
