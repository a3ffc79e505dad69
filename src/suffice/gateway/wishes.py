"""What a request may ask for, within what the operator allows."""

import json
import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from suffice.answers import Extractor, get_extractor
from suffice.answers.schema import Schema
from suffice.controllers import Controller, get_controller
from suffice.elections import Election
from suffice.errors import OptionError, SufficeError
from suffice.flow import Flow, get_flow
from suffice.gateway.errors import GatewayError
from suffice.gateway.settings import Settings
from suffice.live import Voting
from suffice.live.dialects import Dialect
from suffice.live.vote import election_of

LONGEST = 500
"""Characters of a controller or an answer that a request may name."""


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
    compare: Mapping[str, str] = field(default_factory=dict)
    schema: Schema | None = None
    """What an object must be like."""
    asked: bool = False
    """Whether the request says anything to us at all; and then whether a vote was asked for, by whomever."""
    answer_named: bool = False
    learn: bool = True
    """Whether the vote is held by what was learned, and learned from."""
    topic: str = ""
    """What kind of request it is: what is learned is learned for each."""
    watch: bool = False
    """Whether a stream tells of the vote from the start, draws arriving and all, as our page wants it."""
    elect: str = "majority"
    signals: bool = False
    """Whether the upstream is asked for log probabilities in any case."""

    @property
    def extractor(self) -> Extractor:
        """What finds the answer."""
        chosen = _extractor(self.answer).ignoring(self.ignore).comparing(self.compare)
        structure = chosen.structure
        return replace(structure, allows=self.schema.allows) if self.schema and structure else chosen

    @property
    def flow(self) -> Flow | None:
        """Whether and how draws flow."""
        return get_flow(self.mode, self.order, self.extra)

    @property
    def voting(self) -> Voting:
        """How the vote is held."""
        extractor = self.extractor
        return Voting(
            _controller(self.controller),
            extractor,
            self.budget,
            self.flow,
            self.asked,
            streamed=self.watch,
            signals=self.signals,
            election=None if extractor.structure else _election(self.elect),
        )


@lru_cache(maxsize=256)
def _schema(text: str) -> Schema | None:
    """A schema that can be told by; one that can't is the upstream's to judge."""
    try:
        return Schema(json.loads(text)) if text != "{}" else None
    except OptionError:
        return None


@lru_cache(maxsize=256)
def _extractor(name: str) -> Extractor:
    return get_extractor(name)


@lru_cache(maxsize=256)
def _controller(name: str) -> Controller:
    return get_controller(name)


@lru_cache(maxsize=256)
def _election(name: str) -> Election | None:
    return election_of(name, get_extractor("auto"))


@dataclass(frozen=True)
class _Field:
    """What a wish's field must be: how it is read from a header, what it must fulfil, and in words."""

    read: Callable[[str], Any]
    fits: Callable[[Any], bool]
    wanted: str
    kind: Callable[[Any], Any]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e9


def _is_whole(value: Any, least: int) -> bool:
    return _is_number(value) and value == int(value) and value >= least


def _is_switch(value: Any) -> bool:
    return isinstance(value, bool)


def _are_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def _is_comparison(value: Any) -> bool:
    return isinstance(value, dict) and all(how == "loose" and one.startswith("/") for one, how in value.items())


_COMPARISON = 'an object like {"/city": "loose"}'
_TEXT = _Field(
    str, lambda value: isinstance(value, str) and len(value) <= LONGEST, f"a string of at most {LONGEST}", str
)
_SWITCH = _Field(lambda text: {"true": True, "false": False}.get(text, text), _is_switch, "true or false", bool)
_FIELDS = {
    "controller": _TEXT,
    "budget": _Field(int, lambda value: _is_whole(value, 1), "a whole number, at least 1", int),
    "answer": _TEXT,
    "deadline_seconds": _Field(float, lambda value: _is_number(value) and value > 0, "a number above 0", float),
    "mode": _TEXT,
    "order": _TEXT,
    "extra": _Field(int, lambda value: _is_whole(value, 0), "a whole number, 0 or more", int),
    "ignore": _Field(lambda text: [name.strip() for name in text.split(",")], _are_names, "a list of names", tuple),
    "compare": _Field(
        lambda text: dict(part.strip().split("=", 1) for part in text.split(",")), _is_comparison, _COMPARISON, dict
    ),
    "learn": _SWITCH,
    "topic": _TEXT,
    "watch": _SWITCH,
    "elect": _TEXT,
}


def read_wish(
    settings: Settings,
    dialect: Dialect,
    body: Mapping[str, Any],
    headers: Mapping[str, str],
    max_samples: int | None = None,
) -> Wish:
    """The wish in a request's `suffice` object, or else in its headers; its key may allow less than the operator."""
    wanted = {name: _checked(name, value) for name, value in (_in_headers(headers) | _in_body(body)).items()}
    wish = Wish(
        settings.controller,
        settings.budget,
        settings.answer,
        settings.deadline_seconds,
        settings.mode,
        settings.order,
        settings.extra,
        elect=settings.elect,
        signals=settings.signals,
        asked=bool(wanted) or body.get("suffice") is not None,
        answer_named="answer" in wanted,
    )
    wish = replace(wish, **wanted)
    wish = replace(
        wish,
        budget=min(wish.budget, settings.most_draws, max_samples or settings.most_draws),
        deadline_seconds=min(wish.deadline_seconds, settings.deadline_seconds),
    )
    wanted_json = dialect.json_wanted(body)
    if wanted_json is not None and wish.answer == "auto":
        wish = replace(wish, answer="json")
    _check("answer", wish.answer, settings.answer, lambda: wish.extractor)
    if "elect" in wanted:
        _check("elect", wish.elect, settings.elect, lambda: election_of(wish.elect, wish.extractor))
    _check("order", wish.order, settings.order, lambda: get_flow("flow", wish.order, 0))
    if wish.controller != "off":
        _check("controller", wish.controller, settings.controller, lambda: _controller(wish.controller))
        _check("mode", wish.mode, "rounds", lambda: wish.voting)
    if wish.extractor.reads_tools and not wish.answer_named and not body.get("tools"):
        wish = replace(wish, answer="auto")
    if wish.extractor.structure:
        schema = _calls(body.get("tools")) if wish.extractor.reads_tools else wanted_json
        wish = replace(wish, schema=_schema(json.dumps(schema or {})))
    return wish


_NUMBERS = ("n", "best_of")
"""Fields that ask for several responses to one request."""


def samples_asked(raw: bytes, body: Mapping[str, Any]) -> int:
    """How many responses a request asks for, in whatever form; the most of them where it says so repeatedly.

    >>> [samples_asked(b'{"n": 2, "n": 1}', {"n": 1}), samples_asked(b"", {"model": "m"})]
    [2, 1]
    """
    if not any(name in body for name in _NUMBERS):
        return 1
    pairs: list[tuple[str, Any]] = json.loads(raw, object_pairs_hook=list)
    return max(1, *(_samples(value) for name, value in pairs if name in _NUMBERS))


def _samples(value: Any) -> int:
    """A number of samples as lenient servers read it; nothing that is a number is taken for less than it is."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return sys.maxsize if isinstance(value, int) else 1
    return math.ceil(number) if math.isfinite(number) else sys.maxsize


def relayed_body(raw: bytes) -> dict[str, Any]:
    """The object that the body of any request is; empty where it is none."""
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError):
        return {}
    return body if isinstance(body, dict) else {}


def check_samples(samples: int, settings: Settings, max_samples: int | None) -> None:
    """Refuse a request for more responses than the operator, or the key, allows."""
    if samples > settings.fan_out:
        raise GatewayError(400, f'"n" may be {settings.fan_out} at most here', param="n")
    if max_samples and samples > max_samples:
        raise GatewayError(400, f'"n" may be {max_samples} at most with this key (max_samples)', param="n")


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


def _in_headers(headers: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, known in _FIELDS.items():
        text = headers.get(f"x-suffice-{name.replace('_', '-')}")
        if text is not None:
            try:
                found[name] = known.read(text)
            except ValueError:
                found[name] = text  # refused below, by name
    return found


def _in_body(body: Mapping[str, Any]) -> dict[str, Any]:
    given = body.get("suffice")
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise GatewayError(400, '"suffice" must be an object', param="suffice")
    for name in given:
        if name not in _FIELDS:
            shown = name[:100].encode(errors="replace").decode()
            message = f'there is no "{shown}" in "suffice"; there are {", ".join(_FIELDS)}'
            raise GatewayError(400, message, param=f"suffice.{shown}")
    return {name: value for name, value in given.items() if value is not None}


def _checked(name: str, value: Any) -> Any:
    """A value of the right type."""
    known = _FIELDS[name]
    if not known.fits(value):
        message = f"suffice.{name} must be {known.wanted}, not {value!r}"[:300]
        raise GatewayError(400, message, param=f"suffice.{name}")
    return known.kind(value)


def _check(name: str, value: str, operators: str, read: Callable[[], object]) -> None:
    """Refuse what can't be read; and files of this machine, unless the operator named them."""
    if value == operators:
        return
    try:
        if value.startswith("file:"):
            raise OptionError("only the operator may name a file")
        read()
    except SufficeError as error:
        raise GatewayError(400, f"suffice.{name}: {error}"[:600], param=f"suffice.{name}") from None
