"""What the operator sets."""

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Self, get_args

from pydantic import BeforeValidator, Field, model_validator

from suffice.controllers import get_controller
from suffice.errors import ControllerError, OptionError, SufficeError, percentage
from suffice.flow import ABOUT, METAVAR
from suffice.gateway.keys import read_keys
from suffice.live.sampling import Sampling, get_calibration, priced, threshold_of
from suffice.live.servers.targets import Target, read_targets, whole_url
from suffice.options import Options, option
from suffice.panel.live import Panel
from suffice.penalties import Costs
from suffice.planning import Plan
from suffice.tally import DEFAULT_BUDGET

Vote = Literal["auto", "always", "asked", "off", "shadow"]
"""When there is a vote: where one helps, on every chat request, where it is asked for, never; or only thought of."""

Unsure = Literal["mark", "error"]

LOOPBACK = ("127.0.0.1", "localhost", "::1")


class ClientPolicy(Options):
    """The settings of a key, a model or both; None leaves one as it is. Names may be patterns: `qwen*`.

    >>> ClientPolicy(model="qwen*", budget=8).fits("ann", "qwen3"), ClientPolicy(key="bob").fits("ann", "qwen3")
    (True, False)
    """

    key: str | None = None
    model: str | None = None
    topic: str | None = None
    vote: str | None = None
    answer: str | None = None
    max_samples: int | None = Field(default=None, ge=1)
    budget: int | None = Field(default=None, ge=1)
    patience: float | None = Field(default=None, ge=0)
    controller: str | None = None

    @property
    def changes(self) -> dict[str, Any]:
        """The settings that it names."""
        return {name: value for name, value in self.given.items() if value is not None and name not in _FOR}

    def fits(self, key: str | None, model: str | None, topic: str | None = None) -> bool:
        """Whether it is for this key, this model and this topic."""
        wanted = ((self.key, key), (self.model, model), (self.topic, topic))
        return all(pattern is None or fnmatchcase(name or "", pattern) for pattern, name in wanted)

    @property
    def specificity(self) -> tuple[int, ...]:
        """Rises from a model to a key to a topic, with their number, from patterns to names, and with their length."""
        named = [pattern for pattern in (self.topic, self.key, self.model) if pattern is not None]
        exact = [not set(pattern) & set("*?[") for pattern in named]
        return len(named), self.topic is not None, self.key is not None, *map(int, exact), *map(len, named)


_FOR = ("key", "model", "topic")


def read_policies(given: Any) -> tuple[ClientPolicy, ...]:
    if not isinstance(given, Sequence) or not all(isinstance(one, Mapping | ClientPolicy) for one in given):
        raise OptionError("must be tables: [[policy]]", "policy")
    return tuple(one if isinstance(one, ClientPolicy) else _policy(one) for one in given)


def _policy(table: Mapping[str, Any]) -> ClientPolicy:
    if not any(isinstance(table.get(name), str) for name in _FOR):
        raise OptionError("must name a key, a model or a topic", "policy")
    try:
        return ClientPolicy(**table)
    except OptionError as error:
        raise OptionError(f"can't be {dict(table)}: {error}", "policy") from None


class Settings(Options):
    """The gateway's settings: each is a line of its configuration file and, where not `file_only`, an option."""

    upstream: str | Sequence[Any] = option(
        "",
        "A server behind, or 'URL weight=2 key_env=NAME models=a,b'; repeat for more; "
        "the embedded model by default (extra local).",
        "URL",
    )
    panel: str | None = option(None, "A TOML file of voters, which clients ask for by its name as a model.", "FILE")
    controller: str = option("plan:penalty_draw=0.014", "The controller of a vote.", "C")
    budget: int = option(DEFAULT_BUDGET, "The most draws of a vote.", ge=1)
    answer: str = option("auto", "How the answer is found in a response.", "X")
    elect: str = option("majority", "How votes weigh in the end, as weighted:signal=logprob,strength=0.4.", "E")
    flow: bool | str = option(False, ABOUT, METAVAR)
    vote: Vote = option(
        "auto",
        "When to vote: where it helps, on every chat request, where it is asked for, never; shadow: never, and tell "
        "what auto would do.",
        "|".join(get_args(Vote)),
    )
    host: str = option("127.0.0.1", "Where to listen.")
    port: int = option(8000, "Where to listen.", ge=1, le=65535)
    workers: int = option(1, "How many processes.", ge=1)
    keys: str | None = option(None, "A file of keys that clients must present: see suffice keys.", "FILE")
    state: str | None = option(None, "Where what is learned is kept.", "DIR")
    compose: bool = option(False, "Where no JSON that was drawn has all the elected fields, put one together.")
    allow_no_key: bool = option(False, "Listen to others than this machine with no key.")
    forward_auth: bool = option(False, "Send the client's Authorization to the upstream.")
    learn: bool = option(True, "Learn from votes how a model's answers repeat, as it does unless told otherwise.")
    learn_share: float = option(
        0.02,
        "The share of requests passed on that are drawn a few times more, to learn which topics have an answer.",
        "SHARE",
        ge=0,
        le=1,
    )
    audit: float = option(0.0, "Draw this share of the votes to the full budget afterwards.", "SHARE", ge=0, le=1)
    right: Any = option(
        None, "A calibration, by suffice calibrate; in a file also a list of them by model and topic.", "FILE"
    )
    risk: float | None = option(
        None, "Mark what is not sure enough for so small a share of wrong answers; needs --right.", "SHARE"
    )
    unsure: Unsure = option(
        "mark", "What is not sure enough is marked, or refused as an error (422).", "|".join(get_args(Unsure))
    )
    min_agreement: float | None = option(
        None, "Promise that votes agree with the full budget so often, in percent; needs --audit."
    )
    max_mean_samples: float | None = option(None, "Promise no more than so many samples a vote, in the mean.")
    over_one: float | None = option(
        None, "Keep tokens over one response to this share of the traffic's, over an hour.", "SHARE", gt=0
    )
    deadline_seconds: float = option(600.0, "The longest that a vote may take.", gt=0)
    patience: float = option(
        3.0,
        "After its first response, a vote takes at most so many times what that took, or a second; 0: no end.",
        ge=0,
    )
    value_of_a_second: float = option(
        0.0, "What a second of waiting costs: rounds and extra draws follow from prices, as with suffice plan."
    )
    value_of_an_answer: float = option(1.0, "What the right answer is worth, in the same money.")
    seconds_per_round: float = option(0.0, "How long a round takes.")
    price_per_million_tokens: float = option(0.0, "What tokens cost, in the same money.")
    tokens_per_sample: float = option(0.0, "How long a response is.")
    drain_seconds: float = option(30.0, "How long requests under way may take to end after SIGTERM.", ge=0)
    log_text: bool = option(False, "Write questions and answers into the access log and traces.")
    config: str | None = option(
        None,
        "A TOML file with any of these settings, or with policy, max_budget, max_queue, max_body_bytes, "
        "retries, upload_seconds, heartbeat_seconds, unready_seconds, cors_origins, otel.",
        "FILE",
    )
    policy: Annotated[tuple[ClientPolicy, ...], BeforeValidator(read_policies)] = option(
        (), "What holds for some keys and models, as tables; read again when the file changes.", file_only=True
    )
    max_budget: int | None = option(
        None, "The most draws that a request may ask for; the budget by default.", file_only=True, ge=1
    )
    max_requests: int = option(512, "The most votes at once.", ge=1)
    max_queue: int = option(2048, "The most votes that may wait.", file_only=True, ge=0)
    max_draws: int = option(2048, "The most draws in flight at once.", ge=1)
    fan_out: int = option(64, "The most of these for one vote.", ge=1)
    max_body_bytes: int = option(16 << 20, "The longest request.", file_only=True, ge=1)
    timeout_seconds: float = option(
        600.0, "The longest that one request to the upstream may take, retries and pauses included.", gt=0
    )
    retries: int = option(
        4, "How often a request is tried again that the upstream refuses for now (429, 503).", file_only=True, ge=0
    )
    upload_seconds: float = option(120.0, "The longest that a request may take to arrive.", file_only=True, gt=0)
    heartbeat_seconds: float = option(
        5.0, "How often a stream that has nothing to say yet says so.", file_only=True, gt=0
    )
    unready_seconds: float = option(
        1.0, "How much of drain_seconds /readyz says no before new connections are refused.", file_only=True, ge=0
    )
    cors_origins: Sequence[str] = option((), "Web sites whose pages may ask; * for all.", file_only=True)
    allow_hosts: Sequence[str] = option((), "Hosts by which a proxy on this machine may ask without a key.")
    signals: bool = option(False, "Ask for log probabilities, which the replies do not show unless asked to.")
    exact_usage: bool = option(False, "Draw one by one where a server does not count the tokens of each draw.")
    otel: bool = option(
        False, "Send traces by OTLP, as where OTEL_EXPORTER_OTLP_ENDPOINT is set (extra otel).", file_only=True
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        _ = self.targets
        self._check_promises()
        self._check_right()
        for origin in self.cors_origins:
            if origin != "*" and not re.fullmatch(r"https?://[^/\s]+", origin):
                raise OptionError(f'must be * or like https://chat.example, not "{origin}"', "cors_origins")
        if self.forward_auth and self.keys:
            raise OptionError(
                "would send the gateway's own keys to the upstream: give one or the other", "forward_auth"
            )
        try:
            controller = self.sampling.voting.controller
        except ControllerError as error:
            raise OptionError(f"can't be {self.controller}: {error}", "controller") from None
        try:
            controller.check_budget(self.budget)
        except ControllerError as error:
            raise OptionError(f"can't be {self.budget}: {error}", "budget") from None
        for policy in self.policy:
            self.check_policy(policy)
        return self

    def under(self, given: Mapping[str, Any]) -> "Settings":
        """The settings as a policy has them."""
        return self.replaced(policy=(), **given) if given else self

    def check_policy(self, policy: ClientPolicy) -> None:
        """Refuse a policy whose settings can't be."""
        try:
            self.under({name: value for name, value in policy.changes.items() if name != "max_samples"})
        except SufficeError as error:
            of = " and ".join(f'{name} "{getattr(policy, name)}"' for name in _FOR if getattr(policy, name))
            raise OptionError(f"of {of}: {error}", "policy") from None

    def _check_promises(self) -> None:
        if self.audit and self.forward_auth:
            raise OptionError("would draw audits with the clients' own keys (forward_auth): give one", "audit")
        if self.min_agreement is not None:
            if not 0 < percentage("min_agreement", self.min_agreement) < 100:
                raise OptionError(f"must be between 0 and 100, in percent, not {self.min_agreement:g}", "min_agreement")
            if not self.audit:
                raise OptionError("is known only by audits: give a share of them too (audit)", "min_agreement")
        if self.max_mean_samples is not None:
            if not 1 <= self.max_mean_samples <= self.budget:
                message = f"must be between 1 and the budget of {self.budget}, not {self.max_mean_samples:g}"
                raise OptionError(message, "max_mean_samples")
            if self.min_agreement is not None:
                raise OptionError("and min_agreement can't both be promised: give one", "max_mean_samples")
        if self.over_one is not None and self.min_agreement is not None:
            raise OptionError("and min_agreement can't both be kept: give one", "over_one")
        promises = ("min_agreement", "max_mean_samples", "over_one")
        which = next((name for name in promises if getattr(self, name) is not None), None)
        if which and not isinstance(get_controller(self.controller), Plan):
            raise OptionError(f'needs the controller plan, whose price it sets, not "{self.controller}"', which)

    def _check_right(self) -> None:
        if self.risk is None and self.unsure == "error":
            raise OptionError("is for what is not sure enough: name the risk that is allowed (risk)", "unsure")
        if self.risk is not None:
            for one in self.calibrations or [AppliedCalibration(None, None, None)]:
                threshold_of(one.calibration, self.risk)

    @cached_property
    def calibrations(self) -> "Sequence[AppliedCalibration]":
        """The calibrations, each for a model and a topic, or for all."""
        given = self.right if isinstance(self.right, list | tuple) else [{"file": self.right}] if self.right else []
        return [_calibration(one) for one in given]

    @cached_property
    def sampling(self) -> Sampling:
        """How a request is sampled that says nothing of it."""
        votes: dict[str, Any] = {"controller": self.controller_in_force, "flow": self.flow}
        if self.value_of_a_second or self.price_per_million_tokens:
            votes = priced(votes, Costs(**{one.name: getattr(self, one.name) for one in fields(Costs)}))
        own = ["budget", "answer", "elect", "signals", "deadline_seconds", "patience", "retries", "timeout_seconds"]
        return Sampling(**votes, **{name: getattr(self, name) for name in own})

    @property
    def controller_in_force(self) -> str:
        """The controller; unless one is named, that of the votes that a calibration was made of."""
        cards = [] if "controller" in self.given else [one.calibration.card for one in self.calibrations]
        return next((str(card["controller"]) for card in cards if "controller" in card), self.controller)

    @property
    def targets(self) -> tuple[Target, ...]:
        """The upstreams, then those of single voters."""
        read = read_targets(self.upstream, "upstream")
        voters = self.voters.voters if self.voters else ()
        apart = (voter.target for voter in voters if voter.target)
        return (*(target.replaced(url=whole_url(target.url, "upstream")) for target in read), *apart)

    @cached_property
    def voters(self) -> Panel | None:
        return Panel.read(self.panel) if self.panel else None

    def check_safe(self) -> None:
        """Refuse to listen to the world with no key."""
        if self.keys and not read_keys(Path(self.keys)):
            raise OptionError(f"{self.keys}: it has no keys; add one with suffice keys add NAME", "keys")
        if self.state:
            _check_folder(Path(self.state))
        for target in self.targets:
            _ = target.key
        if self.host not in LOOPBACK and not self.allow_no_key and not self.keys:
            raise OptionError(
                f"{self.host} lets others in: ask for keys (keys), or allow none (allow_no_key) if you want that",
                "host",
            )


class AppliedCalibration(NamedTuple):
    """A calibration, and for which model and topic it is; None for all."""

    model: str | None
    topic: str | None
    calibration: Any


def _calibration(given: Any) -> AppliedCalibration:
    texts = isinstance(given, Mapping) and all(isinstance(one, str) for one in given.values())
    if not texts or not {"file"} <= given.keys() <= {"file", "model", "topic"}:
        raise OptionError(
            f"must be a file, or tables with file and, where it is for some, model and topic: {given}", "right"
        )
    return AppliedCalibration(given.get("model"), given.get("topic"), get_calibration(given["file"]))


def _check_folder(folder: Path) -> None:
    """Refuse a folder that nothing can be kept in."""
    writable = False
    with suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        writable = os.access(folder, os.W_OK)
    if not writable:
        raise OptionError(f"{folder}: nothing can be kept there; name another folder", "state")


def with_file(given: Mapping[str, Any], path: Path) -> Settings:
    """Return the settings of a TOML file, with those that are given as options before them."""
    try:
        return Settings(**{**read_file(path), **given, "config": str(path)})
    except OptionError as error:
        if error.argument in given or str(path) in error.complaint:
            raise
        raise OptionError(f"--config {path}: {error}") from None


def read_file(path: Path) -> dict[str, Any]:
    """What a TOML file says."""
    import tomllib

    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise OptionError(f"{path}: it can't be read: {error}") from None
    except tomllib.TOMLDecodeError as error:
        raise OptionError(f"{path}: not TOML: {error}") from None
