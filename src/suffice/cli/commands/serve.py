"""The command that runs the gateway."""

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer

import suffice
from suffice import OptionError
from suffice.cli.app import app, need
from suffice.cli.command import Fields
from suffice.cli.servers import Gguf
from suffice.gateway.settings import Settings, with_file


@app.command()
def serve(given: Annotated[dict[str, Any], Fields(Settings)], local_model: Gguf) -> None:
    """Serve an OpenAI-compatible endpoint that asks the one behind it just enough times."""
    gateway = need("suffice.gateway.serve", "serve")
    traces = need("suffice.gateway.operations.traces", "serve")
    settings = with_file(given, Path(given["config"])) if "config" in given else Settings(**given)
    if settings.targets and local_model:
        raise OptionError("give --upstream or --gguf, not both")
    settings.check_safe()
    if why := traces.ignored(settings):
        typer.echo(f"suffice: a collector of traces is named, and none are sent: it {why}", err=True)
    for one in settings.calibrations:
        doubts = one.calibration.doubts(settings.controller_in_force, settings.budget, settings.risk)
        if settings.voters and one.model in (None, settings.voters.name):
            doubts += one.calibration.doubts(settings.voters.controller, settings.budget)
        for doubt in doubts:
            typer.echo(f"suffice: {doubt}", err=True)
    gateway.check_port(settings)
    own = settings.upstream or (settings.voters and all(one.base_url for one in settings.voters.voters))
    local = None if own else suffice.LocalServer(**local_model)
    with local or nullcontext():
        where = f"http://{settings.host}:{settings.port}"
        behind = local.model if local else ", ".join(target.url.rpartition("@")[2] for target in settings.targets)
        typer.echo(f"suffice: {where}/v1 in front of {behind}; a page is at {where}/", err=True)
        gateway.serve(settings.replaced(upstream=local.base_url) if local else settings)
