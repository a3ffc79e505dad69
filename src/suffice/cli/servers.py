"""The server that a command samples: the options that name it, and finding it."""

import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

import suffice
from suffice import OptionError
from suffice.cli.app import need
from suffice.cli.command import Fields
from suffice.live.prompts import suited
from suffice.live.servers.targets import KEY_ENV, PLACEHOLDER_KEY, Target, read_targets
from suffice.panel.live import Panel
from suffice.report.progress import waiting
from suffice.settings import setting


@dataclass(frozen=True)
class ServerChoice:
    """Where to sample: the client's settings, the model, and what suits it."""

    settings: list[dict[str, Any]]
    model: str
    prompt: str
    request: dict[str, Any]
    weights: tuple[float, ...] = ()
    panel: Panel | None = None
    """The voters that are asked instead; those that name no server ask this one."""
    is_here: bool = False
    """Whether it is a model that is served by this process."""

    def fields(self, given: dict[str, Any]) -> dict[str, Any]:
        return self.request | given | {"model": self.model}


@dataclass(frozen=True)
class ServerOptions:
    """The options that name who is asked."""

    base_url: Sequence[str] = setting(
        (),
        "An OpenAI-compatible server, or 'URL weight=2 key_env=NAME models=a,b'; the key is OPENAI_API_KEY; repeat for "
        "more.",
        "URL",
    )
    model: str | None = setting(None, "The model; may be left out where the server has just one.")
    gguf: Path | None = setting(None, "Serve this GGUF model here (extra local).", "FILE")
    panel: Path | None = setting(None, "A TOML file of voters: several models, or prompts, on a question.", "FILE")

    @contextmanager
    def upstream(self) -> Iterator[ServerChoice]:
        """The servers that are sampled; what they refuse meanwhile is said in a sentence."""
        voters = Panel.read(self.panel) if self.panel else None
        if voters and all(voter.base_url for voter in voters.voters):
            if self.base_url or self.model or self.gguf:
                raise OptionError("has a server for each voter: leave --base-url, --model and --gguf out", "panel")
            choosing: Any = nullcontext(ServerChoice([], voters.name, "paper", {}))
        else:
            choosing = self._servers()
        with warnings.catch_warnings(), choosing as upstream:
            warnings.filterwarnings("always", message="signals:")
            warnings.showwarning = lambda message, *place, **more: typer.echo(f"suffice: {message}", err=True)
            yield replace(upstream, panel=voters)

    @contextmanager
    def _servers(self) -> Iterator[ServerChoice]:
        """The servers that are named, or the embedded model where none is and there is no key for one."""
        openai = need("openai", "")
        default = Target()
        given = self.base_url or ("" if self.gguf else os.environ.get("OPENAI_BASE_URL", ""))
        targets = read_targets(given, "base_url")
        if self.gguf and targets:
            raise OptionError("give --gguf or --base-url, not both")
        if self.gguf or not (targets or default.key != PLACEHOLDER_KEY):
            if self.model:
                raise OptionError(f"{self.model} needs a server: give --base-url, or set {KEY_ENV}", "model")
            with ExitStack() as stack:
                with waiting("starting the model"):
                    server = stack.enter_context(suffice.LocalServer(self.gguf))
                settings = {"base_url": server.base_url, "api_key": PLACEHOLDER_KEY}
                yield ServerChoice([settings], server.model, *suited(server.model), is_here=True)
            return
        if self.model:
            targets = tuple(one for one in targets if not one.models or self.model in one.models) or targets
        targets = targets or (default,)
        several = [one.client_settings("base_url") for one in targets]
        model = self.model or _only_model(openai, several)
        yield ServerChoice(several, model, "paper", {}, tuple(one.weight for one in targets))


Servers = Annotated[ServerOptions, Fields(ServerOptions)]
PlainServers = Annotated[ServerOptions, Fields(ServerOptions, "base_url model gguf")]
Gguf = Annotated[dict[str, Any], Fields(ServerOptions, "gguf")]


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
    from suffice.live.servers.server import masked

    try:
        with openai.OpenAI(**settings, timeout=30) as client:
            return [str(model.id) for model in client.models.list()]
    except Exception as error:  # whatever a server may send in place of a list of models
        reason = masked(" ".join(str(error.__cause__ or error).split()), settings["api_key"])[:200]
        where = settings.get("base_url") or "OpenAI"
        if isinstance(error, openai.AuthenticationError | openai.PermissionDeniedError):
            raise OptionError(f"{where} refuses the key, which is read from {KEY_ENV} ({reason})") from None
        if isinstance(error, openai.NotFoundError):
            raise OptionError(f"{where}: there is no API at this address, which is usually …/v1 ({reason})") from None
        if isinstance(error, openai.APIConnectionError):
            raise ConnectionError(f"{where} can't be reached: {reason or 'no connection'}") from None
        raise OptionError(f"--model must be given: the server does not tell its models ({reason})") from None


def with_key(message: str) -> str:
    """What a server complains of, and where its key comes from where it is the key."""
    return f"{message.rstrip('.')}; its key is read from {KEY_ENV}" if is_key_refused(message) else message


def is_key_refused(message: str) -> bool:
    """Whether what a server complains of is its key."""
    return "Error code: 401" in message
