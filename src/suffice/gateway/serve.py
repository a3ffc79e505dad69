"""Run the gateway with uvicorn: one process, or several workers on one socket."""

import asyncio
import ctypes
import json
import os
import signal
import socket
import struct
import sys
import tempfile
import time
import warnings
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from uvicorn.supervisors import multiprocess

from suffice.controllers import get_controller
from suffice.errors import OptionError
from suffice.gateway.app import Gateway
from suffice.gateway.settings import Settings
from suffice.imports import IMPORTED, import_module
from suffice.planning import prepare
from suffice.tally import Tally

__all__ = ["check_port", "serve"]

SETTINGS = "SUFFICE_GATEWAY"
"""The variable by which workers get their settings; there is no secret among them."""

KEEP_ALIVE_SECONDS = 75
"""Longer than clients and proxies keep idle connections: they close them first."""

FLUSH_SECONDS = 1
"""Time to send the last replies after `drain_seconds`."""

ACCEPT_SECONDS = 0.5
"""Time to accept pending connections, after new ones are dropped."""

SO_ATTACH_FILTER = 26
"""Linux's option for a filter of packets, which Python has no name for."""

SETTLE_SECONDS, TICK_SECONDS = 1.0, 0.05
"""Time for a connection to send its next request, once nobody can connect any more, and between two looks."""

BACKLOG = 4096


class DrainingServer(uvicorn.Server):
    """uvicorn's server; at its end it answers those who have connected, instead of a reset."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop listening, and close the connections once no request comes on any."""
        if not sockets:  # workers share theirs, and one that is replaced leaves it to the others
            for server in self.servers:
                _ignore_connections(server.sockets)
        await asyncio.sleep(ACCEPT_SECONDS)
        for server in self.servers:
            server.close()
        for one in sockets or []:
            one.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(self.config.timeout_graceful_shutdown):
                await self._settle()
        self.config.timeout_graceful_shutdown = FLUSH_SECONDS
        await super().shutdown()

    async def _settle(self) -> None:
        """Wait until no request is under way, nor comes for a while on a connection that a stream has kept open."""
        quiet_seconds = 0.0
        while quiet_seconds < SETTLE_SECONDS and not self.force_exit:
            quiet_seconds = 0.0 if self.server_state.tasks else quiet_seconds + TICK_SECONDS
            await asyncio.sleep(TICK_SECONDS)


def _ignore_connections(sockets: Iterable[socket.socket]) -> None:
    """Drop SYN packets, on Linux: a client that connects between the last accept and the close would get a reset."""
    # The flags of TCP are in byte 13, and 2 is SYN: load, jump if it is set, drop, keep.
    program = [(0x30, 0, 0, 13), (0x45, 0, 1, 2), (0x06, 0, 0, 0), (0x06, 0, 0, 0xFFFFFFFF)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *one) for one in program))
    for one in sockets:
        # uvloop's own have no setsockopt; and socket.dup would let the workers block when they accept.
        with socket.socket(fileno=os.dup(one.fileno())) as same, suppress(OSError):
            same.setsockopt(
                socket.SOL_SOCKET, SO_ATTACH_FILTER, struct.pack("HP", len(program), ctypes.addressof(code))
            )


class Worker(multiprocess.Process):
    """A worker with a `DrainingServer`."""

    @property
    def server(self) -> uvicorn.Server:
        self._server = self._server or DrainingServer(self.config)
        return self._server


multiprocess.Process = Worker  # type: ignore[misc]  # uvicorn has no option for it


class Workers(multiprocess.Multiprocess):
    """uvicorn's workers. At the end the parent drops new connections on the sockets that they share."""

    unready_seconds = 0.0

    def terminate_all(self) -> None:
        super().terminate_all()
        time.sleep(self.unready_seconds)
        _ignore_connections(self.sockets)
        for one in self.sockets:
            one.close()


def serve(settings: Settings) -> None:
    """Serve until SIGTERM or Ctrl-C; requests under way then have `drain_seconds` to end."""
    settings.check_safe()
    _print_warnings()
    config = uvicorn.Config(
        "suffice.gateway.serve:app",
        factory=True,
        host=settings.host,
        port=settings.port,
        workers=settings.workers,
        log_level="warning",
        access_log=False,
        server_header=False,
        backlog=BACKLOG,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=int(settings.drain_seconds) + FLUSH_SECONDS,
    )
    if settings.workers == 1:
        _leave(settings)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # keys and policies are read again without it
        signal.signal(signal.SIGTERM, lambda *_: sys.exit())  # uvicorn raises it again once all is answered
        DrainingServer(config).run()
        return
    with tempfile.TemporaryDirectory(prefix="suffice-", ignore_cleanup_errors=True) as folder:
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder
        _leave(settings.replaced(state=settings.state or str(Path(folder, "state"))))
        workers = Workers(config, [config.bind_socket()])
        workers.unready_seconds = min(settings.unready_seconds, settings.drain_seconds)
        workers.run()


def _leave(settings: Settings) -> None:
    """Leave the settings to `app`, which may run in another process."""
    os.environ[SETTINGS] = json.dumps({**settings.model_dump(), "imports": list(IMPORTED)})


def app() -> Starlette:
    """Make the application of one process, by the settings that the parent left."""
    _print_warnings()
    read = json.loads(os.environ[SETTINGS])
    for name in read.pop("imports"):
        import_module(name)
    settings = Settings(**read)
    get_controller(settings.controller).next_round(Tally(settings.budget))  # plans take seconds the first time
    prepare(settings.budget)
    return Gateway(settings).app


def check_port(settings: Settings) -> None:
    """Refuse an address that can't be listened on, before anything is started."""
    with socket.socket(socket.AF_INET6 if ":" in settings.host else socket.AF_INET) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((settings.host, settings.port))
        except OSError as error:
            reason = error.strerror or error
            raise OptionError(f"{settings.host}, port {settings.port}, can't be listened on: {reason}") from None


def _print_warnings() -> None:
    """Print warnings as sentences, without a place in the code."""
    warnings.showwarning = lambda message, *place, **more: print(f"suffice: {message}", file=sys.stderr, flush=True)
