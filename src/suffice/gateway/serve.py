"""Running the gateway: its process or processes, and their end."""

import math
import os
import shutil
import socket
import tempfile
from pathlib import Path

import uvicorn

from suffice.controllers import get_controller
from suffice.errors import OptionError
from suffice.gateway.app import Gateway, create, hand_over
from suffice.gateway.settings import Settings
from suffice.gateway.shared import share
from suffice.gateway.usage import pass_hangup_on
from suffice.planning import prepare
from suffice.tally import Tally

KEEP_ALIVE_SECONDS = 75
"""Longer than clients and proxies keep idle connections: whoever closes one first must not be the server."""

__all__ = ["check_port", "create", "serve"]


def serve(settings: Settings) -> None:
    """Serve until SIGTERM or Ctrl-C; what is under way then has `drain_seconds` to end."""
    settings.check_safe()
    _warm_up(settings)
    options: dict[str, object] = {
        "host": settings.host,
        "port": settings.port,
        "log_level": "warning",
        "access_log": False,
        "server_header": False,
        "timeout_graceful_shutdown": math.ceil(settings.drain_seconds),
        "backlog": 4096,
        "timeout_keep_alive": KEEP_ALIVE_SECONDS,
    }
    if settings.workers == 1:
        uvicorn.run(Gateway(settings).app, **options)  # type: ignore[arg-type]
        return
    hand_over(settings)
    folder = tempfile.mkdtemp(prefix="suffice-metrics-")
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder
    share(Path(folder))
    if settings.keys:
        pass_hangup_on()
    try:
        uvicorn.run("suffice.gateway.app:create", factory=True, workers=settings.workers, **options)  # type: ignore[arg-type]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def check_port(settings: Settings) -> None:
    """Refuse an address that can't be listened on, before anything is started."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((settings.host, settings.port))
        except OSError as error:
            reason = error.strerror or error
            raise OptionError(f"{settings.host}, port {settings.port}, can't be listened on: {reason}") from None


def _warm_up(settings: Settings) -> None:
    """Plan before the first client waits for it."""
    tally = Tally(settings.budget)
    get_controller(settings.controller).next_round(tally)
    prepare(settings.budget)
