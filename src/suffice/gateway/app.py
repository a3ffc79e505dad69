"""The gateway as an ASGI application: who may ask, what is asked, and where it goes."""

import asyncio
import json
import os
import sys
import time
import traceback
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict
from importlib.resources import files
from typing import Any, TypeVar
from urllib.parse import unquote

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from suffice.gateway import metrics
from suffice.gateway.bodies import without_member
from suffice.gateway.errors import GatewayError, as_json, from_upstream
from suffice.gateway.settings import LOOPBACK, Settings, presented, read_wish
from suffice.gateway.upstream import Upstream
from suffice.gateway.votes import Vote, comment, end, headers_of, no_vote, stream, tokens_saved
from suffice.imports import IMPORTED, import_module
from suffice.live.limiter import Limiter

SETTINGS = "SUFFICE_GATEWAY"
"""The variable by which workers get their settings."""

PLACEHOLDER_KEY = "none"
RECENT = 100
_PAGE = {"": "text/html", "page.css": "text/css", "page.js": "text/javascript"}

_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD")

Handler = Callable[[Request, dict[str, Any]], Awaitable[Response]]
T = TypeVar("T")


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
                Route("/healthz", self._route(self._say_ok, open_to_all=True)),
                Route("/readyz", self._route(self._ready, open_to_all=True)),
                Route("/metrics", self._route(_tell_metrics, open_to_all=True)),
                *(Route(f"/{name}", self._route(_page(name, kind), True)) for name, kind in _PAGE.items()),
                Route("/{path:path}", self._route(_not_found, open_to_all=True), methods=list(_METHODS)),
            ],
            lifespan=self._lifespan,
        )
        self.app.router.redirect_slashes = False

    @asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        key = os.environ.get("OPENAI_API_KEY", "").strip()
        self._upstream = Upstream(self._settings, key or PLACEHOLDER_KEY)
        try:
            yield
        finally:
            await self._upstream.close()

    def _route(self, handler: Handler, open_to_all: bool = False) -> Callable[[Request], Awaitable[Response]]:
        """Check who asks, answer, and write a line of the access log, whatever happens."""

        async def handle(request: Request) -> Response:
            line: dict[str, Any] = {"kind": "other" if open_to_all else "relay"}
            finish = self._finisher(request, line, time.monotonic())
            try:
                if not open_to_all:
                    self._admit(request)
                response = await handler(request, line)
            except GatewayError as error:
                response = error.response()
                line |= {"kind": "refused" if error.status == 401 else "error", "error": error.brief}
                if self._settings.log_text:
                    line["error"] = str(error)
            except ClientDisconnect:
                response = Response(status_code=499)
                line["kind"] = "cancelled"
            except asyncio.CancelledError:
                line["kind"] = "cancelled"
                finish(503)
                raise
            except Exception as error:
                traceback.print_exc()
                response = GatewayError(500, "the gateway failed", kind="server_error").response()
                line |= {"kind": "error", "error": type(error).__name__}
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
        foreign = request.headers.get("sec-fetch-site") in ("cross-site", "same-site")
        rebound = not self._keys and self._settings.host in LOOPBACK and request.url.hostname not in LOOPBACK
        if foreign or rebound:
            raise GatewayError(403, "requests of other web sites are not answered", kind="permission_error")

    def _finisher(self, request: Request, line: dict[str, Any], begun: float) -> Callable[[int], None]:
        def finish(status: int) -> None:
            release_place = line.pop("release", None)
            if release_place:
                release_place()
            seconds = round(time.monotonic() - begun, 4)
            path = request.url.path[:200]
            about = {"time": round(time.time(), 3), "method": request.method, "path": path, "status": status}
            entry = {**about, "seconds": seconds, **line}
            metrics.REQUESTS.labels(line["kind"]).inc()
            if path.startswith("/v1/") and path != "/v1/suffice/recent":
                counts = {name: value for name, value in entry.items() if name not in ("question", "answer", "error")}
                self._recent.appendleft(counts)
                self._totals["requests"] += 1
                self._totals["votes"] += line["kind"] == "vote"
                for name in ("samples", "samples_saved", "tokens", "tokens_saved"):
                    self._totals[name] += line.get(name, 0)
            with suppress(OSError, ValueError):  # nobody reads the log: no reason to fail
                sys.stdout.write(json.dumps(entry) + "\n")
                sys.stdout.flush()

        return finish

    async def _chat(self, request: Request, line: dict[str, Any]) -> Response:
        """A chat completion: by vote, or passed on where it is none."""
        raw, body = await self._read(request)
        model = body.get("model")
        line["model"] = model[:100] if isinstance(model, str) else None
        wish = read_wish(self._settings, body, request.headers)
        reason = no_vote(body, wish)
        if reason:
            line["no_vote"] = reason
            if isinstance(body.get("n"), int) and body["n"] > self._settings.fan_out:
                raise GatewayError(400, f'"n" may be {self._settings.fan_out} at most here', param="n")
            raw = without_member(raw, "suffice") if "suffice" in body else raw
            return await self._pass_on(request, line, "/chat/completions", raw, wish.deadline_seconds)
        line |= {"kind": "vote", "controller": wish.controller[:100], "budget": wish.budget}
        moments: asyncio.Queue[bytes] = asyncio.Queue()
        streamed = body.get("stream") is True
        vote = Vote(
            self._settings,
            body,
            wish,
            self._upstream.poster(request),
            self._upstream.base_url,
            self._limiter,
            self._upstream.key,
            (lambda moment: moments.put_nowait(comment(moment))) if streamed else None,
        )
        held = asyncio.create_task(self._hold(vote, line))
        if streamed:
            return await self._stream(request, body, vote, held, moments)
        completion = await _unless_left(request, held)
        assert vote.outcome  # noqa: S101
        return Response(as_json(completion), headers=headers_of(vote.outcome), media_type="application/json")

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
        begun = time.monotonic()
        await self._take_place(vote.wish.deadline_seconds)
        metrics.IN_PROGRESS.inc()
        try:
            return await vote.hold(max(0.0, vote.wish.deadline_seconds - (time.monotonic() - begun)))
        except GatewayError:
            line["kind"] = "error"
            raise
        except asyncio.CancelledError:
            line["kind"] = "cancelled"
            raise
        finally:
            metrics.IN_PROGRESS.dec()
            self._places.release()
            if vote.outcome:
                line |= self._told(vote)

    async def _take_place(self, seconds: float) -> None:
        """Wait for one of the places that there are; the waiting counts."""
        if self._waiting >= self._settings.max_queue and self._places.locked():
            raise GatewayError(
                429, "too many requests are waiting", kind="rate_limit_error", headers={"retry-after": "1"}
            )
        self._waiting += 1
        metrics.QUEUED.inc()
        try:
            async with asyncio.timeout(seconds):
                await self._places.acquire()
        except TimeoutError:
            raise GatewayError(504, "no place was free before the deadline", kind="timeout_error") from None
        finally:
            self._waiting -= 1
            metrics.QUEUED.dec()

    async def _pass_on(
        self, request: Request, line: dict[str, Any], path: str, raw: bytes, seconds: float | None = None
    ) -> Response:
        """Relay a request; it takes a place until its reply has been passed back."""
        seconds = seconds or self._settings.deadline_seconds
        begun = time.monotonic()
        await self._take_place(seconds)
        line["release"] = self._places.release
        relayed = asyncio.create_task(self._upstream.relay(request, path, raw))
        try:
            async with asyncio.timeout(max(0.01, seconds - (time.monotonic() - begun))):
                return await _unless_left(request, relayed)
        except TimeoutError:
            raise from_upstream(TimeoutError(), f"no reply within {seconds:g} seconds") from None

    def _told(self, vote: Vote) -> dict[str, Any]:
        """What the access log says of a vote: no text, unless the operator wants it."""
        outcome = vote.outcome
        assert outcome  # noqa: S101
        told = {
            "samples": outcome.samples,
            "rounds": outcome.rounds,
            "samples_saved": outcome.budget - outcome.samples if outcome.samples else 0,
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
        path = (request.scope.get("raw_path") or request.url.path.encode()).decode("ascii", "replace")
        if ".." in unquote(unquote(path)):
            raise GatewayError(404, "there is no such path", code="not_found")
        return await self._pass_on(request, line, path.removeprefix("/v1"), raw)

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
        with suppress(ValueError):
            if int(request.headers.get("content-length", 0)) > most:
                raise GatewayError(413, f"the body is longer than {most} bytes")
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > most:
                raise GatewayError(413, f"the body is longer than {most} bytes")
        return bytes(body)

    async def _say_ok(self, request: Request, line: dict[str, Any]) -> Response:
        return PlainTextResponse("ok\n", headers={"x-suffice-key": "required" if self._keys else "none"})

    async def _ready(self, request: Request, line: dict[str, Any]) -> Response:
        ready = await self._upstream.ready()
        return PlainTextResponse("ready\n" if ready else "the upstream does not answer\n", 200 if ready else 503)

    async def _tell_recent(self, request: Request, line: dict[str, Any]) -> Response:
        """What the page shows below: counts, and no text."""
        since = {"seconds": round(time.time() - self._begun, 1), "workers": self._settings.workers}
        told = {"totals": self._totals, "recent": list(self._recent), **since}
        return Response(as_json(told), media_type="application/json")


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
    except Exception:
        line["kind"] = "error"
        raise
    finally:
        await pieces.aclose()
        finish()


async def _unless_left(request: Request, task: asyncio.Task[T]) -> T:
    """The result of a task, which ends at once where the client hangs up."""
    left = asyncio.create_task(_left(request))
    try:
        await asyncio.wait({task, left}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ClientDisconnect
        return task.result()
    finally:
        await end(task, left)


async def _tell_metrics(request: Request, line: dict[str, Any]) -> Response:
    return Response(metrics.text(), media_type="text/plain; version=0.0.4")


def _page(name: str, kind: str) -> Handler:
    content = (files("suffice.gateway") / "page" / (name or "page.html")).read_bytes()
    policy = (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; "
        "form-action 'self'; frame-ancestors 'none'"
    )
    headers = {"content-security-policy": policy, "x-content-type-options": "nosniff", "cache-control": "no-cache"}

    async def show(request: Request, line: dict[str, Any]) -> Response:
        return Response(content, media_type=kind, headers=headers)

    return show


async def _not_found(request: Request, line: dict[str, Any]) -> Response:
    raise GatewayError(404, f"there is no {request.method} {request.url.path[:100]} here", code="not_found")
