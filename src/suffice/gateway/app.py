"""The gateway as an ASGI application: what is asked, and where it goes."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict
from html import escape
from importlib.resources import files
from typing import Any
from urllib.parse import unquote

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from suffice.gateway import metrics
from suffice.gateway.access import Access, Handler, Line
from suffice.gateway.answering import Answering, pass_on
from suffice.gateway.bills import bill_of, deployment_of
from suffice.gateway.errors import GatewayError
from suffice.gateway.learning import Learning
from suffice.gateway.settings import Settings
from suffice.gateway.shared import shared_folder
from suffice.gateway.store import Store
from suffice.gateway.traces import Requests, traces, wanted
from suffice.gateway.upstreams import Upstreams
from suffice.gateway.wishes import check_samples, relayed_body, samples_asked
from suffice.imports import IMPORTED, import_module
from suffice.live.dialects import DIALECTS, Dialect
from suffice.live.dialects.wire import as_json
from suffice.live.prompts import SUITED, get_prompt

SETTINGS = "SUFFICE_GATEWAY"
"""The variable by which workers get their settings."""

_PAGE = {"": "text/html", "page.css": "text/css", "page.js": "text/javascript"}
_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD")


def hand_over(settings: Settings) -> None:
    """Leave the settings where workers find them; there is no key among them."""
    os.environ[SETTINGS] = json.dumps({**asdict(settings), "imports": list(IMPORTED)})


def handed_over() -> tuple["Gateway", Settings]:
    """The gateway of a worker."""
    read = json.loads(os.environ[SETTINGS])
    for name in read.pop("imports"):
        import_module(name)
    lists = {name: tuple(value) for name, value in read.items() if isinstance(value, list)}
    settings = Settings(**{**read, **lists})
    return Gateway(settings), settings


class Gateway:
    """One process of the gateway: it keeps counts, and nothing that an answer depends on."""

    def __init__(self, settings: Settings, store: Store | None = None) -> None:
        self._settings = settings
        self._access = Access(settings, store)
        self._draining = False
        guard = self._access.guard
        self.app = Starlette(
            routes=[
                *(
                    Route(f"/v1{one.path}", guard(self._answerer(one), dialect=one), methods=["POST"])
                    for one in DIALECTS.values()
                ),
                Route("/v1/suffice/recent", guard(self._tell_recent), methods=["GET"]),
                Route("/v1/suffice/audits", guard(self._tell_audits), methods=["GET"]),
                Route("/v1/suffice/usage", guard(self._tell_usage), methods=["GET"]),
                *(
                    Route(f"/v1{one.path}{{rest:path}}", guard(self._relay, dialect=one), methods=list(_METHODS))
                    for one in DIALECTS.values()
                ),
                *(
                    Route(f"/{top}/{{path:path}}", guard(self._relay), methods=list(_METHODS))
                    for top in ("v1", "openai")
                ),
                Route("/healthz", guard(self._say_ok, open_to_all=True)),
                Route("/readyz", guard(self._ready, open_to_all=True)),
                Route("/metrics", guard(_tell_metrics, open_to_all=True)),
                *(Route(f"/{name}", guard(_page(name, kind), open_to_all=True)) for name, kind in _PAGE.items()),
                Route("/{path:path}", guard(_not_found, open_to_all=True), methods=list(_METHODS)),
            ],
            middleware=[
                *([Middleware(CORSMiddleware, **_cors(settings))] if settings.cors_origins else []),
                *([Middleware(Requests)] if wanted(settings) else []),
            ],
            lifespan=self._lifespan,
        )
        self.app.router.redirect_slashes = False

    def drain(self) -> None:
        """Say that it is not ready, from now on; requests are answered all the same."""
        self._draining = True

    def end(self) -> None:
        """Answer what is still under way with an error: there is no more time."""
        self._access.end()

    @asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        settings, places = self._settings, self._access.places
        async with traces(settings):
            self._upstreams = Upstreams(settings, self._access.board)
            self._learning = Learning(settings, shared_folder(settings.state), places.is_crowded)
            try:
                async with self._access.open():
                    await self._learning.open()
                    yield
            finally:
                await self._learning.close()
                await self._upstreams.close()

    def _answerer(self, dialect: Dialect) -> Handler:
        async def answer(request: Request, line: Line) -> Response:
            rooms = self._settings, self._access.places, self._upstreams, self._learning
            return await Answering(*rooms, dialect, request, line).answer(await self._body(request))

        return answer

    async def _relay(self, request: Request, line: Line) -> Response:
        raw = await self._body(request)
        path = (request.scope.get("raw_path") or request.url.path.encode()).decode("ascii", "replace")
        if ".." in unquote(unquote(path)):
            raise GatewayError(404, "there is no such path", code="not_found")
        path = path.removeprefix("/v1")
        seconds = self._settings.deadline_seconds
        if path == "/models" and (union := await self._upstreams.models()):
            return union
        body = relayed_body(raw)
        named = body.get("model")
        model = named if isinstance(named, str) else None
        if path.startswith("/models/"):
            model = unquote(path.removeprefix("/models/"))
        elif body:
            samples = samples_asked(raw, body)
            check_samples(samples, self._settings, bill_of(request).max_samples)
            bill_of(request).send(model or deployment_of(path), body, samples)
        return await pass_on(self._upstreams, self._access.places, request, line, path, raw, seconds, model)

    async def _body(self, request: Request) -> bytes:
        """The body, if it is not too long, nor too long on the way."""
        most = self._settings.max_body_bytes
        with suppress(ValueError):
            if int(request.headers.get("content-length", 0)) > most:
                raise GatewayError(413, f"the body is longer than {most} bytes")
        seconds = self._settings.upload_seconds
        body = bytearray()
        try:
            async with asyncio.timeout(seconds):
                async for chunk in request.stream():
                    body += chunk
                    if len(body) > most:
                        raise GatewayError(413, f"the body is longer than {most} bytes")
        except TimeoutError:
            late = f"the body did not arrive within {seconds:g} seconds"
            raise GatewayError(408, late, code="timeout", headers={"connection": "close"}) from None
        return bytes(body)

    async def _say_ok(self, request: Request, line: Line) -> Response:
        return PlainTextResponse("ok\n", headers={"x-suffice-key": "required" if self._access.asks_for_key else "none"})

    async def _ready(self, request: Request, line: Line) -> Response:
        if self._draining:
            return PlainTextResponse("draining\n", 503)
        ready = await self._upstreams.ready()
        return PlainTextResponse("ready\n" if ready else "no upstream answers\n", 200 if ready else 503)

    async def _tell_audits(self, request: Request, line: Line) -> Response:
        key = bill_of(request).key
        told = self._learning.told()
        if key and not key.operator:  # models and topics are those of others too
            told["kinds"] = []
        return Response(as_json(told), media_type="application/json")

    async def _tell_recent(self, request: Request, line: Line) -> Response:
        key = bill_of(request).key
        told = self._access.told(names=key is None or key.operator)
        told |= {"upstreams": self._upstreams.told(), "operator": bool(key and key.operator)}
        return Response(as_json(told), media_type="application/json")

    async def _tell_usage(self, request: Request, line: Line) -> Response:
        usage, key = self._access.usage, bill_of(request).key
        if usage is None:
            raise GatewayError(404, "there are no keys with names here, whose usage could be told", code="not_found")
        if key is None or not key.operator:
            raise GatewayError(403, "the usage of keys is told to an operator's key only", kind="permission_error")
        return Response(as_json(await asyncio.to_thread(usage.told)), media_type="application/json")


def _cors(settings: Settings) -> dict[str, Any]:
    """What web pages of the named sites may send and read: all, with a key but no cookies."""
    return {
        "allow_origins": settings.cors_origins,
        "allow_methods": _METHODS,
        "allow_headers": ["*"],
        "expose_headers": ["*"],
    }


async def _tell_metrics(request: Request, line: Line) -> Response:
    return Response(metrics.text(), media_type="text/plain; version=0.0.4")


def _prompts() -> dict[str, Any]:
    """What the page asks models with: some by name, and all others."""
    plain = {"": {"messages": get_prompt("paper")}}
    return plain | {model: {"messages": get_prompt(prompt), **more} for model, (prompt, more) in SUITED.items()}


def _page(name: str, kind: str) -> Handler:
    content = (files("suffice.gateway") / "page" / (name or "page.html")).read_text(encoding="utf-8")
    content = content.replace("{{prompts}}", escape(json.dumps(_prompts())))
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
