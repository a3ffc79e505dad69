"""The clients of the `openai` and `anthropic` packages, and how a request is sent with one."""

import asyncio
import importlib
import inspect
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

from suffice.errors import OptionError
from suffice.live.dialects import CHAT, DIALECTS, Dialect
from suffice.live.servers.hosts import Host, ServerCapabilities
from suffice.live.servers.retry import StatusError
from suffice.live.servers.server import Post
from suffice.live.tracing import TRACING

KNOWN: dict[str, ServerCapabilities] = {}
"""What has been learned of servers, by base URL: clients come and go."""

MOST_KNOWN = 1000

_HOSTS: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[tuple[str, str, float], Host]] = WeakKeyDictionary()


def several(client: Any) -> list[Any]:
    clients = list(client) if isinstance(client, list | tuple) else [client]
    if not clients:
        raise OptionError("there must be one at least", "client")
    return clients


def host_of(client: Any, weight: float) -> Host:
    """Return the server of a client, one for an event loop, whose questions wait together."""
    hosts = _HOSTS.setdefault(asyncio.get_running_loop(), {})
    for memory in (hosts, KNOWN):
        if len(memory) >= MOST_KNOWN:
            memory.clear()
    name, secret = str(client.base_url), str(client.api_key or "")
    capabilities = KNOWN.setdefault(name, ServerCapabilities())
    return hosts.setdefault((name, secret, weight), Host(name, capabilities, secret, weight))


def dialect_of(clients: list[Any], api: str | None = None) -> Dialect:
    """Return the dialect of clients: Messages for Anthropic's, chat or Responses for OpenAI's."""
    packages = {kind_of(client)[0].__name__ for client in clients}
    if len(packages) > 1:
        raise OptionError("must be of one package where there are several", "client")
    spoken = ("messages",) if packages == {"anthropic"} else ("chat", "responses")
    if api not in (None, *spoken):
        raise OptionError(f'must be {" or ".join(spoken)} with this client, not "{api}"', "api")
    return DIALECTS[api or spoken[0]]


_CLASSES = {"openai": "OpenAI", "anthropic": "Anthropic"}
"""The clients of each package; asynchronous ones have Async before it."""


def kind_of(client: Any) -> tuple[Any, str]:
    """Return the package of a client, which is loaded, and its class there."""
    for base in type(client).__mro__:
        package = base.__module__.partition(".")[0]
        if base.__name__.removeprefix("Async") == _CLASSES.get(package):
            return importlib.import_module(package), base.__name__
    raise OptionError(
        "the client must be one of the openai package's, openai.OpenAI or openai.AsyncOpenAI, or of anthropic's"
    )


def poster(client: Any, timeout: float, threads: int, dialect: Dialect) -> Post:
    """Send requests by a client, which knows its paths itself."""
    package, _ = kind_of(client)
    quick = client.with_options(max_retries=0, timeout=timeout)
    resource = quick.chat.completions if dialect is CHAT else getattr(quick, dialect.name)
    create: Any = resource.with_streaming_response.create
    known = set(inspect.signature(create).parameters)

    def post_blocking(request: dict[str, Any], feed: Callable[[bytes], object], feeding: threading.Lock) -> None:
        with _our_errors(package), create(**request) as reply:
            for chunk in reply.iter_bytes():
                if not feeding.acquire(blocking=False):
                    return
                try:
                    feed(chunk)
                finally:
                    feeding.release()

    executor = None if is_async(client) else ThreadPoolExecutor(threads, "suffice-draw")

    async def post(path: str, request: dict[str, Any], feed: Callable[[bytes], object]) -> None:
        # Here, for threads do not know what is current.
        request = {**request, "extra_headers": TRACING.passed_on(dict(request.get("extra_headers") or {}))}
        if dialect is not CHAT:
            # Fields that the client does not know, as a seed, are sent all the same.
            extra = {name: value for name, value in request.items() if name not in known}
            request = {name: value for name, value in request.items() if name in known}
            request["extra_body"] = {**extra, **(request.get("extra_body") or {})}
        if executor:
            feeding = threading.Lock()
            try:
                await asyncio.get_running_loop().run_in_executor(executor, post_blocking, request, feed, feeding)
            finally:
                feeding.acquire()  # for good: a thread that runs on after a timeout must not feed the next try's reader
            return
        with _our_errors(package):
            async with create(**request) as reply:
                async for chunk in reply.iter_bytes():
                    feed(chunk)

    return post


@contextmanager
def _our_errors(package: Any) -> Iterator[None]:
    """Raise errors of the client and of its HTTP library as ours."""
    transport = tuple(sys.modules[name].HTTPError for name in ("httpx2", "httpx") if name in sys.modules)
    try:
        yield
    except package.APIStatusError as error:
        raise StatusError(error.status_code, error.message, error.response.headers) from None
    except package.APITimeoutError:
        raise TimeoutError from None
    except package.APIConnectionError as error:
        nobody = type(error.__cause__).__name__ == "ConnectError"
        kind = ConnectionRefusedError if nobody else ConnectionError
        raise kind(str(error.__cause__ or error)) from None
    except transport as error:
        raise ConnectionError(str(error) or type(error).__name__) from None


def is_async(client: Any) -> bool:
    return kind_of(client)[1].startswith("Async")


def async_client(client: Any) -> Any:
    """An asynchronous client with the same settings, whose requests can be interrupted.

    A client with an HTTP client of its own, or of another class, has none: it is returned as it is, and its requests
    run in threads to their end.
    """
    package, name = kind_of(client)
    plain = type(client) is getattr(package, name) and type(client._client).__name__ == "SyncHttpxClientWrapper"
    if not plain or getattr(client, "_api_key_provider", None) or getattr(client, "_token_cache", None):
        return client
    named = ("organization", "project") if name == "OpenAI" else ("auth_token",)
    return getattr(package, f"Async{name}")(
        api_key=client.api_key,
        base_url=client.base_url,
        default_headers=client._custom_headers,
        default_query=client._custom_query,
        **{name: getattr(client, name) for name in named},
    )
