"""Who may ask, how many at once, and the line that each request leaves in the log."""

import asyncio
import hashlib
import hmac
import json
import sys
import time
import traceback
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse

from suffice.gateway import metrics
from suffice.gateway.errors import GatewayError
from suffice.gateway.settings import LOOPBACK, Settings
from suffice.live.dialects import CHAT, Dialect

RECENT = 100
"""So many requests are remembered for the page."""

Line = dict[str, Any]
"""What the log says of a request, filled in while it is answered."""

Handler = Callable[[Request, Line], Awaitable[Response]]


class Access:
    """The door: every request comes in by it, and leaves by it."""

    def __init__(self, settings: Settings) -> None:
        self.asks_for_key = bool(settings.keys())
        self.places = Places(settings.max_requests, settings.max_queue)
        self._settings = settings
        self._keys = settings.keys()
        self._begun = time.time()
        self._recent: deque[Line] = deque(maxlen=RECENT)
        self._totals = {"requests": 0, "votes": 0, "samples": 0, "samples_saved": 0, "tokens": 0, "tokens_saved": 0}

    def guard(
        self, handler: Handler, *, open_to_all: bool = False, dialect: Dialect = CHAT
    ) -> Callable[[Request], Awaitable[Response]]:
        """Check who asks, answer, and write a line of the access log, whatever happens."""

        async def handle(request: Request) -> Response:
            line: Line = {"kind": "other" if open_to_all else "relay"}
            finish = self._finisher(request, line, time.monotonic())
            try:
                if not open_to_all:
                    self._admit(request)
                response = await handler(request, line)
            except GatewayError as error:
                response = error.response(dialect)
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
                response = GatewayError(500, "the gateway failed", kind="server_error").response(dialect)
                line |= {"kind": "error", "error": type(error).__name__}
            if isinstance(response, StreamingResponse):
                response.body_iterator = _then(response.body_iterator, line, lambda: finish(response.status_code))
            else:
                finish(response.status_code)
            return response

        return handle

    def _admit(self, request: Request) -> None:
        """Refuse whoever has no key, and web pages of sites that are not named."""
        if self._keys and not presented(request.headers, self._keys):
            message = "the key is missing or wrong: send it as Authorization: Bearer KEY, or as x-api-key"
            raise GatewayError(401, message, code="invalid_api_key", headers={"www-authenticate": "Bearer"})
        named = {"*", request.headers.get("origin", "")} & set(self._settings.cors_origins)
        foreign = request.headers.get("sec-fetch-site") in ("cross-site", "same-site") and not named
        rebound = not self._keys and self._settings.host in LOOPBACK and request.url.hostname not in LOOPBACK
        if foreign or rebound:
            raise GatewayError(403, "requests of other web sites are not answered", kind="permission_error")

    def _finisher(self, request: Request, line: Line, begun: float) -> Callable[[int], None]:
        def finish(status: int) -> None:
            release_place = line.pop("release", None)
            if release_place:
                release_place()
            path = request.url.path[:200]
            about = {"time": round(time.time(), 3), "method": request.method, "path": path, "status": status}
            entry = {**about, "seconds": round(time.monotonic() - begun, 4), **line}
            metrics.REQUESTS.labels(line["kind"]).inc()
            if path.startswith("/v1/") and path != "/v1/suffice/recent":
                self._count(entry)
            with suppress(OSError, ValueError):  # nobody reads the log: no reason to fail
                sys.stdout.write(json.dumps(entry) + "\n")
                sys.stdout.flush()

        return finish

    def _count(self, entry: Line) -> None:
        self._recent.appendleft({k: v for k, v in entry.items() if k not in ("question", "answer", "error")})
        self._totals["requests"] += 1
        self._totals["votes"] += entry["kind"] == "vote"
        for name in ("samples", "samples_saved", "tokens", "tokens_saved"):
            self._totals[name] += entry.get(name, 0)

    def told(self) -> dict[str, Any]:
        """What the page shows of the requests so far: counts, and no text."""
        since = {"seconds": round(time.time() - self._begun, 1), "workers": self._settings.workers}
        return {"totals": self._totals, "recent": list(self._recent), **since}


class Places:
    """How many requests are answered at once, and how many may wait for that."""

    def __init__(self, places: int, queue: int) -> None:
        self._free = asyncio.Semaphore(places)
        self._queue = queue
        self._waiting = 0

    async def take(self, seconds: float) -> float:
        """Wait for a place; how much of the time is left then."""
        if self._waiting >= self._queue and self._free.locked():
            raise GatewayError(
                429, "too many requests are waiting", kind="rate_limit_error", headers={"retry-after": "1"}
            )
        begun = time.monotonic()
        self._waiting += 1
        metrics.QUEUED.inc()
        try:
            async with asyncio.timeout(seconds):
                await self._free.acquire()
        except TimeoutError:
            raise GatewayError(504, "no place was free before the deadline", kind="timeout_error") from None
        finally:
            self._waiting -= 1
            metrics.QUEUED.dec()
        return max(0.01, seconds - (time.monotonic() - begun))

    def release(self) -> None:
        """Let another in."""
        self._free.release()


_KEYS = ("x-api-key", "api-key")
"""Where Anthropic's clients and Azure's put their key; all others say Authorization: Bearer."""


def presented(headers: Mapping[str, str], keys: tuple[bytes, ...]) -> bool:
    """Whether a request has one of the keys; in the same time whichever it is, and whether it is."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    given = [token.strip() if scheme.lower() == "bearer" else "", *(headers.get(name, "") for name in _KEYS)]
    digests = [hashlib.sha256(one.encode("utf-8", "surrogateescape")).digest() for one in given]
    matches = [hmac.compare_digest(digest, key) for digest in digests for key in keys]
    return any(matches)


def proof(headers: Mapping[str, str], key: str, forward: bool) -> dict[str, str]:
    """What the upstream is shown: its own key where the client put one, or the client's where that is passed on."""
    if forward:
        return {name: headers[name] for name in ("authorization", *_KEYS) if name in headers}
    anthropic = {"x-api-key"} if "anthropic-version" in headers else set()
    places = [name for name in _KEYS if name in headers or name in anthropic]
    return {"authorization": f"Bearer {key}", **dict.fromkeys(places, key)}


async def _then(pieces: Any, line: Line, finish: Callable[[], None]) -> AsyncIterator[Any]:
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
