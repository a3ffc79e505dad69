"""Running the gateway: its process or processes, and their end."""

import os
import shutil
import socket
import tempfile
from pathlib import Path

from suffice.errors import OptionError
from suffice.gateway.app import Gateway, hand_over
from suffice.gateway.operations.drain import DrainingServer, listen
from suffice.gateway.operations.shared import share
from suffice.gateway.operations.warming import warm_up
from suffice.gateway.operations.workers import Workers
from suffice.gateway.settings import Settings

__all__ = ["check_port", "serve"]


def serve(settings: Settings) -> None:
    """Serve until SIGTERM or Ctrl-C; what is under way then has `drain_seconds` to end."""
    settings.check_safe()
    warm_up(settings)
    listening = _listening(settings)
    if settings.workers == 1:
        DrainingServer(Gateway(settings), settings).run([listening])
        return
    hand_over(settings)
    folder = tempfile.mkdtemp(prefix="suffice-metrics-")
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder
    share(Path(folder))
    try:
        Workers(settings, [listening]).run()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def check_port(settings: Settings) -> None:
    """Refuse an address that can't be listened on, before anything is started."""
    _listening(settings).close()


def _listening(settings: Settings) -> socket.socket:
    try:
        return listen(settings)
    except OSError as error:
        reason = error.strerror or error
        raise OptionError(f"{settings.host}, port {settings.port}, can't be listened on: {reason}") from None
