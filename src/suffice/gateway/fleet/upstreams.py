"""The upstreams: which one gets a request, and how it is sent there."""

import asyncio
import json
import re
import time
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from functools import cache, partial
from math import inf
from typing import Any
from urllib.parse import urlsplit

import aiohttp
from multidict import CIMultiDict
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from yarl import URL

from suffice.gateway.errors import REDIRECTED, message_in
from suffice.gateway.exchange import Exchange, SentTo
from suffice.gateway.keys import KEY_HEADERS
from suffice.gateway.operations import metrics
from suffice.gateway.settings import LOOPBACK, Settings
from suffice.live.dialects import Dialect
from suffice.live.dialects.base import as_json
from suffice.live.dialects.sse import MOST_BYTES
from suffice.live.servers.gate import Limiter
from suffice.live.servers.hosts import Fleet, Host
from suffice.live.servers.retry import RetryPolicy, StatusError, TooLongError
from suffice.live.servers.server import Post, QuestionContext, Server, masked
from suffice.live.servers.targets import Target
from suffice.live.tracing import TRACING
from suffice.panel.live import Panel

_NOT_PASSED_ON = {
    "host", "content-length", "connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding",
    "upgrade", "cookie", "expect", "authorization", "proxy-authorization", "api-key", "x-api-key", "x-goog-api-key",
}  # fmt: skip

REDIRECTS = (301, 302, 303, 307, 308)

PROBE_SECONDS = 5.0
CONNECT_SECONDS = 10.0  # beyond that nobody answers there: another upstream is asked

SLACK_SECONDS = 0.05  # after a deadline: whoever waits for the beginning of a reply reports it first

WATCH_SECONDS = 0.1
"""Seconds between two looks at the upstreams that are set aside."""


class Upstream:
    """One upstream, with its key, as one of a fleet."""

    def __init__(self, target: Target, name: str, session: aiohttp.ClientSession, settings: Settings) -> None:
        self.key = target.key
        limiter = Limiter(settings.max_draws)
        self.host = Host(
            name, secret=self.key, weight=target.weight, models=target.models, limiter=limiter, probed=True
        )
        self._base_url = target.url.rstrip("/")
        self._address = _address(self._base_url)
        self._session = session
        self._settings = settings
        self._in_flight = metrics.UPSTREAM_IN_FLIGHT.labels(name)

    def poster(self, request: Request, known: "Known") -> Post:
        """Sends draws, with what the client sent along."""
        headers = self._headers(request.headers)
        headers["content-type"], headers["accept-encoding"] = "application/json", "identity"

        async def post(path: str, draw: dict[str, Any], feed: Callable[[bytes], object]) -> None:
            packed = bytearray()
            begun = time.monotonic()
            wanted = draw.get("n")  # which only chat completions have: elsewhere it is whatever the client sent
            draws = wanted if isinstance(wanted, int) and wanted > 0 else 1
            metrics.IN_FLIGHT.inc(draws)
            self._in_flight.inc(draws)
            try:
                reply = await self._send("POST", self._url(path, request), encoded(draw, known), headers)
                encoding = reply.headers.get("content-encoding", "").strip().lower()
                async with aclosing(pieces_of(reply)) as chunks:
                    async for chunk in chunks:
                        if encoding in PACKED:
                            packed += chunk
                        else:
                            feed(chunk)
            finally:
                metrics.IN_FLIGHT.dec(draws)
                self._in_flight.dec(draws)
                metrics.UPSTREAM_SECONDS.observe(time.monotonic() - begun)
            feed(unpacked(bytes(packed), encoding))

        return post

    async def models(self) -> tuple[int, dict[str, Any]]:
        """Ask for its models: the status, 0 for no reply, and the object, if it is one."""
        limit = aiohttp.ClientTimeout(total=PROBE_SECONDS)
        headers = self._headers()
        headers["accept-encoding"] = "identity"
        try:
            async with self._session.get(f"{self._base_url}/models", headers=headers, timeout=limit) as reply:
                read = json.loads(await reply.content.read(MOST_BYTES)) if reply.status == 200 else {}
                return reply.status, read if isinstance(read, dict) else {}
        except (aiohttp.ClientError, OSError, ValueError, RecursionError):
            return 0, {}

    async def open(
        self, request: Request, path: str, content: bytes, ends: float, *, plain: bool = False
    ) -> aiohttp.ClientResponse:
        """Send a request on as it is; return the reply when it begins, which is `plain` if it must not be compressed.

        An error, or the address of another server, raises a StatusError. The body can be read until the deadline.
        """
        headers = self._headers(request.headers)
        if plain:
            headers["accept-encoding"] = "identity"
        return await self._send(request.method, self._url(path, request), [content], headers, ends)

    async def _send(
        self, method: str, url: URL, pieces: Sequence[bytes], headers: CIMultiDict[str], ends: float = inf
    ) -> aiohttp.ClientResponse:
        data, sized = _data(pieces, TRACING.passed_on(headers))
        quiet = self._settings.timeout_seconds
        left = None if ends == inf else max(0.0, ends - time.monotonic()) + SLACK_SECONDS
        limits = aiohttp.ClientTimeout(total=left, sock_read=quiet, sock_connect=min(CONNECT_SECONDS, quiet))
        try:
            reply = await self._session.request(
                method, url, data=data or None, headers=sized, allow_redirects=False, timeout=limits
            )
        except (aiohttp.ClientError, OSError) as error:
            raise our_error(error) from None
        status = reply.status if 100 <= reply.status < 600 else 502  # HTTP has no other
        if status < 400 and status not in REDIRECTS:
            return reply
        body = b"".join([piece async for piece in pieces_of(reply)])
        if status < 400:
            raise StatusError(status, REDIRECTED, {})
        words = unpacked(body, reply.headers.get("content-encoding", "")).decode("utf-8", "surrogateescape")
        without = self._address.sub(self.host.name, masked(words, self.key))  # our key and our address
        clean = without.encode("utf-8", "surrogateescape")
        shown = clean[:200].decode(errors="replace")
        told = {name.lower(): value for name, value in reply.headers.items()}
        raise StatusError(status, message_in(clean) or f"status {reply.status}: {shown}", told, clean)

    def _url(self, path: str, request: Request) -> URL:
        base, query = self._base_url, request.scope["query_string"].decode()
        if path.startswith("/openai/"):  # the shape that Azure gives paths, which begins above the base URL
            base = base.removesuffix("/v1").removesuffix("/openai")
        return URL(f"{base}{path}" + (f"?{query}" if query else ""), encoded=True)

    def _headers(self, headers: Headers | None = None) -> CIMultiDict[str]:
        """Return the client's headers, also repeated ones, with the upstream's key."""
        headers = headers or Headers()
        named = {name.strip().lower() for name in headers.get("connection", "").split(",")}
        kept = CIMultiDict(
            (name, value)
            for name, value in headers.items()
            if name not in _NOT_PASSED_ON and name not in named and not name.startswith("x-suffice-")
        )
        kept.update(_credentials(headers, self.key, self._settings.forward_auth))
        return kept


class Upstreams:
    """All upstreams: a question goes to one of them, and stays there as long as that one answers."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            skip_auto_headers=["Accept-Encoding", "Content-Type"],
        )
        upstreams = [
            Upstream(target, f"upstream-{number}", self._session, settings)
            for number, target in enumerate(settings.targets, 1)
        ]
        self.by_host = {one.host: one for one in upstreams}
        self.fleet = Fleet(list(self.by_host))
        self._retry = RetryPolicy(settings.retries, interactive=True)
        self._watching = asyncio.create_task(self._watch())

    async def close(self) -> None:
        self._watching.cancel()
        await asyncio.wait({self._watching})
        await self._session.close()

    def voters(
        self, exchange: Exchange, dialect: Dialect, panel: Panel, ends: float, patience: float
    ) -> dict[str, Server]:
        """The upstream of each voter of a panel, by name."""
        apart = iter(self.fleet.hosts[len(self.fleet.hosts) - sum(bool(one.base_url) for one in panel.voters) :])
        fleets = {one.name: Fleet([next(apart)]) if one.base_url else None for one in panel.voters}
        asked = partial(self.server, exchange, dialect, ends=ends, patience=patience)
        return {one.name: asked(one.model, fleet=fleets[one.name]) for one in panel.voters}

    def server(
        self,
        exchange: Exchange,
        dialect: Dialect,
        model: str | None,
        ends: float,
        patience: float | None = None,
        fleet: Fleet | None = None,
    ) -> Server:
        """The upstreams, or some of them, as one question draws from them."""
        settings, request = self._settings, exchange.request
        known: Known = {}

        def on_attempt(host: Host, again: bool) -> None:
            exchange.add(SentTo(host.name))
            metrics.RETRIES.inc(again)

        return Server(
            fleet or self.fleet,
            cache(lambda host: self.by_host[host].poster(request, known)),
            Limiter(min(settings.fan_out, settings.max_draws)),
            dialect,
            self._retry.for_patience(settings.patience if patience is None else patience),
            settings.timeout_seconds,
            model,
            key=(request.headers.get("authorization") or "") if settings.forward_auth else "",
            exact_usage=settings.exact_usage,
            question=QuestionContext(ends, on_attempt=on_attempt),
        )

    async def ready(self) -> bool:
        """Whether one of the upstreams answers, and lets us in."""
        asking = [asyncio.create_task(upstream.models()) for upstream in self.by_host.values()]
        try:
            for answered in asyncio.as_completed(asking):
                if (await answered)[0] == 200:
                    return True
            return False
        finally:
            for task in asking:
                task.cancel()

    async def models(self) -> Response | None:
        """List the models of all upstreams; None if there is one upstream, or none answers."""
        panel = self._settings.voters
        if len(self.by_host) == 1 and not panel:
            return None
        told = await asyncio.gather(*(upstream.models() for upstream in self.by_host.values()))
        union: dict[str, Any] = {}
        for host, (_, listed) in zip(self.by_host, told, strict=True):
            data = listed.get("data")
            for model in data if isinstance(data, list) else []:
                if isinstance(model, dict) and isinstance(model.get("id"), str) and host.serves(model["id"]):
                    union.setdefault(model["id"], model)
        if panel:
            union[panel.name] = {"id": panel.name, "object": "model", "owned_by": "suffice"}
        if all(status != 200 for status, _ in told):
            return None
        return Response(as_json({"object": "list", "data": list(union.values())}), media_type="application/json")

    def summary(self) -> list[dict[str, Any]]:
        """Return the state of the upstreams, by number: clients see no addresses."""
        return [{"name": host.name, "healthy": not host.is_aside, "in_flight": host.load} for host in self.by_host]

    async def _watch(self) -> None:
        """Probe those who are set aside, when it is time."""
        while True:
            for host in self.by_host:
                metrics.UPSTREAM_HEALTHY.labels(host.name).set(not host.is_aside)
            due = [one for one in self.by_host.values() if one.host.is_aside and one.host.probe_due <= time.monotonic()]
            await asyncio.gather(*map(self._probe, due))
            await asyncio.sleep(WATCH_SECONDS)

    @staticmethod
    async def _probe(upstream: Upstream) -> None:
        """Try an upstream that is set aside; to have no list of models is an answer too."""
        status, _ = await upstream.models()
        if 0 < status < 500 and status not in (401, 403, 429):
            upstream.host.take_back()
        else:
            upstream.host.set_aside()


def _credentials(headers: Mapping[str, str], key: str, forward: bool) -> dict[str, str]:
    """Put the upstream's key where the client's was, or with `forward` the client's own."""
    if forward:
        return {name: headers[name] for name in ("authorization", *KEY_HEADERS) if name in headers}
    anthropic = {"x-api-key"} if "anthropic-version" in headers else set()
    places = [name for name in KEY_HEADERS if name in headers or name in anthropic]
    return {"authorization": f"Bearer {key}", **dict.fromkeys(places, key)}


def _data(pieces: Sequence[bytes], headers: CIMultiDict[str]) -> tuple[Any, CIMultiDict[str]]:
    """Return the body and its headers; a long body is sent in slices, with its length."""
    length = sum(map(len, pieces))
    if length <= SLICE:
        return b"".join(pieces), headers
    sized = headers.copy()
    sized["content-length"] = str(length)
    return _sent(pieces), sized


def _address(base_url: str) -> re.Pattern[str]:
    """Match the address of an upstream: with its port, or by a name that is no common word."""
    parts = urlsplit(base_url)
    host = parts.hostname or ""
    shown = f"[{host}]" if ":" in host else host
    port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    names = [f"{re.escape(shown)}:{port}"] + [re.escape(shown)] * (host not in LOOPBACK and bool(set(".:") & set(host)))
    return re.compile(rf"(?<![\w.-])(?:https?://)?(?:{'|'.join(names)})(?![\w-])", re.IGNORECASE)


def our_error(error: Exception) -> Exception:
    """Return an error of aiohttp as one of ours, which names no host."""
    if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError):
        return ConnectionRefusedError("nobody answers there")
    if isinstance(error, aiohttp.SocketTimeoutError):
        return TimeoutError("it sent nothing for timeout_seconds")
    if isinstance(error, asyncio.TimeoutError):
        return TimeoutError()
    return ConnectionError("the connection broke off")


async def pieces_of(reply: aiohttp.ClientResponse, *, bounded: bool = True) -> AsyncGenerator[bytes, None]:
    """Yield the body as it arrives, if it is not too long; to stop reading closes the connection."""
    size = 0
    try:
        async for chunk in reply.content.iter_any():
            size += len(chunk)
            if bounded and size > MOST_BYTES:
                raise TooLongError(f"a response of more than {MOST_BYTES >> 20} MiB")
            yield chunk
    except (aiohttp.ClientError, OSError) as error:
        raise our_error(error) from None
    finally:
        reply.close()


PACKED = ("gzip", "deflate")
"""Encodings of a reply that is read when it is whole."""


def unpacked(body: bytes, encoding: str) -> bytes:
    """Unpack the body of a server that compresses though it was asked not to."""
    try:
        return zlib.decompress(body, 47) if encoding.strip().lower() in PACKED else body
    except zlib.error:
        return body  # no chat completion, as will be found


SLICE = 1 << 16
"""Bytes of a piece of a long body: no connection keeps a copy of the whole."""


Known = dict[str, tuple[Any, bytes]]
"""Members of a request by name: the value, and its JSON."""


def encoded(body: Mapping[str, Any], known: Known) -> list[bytes]:
    """Encode an object in pieces. Draws of a question differ in little, as in a seed: they share what is known.

    >>> known, messages = {}, [{"role": "user", "content": "What is 6 * 7?"}]
    >>> first, second = (encoded({"messages": messages, "n": draws}, known) for draws in (4, 8))
    >>> b"".join(second)
    b'{"messages": [{"role": "user", "content": "What is 6 * 7?"}], "n": 8}'
    >>> first[1] is second[1]
    True
    """
    pieces = []
    before = b"{"
    for name, value in body.items():
        if name not in known or known[name][0] is not value:
            known[name] = value, json.dumps(value).encode()
        pieces += [before + json.dumps(name).encode() + b": ", known[name][1]]
        before = b", "
    return [*pieces, b"}" if body else b"{}"]


async def _sent(pieces: Sequence[bytes]) -> AsyncIterator[memoryview]:
    for piece in pieces:
        view = memoryview(piece)
        for start in range(0, len(view), SLICE):
            yield view[start : start + SLICE]
