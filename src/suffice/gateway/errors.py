"""Errors in OpenAI's shape, for whoever asked."""

import json
from typing import Any

from starlette.responses import Response

from suffice.live.server import StatusError


class GatewayError(Exception):
    """A request that is not answered, and why."""

    def __init__(
        self, status: int, message: str, *, kind: str = "invalid_request_error", param: str | None = None,
        code: str | None = None, headers: dict[str, str] | None = None, body: bytes = b"",
    ) -> None:  # fmt: skip
        super().__init__(message)
        self.status = status
        self.headers = headers or {}
        self.payload: dict[str, Any] = {"error": {"message": message, "type": kind, "param": param, "code": code}}
        if body:
            self.payload = json.loads(body)

    def response(self) -> Response:
        """The error as a reply."""
        return Response(json.dumps(self.payload), self.status, self.headers, "application/json")


def from_upstream(cause: Exception | None, message: str) -> GatewayError:
    """What became of the upstream, as an error of ours: its own status and words where it had any."""
    if isinstance(cause, StatusError):
        headers = {name: cause.headers[name] for name in ("retry-after",) if name in cause.headers}
        return GatewayError(
            cause.status, message, kind="upstream_error", headers=headers, body=_openai_error(cause.body)
        )
    if isinstance(cause, TimeoutError):
        return GatewayError(504, f"the upstream is too slow: {message}", kind="upstream_error", code="timeout")
    return GatewayError(502, f"the upstream can't be reached: {message}", kind="upstream_error", code="unreachable")


def _openai_error(body: bytes) -> bytes:
    """The body of an error, if it has OpenAI's shape."""
    try:
        shaped = isinstance(json.loads(body)["error"]["message"], str)
    except (ValueError, LookupError, TypeError, RecursionError):
        shaped = False
    return body if shaped else b""
