"""The base class of dialects, the reader of their streams, and what several of them use."""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, ClassVar

from suffice.live.dialects.sse import DONE, MOST_BYTES, Delta, Ended, EventDecoder, Failed, Piece, TokenUsage, data_of
from suffice.live.servers.retry import TooLongError
from suffice.live.signals import load
from suffice.response import Response

Messages = Sequence[Mapping[str, Any]]


class MalformedError(Exception):
    """What a server sent is no reply of this dialect."""


class FieldError(Exception):
    """A field of a request that can't be as it is, and why."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f'"{field}" {message}')
        self.field = field


class StreamReader:
    """Reads one reply as it arrives, whole or as a stream, whose tokens it counts."""

    def __init__(self, dialect: "Dialect", signals: bool = False) -> None:
        self.sent = False  # whether a request is with the server, which may charge for it
        self._dialect = dialect
        self._signals = signals
        self._load = load if signals else json.loads
        self.restart()

    def restart(self) -> None:
        self.decoder = EventDecoder()
        self.generated = 0  # events with a piece of generated text, each of about a token
        self.said = 0  # those of them that are no reasoning
        self.streamed = False  # whether the server streams at all
        self.closed = False  # whether the stream has told its end or an error
        self.text = ""
        self.body = bytearray()  # of a reply that is no stream
        self._size = 0
        self._reply: dict[str, Any] = {}
        self._ended = False
        self._fault = ""

    def feed(self, data: bytes) -> None:
        self._size += len(data)
        if self._size > MOST_BYTES:
            raise TooLongError(f"a response of more than {MOST_BYTES >> 20} MiB")
        if not self.streamed:
            self.body += data
        for event in self.decoder.feed(data):
            self.read(event)

    def responses(self, draws: int = 1) -> list[Response]:
        """Return the responses of the reply; MalformedError if it is none or its stream ends early."""
        self.feed(b"\n\n")  # some servers leave the last line without its end
        if not self.streamed:
            return self._dialect.read(bytes(self.body), draws, self._signals)
        if self._fault or not self._ended:
            raise MalformedError(self._fault or "a stream that ends before its response does")
        try:
            return self._dialect.responses(self._reply, 1)
        except UNREADABLE:
            raise MalformedError("no stream of a response") from None

    def read(self, event: bytes) -> list[Delta]:
        """Take in an event; return its deltas, none where it can't be read."""
        data = data_of(event)
        if not data:
            return []
        self.streamed = True
        if data == DONE:
            self.closed = True
            return []
        try:
            payload = self._load(data)
            deltas = self._dialect.deltas(payload)
            self._dialect.join(self._reply, payload)
            text = "".join(one.text for one in deltas if isinstance(one, Piece) and one.kind == "text")
        except UNREADABLE:
            self._fault = self._fault or f"no stream of a response: {_beginning(data)}"
            return []
        kinds = {delta.kind for delta in deltas if isinstance(delta, Piece)}
        self.generated += bool(kinds)
        self.said += bool(kinds - {"reasoning"})
        self.text += text
        for delta in deltas:
            if isinstance(delta, Ended):
                self.closed = self._ended = True
            elif isinstance(delta, Failed):
                self.closed, self._fault = True, f"an error in the stream: {delta.message[:200]}"
        return deltas


@dataclass(frozen=True)
class ClientRequest:
    """What a client asked for, in whichever dialect."""

    model: str | None
    streamed: bool
    fields: Mapping[str, Any]  # of every draw: without what the gateway decides on
    usage_wanted: bool = False  # at the end of a stream
    schema: Mapping[str, Any] | None = None
    """The schema of the object that is asked for, empty if any will do; None for text."""
    has_tools: bool = False
    obstacle: str | None = None  # why it can't be voted on, in a word
    odd_form: str | None = None
    """The field that asks for a form which is read only if the client names the answer."""
    mistake: FieldError | None = None  # why no draw can be asked for

    @property
    def names_options(self) -> bool:
        """Whether the server shall choose between given responses, as vLLM can."""
        outputs = self.fields.get("structured_outputs")
        choice = outputs.get("choice") if isinstance(outputs, dict) else None
        return bool(self.fields.get("guided_choice") or self.fields.get("guided_regex") or choice)


class Dialect(ABC):
    """The shape of requests, replies, streams and errors; `fields` are those of all requests of a question."""

    name: ClassVar[str]
    routes: ClassVar[tuple[str, ...]]
    """The gateway's paths, below /v1, in Starlette's notation: /models/{model}:generate."""
    takes_n: ClassVar[bool] = False  # whether one request may ask for several responses
    tells_signals: ClassVar[bool] = True  # whether it has log probabilities
    limit: ClassVar[str] = "max_tokens"  # the field with the length of a response
    provider: ClassVar[str] = "openai"  # by the names of OpenTelemetry's conventions

    def path(self, fields: Mapping[str, Any], streamed: bool) -> str:
        """Return the path of a request to a server, below the base URL."""
        return self.routes[0]

    @abstractmethod
    def fields(self, messages: Messages, response_format: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the fields that say these messages, and in which form."""

    @abstractmethod
    def messages(self, fields: Mapping[str, Any]) -> Messages:
        """Return what was said before, as messages with role and content."""

    def request(self, fields: Mapping[str, Any], draws: int, streamed: bool) -> dict[str, Any]:
        """Return the body of a request to a server.

        Args:
            fields: The fields of all requests of the question, and the seed if there is one.
            draws: The number of responses; 1 unless the dialect `takes_n`.
            streamed: Whether the reply shall be a stream.
        """
        return {**fields, "stream": True} if streamed else {**fields}

    def with_signals(self, request: Mapping[str, Any], top: int) -> dict[str, Any]:
        """Let a body ask for log probabilities, and those of so many likeliest tokens."""
        return dict(request)

    def read(self, body: bytes, draws: int, signals: bool = False) -> list[Response]:
        """Return the responses of a reply, whose log probabilities become signals; MalformedError if it is none."""
        try:
            return self.responses(load(body) if signals else json.loads(body), draws)
        except UNREADABLE:
            raise MalformedError(f"no reply: {_beginning(body)}") from None

    @abstractmethod
    def responses(self, reply: dict[str, Any], draws: int) -> list[Response]:
        """Return the responses of a reply; what is no reply may raise anything of `UNREADABLE`."""

    @abstractmethod
    def deltas(self, event: dict[str, Any]) -> list[Delta]:
        """Return what an event of a stream tells."""

    @abstractmethod
    def join(self, reply: dict[str, Any], event: dict[str, Any]) -> None:
        """Add an event of a stream to its reply, which is empty at first."""

    @abstractmethod
    def client_request(self, body: Mapping[str, Any], path: Mapping[str, str]) -> ClientRequest:
        """Read a client's body, which may be anything, and the parameters of its path."""

    @abstractmethod
    def reply(self, chosen: Response, usage: dict[str, Any], prompt: int, completion: int) -> dict[str, Any]:
        """Return a reply that says what a response says.

        Args:
            chosen: The response that was elected.
            usage: The usage of all requests, summed by the names that the server gives its counts.
            prompt: The tokens of all prompts.
            completion: The tokens of all responses.
        """

    @abstractmethod
    def rewritten(self, response: Response, value: Any) -> Response:
        """Return the response with this object as its text, or with these calls as its calls."""

    @abstractmethod
    def events(self, reply: dict[str, Any], usage_wanted: bool, told: int = 0) -> list[bytes]:
        """Return a stream that says the same as a reply.

        Args:
            reply: The whole reply.
            usage_wanted: Whether the client asks for the usage at the end; some dialects tell it anyway.
            told: The number of events that the client has already: the reasoning of another response.
        """

    def continued(self, reply: dict[str, Any], begun: Mapping[str, Any]) -> dict[str, Any]:
        """Return a reply as the end of a stream that has begun with another's thoughts, and its id."""
        return reply | {name: begun[name] for name in ("id", "created", "created_at") if name in begun}

    def error(self, message: str, kind: str, param: str | None, code: str | None) -> dict[str, Any]:
        return {"error": {"message": message, "type": kind, "param": param, "code": code}}

    def error_event(self, error: dict[str, Any]) -> bytes:
        return event(error, error.get("type"))


def client_request(
    body: Mapping[str, Any], obstacle: str | None, form: Any, form_field: str, mistake: FieldError | None
) -> ClientRequest:
    """Read what the dialects have in common, with the form as `flat_form` gives it."""
    schema, options = schema_of(form), body.get("stream_options")
    is_odd = isinstance(form, dict) and form.get("type") != "text" and schema is None
    ours = ("n", "stream", "stream_options", "suffice")
    return ClientRequest(
        model=model_in(body),
        streamed=body.get("stream") is True,
        fields={name: value for name, value in body.items() if name not in ours},
        usage_wanted=isinstance(options, dict) and bool(options.get("include_usage")),
        schema=schema,
        has_tools=bool(body.get("tools") or body.get("functions")),
        obstacle=obstacle,
        odd_form=form_field if is_odd else None,
        mistake=mistake,
    )


def no_messages(body: Mapping[str, Any]) -> FieldError | None:
    """Return what is wrong with a body without messages."""
    there = isinstance(body.get("messages"), list) and body["messages"]
    return None if there else FieldError("messages", "must be a list with a message at least")


def objects(value: Any) -> list[dict[str, Any]]:
    """Return the objects of a list; none of what is no list."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def model_in(body: Mapping[str, Any]) -> str | None:
    model = body.get("model")
    return model if isinstance(model, str) else None


MOST_PARTS = 1000  # of one reply: more blocks or tool calls are a server's mistake
UNREADABLE = (ValueError, TypeError, LookupError, AttributeError, RecursionError)  # what a wrong reply may raise


def _beginning(body: bytes) -> str:
    return repr(body[:80].decode(errors="replace"))


def as_json(payload: Any) -> bytes:
    """Return JSON in UTF-8; with escapes if there is half a character in it."""
    try:
        return json.dumps(payload, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return json.dumps(payload).encode()


def event(payload: Mapping[str, Any], name: str | None = None) -> bytes:
    return (f"event: {name}\n".encode() if name else b"") + b"data: " + as_json(payload) + b"\n\n"


def schema_of(form: Any) -> dict[str, Any] | None:
    """Return the schema of a format, empty if any object will do; None if it asks for no JSON."""
    if not isinstance(form, dict) or form.get("type") not in ("json_object", "json_schema"):
        return None
    schema = form.get("schema")
    return schema if isinstance(schema, dict) else {}


def flat_form(response_format: Mapping[str, Any]) -> dict[str, Any]:
    """Return a chat completion's format with its schema beside its type, as in other dialects."""
    named = response_format.get("json_schema")
    return {"type": response_format.get("type"), **(named if isinstance(named, Mapping) else {})}


def with_parts(response: Response, within: str, kinds: Sequence[str], new: Sequence[dict[str, Any]]) -> Response:
    """Replace the parts of these kinds in a reply by new ones, which stand where the first of them stood.

    If there are none, the new ones come at the end; they keep the ids of the old.

    >>> said = Response("a", reply={"content": [{"type": "text", "id": 1}, {"type": "call"}, {"type": "text"}]})
    >>> with_parts(said, "content", ["text"], [{"type": "text", "id": 2, "text": "b"}]).reply["content"]
    [{'type': 'text', 'id': 1, 'text': 'b'}, {'type': 'call'}]
    """
    parts = objects(response.reply[within])
    old = [one for one in parts if one.get("type") in kinds]
    ids = [{name: one[name] for name in ("id", "call_id") if name in one} for one in old]
    told = [{**one, **known} for one, known in zip(new, [*ids, *({} for _ in new)], strict=False)]
    first = parts.index(old[0]) if old else len(parts)
    kept = [[one for one in some if one not in old] for some in (parts[:first], parts[first:])]
    return replace(response, reply={**response.reply, within: [*kept[0], *told, *kept[1]]})


def whole_characters(text: Any) -> str | None:
    """Replace halves of characters, which no file could hold."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if isinstance(text, str) else None


def count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


CACHED = ("cache_read_input_tokens", "cache_creation_input_tokens")  # of the prompt, and not in `input_tokens`


def usage_of(reply: Mapping[str, Any]) -> dict[str, Any]:
    told = reply.get("usage")
    return told if isinstance(told, dict) else {}


def token_usage(reply: Mapping[str, Any]) -> TokenUsage | None:
    """Return the token counts of a reply or an event, in whichever dialect's words; None if it has none."""
    usage = usage_of(reply)
    prompt = count(usage.get("prompt_tokens"))
    if prompt is None and (uncached := count(usage.get("input_tokens"))) is not None:
        prompt = uncached + sum(count(usage.get(name)) or 0 for name in CACHED)
    completion = count(usage.get("completion_tokens", usage.get("output_tokens")))
    return None if prompt is completion is None else TokenUsage(prompt, completion)


def only_response(reply: dict[str, Any], text: str, thoughts: str, calls: list[Any], finish: str | None) -> Response:
    usage = token_usage(reply) or TokenUsage(None, None)
    return Response(
        whole_characters(text) or None,
        finish,
        tokens=usage.completion,
        reasoning=whole_characters(thoughts) or None,
        tool_calls=calls or None,
        prompt_tokens=usage.prompt or 0,
        reply=reply,
    )


def usage_of_all(responses: Sequence[Response]) -> dict[str, Any]:
    replies = {id(response.reply): response.reply for response in responses}.values()
    return reduce(_added, map(usage_of, replies), {})


def _added(total: dict[str, Any], usage: Mapping[str, Any]) -> dict[str, Any]:
    """Add numbers to numbers of the same name, at any depth."""
    total = dict(total)
    for name, value in usage.items():
        before = total.get(name)
        if isinstance(value, dict):
            total[name] = _added(before if isinstance(before, dict) else {}, value)
        elif before is None:
            total[name] = value
        elif isinstance(value, int | float) and isinstance(before, int | float) and not isinstance(value, bool):
            total[name] = before + value
    return total
