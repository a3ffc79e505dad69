"""What the operator sets."""

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from math import inf
from pathlib import Path
from typing import Any

from suffice.answers import get_extractor
from suffice.controllers import get_controller
from suffice.errors import OptionError
from suffice.flow import get_flow
from suffice.gateway.keys import read_keys
from suffice.gateway.prices import read_prices
from suffice.live.targets import Target, read_targets, whole_url
from suffice.live.vote import election_of
from suffice.planning import Plan
from suffice.tally import DEFAULT_BUDGET

VOTES = ("auto", "always", "asked", "off")
"""When there is a vote: where one helps, on every chat request, where it is asked for, never."""

LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True)
class Settings:
    """The gateway's settings; each is an option of `suffice serve` and a line of its configuration file."""

    upstream: str | Sequence[str | Mapping[str, Any] | Target] = ""
    controller: str = "plan"
    budget: int = DEFAULT_BUDGET
    answer: str = "auto"
    vote: str = "auto"
    mode: str = "rounds"
    order: str = "launch"
    extra: int = 0
    host: str = "127.0.0.1"
    port: int = 8000
    workers: int = 1
    api_key_env: tuple[str, ...] = ()
    api_key_file: str | None = None
    keys: str | None = None
    state: str | None = None
    prices: Any = ()
    allow_no_key: bool = False
    forward_auth: bool = False
    translate: bool = False
    cors_origins: tuple[str, ...] = ()
    allow_hosts: tuple[str, ...] = ()
    max_budget: int | None = None
    max_body_bytes: int = 16 << 20
    max_requests: int = 512
    max_queue: int = 2048
    max_draws: int = 2048
    fan_out: int = 64
    deadline_seconds: float = 600.0
    timeout_seconds: float = 600.0
    retries: int = 4
    upload_seconds: float = 120.0
    drain_seconds: float = 30.0
    unready_seconds: float = 1.0
    heartbeat_seconds: float = 5.0
    exact_usage: bool = False
    signals: bool = False
    elect: str = "majority"
    learn: bool = True
    audit: float = 0.0
    min_agreement: float | None = None
    max_mean_samples: float | None = None
    log_text: bool = False
    otel: bool = False

    def __post_init__(self) -> None:
        _ = self.targets
        object.__setattr__(self, "prices", read_prices(self.prices))
        for name in ("budget", "max_body_bytes", "max_requests", "max_draws", "fan_out", "workers"):
            if getattr(self, name) < 1:
                raise OptionError(f"must be at least 1, not {getattr(self, name)}", name)
        for name in ("deadline_seconds", "timeout_seconds", "heartbeat_seconds", "upload_seconds"):
            if not 0 < getattr(self, name) < inf:
                raise OptionError(f"must be above 0, not {getattr(self, name)}", name)
        for name in ("retries", "max_queue", "drain_seconds", "unready_seconds"):
            if not 0 <= getattr(self, name) < inf:
                raise OptionError(f"must be 0 or more, not {getattr(self, name)}", name)
        self._check_promises()
        if self.vote not in VOTES:
            raise OptionError(f'must be one of {", ".join(VOTES)}, not "{self.vote}"', "vote")
        if not 1 <= self.port <= 65535:
            raise OptionError(f"must be between 1 and 65535, not {self.port}", "port")
        if self.max_budget is not None and self.max_budget < 1:
            raise OptionError(f"must be at least 1, not {self.max_budget}", "max_budget")
        for origin in self.cors_origins:
            if origin != "*" and not re.fullmatch(r"https?://[^/\s]+", origin):
                raise OptionError(f'must be * or like https://chat.example, not "{origin}"', "cors_origins")
        if self.forward_auth and (self.api_key_env or self.api_key_file or self.keys):
            raise OptionError(
                "would send the gateway's own keys to the upstream: give one or the other", "forward_auth"
            )
        chosen = get_controller(self.controller)
        election_of(self.elect, get_extractor(self.answer))
        flow = get_flow(self.mode, self.order, self.extra)
        if flow:
            flow.check(chosen)

    def _check_promises(self) -> None:
        if not 0 <= self.audit <= 1:
            raise OptionError(f"must be a share between 0 and 1, not {self.audit}", "audit")
        if self.audit and self.forward_auth:
            raise OptionError("would draw audits with the clients' own keys (forward_auth): give one", "audit")
        if self.min_agreement is not None:
            if not 0 < self.promised_share < 1:
                raise OptionError(f"must be between 0 and 100, in percent, not {self.min_agreement:g}", "min_agreement")
            if not self.audit:
                raise OptionError("is known only by audits: give a share of them too (audit)", "min_agreement")
        if self.max_mean_samples is not None:
            if not 1 <= self.max_mean_samples <= self.budget:
                message = f"must be between 1 and the budget of {self.budget}, not {self.max_mean_samples:g}"
                raise OptionError(message, "max_mean_samples")
            if self.min_agreement is not None:
                raise OptionError("and min_agreement can't both be promised: give one", "max_mean_samples")
        promised = self.min_agreement is not None or self.max_mean_samples is not None
        if promised and not isinstance(get_controller(self.controller), Plan):
            which = "min_agreement" if self.min_agreement is not None else "max_mean_samples"
            raise OptionError(f'needs the controller plan, whose price it sets, not "{self.controller}"', which)

    @property
    def promised_share(self) -> float:
        """The share of votes that shall agree with the full budget, 0 where none is promised.

        Up to 1, `min_agreement` is a share itself, as it was before it became percent.
        """
        promised = self.min_agreement or 0.0
        return promised if promised <= 1 else promised / 100

    @property
    def most_draws(self) -> int:
        """The largest budget that a request may have."""
        return self.max_budget or self.budget

    @property
    def targets(self) -> tuple[Target, ...]:
        """The upstreams."""
        read = read_targets(self.upstream, "upstream")
        return tuple(replace(target, url=whole_url(target.url, "upstream")) for target in read)

    @property
    def usage_file(self) -> Path:
        """Where the usage of keys is kept: by default in a folder of the user's that belongs to the file of keys."""
        if self.state:
            return Path(self.state) / "usage.db"
        folder = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "suffice"
        mark = hashlib.sha256(str(Path(self.keys or "").resolve()).encode()).hexdigest()[:12]
        return folder / mark / "usage.db"

    def unnamed_keys(self) -> tuple[bytes, ...]:
        """The digests of the keys without a name that clients may present."""
        named = []
        for name in self.api_key_env:
            if not os.environ.get(name):
                raise OptionError(f"{name}: the variable is not set; put the key into it", "api_key_env")
            named.append(os.environ[name].strip())
        if self.api_key_file:
            try:
                lines = Path(self.api_key_file).read_text(encoding="utf-8").split("\n")
            except (OSError, UnicodeDecodeError) as error:
                raise OptionError(f"{self.api_key_file}: it can't be read: {error}", "api_key_file") from None
            named += [line.strip() for line in lines if line.strip()]
            if not named:
                raise OptionError(f"{self.api_key_file}: there is no key in it", "api_key_file")
        return tuple(hashlib.sha256(key.encode()).digest() for key in named)

    def check_safe(self) -> None:
        """Refuse to listen to the world with no key."""
        keys = self.unnamed_keys()
        if self.keys:
            self._check_keys(Path(self.keys))
        if self.state:
            _check_folder(Path(self.state))
        for target in self.targets:
            _ = target.key
        if self.host not in LOOPBACK and not self.allow_no_key and not keys and not self.keys:
            raise OptionError(
                f"{self.host} lets others in: ask for a key, or allow none (allow_no_key) if that is what you want",
                "host",
            )

    def _check_keys(self, path: Path) -> None:
        """Refuse a file of keys that can't be used, or whose usage can't be kept."""
        for key in read_keys(path):
            if key.limits.money_per_month and not self.prices:
                raise OptionError(f"{path}: keys.{key.name} has money_per_month, and there are no prices")
        _check_folder(self.usage_file.parent)


def _check_folder(folder: Path) -> None:
    """Refuse a folder that nothing can be kept in."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        writable = os.access(folder, os.W_OK)
    except OSError:
        writable = False
    if not writable:
        raise OptionError(f"{folder}: nothing can be kept there; name another folder", "state")


def with_file(settings: dict[str, Any], path: Path) -> dict[str, Any]:
    """The settings of a TOML file, with those that were given as options before them."""
    import tomllib

    try:
        read = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise OptionError(f"{path}: it can't be read: {error}") from None
    except tomllib.TOMLDecodeError as error:
        raise OptionError(f"{path}: not TOML: {error}") from None
    known = {one.name: one for one in fields(Settings)}
    for name, value in read.items():
        if name not in known:
            raise OptionError(f'--config {path}: there is no setting "{name}"; there are {", ".join(known)}')
        wanted = type(known[name].default)
        if name == "upstream":
            read_targets(value, name)
        elif name == "prices":
            read_prices(value)
        elif wanted is tuple:
            read[name] = (value,) if isinstance(value, str) else value
            if not isinstance(read[name], tuple | list) or not all(isinstance(one, str) for one in read[name]):
                raise OptionError(f"{path}: {name} must be a list of strings, not {value!r}")
            read[name] = tuple(read[name])
        elif known[name].default is None:
            kind = {"max_budget": int, "min_agreement": int | float, "max_mean_samples": int | float}.get(name, str)
            if not isinstance(value, kind) or isinstance(value, bool):
                raise OptionError(f"{path}: {name} can't be {value!r}")
        elif wanted is float and isinstance(value, int) and not isinstance(value, bool):
            read[name] = float(value)
        elif type(value) is not wanted:
            raise OptionError(f"{path}: {name} must be like {known[name].default!r}, not {value!r}")
    return read | settings
