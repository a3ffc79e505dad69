"""The two halves of a dialect: the face that a client of the gateway sees, and the wire that a server speaks."""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from suffice.live.signals import Token, load, signals_of
from suffice.response import Response


class MalformedError(Exception):
    """What a server sent is no reply of this dialect."""


def malformed(what: str, body: bytes) -> MalformedError:
    """What is said of a body that is no such thing."""
    return MalformedError(f"{what}: {body[:80].decode(errors='replace')!r}")


class FieldError(Exception):
    """A field of a request that can't be as it is, and why."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f'"{field}" {message}')
        self.field = field


class Meter:
    """Counts the pieces of text in a stream as it arrives, also where it is cut off."""

    def __init__(self, is_piece: Callable[[bytes], bool]) -> None:
        self.generated = 0
        """Tokens so far: one for each piece of text."""
        self.streamed = False
        """Whether the server streams at all; where it does not, a draw that is cancelled may run on there."""
        self.sent = False
        """Whether a request is with the server, which may charge for it; one that failed is not."""
        self._is_piece = is_piece
        self._rest = b""

    def restart(self) -> None:
        """Begin again, with another request."""
        self.generated, self._rest = 0, b""

    def feed(self, data: bytes) -> None:
        """Take in what has arrived."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            if line.startswith(b"data:"):
                self.streamed = True
                self.generated += self._is_piece(line)


class StreamText:
    """Joins the pieces of text in a stream as it arrives."""

    def __init__(self, heard: Callable[[dict[str, Any]], str]) -> None:
        self.text = ""
        self._heard = heard
        self._rest = b""

    def feed(self, data: bytes) -> None:
        """Take in what has arrived."""
        whole, newline, self._rest = (self._rest + data).rpartition(b"\n")
        with suppress(*UNREADABLE):
            for one in events(whole + newline):
                self.text += self._heard(one)


class Wire(ABC):
    """How a server is spoken to: what is sent for draws, and what is read from its replies.

    The fields of a question are what its requests have in common, whatever is drawn; the model is always among them.
    """

    takes_n: ClassVar[bool] = False
    """Whether one request may ask for several responses."""
    tells_signals: ClassVar[bool] = True
    """Whether it knows of log probabilities."""
    limit: ClassVar[str] = "max_tokens"
    """The field that says how long a response may be."""
    provider: ClassVar[str] = "openai"
    """Who made it, by the names of OpenTelemetry's conventions."""

    route: ClassVar[str]
    """Where requests go, below the base URL, unless `path` is another."""

    def path(self, fields: Mapping[str, Any], streamed: bool) -> str:
        """Where such a request goes, below the base URL."""
        return self.route

    @abstractmethod
    def fields(
        self, messages: Sequence[Mapping[str, Any]], response_format: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """The fields that say these messages, and in which form, as a chat completion has them."""

    @abstractmethod
    def messages(self, fields: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
        """What was said before, as messages with role and content."""

    def request(self, fields: Mapping[str, Any], draws: int, seed: int | None, streamed: bool) -> dict[str, Any]:
        """The body of a request for so many draws: the fields, with the seed and the stream where they are wanted."""
        return {**fields, **({} if seed is None else {"seed": seed}), **({"stream": True} if streamed else {})}

    def with_signals(self, request: Mapping[str, Any], top: int) -> dict[str, Any]:
        """The body of a request that asks for log probabilities too, and for those of so many likeliest tokens."""
        return dict(request)

    @abstractmethod
    def read(self, body: bytes, draws: int, signals: bool = False) -> list[Response]:
        """The responses in a reply, at most as many as were asked for; MalformedError where it is none.

        With `signals`, the log probabilities in it become signals, and are taken out of it.
        """

    def read_stream(self, body: bytes, signals: bool = False) -> Response:
        """The response that the events of a stream make up; of a server that does not stream, that of its reply."""
        if body.lstrip()[:1] == b"{":
            return self.read(body, 1, signals)[0]
        try:
            reply, tokens = self.joined(events(body, load if signals else json.loads))
        except UNREADABLE:
            raise malformed("no stream of a response", body) from None
        if reply is None:
            raise MalformedError("a stream that ends before its response does")
        return replace(self.read(json.dumps(reply).encode(), 1)[0], signals=signals_of(tokens))

    @abstractmethod
    def joined(self, events: Iterable[dict[str, Any]]) -> tuple[dict[str, Any] | None, list[Token]]:
        """The reply that events make up, None where they end before it does, and the tokens that came with them."""

    def meter(self) -> Meter:
        """What counts tokens in a stream while it arrives."""
        return Meter(self.is_piece)

    @abstractmethod
    def is_piece(self, line: bytes) -> bool:
        """Whether an event has a piece of what is generated: of text, of thoughts or of a tool call."""

    @abstractmethod
    def heard(self, event: dict[str, Any]) -> str:
        """The text that an event adds."""

    def is_thought(self, event: bytes, begun: bool) -> bool:
        """Whether an event of a stream is a thought of the model's, before anything is said.

        Args:
            event: The event, as it came.
            begun: Whether there have been others before it.
        """
        return False


@dataclass(frozen=True)
class ClientRequest:
    """What a client asked for, in whichever dialect."""

    model: str | None
    streamed: bool
    fields: Mapping[str, Any]
    """What of it goes into every draw: all but what the gateway decides on, as the number of responses."""
    usage_wanted: bool = False
    """Whether a stream shall end with its usage."""
    schema: Mapping[str, Any] | None = None
    """The schema of the object that the server is told to give, empty where any will do; None for text."""
    has_tools: bool = False
    obstacle: str | None = None
    """Why it can't be voted on, in a word, whatever its answer is."""
    odd_form: str | None = None
    """The field that asks for a form which only somebody who names the answer can read."""
    mistake: FieldError | None = None
    """What is wrong with it, so that no draw could be asked for."""

    @property
    def names_options(self) -> bool:
        """Whether the server is told to choose between given responses, as vLLM and others take them."""
        outputs = self.fields.get("structured_outputs")
        choice = outputs.get("choice") if isinstance(outputs, dict) else None
        return bool(self.fields.get("guided_choice") or self.fields.get("guided_regex") or choice)


class Face(ABC):
    """How a client of the gateway is spoken to: its requests, and the replies, streams and errors that it gets."""

    routes: ClassVar[tuple[str, ...]]
    """The paths that it is spoken at, below /v1, in Starlette's notation: /models/{model}:generate."""

    @abstractmethod
    def read(self, body: Mapping[str, Any], path: Mapping[str, str]) -> ClientRequest:
        """What a body asks for, with what its path says; it may be anything, since the server may understand it."""

    @abstractmethod
    def reply(
        self, chosen: Response, responses: Sequence[Response], prompt_tokens: int, completion_tokens: int
    ) -> dict[str, Any]:
        """A normal reply that says what the chosen response says, with the usage of all."""

    @abstractmethod
    def rewritten(self, response: Response, value: Any) -> Response:
        """The response, with this object as what it says, or with these calls as what it calls."""

    @abstractmethod
    def events(self, reply: dict[str, Any], usage_wanted: bool) -> list[bytes]:
        """A stream that says the same as a reply, to its end."""

    def continued(self, reply: dict[str, Any], begun: Mapping[str, Any]) -> dict[str, Any]:
        """A reply as the end of a stream that has begun as another, with its thoughts: it keeps that one's id."""
        return reply | {name: begun[name] for name in ("id", "created", "created_at") if name in begun}

    def events_after_thoughts(self, reply: dict[str, Any], usage_wanted: bool, told: int) -> list[bytes]:
        """The same for a stream that has begun with the thoughts of another response, in so many events."""
        return self.events(reply, usage_wanted)

    def error(self, message: str, kind: str, param: str | None, code: str | None) -> dict[str, Any]:
        """An error, as OpenAI has it unless the dialect has another way."""
        return {"error": {"message": message, "type": kind, "param": param, "code": code}}

    def is_error(self, body: Mapping[str, Any]) -> bool:
        """Whether what a server sent as an error, with a message in it, can be passed on in this dialect."""
        return True

    @abstractmethod
    def error_event(self, error: dict[str, Any]) -> bytes:
        """An error as the end of a stream that has begun."""


@dataclass(frozen=True)
class Dialect:
    """The shape of requests and replies under its name: as a client sees it, and as a server speaks it."""

    name: str
    face: Face
    wire: Wire


def no_messages(body: Mapping[str, Any]) -> FieldError | None:
    """What is wrong with a body that has no messages; None where it has some."""
    there = isinstance(body.get("messages"), list) and body["messages"]
    return None if there else FieldError("messages", "must be a list with a message at least")


def without(body: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """The members of a body but these, and but what is ours."""
    return {name: value for name, value in body.items() if name not in (*names, "suffice")}


def objects(value: Any) -> list[dict[str, Any]]:
    """The objects of a list; none where it is no list."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def model_in(body: Mapping[str, Any]) -> str | None:
    """The model that a body names, if it does."""
    model = body.get("model")
    return model if isinstance(model, str) else None


UNREADABLE = (ValueError, TypeError, LookupError, AttributeError, RecursionError)
"""What reading something that is not as it should be raises."""


def as_json(payload: Any) -> bytes:
    """JSON in UTF-8; with escapes where there is half a character in it, as JSON may have."""
    try:
        return json.dumps(payload, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return json.dumps(payload).encode()


def event(payload: Mapping[str, Any], name: str | None = None) -> bytes:
    """An event of a stream, with a name where the dialect gives them names."""
    return (f"event: {name}\n".encode() if name else b"") + b"data: " + as_json(payload) + b"\n\n"


def events(body: bytes, load: Callable[[bytes], Any] = json.loads) -> list[dict[str, Any]]:
    """The data of a stream's events."""
    lines = [line[5:].strip() for line in body.split(b"\n") if line.startswith(b"data:")]
    told = [line for line in lines if line and line != b"[DONE]"]
    try:  # all at once takes a fraction of the time
        found: list[dict[str, Any]] = load(b"[" + b",".join(told) + b"]")
        if len(found) == len(told):
            return found
    except ValueError:
        pass
    return [load(line) for line in told]


JSON_FORMS = ("json_object", "json_schema")


def schema_of(form: Any) -> dict[str, Any] | None:
    """The schema of a format that asks for JSON, empty where any object will do; None where it asks for no JSON."""
    if not isinstance(form, dict) or form.get("type") not in JSON_FORMS:
        return None
    schema = form.get("schema")
    return schema if isinstance(schema, dict) else {}


def flat_form(response_format: Mapping[str, Any]) -> dict[str, Any]:
    """A chat completion's format with its name and schema beside its type, where other dialects have them."""
    named = response_format.get("json_schema")
    return {"type": response_format.get("type"), **(named if isinstance(named, Mapping) else {})}


def with_parts(response: Response, within: str, kinds: Sequence[str], new: Sequence[dict[str, Any]]) -> Response:
    """A response with new parts in its reply, where the first of those of these kinds stood, and without these.

    Where there are none, they come at the end; what is new keeps the ids that others know it by, where it had them.

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
    """The text with halves of characters replaced, which no file could hold."""
    if not isinstance(text, str):
        return None
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def count(value: Any) -> int | None:
    """A count, if it is one."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def usage_of(reply: Mapping[str, Any]) -> dict[str, Any]:
    """The usage that a reply tells, if any."""
    told = reply.get("usage")
    return told if isinstance(told, dict) else {}


def only_response(
    reply: dict[str, Any], text: str, thoughts: str, calls: list[Any], finish: str, prompt_tokens: int
) -> Response:
    """The response of a reply that has one alone, and counts its tokens as those of the output."""
    return Response(
        whole_characters(text) or None,
        finish,
        tokens=count(usage_of(reply).get("output_tokens")),
        reasoning=whole_characters(thoughts) or None,
        tool_calls=calls or None,
        prompt_tokens=prompt_tokens,
        reply=reply,
    )


def usage_of_all(responses: Sequence[Response]) -> dict[str, Any]:
    """The usage of all requests, summed field by field."""
    total: dict[str, Any] = {}
    for reply in {id(response.reply): response.reply for response in responses}.values():
        _add_usage(total, usage_of(reply))
    return total


def _add_usage(total: dict[str, Any], usage: Mapping[str, Any]) -> None:
    """Add numbers to numbers of the same name, at any depth."""
    for name, value in usage.items():
        before = total.get(name)
        if isinstance(value, dict):
            total[name] = before if isinstance(before, dict) else {}
            _add_usage(total[name], value)
        elif _is_number(value) and (before is None or _is_number(before)):
            total[name] = (before or 0) + value
        elif before is None:
            total[name] = value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
