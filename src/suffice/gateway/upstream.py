"""The upstream: draws for votes, and requests that are passed on as they are."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from typing import Any

import aiohttp
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from yarl import URL

from suffice.gateway import metrics
from suffice.gateway.errors import from_upstream
from suffice.gateway.settings import Settings
from suffice.live.server import MOST_BYTES, Post, StatusError, TooLongError

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
        seconds = settings.timeout_seconds
        self._session = aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(total=None, sock_read=seconds, sock_connect=min(10.0, seconds)),
            connector=aiohttp.TCPConnector(limit=0),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            skip_auto_headers=["Accept-Encoding", "Content-Type"],
        )

    async def close(self) -> None:
        """Hang up."""
        await self._session.close()

    def poster(self, headers: Mapping[str, str]) -> Post:
        """Sends draws, with what the client sent along."""
        sent = self._headers(headers) | {"content-type": "application/json", "accept-encoding": "identity"}
        url = URL(f"{self.base_url}/chat/completions", encoded=True)

        async def post(request: dict[str, Any], show: Callable[[bytes], None]) -> bytes:
            body = bytearray()
            begun = time.monotonic()
            draws = request.get("n", 1)
            metrics.IN_FLIGHT.inc(draws)
            try:
                async with self._session.post(url, data=json.dumps(request).encode(), headers=sent) as reply:
                    async for chunk in reply.content.iter_any():
                        body += chunk
                        show(chunk)
                        if len(body) > MOST_BYTES:
                            raise TooLongError(f"a response of more than {MOST_BYTES >> 20} MiB")
            except (aiohttp.ClientError, OSError) as error:
                raise _our_error(error) from None
            finally:
                metrics.IN_FLIGHT.dec(draws)
                metrics.UPSTREAM_SECONDS.observe(time.monotonic() - begun)
            if reply.status >= 300:
                headers = {name.lower(): value for name, value in reply.headers.items()}
                raise StatusError(reply.status, _words(reply.status, body), headers, bytes(body))
            return bytes(body)

        return post

    async def ready(self) -> bool:
        """Whether the upstream answers."""
        limit = aiohttp.ClientTimeout(total=5)
        try:
            async with self._session.get(f"{self.base_url}/models", headers=self._headers({}), timeout=limit) as reply:
                return reply.status < 500
        except (aiohttp.ClientError, OSError):
            return False

    async def relay(self, request: Request, path: str, content: bytes) -> Response:
        """Pass a request on, and its reply back, as they are."""
        url = URL(f"{self.base_url}{path}" + (f"?{request.url.query}" if request.url.query else ""), encoded=True)
        reply = None
        for last in (False, True):  # a connection that was kept alive may be dead by now
            try:
                reply = await self._session.request(
                    request.method, url, data=content or None, headers=self._headers(request.headers),
                    allow_redirects=False,
                )  # fmt: skip
                break
            except aiohttp.ServerDisconnectedError as error:
                if last:
                    raise from_upstream(error, str(error)) from None
            except (aiohttp.ClientError, OSError) as error:
                ours = _our_error(error)
                raise from_upstream(ours, str(ours)) from None
        assert reply is not None  # noqa: S101
        return StreamingResponse(_pieces(reply), reply.status, _back(reply.headers.items()))

    def _headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        kept = {
            name: value
            for name, value in headers.items()
            if name not in _NOT_PASSED_ON and not name.startswith("x-suffice-")
        }
        mine = headers.get("authorization") if self._forward_auth else f"Bearer {self._key}"
        return kept | ({"authorization": mine} if mine else {})


def _our_error(error: Exception) -> Exception:
    """What the HTTP library raised, as an error of ours."""
    if isinstance(error, asyncio.TimeoutError):
        return TimeoutError("no reply in time")
    return ConnectionError(str(error) or type(error).__name__)


async def _pieces(reply: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """The body as it arrives; whoever stops reading hangs up."""
    try:
        async for chunk in reply.content.iter_any():
            yield chunk
    finally:
        reply.close()


def _back(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    left_out = ("connection", "keep-alive", "transfer-encoding", "date", "server")
    return {name: value for name, value in headers if name.lower() not in left_out}


def _words(status: int, body: bytes | bytearray) -> str:
    """What the upstream said about an error."""
    try:
        return str(json.loads(body)["error"]["message"])
    except (ValueError, LookupError, TypeError, RecursionError):
        return f"status {status}: {body[:200].decode(errors='replace')}"
