"""A dialect that is spoken to the client, and chat completions to the server."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from suffice.answers import Extractor
from suffice.live.dialects.base import Dialect, Hearing, MalformedError, Meter
from suffice.live.dialects.chat import ChatCompletions
from suffice.live.dialects.translate import reply_from_chat, request_to_chat
from suffice.live.dialects.wire import UNREADABLE
from suffice.response import Response


class Translated(Dialect):
    """One request of a dialect, drawn as chat completions; what is told of it is told in the dialect itself."""

    path = ChatCompletions.path
    takes_n = True

    def __init__(self, spoken: Dialect, body: Mapping[str, Any]) -> None:
        self._spoken = spoken
        self._chat = ChatCompletions()
        self._body = body
        self._fields: Mapping[str, Any] | None = None
        self._translation: dict[str, Any] = {}
        self.name = spoken.name  # type: ignore[misc]
        self.owned = spoken.owned  # type: ignore[misc]

    def asking(
        self, messages: Sequence[Mapping[str, Any]], response_format: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """As it is spoken."""
        return self._spoken.asking(messages, response_format)

    def messages(self, fields: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
        """As they are spoken."""
        return self._spoken.messages(fields)

    def no_vote(self, body: Mapping[str, Any], extractor: Extractor, answer_named: bool) -> str | None:
        """As it is spoken."""
        return self._spoken.no_vote(body, extractor, answer_named)

    def names_options(self, body: Mapping[str, Any]) -> bool:
        """As a chat names them: such fields are passed on."""
        return self._chat.names_options(body)

    def json_wanted(self, body: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """As it is spoken."""
        return self._spoken.json_wanted(body)

    def check(self, body: Mapping[str, Any], extractor: Extractor) -> None:
        """It must be right as it is spoken, and have a translation."""
        self._spoken.check(body, extractor)
        request_to_chat(self.name, body)

    def request(self, fields: Mapping[str, Any], draws: int, seed: int | None, streamed: bool) -> dict[str, Any]:
        """The translation, as a chat asks for it; it is made once, so that all draws share what is long in it."""
        if self._fields is None or not _same(self._fields, fields):
            self._fields, self._translation = fields, request_to_chat(self.name, fields)
        return self._chat.request(self._translation, draws, seed, streamed)

    def with_signals(self, request: Mapping[str, Any], top: int) -> dict[str, Any]:
        """As a chat asks for them."""
        return self._chat.with_signals(request, top)

    def read(self, body: bytes, draws: int, signals: bool = False) -> list[Response]:
        """A response a choice, each with the reply that it would have been."""
        return [self._back(response) for response in self._chat.read(body, draws, signals)]

    def read_stream(self, body: bytes, signals: bool = False) -> Response:
        """The deltas, joined, with the reply that they would have been."""
        return self._back(self._chat.read_stream(body, signals))

    def _back(self, response: Response) -> Response:
        # Thoughts that stood in the text were taken out of it when it was read, and counts were shared out.
        message = {**response.choice["message"], "content": response.text, "reasoning_content": response.reasoning}
        counts = {"prompt_tokens": response.prompt_tokens, "completion_tokens": response.tokens or 0}
        told = response.reply.get("usage")
        usage = {**(told if isinstance(told, dict) and response.prompt_tokens else {}), **counts}
        usage["total_tokens"] = sum(counts.values())
        try:
            choice = {**response.choice, "message": message}
            reply = reply_from_chat(self.name, {**response.reply, "usage": usage}, choice, self._body)
        except UNREADABLE:
            raise MalformedError(f"no chat completion: {json.dumps(message)[:80]}") from None
        return replace(response, choice={}, reply=reply)

    def meter(self) -> Meter:
        """A reader of a chat's chunks."""
        return self._chat.meter()

    def hearing(self) -> Hearing:
        """A listener to a chat's chunks."""
        return self._chat.hearing()

    def reply(
        self, chosen: Response, responses: Sequence[Response], prompt_tokens: int, completion_tokens: int
    ) -> dict[str, Any]:
        """As it is spoken."""
        return self._spoken.reply(chosen, responses, prompt_tokens, completion_tokens)

    def rewritten(self, response: Response, value: Any) -> Response:
        """As it is spoken."""
        return self._spoken.rewritten(response, value)

    def events(self, reply: dict[str, Any], usage_wanted: bool) -> list[bytes]:
        """As they are spoken."""
        return self._spoken.events(reply, usage_wanted)

    def error(self, message: str, kind: str, param: str | None, code: str | None) -> dict[str, Any]:
        """As it is spoken."""
        return self._spoken.error(message, kind, param, code)

    def is_error(self, body: Mapping[str, Any]) -> bool:
        """As it is spoken."""
        return self._spoken.is_error(body)

    def error_event(self, error: dict[str, Any]) -> bytes:
        """As it is spoken."""
        return self._spoken.error_event(error)


def _same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether they are the same, and not only equal."""
    return one.keys() == other.keys() and all(other[name] is value for name, value in one.items())
