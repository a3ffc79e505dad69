"""Read a request of any dialect, once, into an immutable value, and choose its route."""

import asyncio
import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any, Literal

from suffice.answers.reader import MAX_LABEL_TOKENS
from suffice.answers.requests import read_request
from suffice.gateway.errors import GatewayError
from suffice.gateway.exchange import AskedFor, Exchange
from suffice.gateway.requests.options import Policies, RequestOptions, check_samples, read_options, samples_asked
from suffice.live.dialects import ClientRequest, Dialect
from suffice.live.servers.hosts import most_tokens
from suffice.panel.live import Panel, Voter
from suffice.schemas import is_closed

SUFFIXES = ("+vote", "+once")
"""By the end of a model's name a client forces a vote, or a single sample."""


@dataclass(frozen=True)
class ParsedRequest:
    """What a client asked for, and how it is asked of the upstream."""

    dialect: Dialect
    """The dialect of the client and of the upstream."""
    client: ClientRequest
    options: RequestOptions
    suffix: str
    """That of the model's name, which is ours."""
    samples: int
    """How many responses it asks for."""
    raw: bytes
    """The body as it came, less what is ours."""
    vote: str
    """When there is a vote, by what holds for its key and its model."""
    has_answer_by_policy: bool = False
    """Whether a policy says how its answer is found."""
    panel: Panel | None = None
    """The panel that the client asks for."""

    @property
    def fields(self) -> Mapping[str, Any]:
        """The members that go into every draw."""
        return self.client.fields

    @property
    def named(self) -> bool:
        """Whether the client names a budget or asks for a vote; only then are savings told."""
        return self.options.asked or self.suffix == "+vote"

    @property
    def messages(self) -> Sequence[Mapping[str, Any]]:
        """What was said before, as messages with role and content."""
        return self.dialect.messages(self.fields)

    @property
    def path(self) -> str:
        """Where the upstream is asked, below its base URL."""
        return self.dialect.path(self.fields, self.client.streamed)

    def check(self) -> None:
        """Refuse what no draw can be asked for."""
        if self.client.mistake:
            raise GatewayError(400, str(self.client.mistake), param=self.client.mistake.field)
        seed = self.fields.get("seed")
        if seed is not None and type(seed) is not int:
            raise GatewayError(400, '"seed" must be a whole number', param="seed")
        if self.options.extractor.reads_tools and not self.fields.get("tools"):
            message = '"suffice.answer" is about tool calls, and there are no "tools"'
            raise GatewayError(400, message, param="suffice.answer")


async def parse(
    policies: Policies, dialect: Dialect, exchange: Exchange, raw: bytes, topic: str | None = None
) -> ParsedRequest:
    """Read a request; GatewayError if it can't be read, or asks for too much."""
    body = json_object(raw)
    client = dialect.client_request(body, exchange.request.path_params)
    model, suffix = split_model(client.model)
    client = replace(client, model=model, fields={**client.fields, "model": model} if suffix else client.fields)
    samples = samples_asked(raw, body)
    in_force = policies.of(exchange.key, model, topic)
    check_samples(samples, in_force)
    exchange.add(AskedFor(model, samples))
    reading = in_force, client, body, exchange.request.headers
    # A schema is checked in a process of its own, which takes its time.
    has_schema = bool(client.schema) or client.has_tools
    options = await asyncio.to_thread(read_options, *reading) if has_schema else read_options(*reading)
    named = {"model": model} if suffix and "model" in body else {}
    if named or "suffice" in body:
        raw = with_members(raw, named, without="suffice")
    vote = in_force.settings.vote
    return ParsedRequest(dialect, client, options, suffix, samples, raw, vote, in_force.names_answer)


def split_model(model: str | None) -> tuple[str | None, str]:
    """A model's name as the upstream knows it, and the suffix it came with.

    >>> split_model("qwen+vote"), split_model("qwen")
    (('qwen', '+vote'), ('qwen', ''))
    """
    suffix = next((suffix for suffix in SUFFIXES if model and model.endswith(suffix)), "")
    return model and model.removesuffix(suffix), suffix


@dataclass(frozen=True)
class Route:
    """What is done with a request, and, where that is no vote, why."""

    kind: Literal["vote", "look", "relay"]
    why: str = ""
    asked: bool = True
    """Whether a vote was asked for: then any letter or number is an answer."""

    @property
    def may_be_taught(self) -> bool:
        """Whether nothing names its answer, and nothing forbids one."""
        return self in (OPEN, SUM)

    def looks_first(self, streamed: bool) -> bool:
        """Whether the first response is read. A client that does not stream waits for all of it anyway."""
        return self.kind == "look" or (self == OPEN and not streamed)


VOTE = Route("vote", "asked")
OPEN = Route("relay", "no answer")
SUM = Route("look", "sum", asked=False)


def route_of(parsed: ParsedRequest) -> Route:
    """Choose the route by the operator's `vote`, the client's options and the question."""
    vote, options, client = parsed.vote, parsed.options, parsed.client
    if vote == "off" or options.controller == "off":
        return Route("relay", "off")
    if vote == "shadow":
        return Route("relay", "shadow")
    forced = parsed.suffix if vote in ("auto", "asked") else ""
    if forced == "+once":
        return Route("relay", "once")
    if vote == "asked" and not (options.asked or forced):
        return Route("relay", "not asked")
    obstacle = _obstacle(parsed)
    if obstacle:
        return Route("relay", obstacle)
    by_name = "answer" in options.wanted or client.names_options or parsed.has_answer_by_policy
    if vote != "auto" or forced or by_name:
        return VOTE
    return _route_by_shape(parsed)


def _route_by_shape(parsed: ParsedRequest) -> Route:
    """Choose the route by what the request shows of its answer, in any language.

    An answer that is named is voted on from the first round. A sum, and an object whose fields may be texts, is looked
    at first; so is what the operator's extractor reads. All else is passed on.
    """
    options, schema, asked = parsed.options, parsed.client.schema, read_request(parsed.messages)
    stops = parsed.fields.get("stop") or parsed.fields.get("stop_sequences") or ()
    stops = stops if isinstance(stops, list) else [stops]
    stops_at_label = any(isinstance(one, str) and one.rstrip().endswith((":", "：")) for one in stops)
    if (asked.form or (stops_at_label and not asked.brief)) and not schema:
        return Route("relay", "form")
    if schema:
        return Route("vote", "schema", asked=False) if is_closed(schema) else Route("look", "schema", asked=False)
    if (most_tokens(parsed.fields) or MAX_LABEL_TOKENS + 1) <= MAX_LABEL_TOKENS:
        return Route("vote", "few tokens", asked=False)
    if asked.named:
        return Route("vote", asked.named, asked=False)
    if asked.sum and options.extractor.follow_up:  # the model reads any response
        return Route("vote", "sum", asked=False)
    reads_any = options.answer not in ("auto", "json") and not options.extractor.follow_up
    if reads_any or asked.json or schema is not None:
        return Route("look", "answer" if reads_any else "json", asked=False)
    if asked.hinted:
        return Route("look", asked.hinted, asked=False)
    return SUM if asked.sum else OPEN


def as_panel(parsed: ParsedRequest, panel: Panel) -> ParsedRequest:
    """A request as a panel is asked."""
    why = parsed.client.obstacle or ("tools" if parsed.client.has_tools else None)
    if why or parsed.options.extractor.structure:
        raise GatewayError(
            400, f"a panel votes on answers alone ({why or 'json'}): ask one model for that", param="model"
        )
    named = parsed.options.wanted & {"controller", "elect", "flow", "learn"}
    if named and parsed.options.controller != "off":
        name = min(named)
        raise GatewayError(400, f"a panel decides by itself: leave {name} out", param=f"suffice.{name}")
    options = parsed.options.replaced(learn=False, flow=None, elect="majority")
    return replace(parsed, options=options, panel=panel)


def as_voter(parsed: ParsedRequest, voter: Voter) -> ParsedRequest:
    """A request as one voter is asked: with its model and its prompt."""
    fields = voter.request(parsed.fields, parsed.dialect)
    changed = {name: value for name, value in fields.items() if value is not parsed.fields.get(name)}
    return replace(parsed, client=replace(parsed.client, fields=fields), raw=with_members(parsed.raw, changed))


def _obstacle(parsed: ParsedRequest) -> str | None:
    """Why there can't be a vote, in a word."""
    client, options = parsed.client, parsed.options
    if client.obstacle:
        return client.obstacle
    if client.has_tools and not options.extractor.reads_tools:
        return "tools"
    if parsed.fields.get("seed") is not None and not parsed.named:
        return "seed"
    return None if "answer" in options.wanted else client.odd_form


_GAP = re.compile(r"[\s,:]*")
_DECODER = json.JSONDecoder()

ONCE = ("model", "n", "stream", "suffice")
"""By these a request is judged; an upstream might take another one of two."""

DEEPEST = 100
"""So deep may the objects and lists of a body be in one another."""


def json_object(raw: bytes) -> dict[str, Any]:
    """Return the object in a body; refuse what other parsers might read otherwise."""
    named: list[str] = []

    def member_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        named[:] = [name for name, _ in pairs]  # those of the outermost object stay: it ends last
        return dict(pairs)

    try:
        text = raw.decode()
        if text[:1] == "\ufeff" or "\0" in text[:4]:
            raise UnicodeError
        body = json.loads(text, object_pairs_hook=member_names, parse_constant=_no_constant, parse_float=_finite)
    except UnicodeError:
        raise GatewayError(400, "the body must be JSON in UTF-8, without a byte order mark") from None
    except (ValueError, RecursionError):
        raise GatewayError(400, "the body is not JSON") from None
    if not isinstance(body, dict):
        raise GatewayError(400, "the body must be a JSON object")
    for name in ONCE:
        if named.count(name) > 1:
            raise GatewayError(400, f'"{name}" is in the body twice', param=name)
    _check_depth(body)
    return body


def _no_constant(name: str) -> Any:
    raise GatewayError(400, f"the body has {name} in it, which is not JSON")


def _finite(text: str) -> float:
    """Return a number; an infinite one, which could not be sent on, as the largest."""
    return max(-sys.float_info.max, min(sys.float_info.max, float(text)))


def _check_depth(body: dict[str, Any]) -> None:
    level: list[Any] = [body]
    for _ in range(DEEPEST):
        inside = (one.values() if isinstance(one, dict) else one for one in level)
        level = [part for parts in inside for part in parts if isinstance(part, dict | list)]
        if not level:
            return
    raise GatewayError(400, f"the body is more than {DEEPEST} objects and lists deep")


def with_members(body: bytes, members: Mapping[str, Any], without: str = "") -> bytes:
    r"""Return a body with these members, and without another; all other bytes stay.

    >>> with_members(b'{"logprobs": false, "x" :1.50 ,"suffice": {} }', {"logprobs": True}, without="suffice")
    b'{"logprobs": true, "x" :1.50 }'
    """
    text = body.decode()
    end = place = begin = _after_gap(text, text.index("{") + 1)
    inside = json.dumps(members)[1:-1] + ", " if members else ""
    while text[place] != "}":
        start = place
        name, place = scanstring(text, place + 1)
        _, end = _DECODER.raw_decode(text, _after_gap(text, place))
        place = _after_gap(text, end)
        if name != without and name not in members:
            inside += text[start:place]
    return (text[:begin] + inside.rstrip(" \t\r\n,") + text[end:]).encode()


def _after_gap(text: str, place: int) -> int:
    """Return where the next token begins, past spaces, commas and colons."""
    return _GAP.match(text, place).end()  # type: ignore[union-attr]  # it matches the empty text too
