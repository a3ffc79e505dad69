"""The gateway as a Ray Serve application: an ASGI ingress, with as many replicas as there are to be workers.

Nothing of the gateway is imported before a replica has said where the figures of its node are.
"""

import hashlib
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from suffice.errors import OptionError, install
from suffice.imports import IMPORTED, import_module

if TYPE_CHECKING:
    from suffice.gateway import Gateway, Settings

EVERYWHERE = "0.0.0.0"  # noqa: S104 - Serve decides where it listens: who may come in goes by keys


def deployment(settings: "Settings | Mapping[str, Any]") -> Any:
    """The gateway as an application for Ray Serve, by its settings: those of `suffice serve`, as a mapping or Settings.

    Run it by `ray.serve.run`, or name it as `suffice.ray:deployment` to the command `serve run`, or in a configuration
    file with the settings as its `args`. `workers` is the number of replicas; where it listens is for Serve to say.

    >>> deployment({"upstream": "http://localhost:8000/v1"})
    Traceback (most recent call last):
    ...
    suffice.errors.OptionError: Serve may let others in: ask for keys (keys), or allow none (allow_no_key) ...
    """
    chosen = settings_of(settings)
    if not (chosen.allow_no_key or chosen.keys):
        raise OptionError("Serve may let others in: ask for keys (keys), or allow none (allow_no_key) if you want that")
    try:
        from ray import serve
    except ImportError:
        raise OptionError(f"this needs Ray Serve: {install('ray,serve')}") from None
    given, modules = chosen.replaced(host=EVERYWHERE).model_dump(), list(IMPORTED)

    def begin() -> Any:
        return _gateway(given, modules).app

    @serve.deployment(**deployment_options(chosen))
    @serve.ingress(begin)
    class Replica:
        async def check_health(self) -> None:
            """Answer, whether the upstream does or not: another replica would not help."""

    return Replica.bind()  # type: ignore[attr-defined]


def settings_of(given: "Settings | Mapping[str, Any]") -> "Settings":
    """The gateway's settings; those of a command line are all texts."""
    from suffice.gateway.settings import Settings
    from suffice.options import read_texts

    return given if isinstance(given, Settings) else Settings(**read_texts(Settings, given))


def deployment_options(settings: "Settings") -> dict[str, Any]:
    return {
        "name": "suffice",
        "num_replicas": settings.workers,
        "max_ongoing_requests": settings.max_requests + settings.max_queue,
        "graceful_shutdown_timeout_s": settings.drain_seconds,
        "graceful_shutdown_wait_loop_s": max(0.1, min(settings.unready_seconds, settings.drain_seconds)),
    }


def _gateway(given: dict[str, Any], modules: list[str]) -> "Gateway":
    """The gateway of a replica, which is made where it runs."""
    import ray
    from ray import serve

    node = ray.get_runtime_context().get_node_id()
    state = share_node(f"{node} {serve.get_replica_context().app_name}")
    from suffice.gateway import Gateway, Settings

    for name in modules:
        import_module(name)
    settings = Settings(**given)
    settings = settings.replaced(state=settings.state or str(state))
    settings.check_safe()
    return Gateway(settings)


def share_node(name: str) -> Path:
    """Let the replicas of a node share figures; return a folder for what is learned."""
    mark = hashlib.sha256(name.encode()).hexdigest()[:16]
    folder = Path(tempfile.gettempdir()) / f"suffice-{mark}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise OptionError(f"{folder}: it is somebody else's, and replicas can't share what they know there")
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(folder)  # before anything imports the figures
    return folder / "state"
