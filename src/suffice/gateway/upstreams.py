"""The upstream: draws for votes, and requests that are passed on as they are."""

import asyncio
import json
import os
import time
import zlib
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any

import aiohttp
from multidict import CIMultiDict
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from yarl import URL

from suffice.gateway import metrics
from suffice.gateway.access import proof
from suffice.gateway.errors import from_upstream
from suffice.gateway.settings import Settings
from suffice.live.dialects import Dialect
from suffice.live.limiter import Limiter
from suffice.live.server import MOST_BYTES, Facts, Post, Server, StatusError, TooLongError

_NOT_PASSED_ON = {
    "host", "content-length", "connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding",
    "upgrade", "cookie", "expect", "authorization", "proxy-authorization", "api-key", "x-api-key",
}  # fmt: skip


PLACEHOLDER_KEY = "none"
"""Sent where there is no key: local servers need none."""


class Upstream:
    """An HTTP client for the upstream, with its key and what has been learned of it."""

    def __init__(self, settings: Settings) -> None:
        self.base_url = settings.upstream.rstrip("/")
        self.key = os.environ.get("OPENAI_API_KEY", "").strip() or PLACEHOLDER_KEY
        self._forward_auth = settings.forward_auth
        self._limiter = Limiter(settings.max_draws)
        self._facts = Facts()
        self._fan_out, self._retries = settings.fan_out, settings.retries
        seconds = self._timeout = settings.timeout_seconds
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

    def server(self, request: Request, dialect: Dialect) -> Server:
        """The upstream as one request draws from it."""
        return Server(
            self._poster(request, dialect.path),
            Limiter(self._fan_out, self._limiter),
            self._facts,
            dialect,
            self._retries,
            self._timeout,
            self.key,
        )

    def _poster(self, request: Request, path: str) -> Post:
        """Sends draws, with what the client sent along."""
        sent = self._headers(request.headers)
        sent["content-type"], sent["accept-encoding"] = "application/json", "identity"
        url = self._url(path, request)

        async def post(draw: dict[str, Any], show: Callable[[bytes], None]) -> bytes:
            body = bytearray()
            begun = time.monotonic()
            draws = draw.get("n", 1)
            metrics.IN_FLIGHT.inc(draws)
            try:
                async with self._session.post(
                    url, data=json.dumps(draw).encode(), headers=sent, allow_redirects=False
                ) as reply:
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
            whole = unpacked(bytes(body), reply.headers.get("content-encoding", ""))
            if reply.status >= 300:
                raise self.error_of(reply, whole)
            return whole

        return post

    async def ready(self) -> bool:
        """Whether the upstream answers."""
        limit = aiohttp.ClientTimeout(total=5)
        try:
            async with self._session.get(f"{self.base_url}/models", headers=self._headers(), timeout=limit) as reply:
                return reply.status < 500
        except (aiohttp.ClientError, OSError):
            return False

    async def relay(self, request: Request, path: str, content: bytes) -> Response:
        """Pass a request on, and its reply back, as they are."""
        try:
            reply = await self.open(request, path, content)
        except (ConnectionError, TimeoutError) as error:
            raise from_upstream(error, str(error)) from None
        response = StreamingResponse(_pieces(reply), reply.status)
        response.raw_headers = back(reply.raw_headers)
        return response

    async def open(self, request: Request, path: str, content: bytes, *, plain: bool = False) -> aiohttp.ClientResponse:
        """Send a request on as it is, and wait for the beginning of the reply; `plain` where it must not be packed."""
        headers = self._headers(request.headers)
        if plain:
            headers["accept-encoding"] = "identity"
        url = self._url(path, request)
        for last in (False, True):  # a connection that was kept alive may be dead by now
            try:
                return await self._session.request(
                    request.method, url, data=content or None, headers=headers, allow_redirects=False
                )
            except aiohttp.ServerDisconnectedError as error:
                if last:
                    raise ConnectionError(str(error)) from None
            except (aiohttp.ClientError, OSError) as error:
                raise _our_error(error) from None
        raise AssertionError

    @staticmethod
    def error_of(reply: aiohttp.ClientResponse, body: bytes) -> StatusError:
        """A reply that is an error, as one of ours."""
        headers = {name.lower(): value for name, value in reply.headers.items()}
        return StatusError(reply.status, _words(reply.status, body), headers, body)

    def _url(self, path: str, request: Request) -> URL:
        base = self.base_url.removesuffix("/v1").removesuffix("/openai") if is_azure(path) else self.base_url
        return URL(f"{base}{path}" + (f"?{request.url.query}" if request.url.query else ""), encoded=True)

    def _headers(self, headers: Headers | None = None) -> CIMultiDict[str]:
        """What is sent along, repeated headers and all, with the upstream's own key."""
        headers = headers or Headers()
        named = {name.strip().lower() for name in headers.get("connection", "").split(",")}
        kept = CIMultiDict(
            (name, value)
            for name, value in headers.items()
            if name not in _NOT_PASSED_ON and name not in named and not name.startswith("x-suffice-")
        )
        kept.update(proof(headers, self.key, self._forward_auth))
        return kept


def is_azure(path: str) -> bool:
    """Whether a path has the shape that Azure gives them, which begins above the base URL."""
    return path.startswith("/openai/")


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


def back(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """The headers of a reply that is passed back."""
    left_out = (b"connection", b"keep-alive", b"transfer-encoding", b"upgrade", b"date", b"server")
    return [(name.lower(), value) for name, value in headers if name.lower() not in left_out]


def unpacked(body: bytes, encoding: str) -> bytes:
    """The body of a server that compresses though it was asked not to."""
    try:
        return zlib.decompress(body, 47) if encoding.strip().lower() in ("gzip", "deflate") else body
    except zlib.error:
        return body  # no chat completion, as will be found


def _words(status: int, body: bytes | bytearray) -> str:
    """What the upstream said about an error."""
    try:
        return str(json.loads(body)["error"]["message"])
    except (ValueError, LookupError, TypeError, RecursionError):
        return f"status {status}: {body[:200].decode(errors='replace')}"
