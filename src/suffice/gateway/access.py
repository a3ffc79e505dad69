"""Who may ask, how many at once, and the line that each request leaves in the log."""

import asyncio
import hashlib
import hmac
import json
import re
import signal
import sys
import time
import traceback
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse

from suffice.gateway import metrics
from suffice.gateway.bills import Bill
from suffice.gateway.errors import GatewayError
from suffice.gateway.prices import Prices
from suffice.gateway.settings import LOOPBACK, Settings
from suffice.gateway.shared import REQUESTS, WAITING, Board, Turns
from suffice.gateway.store import Counts, Store
from suffice.gateway.usage import Usage
from suffice.live.dialects import CHAT, Dialect

RECENT = 100
"""So many requests are remembered for the page."""

Line = dict[str, Any]
"""What the log says of a request, filled in while it is answered."""

Handler = Callable[[Request, Line], Awaitable[Response]]


class Access:
    """The door: every request comes in by it, and leaves by it."""

    def __init__(self, settings: Settings, store: Store | None = None) -> None:
        self._keys = settings.unnamed_keys()
        self.asks_for_key = bool(self._keys or settings.keys)
        self.board = Board.of_machine()
        limits = settings.max_requests, settings.max_queue
        self.places = SharedPlaces(self.board, *limits) if self.board else Places(*limits)
        self.usage = Usage(settings, self.board, store) if settings.keys else None
        self._prices = Prices(settings.prices)
        self._settings = settings
        self._begun = time.time()
        self._under_way: set[asyncio.Task[Any]] = set()
        self._ending = False
        self._recent: deque[Line] = deque(maxlen=RECENT)
        self._begun_requests: dict[int, tuple[Request, Line, float]] = {}
        self._totals = {"requests": 0, "votes": 0, "samples": 0, "samples_saved": 0, "tokens": 0, "tokens_saved": 0}

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Know what was counted before, and keep what is counted from now on; a SIGHUP brings new keys."""
        usage = self.usage
        try:
            if usage:
                await asyncio.to_thread(usage.start)
                with suppress(AttributeError, NotImplementedError, RuntimeError, ValueError):  # Windows, or a thread
                    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, usage.reload)
            yield
        finally:
            if usage:
                await asyncio.to_thread(usage.stop)
            if self.board:
                self.board.close()

    def end(self) -> None:
        """Answer whatever is under way with an error, and whatever comes now."""
        self._ending = True
        for task in self._under_way:
            task.cancel()

    @contextmanager
    def _until_end(self) -> Iterator[None]:
        """What the present task does here ends in an error of ours where there is no more time for it."""
        task = asyncio.current_task()
        assert task  # noqa: S101
        self._under_way.add(task)
        try:
            if self._ending:
                raise _ended()
            yield
        except asyncio.CancelledError:
            if not self._ending:
                raise
            task.uncancel()
            raise _ended() from None
        finally:
            self._under_way.discard(task)

    def guard(
        self, handler: Handler, *, open_to_all: bool = False, dialect: Dialect = CHAT
    ) -> Callable[[Request], Awaitable[Response]]:
        """Check who asks, answer, and write a line of the access log, whatever happens."""

        async def handle(request: Request) -> Response:
            line: Line = {"kind": "other" if open_to_all else "relay"}
            finish = self._finisher(request, line, time.monotonic())
            try:
                if not open_to_all:
                    self._admit(request, line)
                with self._until_end():
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
                is_events = response.headers.get("content-type", "").startswith("text/event-stream")
                pieces = self._ended_in_shape(response.body_iterator, line, dialect if is_events else None)
                response.body_iterator = _then(pieces, line, lambda: finish(response.status_code))
            else:
                finish(response.status_code)
            return response

        return handle

    async def _ended_in_shape(self, pieces: Any, line: Line, dialect: Dialect | None) -> AsyncIterator[Any]:
        """The pieces of a stream, and where there is no more time for them an error event, if it has events at all."""
        try:
            with self._until_end():
                async for piece in pieces:
                    yield piece
        except GatewayError as error:
            line |= {"kind": "error", "error": error.brief}
            if dialect is None:
                raise
            yield dialect.error_event(error.payload(dialect))
        finally:
            await pieces.aclose()

    def _admit(self, request: Request, line: Line) -> None:
        """Refuse whoever has no key, or is over its limits, and web pages of sites that are not named."""
        key = self.usage.who(given(request.headers)) if self.usage else None
        if self.asks_for_key and not key and not presented(request.headers, self._keys):
            message = "the key is missing or wrong: send it as Authorization: Bearer KEY, or as x-api-key"
            raise GatewayError(401, message, code="invalid_api_key", headers={"www-authenticate": "Bearer"})
        named = {"*", request.headers.get("origin", "")} & set(self._settings.cors_origins)
        if request.headers.get("sec-fetch-site") in ("cross-site", "same-site") and not named:
            message = "requests of other web sites are not answered, unless cors_origins names them"
            raise GatewayError(403, message, kind="permission_error", code="foreign_site")
        if not self.asks_for_key and self._settings.host in LOOPBACK:
            self._admit_host(_host(request))
        bill = request.state.bill = Bill(key, self._prices)
        if key and self.usage:
            line["key"] = key.name
            if not request.url.path.startswith("/v1/suffice/"):
                bill.counts = Counts(refused=1)  # unless it is admitted
                self.usage.admit(key, spends=request.method == "POST")
                bill.counts = Counts(requests=1)

    def _admit_host(self, host: str) -> None:
        """Refuse a name that is not this machine's: a web page may have had its own name point here."""
        if host in LOOPBACK or host in map(str.lower, self._settings.allow_hosts):
            return
        message = (
            f'without a key only requests to this machine are answered, and this one has the Host "{host[:100]}": '
            "name it in allow_hosts if it is your proxy's, let the proxy send localhost, or ask for a key"
        )
        raise GatewayError(403, message, kind="permission_error", code="unknown_host")

    def _finisher(self, request: Request, line: Line, begun: float) -> Callable[[int], None]:
        self._begun_requests[id(line)] = request, line, begun

        def finish(status: int) -> None:
            self._begun_requests.pop(id(line), None)
            release_place = line.pop("release", None)
            if release_place:
                release_place()
            self._charge(getattr(request.state, "bill", None), line)
            path = request.url.path[:200]
            about = {"time": round(time.time(), 3), "method": request.method, "path": path, "status": status}
            entry = {**about, "seconds": round(time.monotonic() - begun, 4), **line}
            metrics.REQUESTS.labels(line["kind"]).inc()
            if path.startswith("/v1/") and not path.startswith("/v1/suffice/"):
                self._count(entry)
            with suppress(OSError, ValueError):  # nobody reads the log: no reason to fail
                sys.stdout.write(json.dumps(entry) + "\n")
                sys.stdout.flush()

        return finish

    def _charge(self, bill: Bill | None, line: Line) -> None:
        """Put the request's bill into the log, the figures, and the usage of its key."""
        if not bill or not bill.wanted:
            return
        if line["kind"] == "cancelled":
            bill.cut_off()
        line |= bill.line()
        if bill.key and self.usage:
            self.usage.add(bill.key.name, bill.counts)
        bill.measure()

    def _count(self, entry: Line) -> None:
        self._recent.appendleft({k: v for k, v in entry.items() if k not in ("question", "answer", "error")})
        self._totals["requests"] += 1
        self._totals["votes"] += entry["kind"] == "vote"
        if "samples_saved" in entry:  # figures of a vote; of single samples the tokens are not always known
            for name in ("samples", "samples_saved", "tokens", "tokens_saved"):
                self._totals[name] += entry[name]

    def told(self, *, names: bool = True) -> dict[str, Any]:
        """What the page shows of the requests so far: counts, and no text; names of keys where they may be seen."""
        since = {"seconds": round(time.time() - self._begun, 1), "workers": self._settings.workers}
        recent = [one if names else {**one, "key": None} for one in self._recent]
        under_way = [
            told for told in map(_on_the_way, self._begun_requests.values()) if told and (names or not told["key"])
        ]
        return {"totals": self._totals, "under_way": under_way[:RECENT], "recent": recent, **since}


def _on_the_way(about: tuple[Request, Line, float]) -> Line | None:
    """What is told of a request that has no reply yet; nothing of looks at our own figures."""
    request, line, begun = about
    path = request.url.path[:200]
    if not path.startswith("/v1/") or path.startswith("/v1/suffice/"):
        return None
    progress = getattr(request.state, "progress", None)
    told = {name: line.get(name) for name in ("kind", "model", "controller", "key")}
    return {"path": path, "seconds": round(time.monotonic() - begun, 3), **told, **(progress() if progress else {})}


class Places:
    """How many requests are answered at once, and how many may wait for that."""

    def __init__(self, places: int, queue: int) -> None:
        self._free = asyncio.Semaphore(places)
        self._queue = queue
        self._waiting = 0

    async def take(self, seconds: float) -> float:
        """Wait for a place; how much of the time is left then."""
        if self._is_full():
            raise GatewayError(
                429, "too many requests are waiting", kind="rate_limit_error", headers={"retry-after": "1"}
            )
        begun = time.monotonic()
        self._wait(1)
        metrics.QUEUED.inc()
        try:
            async with asyncio.timeout(seconds):
                await self._acquire()
        except TimeoutError:
            raise GatewayError(504, "no place was free before the deadline", kind="timeout_error") from None
        finally:
            self._wait(-1)
            metrics.QUEUED.dec()
        return max(0.01, seconds - (time.monotonic() - begun))

    def _is_full(self) -> bool:
        return self._waiting >= self._queue and self._free.locked()

    def _wait(self, more: int) -> None:
        self._waiting += more

    async def _acquire(self) -> None:
        await self._free.acquire()

    def release(self) -> None:
        """Let another in."""
        self._free.release()

    def is_crowded(self) -> bool:
        """Whether anybody waits."""
        return self._waiting > 0


class SharedPlaces(Places):
    """The same over all workers of the machine."""

    def __init__(self, board: Board, places: int, queue: int) -> None:
        super().__init__(places, queue)
        self._board = board
        self._turns = Turns(board, REQUESTS, places)

    def _is_full(self) -> bool:
        return self._turns.is_full and self._board.total(WAITING) >= self._queue

    def _wait(self, more: int) -> None:
        self._board.give(WAITING, -more)

    async def _acquire(self) -> None:
        await self._turns.take()

    def release(self) -> None:
        """Let another in."""
        self._turns.give()

    def is_crowded(self) -> bool:
        """Whether anybody waits."""
        return self._board.total(WAITING) > 0


def _host(request: Request) -> str:
    """The machine that a request is meant for, as it says itself; without the port."""
    given = request.headers.get("host") or LOOPBACK[0]
    named = re.fullmatch(r"(?:\[([^\]]*)\]|([^\[\]:@/]*))(?::\d*)?", given)
    return (named[1] or named[2]).lower() if named else given


_KEYS = ("x-api-key", "api-key")
"""Where Anthropic's clients and Azure's put their key; all others say Authorization: Bearer."""


def given(headers: Mapping[str, str]) -> list[str]:
    """What a request gives as its key, wherever it does."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return [token.strip() if scheme.lower() == "bearer" else "", *(headers.get(name, "") for name in _KEYS)]


def presented(headers: Mapping[str, str], keys: tuple[bytes, ...]) -> bool:
    """Whether a request has one of the keys; in the same time whichever it is, and whether it is."""
    digests = [hashlib.sha256(one.encode("utf-8", "surrogateescape")).digest() for one in given(headers)]
    matches = [hmac.compare_digest(digest, key) for digest in digests for key in keys]
    return any(matches)


def proof(headers: Mapping[str, str], key: str, forward: bool) -> dict[str, str]:
    """What the upstream is shown: its own key where the client put one, or the client's where that is passed on."""
    if forward:
        return {name: headers[name] for name in ("authorization", *_KEYS) if name in headers}
    anthropic = {"x-api-key"} if "anthropic-version" in headers else set()
    places = [name for name in _KEYS if name in headers or name in anthropic]
    return {"authorization": f"Bearer {key}", **dict.fromkeys(places, key)}


def _ended() -> GatewayError:
    """There is no more time: another gateway, or the next one here, may have it."""
    message = "the gateway is shutting down: ask again"
    return GatewayError(503, message, kind="server_error", code="shutting_down", headers={"retry-after": "1"})


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
