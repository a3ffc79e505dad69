"""The gateway as an ASGI application: what is asked, and where it goes."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict
from importlib.resources import files
from typing import Any
from urllib.parse import unquote

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from suffice.gateway import metrics
from suffice.gateway.access import Access, Handler, Line
from suffice.gateway.bodies import without_member
from suffice.gateway.errors import GatewayError, from_upstream
from suffice.gateway.settings import Settings
from suffice.gateway.streams import comment, left, stream, unless_left
from suffice.gateway.upstreams import Upstream
from suffice.gateway.votes import Held, headers_of, line_of
from suffice.gateway.wishes import Wish, read_wish
from suffice.imports import IMPORTED, import_module
from suffice.live.dialects import DIALECTS, Dialect
from suffice.live.dialects.chat import as_json

SETTINGS = "SUFFICE_GATEWAY"
"""The variable by which workers get their settings."""

QUICK = 0.05
"""A vote that ends within so many seconds has its headers in a stream too."""

_RELAYED = {"/models": "GET", "/models/{name:path}": "GET", "/completions": "POST", "/embeddings": "POST"}
_PAGE = {"": "text/html", "page.css": "text/css", "page.js": "text/javascript"}
_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD")


def create() -> Starlette:
    """The application of a worker."""
    settings = json.loads(os.environ[SETTINGS])
    for name in settings.pop("imports"):
        import_module(name)
    return Gateway(Settings(**{**settings, "api_key_env": tuple(settings["api_key_env"])})).app


def hand_over(settings: Settings) -> None:
    """Leave the settings where workers find them; there is no key among them."""
    os.environ[SETTINGS] = json.dumps({**asdict(settings), "imports": list(IMPORTED)})


class Gateway:
    """One process of the gateway: it keeps counts, and nothing that an answer depends on."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._access = Access(settings)
        guard = self._access.guard
        self.app = Starlette(
            routes=[
                *(
                    Route(f"/v1{one.path}", guard(self._asked(one), dialect=one), methods=["POST"])
                    for one in DIALECTS.values()
                ),
                Route("/v1/suffice/recent", guard(self._tell_recent), methods=["GET"]),
                *(Route(f"/v1{path}", guard(self._relay), methods=[verb]) for path, verb in _RELAYED.items()),
                Route("/healthz", guard(self._say_ok, open_to_all=True)),
                Route("/readyz", guard(self._ready, open_to_all=True)),
                Route("/metrics", guard(_tell_metrics, open_to_all=True)),
                *(Route(f"/{name}", guard(_page(name, kind), open_to_all=True)) for name, kind in _PAGE.items()),
                Route("/{path:path}", guard(_not_found, open_to_all=True), methods=list(_METHODS)),
            ],
            lifespan=self._lifespan,
        )
        self.app.router.redirect_slashes = False

    @asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        self._upstream = Upstream(self._settings)
        try:
            yield
        finally:
            await self._upstream.close()

    def _asked(self, dialect: Dialect) -> Handler:
        """Answers requests of a dialect: by vote, or passed on where they are none."""

        async def answer(request: Request, line: Line) -> Response:
            raw = await self._body(request)
            body = _object(raw)
            model = body.get("model")
            line["model"] = model[:100] if isinstance(model, str) else None
            wish = read_wish(self._settings, body, request.headers)
            reason = "off" if wish.controller == "off" else dialect.no_vote(body, wish.extractor, wish.answer_named)
            if reason:
                line["no_vote"] = reason
                if isinstance(body.get("n"), int) and body["n"] > self._settings.fan_out:
                    raise GatewayError(400, f'"n" may be {self._settings.fan_out} at most here', param="n")
                raw = without_member(raw, "suffice") if "suffice" in body else raw
                return await self._pass_on(request, line, dialect.path, raw, wish.deadline_seconds)
            return await self._vote(request, line, dialect, body, wish)

        return answer

    async def _vote(self, request: Request, line: Line, dialect: Dialect, body: dict[str, Any], wish: Wish) -> Response:
        line |= {"kind": "vote", "controller": wish.controller[:100], "budget": wish.budget}
        try:
            dialect.check(body, wish.extractor)
        except ValueError as error:
            raise GatewayError(400, str(error), param=str(error).split('"')[1]) from None
        moments: asyncio.Queue[bytes] = asyncio.Queue()
        streamed = body.get("stream") is True
        fields = {name: value for name, value in body.items() if name not in dialect.owned and name != "suffice"}
        held = Held(
            self._upstream.server(request, dialect),
            fields,
            wish,
            (lambda moment: moments.put_nowait(comment(moment))) if streamed else None,
        )
        holding = asyncio.create_task(self._hold(held, line, fields, wish))
        if streamed:
            return await self._stream(request, dialect, body, held, holding, moments)
        reply = await unless_left(request, holding)
        assert held.outcome  # noqa: S101
        return Response(as_json(reply), headers=headers_of(held.outcome), media_type="application/json")

    async def _stream(
        self,
        request: Request,
        dialect: Dialect,
        body: dict[str, Any],
        held: Held,
        holding: asyncio.Task[dict[str, Any]],
        moments: "asyncio.Queue[bytes]",
    ) -> Response:
        """A stream. It begins with the first heartbeat: what is known before has its own status and headers."""
        options = body.get("stream_options")
        usage_wanted = isinstance(options, dict) and bool(options.get("include_usage"))
        heartbeat = self._settings.heartbeat_seconds
        try:
            await asyncio.wait({holding}, timeout=min(heartbeat, QUICK))
            if holding.done():
                holding.result()
        except BaseException:
            holding.cancel()
            raise
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        if holding.done() and held.outcome:
            headers |= headers_of(held.outcome)
        pieces = stream(dialect, holding, moments, left(request), heartbeat, usage_wanted)
        return StreamingResponse(pieces, headers=headers, media_type="text/event-stream")

    async def _hold(self, held: Held, line: Line, fields: dict[str, Any], wish: Wish) -> dict[str, Any]:
        """Hold a vote when there is a place for it."""
        seconds = await self._access.places.take(wish.deadline_seconds)
        metrics.IN_PROGRESS.inc()
        try:
            return await held.reply(seconds)
        except GatewayError:
            line["kind"] = "error"
            raise
        except asyncio.CancelledError:
            line["kind"] = "cancelled"
            raise
        finally:
            metrics.IN_PROGRESS.dec()
            self._access.places.release()
            if held.outcome:
                line |= line_of(held.outcome)
                if self._settings.log_text:
                    line |= {"question": fields.get("messages"), "answer": held.outcome.answer}

    async def _pass_on(
        self, request: Request, line: Line, path: str, raw: bytes, seconds: float | None = None
    ) -> Response:
        """Relay a request; it takes a place until its reply has been passed back."""
        seconds = seconds or self._settings.deadline_seconds
        remaining = await self._access.places.take(seconds)
        line["release"] = self._access.places.release
        relayed = asyncio.create_task(self._upstream.relay(request, path, raw))
        try:
            async with asyncio.timeout(remaining):
                return await unless_left(request, relayed)
        except TimeoutError:
            raise from_upstream(TimeoutError(), f"no reply within {seconds:g} seconds") from None

    async def _relay(self, request: Request, line: Line) -> Response:
        raw = await self._body(request)
        path = (request.scope.get("raw_path") or request.url.path.encode()).decode("ascii", "replace")
        if ".." in unquote(unquote(path)):
            raise GatewayError(404, "there is no such path", code="not_found")
        return await self._pass_on(request, line, path.removeprefix("/v1"), raw)

    async def _body(self, request: Request) -> bytes:
        """The body, if it is not too long."""
        most = self._settings.max_body_bytes
        with suppress(ValueError):
            if int(request.headers.get("content-length", 0)) > most:
                raise GatewayError(413, f"the body is longer than {most} bytes")
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > most:
                raise GatewayError(413, f"the body is longer than {most} bytes")
        return bytes(body)

    async def _say_ok(self, request: Request, line: Line) -> Response:
        return PlainTextResponse("ok\n", headers={"x-suffice-key": "required" if self._access.asks_for_key else "none"})

    async def _ready(self, request: Request, line: Line) -> Response:
        ready = await self._upstream.ready()
        return PlainTextResponse("ready\n" if ready else "the upstream does not answer\n", 200 if ready else 503)

    async def _tell_recent(self, request: Request, line: Line) -> Response:
        return Response(as_json(self._access.told()), media_type="application/json")


def _object(raw: bytes) -> dict[str, Any]:
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError):
        raise GatewayError(400, "the body is not JSON") from None
    if not isinstance(body, dict):
        raise GatewayError(400, "the body must be a JSON object")
    return body


async def _tell_metrics(request: Request, line: Line) -> Response:
    return Response(metrics.text(), media_type="text/plain; version=0.0.4")


def _page(name: str, kind: str) -> Handler:
    content = (files("suffice.gateway") / "page" / (name or "page.html")).read_bytes()
    policy = (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; "
        "form-action 'self'; frame-ancestors 'none'"
    )
    headers = {"content-security-policy": policy, "x-content-type-options": "nosniff", "cache-control": "no-cache"}

    async def show(request: Request, line: Line) -> Response:
        return Response(content, media_type=kind, headers=headers)

    return show


async def _not_found(request: Request, line: Line) -> Response:
    raise GatewayError(404, f"there is no {request.method} {request.url.path[:100]} here", code="not_found")
