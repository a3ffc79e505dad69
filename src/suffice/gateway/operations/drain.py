"""One process of the gateway as a server: what it listens on, and how it ends so that every request has its reply."""

import asyncio
import gc
import os
import select
import signal
import socket
import time
from collections.abc import Callable, Sequence
from types import FrameType
from weakref import WeakKeyDictionary

import uvicorn

from suffice.gateway.app import Gateway
from suffice.gateway.settings import Settings

KEEP_ALIVE_SECONDS = 75
"""Longer than clients and proxies keep idle connections: whoever closes one first must not be the server."""

SETTLE_SECONDS = 1.0
"""Whoever has connected just before nobody could any more has so long to send the request."""

FLUSH_SECONDS = 0.5
"""So long it may take to send the last replies, once there is no more time for better ones."""

BACKLOG = 4096


class DrainingServer(uvicorn.Server):
    """Serves until it is told to end. Then, within `drain_seconds`:

    1. for `unready_seconds`, `/readyz` says no and all else goes on, so that whoever balances the load looks elsewhere;
    2. nobody can connect any more, and idle connections are closed;
    3. what is under way ends; what has not when the time is up is answered with an error.
    """

    def __init__(self, gateway: Gateway, settings: Settings, *, started: Callable[[], None] | None = None) -> None:
        super().__init__(
            uvicorn.Config(
                gateway.app,
                log_level="warning",
                access_log=False,
                server_header=False,
                backlog=BACKLOG,
                timeout_keep_alive=KEEP_ALIVE_SECONDS,
            )
        )
        self._gateway = gateway
        self._settings = settings
        self._on_start = started
        self._parent = os.getppid() if started else None
        self._told = 0.0
        self._silent_since: WeakKeyDictionary[object, float] = WeakKeyDictionary()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and tell whoever started this process."""
        await super().startup(sockets)
        if self._on_start:
            self._on_start()

    def end(self) -> None:
        """Begin to drain."""
        self._told = self._told or time.monotonic()
        self.should_exit = True

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Drain at the first signal, and end at once at the second; a worker leaves Ctrl-C to the supervisor."""
        if self._parent is not None and sig == signal.SIGINT:
            return
        if self.should_exit:
            signal.signal(sig, signal.SIG_DFL)
            signal.raise_signal(sig)
        self.end()

    async def on_tick(self, counter: int) -> bool:
        """Look after the clock now and then."""
        if counter % 10 == 0:
            self._close_silent()
        if self._parent is not None and os.getppid() != self._parent:  # the supervisor was killed
            self.end()
        return await super().on_tick(counter)

    def _close_silent(self) -> None:
        """Close connections on which no whole head of a request has come in time: uvicorn itself waits for ever."""
        now = time.monotonic()
        for connection in list(self.server_state.connections):
            cycle = getattr(connection, "cycle", None)
            idle = getattr(connection, "timeout_keep_alive_task", None) is not None  # uvicorn closes these itself
            if idle or (cycle is not None and not cycle.response_complete):
                self._silent_since.pop(connection, None)
            elif now - self._silent_since.setdefault(connection, now) > self._settings.upload_seconds:
                connection.transport.close()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Drain."""
        told = self._told or time.monotonic()
        ends = told + self._settings.drain_seconds
        self._gateway.drain()
        self._keep_no_connection()
        await _sleep_until(min(told + self._settings.unready_seconds, ends))
        await self._stop_listening(sockets or [])
        await self._wait_for_connections(ends, newest=time.monotonic() + SETTLE_SECONDS)
        self._gateway.end()
        await self._wait_for_connections(time.monotonic() + FLUSH_SECONDS)
        for connection in list(self.server_state.connections):
            connection.transport.abort()
        for task in self.server_state.tasks:
            task.cancel()
        await self.lifespan.shutdown()
        gc.freeze()  # to look for garbage at the very end would take a second, and nobody needs the room

    def _keep_no_connection(self) -> None:
        """Say `Connection: close` with every reply from now on, also to what is under way: else a client would send its
        next request over a connection that is about to be closed.
        """
        self.server_state.default_headers = [*self.server_state.default_headers, (b"connection", b"close")]
        for connection in list(self.server_state.connections):
            cycle = getattr(connection, "cycle", None)
            if cycle is not None and not cycle.response_complete:
                connection.shutdown()

    async def _stop_listening(self, sockets: Sequence[socket.socket]) -> None:
        """Accept whoever has connected, and nobody else: what is left in the queue when a socket closes is reset."""
        spares = [one.dup() for one in sockets]
        for server in self.servers:
            server.close()
        for one in sockets:
            one.close()
        await asyncio.sleep(0)
        for spare in spares:
            spare.setblocking(False)
            with spare:
                while (accepted := _accepted(spare)) is not None:
                    await asyncio.get_running_loop().connect_accepted_socket(self._protocol, accepted)

    def _protocol(self) -> asyncio.Protocol:
        kind: Callable[..., asyncio.Protocol] = self.config.http_protocol_class
        return kind(config=self.config, server_state=self.server_state, app_state=self.lifespan.state)

    async def _wait_for_connections(self, ends: float, newest: float = 0.0) -> None:
        """Wait until all connections are closed: the idle ones now, the others when they have their reply.

        A request that has arrived and was not read yet is no idleness, nor is one that a new connection is for.
        """
        while self.server_state.connections and (now := time.monotonic()) < ends:
            for connection in list(self.server_state.connections):
                is_new = getattr(connection, "cycle", None) is None and now < newest
                if not is_new and not _has_unread(connection.transport):
                    connection.shutdown()
            await asyncio.sleep(0.02)


def listen(settings: Settings) -> socket.socket:
    """A socket on the address, which nobody can connect to before it is served."""
    listening = socket.socket(socket.AF_INET6 if ":" in settings.host else socket.AF_INET)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((settings.host, settings.port))
    except BaseException:
        listening.close()
        raise
    return listening


def _accepted(listening: socket.socket) -> socket.socket | None:
    try:
        accepted, _ = listening.accept()
    except OSError:
        return None
    accepted.setblocking(False)
    return accepted


def _has_unread(transport: asyncio.BaseTransport) -> bool:
    """Whether something has arrived that nobody has read."""
    watched = transport.get_extra_info("socket")
    if transport.is_closing() or watched is None or not hasattr(select, "poll"):
        return False
    poll = select.poll()
    poll.register(watched.fileno(), select.POLLIN)
    return bool(poll.poll(0))


async def _sleep_until(moment: float) -> None:
    await asyncio.sleep(max(0.0, moment - time.monotonic()))
