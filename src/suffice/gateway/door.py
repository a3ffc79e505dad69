"""The door: every request comes in by it, and leaves by it with a reply in its shape and a line in the log."""

import asyncio
import hmac
import json
import re
import signal
import sys
import time
import traceback
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse

from suffice.errors import OptionError
from suffice.gateway.errors import GatewayError
from suffice.gateway.exchange import CutError, Exchange, Identified, NoReply
from suffice.gateway.keys import Key, digest_of, presented, read_keys
from suffice.gateway.operations import metrics
from suffice.gateway.operations.costs import SpendingByGroup
from suffice.gateway.operations.traces import begin_span
from suffice.gateway.settings import LOOPBACK, Settings
from suffice.live.dialects import CHAT, Dialect
from suffice.live.tracing import TRACING, UNTRACED
from suffice.paths import WatchedFile
from suffice.planning.promises import OverOneCap


async def body_of(request: Request, settings: Settings) -> bytes:
    """The body of a request, if it is not too long, nor too long on the way."""
    most, seconds = settings.max_body_bytes, settings.upload_seconds
    with suppress(ValueError):
        if int(request.headers.get("content-length", 0)) > most:
            raise GatewayError(413, f"the body is longer than {most} bytes")
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


Handler = Callable[[Exchange], Awaitable[Response]]

RECENT = 100
"""The number of requests that the page lists."""


class AccessLog:
    """Requests under way and the last ones that ended, and their totals."""

    def __init__(self, workers: int, cap: OverOneCap | None) -> None:
        self._workers = workers
        self._begun = time.time()
        self.under_way: set[Exchange] = set()
        self._recent: deque[dict[str, Any]] = deque(maxlen=RECENT)
        self._requests = 0
        self._costs = SpendingByGroup(cap)

    def end(self, exchange: Exchange, status: int, ended: NoReply | None) -> None:
        """Write the line of a request whose reply has been sent, or that ended without."""
        self.under_way.remove(exchange)
        log = exchange.log(status, ended)
        line = log.to_json()
        metrics.REQUESTS.labels(log.kind).inc()
        if log.is_of_a_model:
            self._recent.appendleft(line)
            self._requests += 1
            if log.voting and log.sent:
                metrics.UPSTREAM_QUESTIONS.labels(log.sent.upstream).inc()
            if log.key:
                metrics.KEY_REQUESTS.labels(log.key).inc()
            self._costs.add(line)
        with suppress(OSError, ValueError):  # nobody reads the log: no reason to fail
            sys.stdout.write(json.dumps(line | log.texts) + "\n")
            sys.stdout.flush()

    def summary(self, caller: str | None) -> dict[str, Any]:
        """Return sums over all requests, and list them without texts: with keys, the caller's alone."""
        under_way = [told for told in map(_on_the_way, self.under_way) if told]
        return {
            "totals": self._costs.total.to_json() | {"requests": self._requests},
            "costs": self._costs.summary(caller),
            "under_way": [one for one in under_way if caller in (None, one["key"])][:RECENT],
            "recent": [one for one in self._recent if caller in (None, one.get("key"))],
            "seconds": round(time.time() - self._begun, 1),
            "workers": self._workers,
        }


def _on_the_way(exchange: Exchange) -> dict[str, Any] | None:
    """Describe a request under way; None if no model is asked."""
    log, progress = exchange.log(), exchange.progress
    if not log.is_of_a_model:
        return None
    told = {"path": log.path, "seconds": log.seconds, "kind": log.kind, "model": log.asked and log.asked.model}
    told |= {"controller": log.voting and log.voting.controller, "key": log.key}
    return told | (progress._asdict() if progress else {})


OPEN = "other"
"""The kind of requests that need no key: pages, health and figures."""

CANCELLED = NoReply("cancelled")


class Door:
    """Lets requests in until the end, and sees them out."""

    def __init__(self, log: AccessLog, settings: Settings) -> None:
        self._log = log
        self._settings = settings
        self._keys = KeyRing(Path(settings.keys)) if settings.keys else None
        self._under_way: set[asyncio.Task[Any]] = set()
        self.is_draining = False
        self._ending = False

    def drain_at_signals(self) -> None:
        """At SIGTERM, be unready for `unready_seconds`, then let uvicorn shut down; at SIGINT, let it at once.

        What is under way `drain_seconds` after the signal, or at a SIGINT after it, is answered with an error.
        """
        shut_down, loop = signal.getsignal(signal.SIGTERM), asyncio.get_running_loop()
        seconds = self._settings.drain_seconds

        def drain(sig: int, frame: FrameType | None) -> None:
            assert callable(shut_down)  # noqa: S101
            if self.is_draining:
                if sig == signal.SIGINT:
                    loop.call_soon_threadsafe(self.end)
                return
            self.is_draining = True
            unready_seconds = min(self._settings.unready_seconds, seconds) if sig == signal.SIGTERM else 0.0
            loop.call_soon_threadsafe(loop.call_later, seconds, self.end)
            loop.call_soon_threadsafe(loop.call_later, unready_seconds, shut_down, sig, None)

        if callable(shut_down):  # uvicorn's, and the same for both
            with suppress(ValueError):  # in a thread, as in tests
                signal.signal(signal.SIGTERM, drain)
                signal.signal(signal.SIGINT, drain)

    def end(self) -> None:
        """Answer whatever is under way with an error, and whatever comes now."""
        self._ending = True
        for task in self._under_way:
            task.cancel()

    def guard(
        self, handler: Handler, *, kind: str = "relay", dialect: Dialect = CHAT
    ) -> Callable[[Request], Awaitable[Response]]:
        """Answer requests of a kind by a handler, whatever happens to it."""

        async def handle(request: Request) -> Response:
            span = begin_span(request) if TRACING.tracer else UNTRACED
            exchange = Exchange(request, kind)
            self._log.under_way.add(exchange)

            def sent(status: int, ended: NoReply | None) -> None:
                self._log.end(exchange, status, ended)
                span.replied(status, error_from=500)  # by the conventions, an error of the client's is none of its own
                span.end()

            try:
                response, ended = await self._answer(handler, exchange, dialect, is_open=kind == OPEN)
            except asyncio.CancelledError:
                sent(503, CANCELLED)
                raise
            if self.is_draining:
                response.headers["connection"] = "close"
            if isinstance(response, StreamingResponse):
                response.body_iterator = self._stream(response.body_iterator, response, dialect, sent)
            else:
                sent(response.status_code, ended)
            return response

        return handle

    async def _answer(
        self, handler: Handler, exchange: Exchange, dialect: Dialect, *, is_open: bool
    ) -> tuple[Response, NoReply | None]:
        """Return the handler's response, or its error as one, and how it ended without a reply."""
        try:
            if not is_open:
                self._check_origin(exchange.request)
                self._check_key(exchange)
            with self._until_end():
                return await handler(exchange), None
        except ClientDisconnect:
            return Response(status_code=499), CANCELLED
        except Exception as error:
            told, ended = self._told(error)
            return told.response(dialect), ended

    def _told(self, error: Exception) -> tuple[GatewayError, NoReply]:
        """Return an error as it is told to the client and to the log; an unforeseen one is printed, and a 500."""
        if not isinstance(error, GatewayError):
            traceback.print_exception(error)
            failed = GatewayError(500, "the gateway failed", kind="server_error")
            return failed, NoReply("error", type(error).__name__)
        said = str(error) if self._settings.log_text else error.brief
        return error, NoReply("refused" if error.status == 401 else "error", said)

    def _check_origin(self, request: Request) -> None:
        """Refuse web pages of unnamed sites and, without keys, requests for another host."""
        named = {"*", request.headers.get("origin", "")} & set(self._settings.cors_origins)
        if request.headers.get("sec-fetch-site") in ("cross-site", "same-site") and not named:
            message = "requests of other web sites are not answered, unless cors_origins names them"
            raise GatewayError(403, message, kind="permission_error", code="foreign_site")
        if self._keys or self._settings.host not in LOOPBACK:
            return
        host = _host(request)
        if host not in LOOPBACK and host not in map(str.lower, self._settings.allow_hosts):
            message = (  # a web page may have had its own name point here
                f'without a key only requests to this machine are answered, and this one has the Host "{host[:100]}": '
                "name it in allow_hosts if it is your proxy's, let the proxy send localhost, or ask for a key"
            )
            raise GatewayError(403, message, kind="permission_error", code="unknown_host")

    def _check_key(self, exchange: Exchange) -> None:
        """Refuse a request without a valid key, if there are keys; note the key's name."""
        if self._keys is None:
            return
        key = self._keys.name_of(exchange.request.headers)
        if key is None:
            message = "the key is missing or wrong: send it as Authorization: Bearer KEY, or as x-api-key"
            raise GatewayError(401, message, code="invalid_api_key", headers={"www-authenticate": "Bearer"})
        exchange.add(Identified(key))

    async def _stream(
        self, pieces: Any, response: Response, dialect: Dialect, sent: Callable[[int, NoReply | None], None]
    ) -> AsyncGenerator[Any, None]:
        """Yield the pieces of a stream; an error becomes its last event, if it has events."""
        has_events = response.headers.get("content-type", "").startswith("text/event-stream")
        ended: NoReply | None = None
        try:
            async with aclosing(pieces):
                with self._until_end():
                    async for piece in pieces:
                        yield piece
        except ClientDisconnect:
            ended = CANCELLED
        except (asyncio.CancelledError, GeneratorExit):
            ended = CANCELLED
            raise
        except CutError as cut:
            _, ended = self._told(cut.args[0])
            raise
        except Exception as error:
            told, ended = self._told(error)
            if not has_events:
                raise
            yield dialect.error_event(told.payload(dialect))
        finally:
            sent(response.status_code, ended)

    @contextmanager
    def _until_end(self) -> Iterator[None]:
        """Answer what is done in here with a 503 once the gateway ends."""
        task = asyncio.current_task()
        assert task  # noqa: S101
        self._under_way.add(task)
        try:
            if self._ending:
                raise asyncio.CancelledError
            yield
        except asyncio.CancelledError:
            if not self._ending:
                raise
            task.uncancel()
            message = "the gateway is shutting down: ask again"  # another one, or the next one here
            again = {"retry-after": "1"}
            raise GatewayError(503, message, kind="server_error", code="shutting_down", headers=again) from None
        finally:
            self._under_way.discard(task)


class KeyRing:
    """The keys in force, read again when their file changes. A broken file changes nothing."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = WatchedFile(path)
        self._keys: tuple[Key, ...] = ()
        self._read_again()

    def name_of(self, headers: Mapping[str, str]) -> str | None:
        """Return the name of a request's key, None if it has none. Compare in constant time."""
        if self._file.has_changed():
            self._read_again()
        digests = [digest_of(secret) for secret in presented(headers)]
        matches = [key.name for key in self._keys for digest in digests if hmac.compare_digest(digest, key.sha256)]
        return matches[0] if matches else None

    def _read_again(self) -> None:
        try:
            self._keys = read_keys(self._path)
        except OptionError as error:
            metrics.KEY_RELOADS.labels("refused").inc()
            print(f"suffice: {error}; the old keys stay in force", file=sys.stderr, flush=True)
        else:
            metrics.KEY_RELOADS.labels("taken").inc()


def _host(request: Request) -> str:
    """Return the request's Host, without the port."""
    given = request.headers.get("host") or LOOPBACK[0]
    named = re.fullmatch(r"(?:\[([^\]]*)\]|([^\[\]:@/]*))(?::\d*)?", given)
    return (named[1] or named[2]).lower() if named else given


class Places:
    """Limits the requests of this process that are answered at once, and those that wait."""

    def __init__(self, places: int, queue: int) -> None:
        self._free = asyncio.Semaphore(places)
        self._queue = queue
        self._waiting = 0

    @asynccontextmanager
    async def hold(self, seconds: float) -> AsyncIterator[float]:
        """Keep a place in here, with the deadline for the reply; GatewayError if none is free in time."""
        ends = time.monotonic() + seconds
        if self._free.locked():
            await self._wait(seconds)
        else:
            await self._free.acquire()
        try:
            yield ends
        finally:
            self._free.release()

    async def _wait(self, seconds: float) -> None:
        if self._waiting >= self._queue:
            message = "too many requests are waiting"
            raise GatewayError(429, message, kind="rate_limit_error", headers={"retry-after": "1"})
        self._waiting += 1
        try:
            with metrics.QUEUED.track_inprogress():
                async with asyncio.timeout(seconds):
                    await self._free.acquire()
        except TimeoutError:
            raise GatewayError(504, "no place was free before the deadline", kind="timeout_error") from None
        finally:
            self._waiting -= 1

    def is_crowded(self) -> bool:
        """Whether any request waits."""
        return self._waiting > 0
