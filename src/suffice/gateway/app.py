"""The gateway as an ASGI application: what is asked, and where it goes."""

import json
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from html import escape
from importlib.resources import files
from pathlib import Path
from urllib.parse import unquote

from starlette.applications import Starlette
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from suffice.gateway.door import OPEN, AccessLog, Door, Handler, Places, body_of
from suffice.gateway.errors import GatewayError
from suffice.gateway.exchange import AskedFor, Events, Exchange
from suffice.gateway.fleet.relay import relay
from suffice.gateway.operations import metrics
from suffice.gateway.operations.state import FileState
from suffice.gateway.operations.traces import traces
from suffice.gateway.pipeline import Pipeline
from suffice.gateway.render import render_whole
from suffice.gateway.requests.options import check_samples, relayed_body, samples_asked
from suffice.gateway.requests.parse import split_model, with_members
from suffice.gateway.settings import Settings
from suffice.live.dialects import CHAT, DIALECTS, Dialect
from suffice.live.dialects.base import as_json, model_in
from suffice.live.prompts import SUITED, get_prompt
from suffice.planning.promises import OverOneCap

_PAGE = {"": "text/html", "page.css": "text/css", "page.js": "text/javascript"}
_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD")


class Gateway:
    """One process of the gateway. It keeps counts, and nothing that an answer depends on."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        state = FileState(Path(settings.state)) if settings.state else None
        self._places = Places(settings.max_requests, settings.max_queue)
        cap = None if settings.over_one is None else OverOneCap(settings.over_one)
        self._log = AccessLog(settings.workers, cap)
        self._door = Door(self._log, settings)
        self._pipeline = Pipeline(settings, self._places, cap, state)
        self.app = Starlette(
            routes=[
                *(
                    self._guarded(f"/v1{route}", partial(self._pipeline.answer, one), ["POST"], one)
                    for one in DIALECTS.values()
                    for route in one.routes
                ),
                self._guarded("/v1/suffice/recent", self._tell_recent, ["GET"]),
                self._guarded("/v1/suffice/audits", self._tell_audits, ["GET"]),
                self._guarded("/v1/suffice/topics", self._tell_topics, ["GET"]),
                self._guarded("/v1/suffice/feedback", self._take_feedback, ["POST"]),
                *(
                    self._guarded(f"/v1{route}{{rest:path}}", self._relay, _METHODS, one)
                    for one in DIALECTS.values()
                    for route in one.routes
                ),
                *(self._guarded(f"/{top}/{{path:path}}", self._relay, _METHODS) for top in ("v1", "openai")),
                self._open("/healthz", self._say_ok),
                self._open("/readyz", self._ready),
                self._open("/metrics", _tell_metrics),
                *(self._open(f"/{name}", _page(name, kind)) for name, kind in _PAGE.items()),
                self._open("/{path:path}", _not_found, _METHODS),
            ],
            lifespan=self._lifespan,
        )
        self.app.router.redirect_slashes = False
        if settings.cors_origins:  # pages of these sites may send and read all, with a key but no cookies
            self.app.add_middleware(
                CORSMiddleware,
                allow_origins=settings.cors_origins,
                allow_methods=_METHODS,
                allow_headers=["*"],
                expose_headers=["*"],
            )

    def _open(self, path: str, handler: Handler, methods: Sequence[str] = ("GET",)) -> Route:
        return Route(path, self._door.guard(handler, kind=OPEN), methods=list(methods))

    def _guarded(self, path: str, handler: Handler, methods: Sequence[str], dialect: Dialect = CHAT) -> Route:
        return Route(path, self._door.guard(handler, dialect=dialect), methods=list(methods))

    @asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        self._door.drain_at_signals()
        async with traces(self._settings), self._pipeline.open():
            yield

    async def _relay(self, exchange: Exchange) -> Response:
        """Pass on whatever is no question to answer."""
        request = exchange.request
        settings, pipeline = self._settings, self._pipeline
        raw = await body_of(request, settings)
        path = (request.scope.get("raw_path") or request.url.path.encode()).decode("ascii", "replace")
        if ".." in unquote(unquote(path)):
            raise GatewayError(404, "there is no such path", code="not_found")
        path = path.removeprefix("/v1")
        if path == "/models" and (union := await pipeline.upstreams.models()):
            return union
        body = relayed_body(raw)
        model, suffix = split_model(model_in(body))
        if suffix or "suffice" in body:
            raw = with_members(raw, {"model": model} if suffix else {}, without="suffice")
        if path.startswith("/models/"):
            model = unquote(path.removeprefix("/models/"))
        elif body:
            samples = samples_asked(raw, body)
            check_samples(samples, pipeline.policies.of(exchange.key, model or _deployment(path)))
            exchange.add(AskedFor(model or _deployment(path), samples))

        async def passing() -> Events:
            seconds = settings.deadline_seconds
            async with self._places.hold(seconds) as ends:
                yield await relay(pipeline.upstreams, exchange, path, raw, model, ends=ends, seconds=seconds)

        return await render_whole(passing(), request)

    async def _say_ok(self, exchange: Exchange) -> Response:
        asks = "required" if self._settings.keys else "none"
        return PlainTextResponse("ok\n", headers={"x-suffice-key": asks})

    async def _ready(self, exchange: Exchange) -> Response:
        if self._door.is_draining:
            return PlainTextResponse("draining\n", 503)
        ready = await self._pipeline.upstreams.ready()
        return PlainTextResponse("ready\n" if ready else "no upstream answers\n", 200 if ready else 503)

    async def _tell_audits(self, exchange: Exchange) -> Response:
        told = self._pipeline.learning.summary()
        if assurance := self._pipeline.assurance:
            kinds = {(kind["model"], kind["topic"]): kind for kind in told["kinds"]}
            for (model, topic), right in assurance.summary().items():
                kinds.setdefault((model, topic), {"model": model, "topic": topic})["right"] = right
            told["kinds"] = list(kinds.values())
        if exchange.key:  # the models and topics of others
            told["kinds"] = [kind for kind in told["kinds"] if kind["topic"] == exchange.key]
        return Response(as_json(told), media_type="application/json")

    async def _tell_topics(self, exchange: Exchange) -> Response:
        return Response(as_json(self._pipeline.learning.topics.summary(exchange.key)), media_type="application/json")

    async def _take_feedback(self, exchange: Exchange) -> Response:
        if self._pipeline.assurance is None:
            raise GatewayError(404, "there is no calibration that could learn from it (right)", code="not_found")
        try:
            told = json.loads(await body_of(exchange.request, self._settings))
        except (ValueError, RecursionError):
            raise GatewayError(400, "the body is not JSON") from None
        taken = await self._pipeline.assurance.take(exchange.key or "", told)
        return Response(as_json(taken), media_type="application/json")

    async def _tell_recent(self, exchange: Exchange) -> Response:
        told = self._log.summary(exchange.key) | {"upstreams": self._pipeline.upstreams.summary()}
        return Response(as_json(told), media_type="application/json")


def _deployment(path: str) -> str | None:
    """The model that a path names, as Azure's do.

    >>> _deployment("/openai/deployments/gpt-4o/chat/completions")
    'gpt-4o'
    """
    named = re.search(r"/deployments/([^/?]+)/", path)
    return named[1] if named else None


async def _tell_metrics(exchange: Exchange) -> Response:
    return Response(metrics.text(), media_type="text/plain; version=0.0.4")


def _page(name: str, kind: str) -> Handler:
    content = (files("suffice.gateway") / "page" / (name or "page.html")).read_text(encoding="utf-8")
    suited = {model: {"messages": get_prompt(prompt), **more} for model, (prompt, more) in SUITED.items()}
    prompts = {"": {"messages": get_prompt("paper")}, **suited}
    content = content.replace("{{prompts}}", escape(json.dumps(prompts)))
    policy = (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; "
        "form-action 'self'; frame-ancestors 'none'"
    )
    headers = {"content-security-policy": policy, "x-content-type-options": "nosniff", "cache-control": "no-cache"}

    async def show(exchange: Exchange) -> Response:
        return Response(content, media_type=kind, headers=headers)

    return show


async def _not_found(exchange: Exchange) -> Response:
    request = exchange.request
    raise GatewayError(404, f"there is no {request.method} {request.url.path[:100]} here", code="not_found")
