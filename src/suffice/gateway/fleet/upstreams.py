"""The upstreams: which of them a request goes to, draws for votes, and requests that are passed on as they are."""

import asyncio
import time
from collections.abc import AsyncGenerator
from typing import Any

import aiohttp
from starlette.requests import Request
from starlette.responses import Response

from suffice.gateway.door import Exchange
from suffice.gateway.errors import from_upstream
from suffice.gateway.events import Passed
from suffice.gateway.fleet.transport import Encoder, Upstream, back, bounded, pieces_of, unpacked
from suffice.gateway.operations import metrics
from suffice.gateway.operations.shared import SharedCounters, SharedLimiter
from suffice.gateway.settings import Settings
from suffice.live.dialects import Wire
from suffice.live.dialects.base import as_json
from suffice.live.servers.gate import Limiter
from suffice.live.servers.hosts import Fleet, Host
from suffice.live.servers.server import Server, TooLongError
from suffice.panel.live import Panel

WATCH_SECONDS = 0.1
"""How often it is seen to that those who are set aside are probed in time."""

REDIRECTS = (301, 302, 303, 307, 308)
"""With these an upstream names another address, which is nobody's business."""

ELSEWHERE = (401, 403, 404, 408, 429)
"""With these, as with 5xx, an upstream leaves it open whether another one would answer."""


class Upstreams:
    """All upstreams: a question goes to one of them, and stays there as long as that one answers."""

    def __init__(self, settings: Settings, counters: SharedCounters | None = None) -> None:
        self._settings = settings
        seconds = settings.timeout_seconds
        self._session = aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(total=None, sock_read=seconds, sock_connect=min(10.0, seconds)),
            connector=aiohttp.TCPConnector(limit=0),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            skip_auto_headers=["Accept-Encoding", "Content-Type"],
        )
        upstreams = [
            Upstream(target, f"upstream-{number}", self._session, settings.forward_auth, settings.max_draws)
            for number, target in enumerate(settings.targets, 1)
        ]
        for number, one in enumerate(upstreams):
            if counters:
                one.host.limiter = SharedLimiter(settings.max_draws, counters, number)
        self._of = {one.host: one for one in upstreams}
        self._fleet = Fleet(list(self._of))
        self._watching = asyncio.create_task(self._watch())

    async def close(self) -> None:
        """Hang up."""
        self._watching.cancel()
        await asyncio.wait({self._watching})
        await self._session.close()

    def of(self, server: Server) -> Upstream:
        """The upstream where a question is asked now."""
        return self._of[server.host]

    def voters(self, request: Request, wire: Wire, panel: Panel, ends: float) -> dict[str, Server]:
        """The upstream of each voter of a panel, by name."""
        apart = iter(self._fleet.hosts[len(self._fleet.hosts) - sum(bool(one.base_url) for one in panel.voters) :])
        fleets = {one.name: Fleet([next(apart)]) if one.base_url else None for one in panel.voters}
        return {one.name: self.server(request, wire, one.model, ends, fleets[one.name]) for one in panel.voters}

    def server(
        self, request: Request, wire: Wire, model: str | None, ends: float, fleet: Fleet | None = None
    ) -> Server:
        """The upstreams, or some of them, as one question draws from them."""
        settings = self._settings
        encoder = Encoder()
        return Server(
            fleet or self._fleet,
            lambda host: self._of[host].poster(request, encoder),
            Limiter(min(settings.fan_out, settings.max_draws)),
            wire,
            settings.retries,
            settings.timeout_seconds,
            model,
            key=(request.headers.get("authorization") or "") if settings.forward_auth else "",
            exact_usage=settings.exact_usage,
            ends=ends,
        )

    async def ready(self) -> bool:
        """Whether one of the upstreams answers, and lets us in."""

        async def one(upstream: Upstream) -> bool:
            return (await upstream.models())[0] == 200

        asking = [asyncio.create_task(one(upstream)) for upstream in self._of.values()]
        try:
            for answered in asyncio.as_completed(asking):
                if await answered:
                    return True
            return False
        finally:
            for task in asking:
                task.cancel()

    async def models(self) -> Response | None:
        """All models of all upstreams that answer; None where one alone can tell, or none does."""
        panel = self._settings.voters
        if len(self._of) == 1 and not panel:
            return None
        told = await asyncio.gather(*(upstream.models() for upstream in self._of.values()))
        union: dict[str, Any] = {}
        for host, (_, listed) in zip(self._of, told, strict=True):
            data = listed.get("data")
            for model in data if isinstance(data, list) else []:
                if isinstance(model, dict) and isinstance(model.get("id"), str) and host.serves(model["id"]):
                    union.setdefault(model["id"], model)
        if panel:
            union[panel.name] = {"id": panel.name, "object": "model", "owned_by": "suffice"}
        if all(status != 200 for status, _ in told):
            return None
        return Response(as_json({"object": "list", "data": list(union.values())}), media_type="application/json")

    async def relay(self, exchange: Exchange, path: str, content: bytes, model: str | None, *, plain: bool) -> Passed:
        """Pass a request on, and its reply back, as they are; where one upstream fails, another is asked.

        What names no model may be about something that only one of them keeps, so that it always goes to the first.
        """
        avoid: set[Host] = set()
        host: Host | None = self._fleet.hosts[0] if model is None else self._fleet.choose(model)
        while True:
            assert host  # noqa: S101
            avoid.add(host)
            exchange.line["upstream"] = host.name
            other = None if model is None else self._fleet.other(model, "", avoid)
            try:
                reply = await self._of[host].open(exchange.request, path, content, plain=plain)
            except (ConnectionError, TimeoutError) as error:
                host.fail(dead=isinstance(error, ConnectionRefusedError))
                if other is None:
                    raise from_upstream(error, str(error)) from None
            else:
                if other is None or not (reply.status in ELSEWHERE or reply.status >= 500):
                    return await self._passed_back(reply, host)
                reply.close()
            host = other

    async def _passed_back(self, reply: aiohttp.ClientResponse, host: Host) -> Passed:
        if reply.status < 400:
            host.answer()
        if reply.status in REDIRECTS:
            reply.close()
            raise from_upstream(self._of[host].error_of(reply, b""), "")
        if reply.status >= 400:
            return await self._error_passed_back(reply, host)
        return Passed(reply.status, back(reply.raw_headers), pieces_of(reply))

    async def _error_passed_back(self, reply: aiohttp.ClientResponse, host: Host) -> Passed:
        """An error as the upstream told it, byte for byte unless it has its key or its address in it."""
        try:
            body = b"".join([piece async for piece in bounded(reply)])
        except (ConnectionError, TimeoutError, TooLongError) as error:
            raise from_upstream(error, str(error)) from None
        plain = unpacked(body, reply.headers.get("content-encoding", ""))
        clean = self._of[host].clean(plain)
        same = clean == plain
        told = body if same else clean
        left_out = {b"content-length"} if same else {b"content-length", b"content-encoding"}
        headers = [one for one in back(reply.raw_headers) if one[0] not in left_out]
        return Passed(reply.status, [(b"content-length", str(len(told)).encode()), *headers], _whole(told))

    def summary(self) -> list[dict[str, Any]]:
        """How the upstreams stand, by number: their addresses are nobody's business."""
        return [{"name": host.name, "healthy": not host.is_aside, "in_flight": host.load} for host in self._of]

    async def _watch(self) -> None:
        """Probe those who are set aside, when it is time."""
        while True:
            for host in self._of:
                metrics.UPSTREAM_HEALTHY.labels(host.name).set(not host.is_aside)
            due = [one for one in self._of.values() if one.host.is_aside and one.host.probe_due <= time.monotonic()]
            await asyncio.gather(*map(self._probe, due))
            await asyncio.sleep(WATCH_SECONDS)

    @staticmethod
    async def _probe(upstream: Upstream) -> None:
        """Whether an upstream is there again; one that has no list of models says so all the same."""
        status, _ = await upstream.models()
        if 0 < status < 500 and status not in (401, 403, 429):
            upstream.host.take_back()
        else:
            upstream.host.stay_aside()


async def _whole(body: bytes) -> AsyncGenerator[bytes, None]:
    yield body
