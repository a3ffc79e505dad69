"""The options of a request: the operator's, by key and model, and the client's within them."""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from suffice.answers import Extractor, get_extractor
from suffice.controllers import Controller, get_controller
from suffice.elections import Election
from suffice.errors import OptionError, SufficeError
from suffice.flow import Flow, get_flow
from suffice.gateway.errors import GatewayError
from suffice.gateway.settings import ClientPolicy, Settings, read_file
from suffice.live import Voting
from suffice.live.dialects import ClientRequest
from suffice.live.sampling import Sampling, election_of
from suffice.options import Options, read_texts
from suffice.paths import WatchedFile
from suffice.schemas import Schema
from suffice.tally import DEFAULT_BUDGET


@dataclass(frozen=True)
class InForce:
    """What holds for the requests of a key to a model."""

    settings: Settings
    key: str | None
    max_samples: int | None
    """The most samples that a request may ask for, by policy."""
    names_answer: bool = False
    """Whether a policy says how answers are found."""

    @cached_property
    def options(self) -> "RequestOptions":
        """Those of a request that says nothing of them."""
        sampling = self.settings.sampling
        shared = RequestOptions.model_fields.keys() & Sampling.model_fields.keys()
        # An object may be put together wherever a response turns out to be one, so not checked against the answer.
        chosen = {name: getattr(sampling, name) for name in shared} | {"compose": self.settings.compose}
        return self.limited(RequestOptions(**chosen))

    def limited(self, options: "RequestOptions") -> "RequestOptions":
        """Cut options to what the operator and the policy allow; the default topic is the key."""
        most = self.settings.max_budget or self.settings.budget
        limits = {
            "budget": min(options.budget, most, self.max_samples or most),
            "deadline_seconds": min(options.deadline_seconds, self.settings.deadline_seconds),
            "topic": options.topic or self.key or "",
        }
        return options.model_copy(update=limits)


class Policies:
    """What holds for each key and model."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._path = Path(settings.config or "")
        self._file = WatchedFile(self._path) if settings.config else None
        self._policies: tuple[ClientPolicy, ...] = settings.policy
        self._known = lru_cache(maxsize=1000)(self._merged)
        if self._file:  # a worker that takes the place of another may begin after a change
            self._read_again()

    @property
    def know_topics(self) -> bool:
        return any(one.topic is not None for one in self._policies)

    def of(self, key: str | None, model: str | None, topic: str | None = None) -> InForce:
        if self._file and self._file.has_changed():
            self._read_again()
        return self._known(key, model, topic)

    def _merged(self, key: str | None, model: str | None, topic: str | None) -> InForce:
        policies = [one for one in self._policies if one.fits(key, model, topic)]
        given: dict[str, Any] = {}
        for policy in sorted(policies, key=lambda one: one.specificity):
            given |= policy.changes
        max_samples = given.pop("max_samples", None)
        return InForce(self._settings.under(given), key, max_samples, "answer" in given)

    def _read_again(self) -> None:
        """Put new policies in force; keep the old ones if the file is broken, or empty, as while it is written."""
        try:
            if told := read_file(self._path):
                self._policies = self._settings.replaced(policy=told.get("policy", ())).policy
        except OptionError as error:
            print(f"suffice: {error}; the old policies stay in force", file=sys.stderr, flush=True)
        else:
            self._known.cache_clear()


LONGEST = 500
"""Characters of a controller or an answer that a request may name."""

LARGEST = 1e9
"""Numbers of a request are below it."""

Name = Annotated[str, Field(max_length=LONGEST)]


def _comparison(value: Any) -> Any:
    pairs = value.items() if isinstance(value, dict) else [] if value is None else [("", value)]
    if not all(how == "loose" and pointer.startswith("/") for pointer, how in pairs):
        raise ValueError(f'must be an object like {{"/city": "loose"}}, not {value!r}')
    return value


def _flow(value: Any) -> Flow | None:
    known = isinstance(value, Flow | bool | None) or (isinstance(value, str) and len(value) <= LONGEST)
    try:
        return get_flow(value if known else str(type(value)))
    except OptionError:
        raise ValueError(f"must be auto, true, false or a text like order=arrival,extra=2, not {value!r}") from None


class ClientOptions(Options):
    """The `suffice` object of a request's body, or its `x-suffice-*` headers."""

    controller: Name = "plan"
    budget: int = Field(default=DEFAULT_BUDGET, ge=1, lt=LARGEST)
    answer: Name = "auto"
    deadline_seconds: float = Field(default=600.0, gt=0, lt=LARGEST)
    patience: float = Field(default=0.0, ge=0, lt=LARGEST)
    flow: Annotated[Flow | None, BeforeValidator(_flow)] = None
    compose: bool = False
    ignore: Sequence[str] = ()
    compare: Annotated[Mapping[str, str] | None, BeforeValidator(_comparison)] = None
    learn: bool = True
    """Whether the vote is held by what was learned, and learned from."""
    topic: Name = ""
    """The kind of request: what is learned is learned for each."""
    watch: bool = False
    """Whether a stream tells of the vote from the start, token by token, as for our page."""
    elect: Name = "majority"


class RequestOptions(ClientOptions):
    """The options of one request: the client's, or else the operator's."""

    signals: bool = False
    json_schema: Schema | None = None
    """What an object must be like."""
    asked: bool = False
    """Whether the request has any; later, whether a vote was asked for."""
    wanted: frozenset[str] = frozenset()
    """What the request names of all this."""

    @cached_property
    def extractor(self) -> Extractor:
        chosen = self.applied_to(_extractor(self.answer))
        structure = chosen.structure
        return replace(structure, allows=self.json_schema.allows) if self.json_schema and structure else chosen

    def applied_to(self, extractor: Extractor) -> Extractor:
        """An extractor that treats the fields of an object as the request says."""
        chosen = extractor.ignoring(self.ignore).comparing(self.compare or {})
        return replace(chosen.structure, compose=True) if self.compose and chosen.structure else chosen

    @cached_property
    def voting(self) -> Voting:
        return Voting(
            _controller(self.controller),
            self.extractor,
            self.budget,
            self.flow,
            self.asked,
            streamed=self.watch,
            signals=self.signals,
            election=None if self.extractor.structure else _election(self.elect, _extractor("auto")),
            patience=self.patience,
        )


@lru_cache(maxsize=256)
def _schema(text: str) -> Schema | None:
    """A schema that can be told by; one that can't is the upstream's to judge."""
    try:
        return Schema(json.loads(text)) if text != "{}" else None
    except OptionError:
        return None


_extractor: Callable[[str], Extractor] = lru_cache(maxsize=256)(get_extractor)
_controller: Callable[[str], Controller] = lru_cache(maxsize=256)(get_controller)
_election: Callable[[str, Extractor], Election | None] = lru_cache(maxsize=256)(election_of)


def read_options(
    in_force: InForce, client: ClientRequest, body: Mapping[str, Any], headers: Mapping[str, str]
) -> RequestOptions:
    """Read the `suffice` object and the headers of a request, within what holds for it."""
    settings, options = in_force.settings, in_force.options
    wanted = _in_headers(headers) | _in_body(body)
    if wanted or body.get("suffice") is not None:
        try:
            options = in_force.limited(options.replaced(**wanted, wanted=frozenset(wanted), asked=True))
        except OptionError as error:
            raise GatewayError(400, f"suffice.{error}"[:300], param=f"suffice.{error.argument}") from None
    if client.schema is not None and options.answer == "auto":
        options = options.replaced(answer="json")
    _check("answer", options.answer, settings.answer, lambda: options.extractor)
    if "elect" in wanted:
        _check("elect", options.elect, settings.elect, lambda: election_of(options.elect, options.extractor))
    if options.controller != "off":
        _check("controller", options.controller, settings.controller, lambda: _controller(options.controller))
        if flow := options.flow:
            _check("flow", str(flow), "", lambda: flow.check(_controller(options.controller)))
    if options.extractor.reads_tools and "answer" not in options.wanted and not body.get("tools"):
        options = options.replaced(answer="auto")
    if options.extractor.structure:
        schema = _calls(body.get("tools")) if options.extractor.reads_tools else client.schema
        options = options.replaced(json_schema=_schema(json.dumps(schema or {})))
    return options


_NUMBERS = ("n", "best_of")
"""Fields that ask for several responses to one request."""


def samples_asked(raw: bytes, body: Mapping[str, Any]) -> int:
    """Return the number of responses that a request asks for; the largest, if it is there repeatedly.

    >>> [samples_asked(b'{"n": 2, "n": 1}', {"n": 1}), samples_asked(b"", {"model": "m"})]
    [2, 1]
    """
    if not any(name in body for name in _NUMBERS):
        return 1
    pairs: list[tuple[str, Any]] = json.loads(raw, object_pairs_hook=list)
    asked = [1]
    for name, value in pairs:
        if name in _NUMBERS and value is not None:
            if type(value) is not int or value < 1:
                message = f'"{name}" must be a whole number, at least 1, not {json.dumps(value)}'[:300]
                raise GatewayError(400, message, param=name)
            asked.append(value)
    return max(asked)


def relayed_body(raw: bytes) -> dict[str, Any]:
    """The object that the body of any request is; empty where it is none."""
    try:
        body = json.loads(raw.decode())
    except (ValueError, RecursionError):
        return {}
    return body if isinstance(body, dict) else {}


def check_samples(samples: int, in_force: InForce) -> None:
    if samples > in_force.settings.fan_out:
        raise GatewayError(400, f'"n" may be {in_force.settings.fan_out} at most here', param="n")
    if in_force.max_samples and samples > in_force.max_samples:
        raise GatewayError(400, f'"n" may be {in_force.max_samples} at most here (max_samples)', param="n")


def _calls(tools: Any) -> dict[str, Any]:
    """The schema of calls of these tools, as whichever dialect has them."""
    kinds = []
    for place, tool in enumerate(tools if isinstance(tools, list) else ()):
        function = tool.get("function", tool) if isinstance(tool, dict) else None
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            return {}
        arguments = function.get("parameters") or function.get("input_schema") or {}
        # With a name of its own, what it refers to is within itself.
        own = {**arguments, "$id": f"urn:tool:{place}"} if isinstance(arguments, dict) else arguments
        kinds.append({"properties": {"name": {"const": function["name"]}, "arguments": own}})
    return {"items": {"anyOf": kinds}} if kinds else {}


_HEADER = "x-suffice-"


def _in_headers(headers: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for header, text in headers.items():
        if not header.startswith(_HEADER):
            continue
        name = header.removeprefix(_HEADER).replace("-", "_")
        if name not in ClientOptions.model_fields:
            there_are = ", ".join(_HEADER + one.replace("_", "-") for one in ClientOptions.model_fields)
            raise GatewayError(400, f'there is no header "{header[:100]}"; there are {there_are}', param=header[:100])
        found[name] = text
    return read_texts(ClientOptions, found) if found else found


def _in_body(body: Mapping[str, Any]) -> dict[str, Any]:
    given = body.get("suffice")
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise GatewayError(400, '"suffice" must be an object', param="suffice")
    for name in given:
        if name not in ClientOptions.model_fields:
            shown = name[:100].encode(errors="replace").decode()
            message = f'there is no "{shown}" in "suffice"; there are {", ".join(ClientOptions.model_fields)}'
            raise GatewayError(400, message, param=f"suffice.{shown}")
    return {name: value for name, value in given.items() if value is not None}


def _check(name: str, value: str, operators: str, read: Callable[[], object]) -> None:
    """Refuse an unreadable value, and files that the operator did not name."""
    if value == operators:
        return
    try:
        if value.startswith("file:"):
            raise OptionError("only the operator may name a file")
        read()
    except SufficeError as error:
        raise GatewayError(400, f"suffice.{name}: {error}"[:600], param=f"suffice.{name}") from None
