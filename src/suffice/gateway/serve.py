"""Running the gateway: its process, or several that answer on one socket and the one that watches over them."""

import gc
import json
import multiprocessing
import os
import shutil
import signal
import socket
import sys
import tempfile
import time
import warnings
from collections.abc import Sequence
from dataclasses import asdict
from multiprocessing.connection import Connection, wait
from pathlib import Path
from types import FrameType

from suffice.errors import OptionError
from suffice.gateway.app import Gateway
from suffice.gateway.operations.drain import FLUSH_SECONDS, DrainingServer, listen
from suffice.gateway.operations.shared import share
from suffice.gateway.operations.warming import warm_up
from suffice.gateway.settings import Settings
from suffice.imports import IMPORTED, import_module

__all__ = ["check_port", "serve"]

SETTINGS = "SUFFICE_GATEWAY"
"""The variable by which workers get their settings; there is no key among them."""

LOOK_SECONDS = 0.1
"""How often it is seen to what signals asked for."""

AGAIN_SECONDS = 1.0
"""The pause before a worker that could not even start is started again."""

_SPAWN = multiprocessing.get_context("spawn")
_HANG_UP = getattr(signal, "SIGHUP", None)


def serve(settings: Settings) -> None:
    """Serve until SIGTERM or Ctrl-C; what is under way then has `drain_seconds` to end."""
    settings.check_safe()
    _tell_warnings()
    warm_up(settings)
    listening = _listening(settings)
    if settings.workers == 1:
        DrainingServer(Gateway(settings), settings).run([listening])
        return
    os.environ[SETTINGS] = json.dumps({**asdict(settings), "imports": list(IMPORTED)})
    folder = tempfile.mkdtemp(prefix="suffice-metrics-")
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder
    share(Path(folder))
    try:
        Workers(settings, [listening]).run()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _tell_warnings() -> None:
    """Let warnings be sentences for whoever runs the gateway, with no place in the code."""
    warnings.showwarning = lambda message, *place, **more: print(f"suffice: {message}", file=sys.stderr, flush=True)


def check_port(settings: Settings) -> None:
    """Refuse an address that can't be listened on, before anything is started."""
    _listening(settings).close()


def _listening(settings: Settings) -> socket.socket:
    try:
        return listen(settings)
    except OSError as error:
        reason = error.strerror or error
        raise OptionError(f"{settings.host}, port {settings.port}, can't be listened on: {reason}") from None


class Worker:
    """One process that answers."""

    def __init__(self, sockets: Sequence[socket.socket]) -> None:
        self._started, told = _SPAWN.Pipe(duplex=False)
        self.process = _SPAWN.Process(target=_work, args=(list(sockets), told))
        self.process.start()
        told.close()
        self._has_started = False

    @property
    def has_started(self) -> bool:
        """Whether it ever answered."""
        if not self._has_started and self._started.poll():
            try:
                self._has_started = self._started.recv()
            except EOFError:
                return False
        return self._has_started

    def tell(self, sig: int) -> None:
        """Pass a signal on."""
        if self.process.is_alive() and self.process.pid:
            os.kill(self.process.pid, sig)


class Workers:
    """Starts workers, replaces those that die, and passes on what it is told by signals.

    SIGTERM and Ctrl-C let all of them drain, a second one ends them at once; SIGHUP reaches each of them.
    """

    def __init__(self, settings: Settings, sockets: Sequence[socket.socket]) -> None:
        self._settings = settings
        self._sockets = sockets
        self._workers: list[Worker] = []
        self._ending = 0.0
        self._reloads = 0

    def run(self) -> None:
        """Serve until a signal says otherwise."""
        signals = [signal.SIGINT, signal.SIGTERM, *([_HANG_UP] if _HANG_UP else [])]
        before = {sig: signal.signal(sig, self._take) for sig in signals}
        try:
            self._workers = [Worker(self._sockets) for _ in range(self._settings.workers)]
            while not self._ending:
                wait([worker.process.sentinel for worker in self._workers], LOOK_SECONDS)
                self._pass_on_reloads()
                self._replace_the_dead()
            self._drain()
            gc.freeze()  # to look for garbage at the very end would take a second, here as in a worker
        finally:
            for worker in self._workers:
                worker.process.kill()
            for sig, handler in before.items():
                signal.signal(sig, handler)

    def _take(self, sig: int, frame: FrameType | None) -> None:
        if sig == _HANG_UP:
            self._reloads += 1
        elif not self._ending:
            self._ending = time.monotonic()
        else:
            for worker in self._workers:
                worker.process.kill()
            signal.signal(sig, signal.SIG_DFL)
            signal.raise_signal(sig)

    def _pass_on_reloads(self) -> None:
        if self._reloads and _HANG_UP:
            self._reloads = 0
            for worker in self._workers:
                if worker.has_started:  # others are about to read everything anyway, and would die of it
                    worker.tell(_HANG_UP)

    def _replace_the_dead(self) -> None:
        for place, worker in enumerate(self._workers):
            if self._ending or worker.process.is_alive():
                continue
            if not any(one.has_started for one in self._workers):
                sys.exit("suffice: the workers can't start")
            if not worker.has_started:
                time.sleep(AGAIN_SECONDS)
            self._workers[place] = Worker(self._sockets)

    def _drain(self) -> None:
        for one in self._sockets:
            one.close()  # else they would be queued here whom no worker accepts any more
        for worker in self._workers:
            worker.tell(signal.SIGTERM)
        ends = self._ending + self._settings.drain_seconds + FLUSH_SECONDS + 2 * LOOK_SECONDS
        for worker in self._workers:
            worker.process.join(max(0.0, ends - time.monotonic()))


def _work(sockets: list[socket.socket], started: Connection) -> None:
    """What a worker does."""
    if _HANG_UP:
        signal.signal(_HANG_UP, signal.SIG_IGN)  # unless somebody wants to know
    _tell_warnings()
    read = json.loads(os.environ[SETTINGS])
    for name in read.pop("imports"):
        import_module(name)
    lists = {name: tuple(value) for name, value in read.items() if isinstance(value, list)}
    settings = Settings(**{**read, **lists})
    warm_up(settings)  # from the disk: the supervisor has planned
    DrainingServer(Gateway(settings), settings, started=lambda: started.send(True)).run(sockets)
