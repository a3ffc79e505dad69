"""The server that a command samples: the options that name it, and finding it."""

import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

import suffice
from suffice import OptionError
from suffice.cli.app import need
from suffice.live.prompts import suited
from suffice.live.targets import PLACEHOLDER_KEY, Target, read_targets, whole_url
from suffice.report import waiting

BaseUrl = Annotated[
    list[str] | None,
    typer.Option(
        metavar="URL",
        help="An OpenAI-compatible server, or 'URL weight=2 key_env=NAME models=a,b'; the key is OPENAI_API_KEY; "
        "repeat for more.",
    ),
]
Model = Annotated[str | None, typer.Option(help="The model; may be left out where the server has just one.")]
Gguf = Annotated[Path | None, typer.Option(metavar="FILE", help="Serve this GGUF model here (extra local).")]
Threads = Annotated[int, typer.Option(help="Threads for a model that is served here.")]


@dataclass(frozen=True)
class Upstream:
    """Where to sample: the client's settings, the model, and what suits it."""

    settings: list[dict[str, Any]]
    model: str
    prompt: str
    request: dict[str, Any]
    weights: tuple[float, ...] = ()
    is_here: bool = False
    """Whether it is a model that is served by this process."""

    def fields(self, **options: Any) -> dict[str, Any]:
        """The fields of a request: the model, what suits it, and the options that are given."""
        given = {name: value for name, value in options.items() if value is not None}
        return self.request | given | {"model": self.model}


@contextmanager
def upstream_of(
    base_url: Sequence[str] | None, model: str | None, gguf: Path | None, threads: int
) -> Iterator[Upstream]:
    """The servers that `ask`, `run` and `collect` sample; what they refuse meanwhile is said in a sentence."""
    with warnings.catch_warnings(), _servers(base_url, model, gguf, threads) as upstream:
        warnings.filterwarnings("always", message="signals:")
        warnings.showwarning = lambda message, *place, **more: typer.echo(f"suffice: {message}", err=True)
        yield upstream


@contextmanager
def _servers(base_url: Sequence[str] | None, model: str | None, gguf: Path | None, threads: int) -> Iterator[Upstream]:
    """The servers that are named, or the embedded model where none is and there is no key for one."""
    openai = need("openai", "")
    default = Target("")
    base_url = base_url or ([] if gguf else [os.environ.get("OPENAI_BASE_URL", "")])
    targets = read_targets(base_url, "base_url")
    if gguf and targets:
        raise OptionError("give --gguf or --base-url, not both")
    if gguf or not (targets or default.key != PLACEHOLDER_KEY):
        with ExitStack() as stack:
            with waiting("starting the model"):
                server = stack.enter_context(suffice.LocalServer(gguf, threads=threads))
            settings = {"base_url": server.base_url, "api_key": PLACEHOLDER_KEY}
            yield Upstream([settings], server.model, *suited(server.model), is_here=True)
        return
    if model:
        targets = tuple(one for one in targets if not one.models or model in one.models) or targets
    several = [{"api_key": one.key, "base_url": whole_url(one.url, "base_url")} for one in targets]
    several = several or [{"api_key": default.key}]
    yield Upstream(several, model or _only_model(openai, several), "paper", {}, tuple(one.weight for one in targets))


def _only_model(openai: Any, several: Sequence[dict[str, Any]]) -> str:
    """The one model that servers have; those that can't be reached have no say where others have."""
    names: set[str] = set()
    unreachable: list[OptionError] = []
    for settings in several:
        try:
            names.update(_models(openai, settings))
        except ConnectionError as error:
            unreachable.append(OptionError(str(error)))
    if len(unreachable) == len(several):
        raise unreachable[0]
    if len(names) != 1:
        some = ", ".join(sorted(names)[:10]) + ", …" * (len(names) > 10)
        raise OptionError(f"--model must be given; the server has {some or 'none'}")
    return names.pop()


def _models(openai: Any, settings: dict[str, Any]) -> list[str]:
    """The models of one server; ConnectionError where it is not there."""
    from suffice.live.server import masked

    try:
        with openai.OpenAI(**settings, timeout=30) as client:
            return [str(model.id) for model in client.models.list()]
    except Exception as error:  # whatever a server may send in place of a list of models
        reason = masked(" ".join(str(error.__cause__ or error).split()), settings["api_key"])[:200]
        if isinstance(error, openai.APIConnectionError):
            where = settings.get("base_url") or "OpenAI"
            raise ConnectionError(f"{where} can't be reached: {reason or 'no connection'}") from None
        raise OptionError(f"--model must be given: the server does not tell its models ({reason})") from None
