"""The upstream: draws for votes, and requests that are passed on as they are."""

import json
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any

import httpx
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from suffice.gateway import metrics
from suffice.gateway.errors import from_upstream
from suffice.gateway.settings import Settings
from suffice.live.clients import MOST_BYTES
from suffice.live.server import Post, StatusError, TooLongError

_NOT_PASSED_ON = {
    "host", "content-length", "connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding",
    "upgrade", "cookie", "expect", "authorization", "proxy-authorization", "api-key", "x-api-key",
}  # fmt: skip


class Upstream:
    """An HTTP client for the upstream, with its key."""

    def __init__(self, settings: Settings, key: str) -> None:
        self.base_url = settings.upstream.rstrip("/")
        self._key = key
        self._forward_auth = settings.forward_auth
        self._client = httpx.AsyncClient(
            timeout=httpx.Timeout(settings.timeout_seconds, connect=min(10.0, settings.timeout_seconds)),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=settings.max_draws),
            follow_redirects=False,
            trust_env=False,
        )

    async def close(self) -> None:
        """Hang up."""
        await self._client.aclose()

    def poster(self, headers: Mapping[str, str]) -> Post:
        """Sends draws, with what the client sent along."""
        sent = self._headers(headers) | {"content-type": "application/json"}
        sent.pop("accept-encoding", None)
        url = f"{self.base_url}/chat/completions"

        async def post(request: dict[str, Any]) -> bytes:
            body = bytearray()
            begun = time.monotonic()
            draws = request.get("n", 1)
            metrics.IN_FLIGHT.inc(draws)
            try:
                content = json.dumps(request, ensure_ascii=False).encode("utf-8", "surrogatepass")
                async with self._client.stream("POST", url, content=content, headers=sent) as reply:
                    async for chunk in reply.aiter_bytes():
                        body += chunk
                        if len(body) > MOST_BYTES:
                            raise TooLongError(f"a response of more than {MOST_BYTES >> 20} MiB")
            except httpx.TimeoutException:
                raise TimeoutError from None
            except httpx.HTTPError as error:
                raise ConnectionError(str(error) or type(error).__name__) from None
            finally:
                metrics.IN_FLIGHT.dec(draws)
                metrics.UPSTREAM_SECONDS.observe(time.monotonic() - begun)
            if reply.status_code >= 300:
                raise StatusError(reply.status_code, _words(reply.status_code, body), reply.headers, bytes(body))
            return bytes(body)

        return post

    async def ready(self) -> bool:
        """Whether the upstream answers."""
        try:
            reply = await self._client.get(f"{self.base_url}/models", headers=self._headers({}), timeout=5.0)
        except httpx.HTTPError:
            return False
        return reply.status_code < 500

    async def relay(self, request: Request, path: str, content: bytes) -> Response:
        """Pass a request on, and its reply back, as they are."""
        url = f"{self.base_url}{path}" + (f"?{request.url.query}" if request.url.query else "")
        headers = self._headers(request.headers)
        try:
            sent = self._client.build_request(request.method, url, content=content, headers=headers)
            reply = await self._client.send(sent, stream=True)
        except httpx.TimeoutException as error:
            raise from_upstream(TimeoutError(), str(error) or "no reply in time") from None
        except httpx.HTTPError as error:
            raise from_upstream(error, str(error) or type(error).__name__) from None
        return StreamingResponse(_pieces(reply), reply.status_code, _back(reply.headers.items()))

    def _headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        kept = {
            name: value
            for name, value in headers.items()
            if name not in _NOT_PASSED_ON and not name.startswith("x-suffice-")
        }
        mine = headers.get("authorization") if self._forward_auth else f"Bearer {self._key}"
        return kept | ({"authorization": mine} if mine else {})


async def _pieces(reply: httpx.Response) -> AsyncIterator[bytes]:
    """The body as it arrives; whoever stops reading hangs up."""
    try:
        async for chunk in reply.aiter_raw():
            yield chunk
    finally:
        await reply.aclose()


def _back(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    left_out = ("connection", "keep-alive", "transfer-encoding", "date", "server")
    return {name: value for name, value in headers if name.lower() not in left_out}


def _words(status: int, body: bytes | bytearray) -> str:
    """What the upstream said about an error."""
    try:
        return str(json.loads(body)["error"]["message"])
    except (ValueError, LookupError, TypeError, RecursionError):
        return f"status {status}: {body[:200].decode(errors='replace')}"
