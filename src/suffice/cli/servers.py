"""The server that a command samples: the options that name it, and finding it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import typer

import suffice
from suffice import OptionError
from suffice.cli.app import need

PLACEHOLDER_KEY = "none"
"""Sent where there is no key: local servers need none, and the client insists on one."""

BaseUrl = Annotated[
    str | None, typer.Option(metavar="URL", help="An OpenAI-compatible server; the key is OPENAI_API_KEY.")
]
Model = Annotated[str | None, typer.Option(help="The model; may be left out where the server has just one.")]
Gguf = Annotated[Path | None, typer.Option(metavar="FILE", help="Serve this GGUF model here (extra local).")]
Threads = Annotated[int, typer.Option(help="Threads for a model that is served here.")]


@dataclass(frozen=True)
class Upstream:
    """Where to sample: the client's settings, the model, and what suits it."""

    settings: dict[str, Any]
    model: str
    prompt: str
    request: dict[str, Any]

    def fields(self, **options: Any) -> dict[str, Any]:
        """The fields of a request: the model, what suits it, and the options that are given."""
        given = {name: value for name, value in options.items() if value is not None}
        return self.request | given | {"model": self.model}


@contextmanager
def upstream_of(base_url: str | None, model: str | None, gguf: Path | None, threads: int) -> Iterator[Upstream]:
    """The server that is named, or the embedded model where none is and there is no key for one."""
    openai = need("openai", "")
    key = os.environ.get("OPENAI_API_KEY", "").strip()
    if not key.isascii():
        raise OptionError("OPENAI_API_KEY has characters in it that no key has; set it again")
    base_url = base_url or (None if gguf else os.environ.get("OPENAI_BASE_URL"))
    if gguf and base_url:
        raise OptionError("give --gguf or --base-url, not both")
    if gguf or not (base_url or key):
        with suffice.LocalServer(gguf, threads=threads) as server:
            settings = {"base_url": server.base_url, "api_key": PLACEHOLDER_KEY}
            small = gguf is None
            yield Upstream(settings, server.model, "worked" if small else "paper", {"max_tokens": 256} if small else {})
        return
    settings = {"api_key": key or PLACEHOLDER_KEY} | (
        {"base_url": whole_url("--base-url", base_url)} if base_url else {}
    )
    yield Upstream(settings, model or _only_model(openai, settings), "paper", {})


def whole_url(option: str, base_url: str) -> str:
    """A URL that was given by an option, with the path that it nearly always has."""
    try:
        parts = urlsplit(base_url)
        known = parts.scheme in ("http", "https") and bool(parts.hostname)
        _ = parts.port
    except ValueError:
        known = False
    if not known:
        shown = base_url.rpartition("@")[2]  # what may stand before it is a password
        raise OptionError(f"{option} {shown}: it must be like http://localhost:8000/v1")
    return base_url if parts.path.strip("/") else f"{base_url.rstrip('/')}/v1"


def _only_model(openai: Any, settings: dict[str, Any]) -> str:
    """The one model that a server has."""
    from suffice.live.server import masked

    try:
        with openai.OpenAI(**settings, timeout=30) as client:
            names = [model.id for model in client.models.list()]
    except Exception as error:  # whatever a server may send in place of a list of models
        reason = masked(" ".join(str(error.__cause__ or error).split()), settings["api_key"])[:200]
        if isinstance(error, openai.APIConnectionError):
            where = settings.get("base_url") or "OpenAI"
            raise OptionError(f"{where} can't be reached: {reason or 'no connection'}") from None
        raise OptionError(f"--model must be given: the server does not tell its models ({reason})") from None
    if len(names) != 1:
        some = ", ".join(names[:10]) + ", …" * (len(names) > 10)
        raise OptionError(f"--model must be given; the server has {some or 'none'}")
    return str(names[0])
