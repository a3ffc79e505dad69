"""The `openai` package's clients, and how a request is sent with one."""

import asyncio
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

import openai

from suffice.errors import OptionError
from suffice.live import server
from suffice.live.facts import Facts
from suffice.live.fleet import Fleet, Host
from suffice.live.limiter import Limiter
from suffice.live.server import RETRIES, TIMEOUT, Post, Server, StatusError, TooLongError

KNOWN: dict[str, Facts] = {}
"""What has been learned of servers, by base URL: clients come and go."""

MOST_KNOWN = 1000

_HOSTS: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[tuple[str, str], Host]] = WeakKeyDictionary()


def facts_of(client: Any) -> Facts:
    """What has been learned of the server that a client speaks to."""
    if len(KNOWN) >= MOST_KNOWN:
        KNOWN.clear()
    return KNOWN.setdefault(str(getattr(client, "base_url", "")), Facts())


def server_of(
    clients: Any, limiter: Limiter, retries: int = RETRIES, timeout: float = TIMEOUT, weights: Sequence[float] = ()
) -> Server:
    """The server that a client speaks to, or those that several do."""
    several = clients if isinstance(clients, list | tuple) else [clients]
    if not several:
        raise OptionError("there must be a client at least", "client")
    posts = {
        _host_of(client, weight): _poster(client, timeout, limiter.limit)
        for client, weight in zip(several, weights or [1.0] * len(several), strict=True)
    }
    return Server(Fleet(list(posts)), posts.__getitem__, limiter, retries=retries, timeout=timeout)


def _host_of(client: Any, weight: float) -> Host:
    """A server as all see it who ask it from the same event loop: they wait together where it asks for a pause."""
    hosts = _HOSTS.setdefault(asyncio.get_running_loop(), {})
    if len(hosts) >= MOST_KNOWN:
        hosts.clear()
    name, secret = str(getattr(client, "base_url", "")), str(getattr(client, "api_key", None) or "")
    known = hosts.get((name, secret))
    if known is None or known.weight != weight:
        known = hosts[name, secret] = Host(name, facts=facts_of(client), secret=secret, weight=weight)
    return known


def _poster(client: Any, timeout: float, threads: int) -> Post:
    """Send a request and read the body piece by piece: an endless response must have an end here."""
    if not isinstance(client, openai.OpenAI | openai.AsyncOpenAI):
        raise OptionError("the client must be one of the openai package's: openai.OpenAI or openai.AsyncOpenAI")
    create: Any = client.with_options(max_retries=0, timeout=timeout).chat.completions.with_streaming_response.create

    async def post(request: dict[str, Any], show: Callable[[bytes], None]) -> bytes:
        body = bytearray()
        with _our_errors():
            async with create(**request) as reply:
                async for chunk in reply.iter_bytes():
                    _take(chunk, body, show)
        return bytes(body)

    def post_blocking(request: dict[str, Any], show: Callable[[bytes], None]) -> bytes:
        body = bytearray()
        with _our_errors(), create(**request) as reply:
            for chunk in reply.iter_bytes():
                _take(chunk, body, show)
        return bytes(body)

    if is_async(client):
        return post
    executor = ThreadPoolExecutor(threads, "suffice-draw")

    async def post_in_thread(request: dict[str, Any], show: Callable[[bytes], None]) -> bytes:
        return await asyncio.get_running_loop().run_in_executor(executor, post_blocking, request, show)

    return post_in_thread


def _take(chunk: bytes, body: bytearray, show: Callable[[bytes], None]) -> None:
    body += chunk
    show(chunk)
    if len(body) > server.MOST_BYTES:
        raise TooLongError(f"a response of more than {server.MOST_BYTES >> 20} MiB")


@contextmanager
def _our_errors() -> Iterator[None]:
    """Raise what the client and the HTTP library under it raise as errors of ours."""
    transport = tuple(sys.modules[name].HTTPError for name in ("httpx2", "httpx") if name in sys.modules)
    try:
        yield
    except openai.APIStatusError as error:
        raise StatusError(error.status_code, error.message, error.response.headers) from None
    except openai.APITimeoutError:
        raise TimeoutError from None
    except openai.APIConnectionError as error:
        nobody = type(error.__cause__).__name__ == "ConnectError"
        kind = ConnectionRefusedError if nobody else ConnectionError
        raise kind(str(error.__cause__ or error)) from None
    except transport as error:
        raise ConnectionError(str(error) or type(error).__name__) from None


def is_async(client: Any) -> bool:
    """Whether a client's requests are awaited."""
    return isinstance(client, openai.AsyncOpenAI)


def twin(client: Any) -> Any:
    """An asynchronous client with the same settings, whose requests can be interrupted.

    A client with an HTTP client of its own, or of another class, has none: it is returned as it is, and its requests
    run in threads to their end.
    """
    plain = type(client) is openai.OpenAI and type(client._client).__name__ == "SyncHttpxClientWrapper"
    if not plain or getattr(client, "_api_key_provider", None):
        return client
    return openai.AsyncOpenAI(
        api_key=client.api_key,
        organization=client.organization,
        project=client.project,
        base_url=client.base_url,
        default_headers=client._custom_headers,
        default_query=client._custom_query,
    )
