"""The gateway as an ASGI application: who may ask, what is asked, and where it goes."""

import asyncio
import json
import os
import sys
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict
from importlib.resources import files
from typing import Any

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from suffice.gateway import metrics
from suffice.gateway.errors import GatewayError
from suffice.gateway.settings import LOOPBACK, Settings, presented, read_wish
from suffice.gateway.upstream import Upstream
from suffice.gateway.votes import Vote, comment, end, headers_of, no_vote, stream, tokens_saved
from suffice.live.limiter import Limiter

SETTINGS = "SUFFICE_GATEWAY"
"""The variable by which workers get their settings."""

PLACEHOLDER_KEY = "none"
RECENT = 100
_PAGE = {"": "text/html", "page.css": "text/css", "page.js": "text/javascript"}

Handler = Callable[[Request, dict[str, Any]], Awaitable[Response]]


def create() -> Starlette:
    """The application of a worker."""
    settings = json.loads(os.environ[SETTINGS])
    return Gateway(Settings(**{**settings, "api_key_env": tuple(settings["api_key_env"])})).app


def hand_over(settings: Settings) -> None:
    """Leave the settings where workers find them; there is no key among them."""
    os.environ[SETTINGS] = json.dumps(asdict(settings))


class Gateway:
    """One process of the gateway: it keeps counts, and nothing that an answer depends on."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._keys = settings.keys()
        self._limiter = Limiter(settings.max_draws)
        self._places = asyncio.Semaphore(settings.max_requests)
        self._waiting = 0
        self._begun = time.time()
        self._recent: deque[dict[str, Any]] = deque(maxlen=RECENT)
        self._totals = {"requests": 0, "votes": 0, "samples": 0, "samples_saved": 0, "tokens": 0, "tokens_saved": 0}
        relays = {"/models": "GET", "/models/{name:path}": "GET", "/completions": "POST", "/embeddings": "POST"}
        self.app = Starlette(
            routes=[
                Route("/v1/chat/completions", self._route(self._chat), methods=["POST"]),
                Route("/v1/suffice/recent", self._route(self._tell_recent), methods=["GET"]),
                *(Route(f"/v1{path}", self._route(self._relay), methods=[verb]) for path, verb in relays.items()),
                Route("/healthz", lambda request: PlainTextResponse("ok\n")),
                Route("/readyz", self._ready),
                Route("/metrics", lambda request: Response(metrics.text(), media_type="text/plain; version=0.0.4")),
                *(Route(f"/{name}", _page(name, kind)) for name, kind in _PAGE.items()),
            ],
            exception_handlers={404: _not_found, 405: _not_found},
            lifespan=self._lifespan,
        )

    @asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        self._upstream = Upstream(self._settings, os.environ.get("OPENAI_API_KEY") or PLACEHOLDER_KEY)
        try:
            yield
        finally:
            await self._upstream.close()

    def _route(self, handler: Handler) -> Callable[[Request], Awaitable[Response]]:
        """Check who asks, answer, and write a line of the access log."""

        async def handle(request: Request) -> Response:
            line: dict[str, Any] = {"kind": "relay"}
            begun = time.monotonic()
            try:
                self._admit(request)
                response = await handler(request, line)
            except GatewayError as error:
                response = error.response()
                line |= {"kind": "error", "error": str(error)} if error.status != 401 else {"kind": "refused"}
            except ClientDisconnect:
                response = Response(status_code=499)
                line["kind"] = "cancelled"
            finish = self._finisher(request, line, begun)
            if isinstance(response, StreamingResponse):
                response.body_iterator = _then(response.body_iterator, line, lambda: finish(response.status_code))
            else:
                finish(response.status_code)
            return response

        return handle

    def _admit(self, request: Request) -> None:
        """Refuse whoever has no key, and web pages of other sites."""
        if self._keys and not presented(request.headers.get("authorization"), self._keys):
            message = "the key is missing or wrong: send it as Authorization: Bearer KEY"
            raise GatewayError(401, message, code="invalid_api_key", headers={"www-authenticate": "Bearer"})
        foreign = request.headers.get("sec-fetch-site") == "cross-site"
        rebound = not self._keys and self._settings.host in LOOPBACK and request.url.hostname not in LOOPBACK
        if foreign or rebound:
            raise GatewayError(403, "requests of other web sites are not answered", kind="permission_error")

    def _finisher(self, request: Request, line: dict[str, Any], begun: float) -> Callable[[int], None]:
        def finish(status: int) -> None:
            seconds = round(time.monotonic() - begun, 4)
            path = request.url.path
            about = {"time": round(time.time(), 3), "method": request.method, "path": path, "status": status}
            entry = {**about, "seconds": seconds, **line}
            metrics.REQUESTS.labels(line["kind"]).inc()
            if path != "/v1/suffice/recent":
                counts = {name: value for name, value in entry.items() if name not in ("question", "answer", "error")}
                self._recent.appendleft(counts)
                self._totals["requests"] += 1
                self._totals["votes"] += line["kind"] == "vote"
                for name in ("samples", "samples_saved", "tokens", "tokens_saved"):
                    self._totals[name] += line.get(name, 0)
            sys.stdout.write(json.dumps(entry, ensure_ascii=False) + "\n")
            sys.stdout.flush()

        return finish

    async def _chat(self, request: Request, line: dict[str, Any]) -> Response:
        """A chat completion: by vote, or passed on where it is none."""
        raw, body = await self._read(request)
        line["model"] = body.get("model")
        wish = read_wish(self._settings, body, request.headers)
        reason = no_vote(body, wish)
        if reason:
            line["no_vote"] = reason
            if "suffice" in body:
                del body["suffice"]
                raw = json.dumps(body, ensure_ascii=False).encode("utf-8", "surrogatepass")
            return await self._upstream.relay(request, "/chat/completions", raw)
        line |= {"kind": "vote", "controller": wish.controller, "budget": wish.budget}
        moments: asyncio.Queue[bytes] = asyncio.Queue()
        streamed = bool(body.get("stream"))
        vote = Vote(
            self._settings,
            body,
            wish,
            self._upstream.poster(request.headers),
            self._upstream.base_url,
            self._limiter,
            (lambda moment: moments.put_nowait(comment(moment))) if streamed else None,
        )
        held = asyncio.create_task(self._hold(vote, line))
        if streamed:
            return await self._stream(request, body, vote, held, moments)
        left = asyncio.create_task(_left(request))
        try:
            await asyncio.wait({held, left}, return_when=asyncio.FIRST_COMPLETED)
            if not held.done():
                raise ClientDisconnect
            completion = held.result()
        finally:
            await end(held, left)
        assert vote.outcome  # noqa: S101
        return JSONResponse(completion, headers=headers_of(vote.outcome))

    async def _stream(
        self,
        request: Request,
        body: dict[str, Any],
        vote: Vote,
        held: asyncio.Task[dict[str, Any]],
        moments: "asyncio.Queue[bytes]",
    ) -> Response:
        """A stream. It begins with the first heartbeat: what is known before has its own status and headers."""
        options = body.get("stream_options")
        usage_wanted = isinstance(options, dict) and bool(options.get("include_usage"))
        quick = min(self._settings.heartbeat_seconds, 0.05)
        try:
            await asyncio.wait({held}, timeout=quick)
            if held.done():
                held.result()
        except BaseException:
            held.cancel()
            raise
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        if held.done() and vote.outcome:
            headers |= headers_of(vote.outcome)
        pieces = stream(held, moments, _left(request), self._settings.heartbeat_seconds, usage_wanted)
        return StreamingResponse(pieces, headers=headers, media_type="text/event-stream")

    async def _hold(self, vote: Vote, line: dict[str, Any]) -> dict[str, Any]:
        """Hold a vote when there is a place for it."""
        if self._waiting >= self._settings.max_queue and self._places.locked():
            raise GatewayError(
                429, "too many requests are waiting", kind="rate_limit_error", headers={"retry-after": "1"}
            )
        self._waiting += 1
        metrics.QUEUED.inc()
        try:
            await self._places.acquire()
        finally:
            self._waiting -= 1
            metrics.QUEUED.dec()
        metrics.IN_PROGRESS.inc()
        try:
            return await vote.hold()
        except GatewayError as error:
            line |= {"kind": "error", "error": str(error)}
            raise
        except asyncio.CancelledError:
            line["kind"] = "cancelled"
            raise
        finally:
            metrics.IN_PROGRESS.dec()
            self._places.release()
            if vote.outcome:
                line |= self._told(vote)

    def _told(self, vote: Vote) -> dict[str, Any]:
        """What the access log says of a vote: no text, unless the operator wants it."""
        outcome = vote.outcome
        assert outcome  # noqa: S101
        told = {
            "samples": outcome.samples,
            "rounds": outcome.rounds,
            "samples_saved": outcome.budget - outcome.samples,
            "prompt_tokens": outcome.prompt_tokens,
            "tokens": outcome.tokens,
            "tokens_saved": tokens_saved(outcome),
            "confidence": outcome.confidence,
            "stop_reason": outcome.stop_reason,
            "failures": len(outcome.failures),
        }
        return told | ({"question": vote.messages, "answer": outcome.answer} if self._settings.log_text else {})

    async def _relay(self, request: Request, line: dict[str, Any]) -> Response:
        raw = await self._body(request)
        return await self._upstream.relay(request, request.url.path.removeprefix("/v1"), raw)

    async def _read(self, request: Request) -> tuple[bytes, dict[str, Any]]:
        raw = await self._body(request)
        try:
            body = json.loads(raw)
        except (ValueError, RecursionError):
            raise GatewayError(400, "the body is not JSON") from None
        if not isinstance(body, dict):
            raise GatewayError(400, "the body must be a JSON object")
        return raw, body

    async def _body(self, request: Request) -> bytes:
        """The body, if it is not too long."""
        most = self._settings.max_body_bytes
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > most:
                raise GatewayError(413, f"the body is longer than {most} bytes")
        return bytes(body)

    async def _ready(self, request: Request) -> Response:
        ready = await self._upstream.ready()
        return PlainTextResponse("ready\n" if ready else "the upstream does not answer\n", 200 if ready else 503)

    async def _tell_recent(self, request: Request, line: dict[str, Any]) -> Response:
        """What the page shows below: counts, and no text."""
        since = {"seconds": round(time.time() - self._begun, 1), "workers": self._settings.workers}
        return JSONResponse({"totals": self._totals, "recent": list(self._recent), **since})


async def _left(request: Request) -> None:
    """Wait until the client has hung up."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _then(pieces: Any, line: dict[str, Any], finish: Callable[[], None]) -> AsyncIterator[Any]:
    """The pieces of a stream, and at their end what is to be done then."""
    try:
        async for piece in pieces:
            yield piece
    except (asyncio.CancelledError, GeneratorExit):
        line["kind"] = "cancelled"
        raise
    finally:
        await pieces.aclose()
        finish()


def _page(name: str, kind: str) -> Callable[[Request], Response]:
    content = (files("suffice.gateway") / "page" / (name or "page.html")).read_bytes()
    policy = (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'"
    )
    headers = {"content-security-policy": policy, "x-content-type-options": "nosniff", "cache-control": "no-cache"}
    return lambda request: Response(content, media_type=kind, headers=headers)


def _not_found(request: Request, error: Exception) -> Response:
    status = getattr(error, "status_code", 404)
    message = f"there is no {request.method} {request.url.path} here"
    return GatewayError(status, message, code="not_found").response()
