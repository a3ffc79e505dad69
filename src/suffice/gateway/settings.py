"""What the operator sets, and what a request may ask for within it."""

import hashlib
import hmac
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from math import inf
from pathlib import Path
from typing import Any

from suffice.answers import Extractor, get_extractor, tool_extractor
from suffice.controllers import Controller, get_controller
from suffice.errors import OptionError, SufficeError
from suffice.flow import Flow, get_flow
from suffice.gateway.errors import GatewayError

LOOPBACK = ("127.0.0.1", "localhost", "::1")

LONGEST_WISH = 500
"""Characters of a controller or an answer that a request may name."""


@dataclass(frozen=True)
class Settings:
    """The gateway's settings; each is an option of `suffice serve` and a line of its configuration file."""

    upstream: str = ""
    controller: str = "plan"
    budget: int = 32
    answer: str = "auto"
    mode: str = "rounds"
    order: str = "launch"
    extra: int = 0
    host: str = "127.0.0.1"
    port: int = 8000
    workers: int = 1
    api_key_env: tuple[str, ...] = ()
    api_key_file: str | None = None
    allow_no_key: bool = False
    forward_auth: bool = False
    max_budget: int | None = None
    max_body_bytes: int = 16 << 20
    max_requests: int = 512
    max_queue: int = 2048
    max_draws: int = 2048
    fan_out: int = 64
    deadline_seconds: float = 600.0
    timeout_seconds: float = 600.0
    retries: int = 4
    drain_seconds: float = 30.0
    heartbeat_seconds: float = 5.0
    log_text: bool = False

    def __post_init__(self) -> None:
        for name in ("budget", "max_body_bytes", "max_requests", "max_draws", "fan_out", "workers"):
            if getattr(self, name) < 1:
                raise OptionError(f"{_option(name)} must be at least 1, not {getattr(self, name)}")
        for name in ("deadline_seconds", "timeout_seconds", "heartbeat_seconds"):
            if not 0 < getattr(self, name) < inf:
                raise OptionError(f"{_option(name)} must be above 0, not {getattr(self, name)}")
        for name in ("retries", "max_queue", "drain_seconds"):
            if not 0 <= getattr(self, name) < inf:
                raise OptionError(f"{_option(name)} must be 0 or more, not {getattr(self, name)}")
        if not 1 <= self.port <= 65535:
            raise OptionError(f"--port must be between 1 and 65535, not {self.port}")
        if self.max_budget is not None and self.max_budget < 1:
            raise OptionError(f"--max-budget must be at least 1, not {self.max_budget}")
        if self.forward_auth and (self.api_key_env or self.api_key_file):
            raise OptionError("--forward-auth would send the gateway's own keys to the upstream: give one or the other")
        chosen = get_controller(self.controller)
        get_extractor(self.answer)
        flow = get_flow(self.mode, self.order, self.extra)
        if flow:
            flow.check(chosen)

    @property
    def most_draws(self) -> int:
        """The largest budget that a request may have."""
        return self.max_budget or self.budget

    def keys(self) -> tuple[bytes, ...]:
        """The digests of the keys that clients may present; none where no key is asked for."""
        named = []
        for name in self.api_key_env:
            if not os.environ.get(name):
                raise OptionError(f"--api-key-env {name}: the variable is not set; put the key into it")
            named.append(os.environ[name].strip())
        if self.api_key_file:
            try:
                lines = Path(self.api_key_file).read_text(encoding="utf-8").split("\n")
            except (OSError, UnicodeDecodeError) as error:
                raise OptionError(f"--api-key-file {self.api_key_file}: it can't be read: {error}") from None
            named += [line.strip() for line in lines if line.strip()]
            if not named:
                raise OptionError(f"--api-key-file {self.api_key_file}: there is no key in it")
        return tuple(hashlib.sha256(key.encode()).digest() for key in named)

    def check_safe(self) -> None:
        """Refuse to listen to the world with no key."""
        keys = self.keys()
        if self.host not in LOOPBACK and not self.allow_no_key and not keys:
            raise OptionError(
                f"--host {self.host} lets others in: give --api-key-env, or --allow-no-key if that is what you want"
            )


def with_file(settings: dict[str, Any], path: Path) -> dict[str, Any]:
    """The settings of a TOML file, with those that were given as options before them."""
    import tomllib

    try:
        read = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise OptionError(f"--config {path}: it can't be read: {error}") from None
    except tomllib.TOMLDecodeError as error:
        raise OptionError(f"--config {path}: not TOML: {error}") from None
    known = {field.name: field for field in fields(Settings)}
    for name, value in read.items():
        if name not in known:
            raise OptionError(f'--config {path}: there is no setting "{name}"; there are {", ".join(known)}')
        wanted = type(known[name].default)
        if name == "api_key_env":
            read[name] = (value,) if isinstance(value, str) else value
            if not isinstance(read[name], tuple | list) or not all(isinstance(one, str) for one in read[name]):
                raise OptionError(f"--config {path}: api_key_env must be names of variables, not {value!r}")
            read[name] = tuple(read[name])
        elif name == "max_budget" or name == "api_key_file":
            if not isinstance(value, int if name == "max_budget" else str) or isinstance(value, bool):
                raise OptionError(f"--config {path}: {name} can't be {value!r}")
        elif wanted is float and isinstance(value, int) and not isinstance(value, bool):
            read[name] = float(value)
        elif known[name].default is not None and type(value) is not wanted:
            raise OptionError(f"--config {path}: {name} must be like {known[name].default!r}, not {value!r}")
    return read | settings


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")


def presented(authorization: str | None, keys: tuple[bytes, ...]) -> bool:
    """Whether a request has one of the keys; in the same time whichever it is, and whether it is."""
    scheme, _, token = (authorization or "").partition(" ")
    digest = hashlib.sha256(token.strip().encode("utf-8", "surrogateescape")).digest()
    matches = [hmac.compare_digest(digest, key) for key in keys]
    return any(matches) and scheme.lower() == "bearer"


@dataclass(frozen=True)
class Wish:
    """How one request wants to be answered."""

    controller: str
    budget: int
    answer: str
    deadline_seconds: float
    mode: str = "rounds"
    order: str = "launch"
    extra: int = 0
    ignore: tuple[str, ...] = ()
    answer_named: bool = False

    @property
    def votes_on_tools(self) -> bool:
        """Whether tool calls are what is voted on."""
        return self.answer.partition(":")[0] == "tool"

    def extractor(self) -> Extractor:
        """What finds the answer."""
        return tool_extractor(self.answer, self.ignore) if self.votes_on_tools else get_extractor(self.answer)

    def flow(self) -> Flow | None:
        """Whether and how draws flow."""
        flow = get_flow(self.mode, self.order, self.extra)
        if flow:
            flow.check(self.chosen())
        return flow

    def chosen(self) -> Controller:
        """What decides."""
        return _controller(self.controller)


@lru_cache(maxsize=256)
def _controller(name: str) -> Controller:
    return get_controller(name)


_FIELDS = ("controller", "budget", "answer", "deadline_seconds", "mode", "order", "extra", "ignore")


def read_wish(settings: Settings, body: Mapping[str, Any], headers: Mapping[str, str]) -> Wish:
    """The wish in a request's `suffice` object, or else in its headers, within what the operator allows."""
    wanted: dict[str, Any] = {}
    for field in _FIELDS:
        text = headers.get(f"x-suffice-{field.replace('_', '-')}")
        if text is not None:
            wanted[field] = _from_header(field, text)
    given = body.get("suffice")
    if given is not None:
        if not isinstance(given, dict):
            raise GatewayError(400, '"suffice" must be an object', param="suffice")
        for field in given:
            if field not in _FIELDS:
                name = field[:100].encode(errors="replace").decode()
                message = f'there is no "{name}" in "suffice"; there are {", ".join(_FIELDS)}'
                raise GatewayError(400, message, param=f"suffice.{name}")
        wanted |= {field: value for field, value in given.items() if value is not None}
    flow = (settings.mode, settings.order, settings.extra)
    wish = Wish(settings.controller, settings.budget, settings.answer, settings.deadline_seconds, *flow)
    for field, value in wanted.items():
        wish = replace(wish, **{field: _checked(field, value)})
    wish = replace(
        wish,
        answer_named="answer" in wanted,
        budget=min(wish.budget, settings.most_draws),
        deadline_seconds=min(wish.deadline_seconds, settings.deadline_seconds),
    )
    if wish.votes_on_tools and not wish.answer_named and not body.get("tools"):
        wish = replace(wish, answer="auto")
    if wish.controller != "off":
        _check("controller", wish.controller, settings.controller, wish.chosen)
        _check("mode", wish.mode, "rounds", wish.flow)
    _check("answer", wish.answer, settings.answer, wish.extractor)
    return wish


def _check(field: str, value: str, operators: str, read: Any) -> None:
    """Refuse what can't be read; and files of this machine, unless the operator named them."""
    if value == operators:
        return
    try:
        if value.startswith("file:"):
            raise OptionError("only the operator may name a file")
        read()
    except SufficeError as error:
        raise GatewayError(400, f"suffice.{field}: {error}"[:600], param=f"suffice.{field}") from None


def _from_header(field: str, text: str) -> Any:
    if field == "ignore":
        return [name.strip() for name in text.split(",")]
    if field in ("budget", "deadline_seconds", "extra"):
        try:
            return float(text) if field == "deadline_seconds" else int(text)
        except ValueError:
            return text  # refused below, by name
    return text


def _checked(field: str, value: Any) -> Any:
    """A value of the right type."""
    number = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e9
    if field == "budget":
        fits, wanted = number and value == int(value) and value >= 1, "a whole number, at least 1"
    elif field == "extra":
        fits, wanted = number and value == int(value) and value >= 0, "a whole number, 0 or more"
    elif field == "deadline_seconds":
        fits, wanted = number and value > 0, "a number above 0"
    elif field == "ignore":
        fits = isinstance(value, list) and all(isinstance(name, str) for name in value)
        wanted = "a list of names"
    else:
        fits, wanted = isinstance(value, str) and len(value) <= LONGEST_WISH, f"a string of at most {LONGEST_WISH}"
    if not fits:
        raise GatewayError(400, f"suffice.{field} must be {wanted}, not {value!r}"[:300], param=f"suffice.{field}")
    return {"budget": int, "extra": int, "deadline_seconds": float, "ignore": tuple}.get(field, str)(value)
