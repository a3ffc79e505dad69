"""The bill of one request: whose it is, the tokens it took by what the upstream says, and what they cost."""

import json
import math
import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from suffice.gateway import metrics
from suffice.gateway.errors import GatewayError
from suffice.gateway.keys import Key
from suffice.gateway.prices import Price, Prices
from suffice.gateway.store import Counts
from suffice.live import Outcome
from suffice.live.outcome import SETTLED

_ADDED = ("cache_creation_input_tokens", "cache_read_input_tokens")
"""What Anthropic counts beside the tokens of the input, and others among them."""

_TOLD = ("prompt_tokens", "completion_tokens", "input_tokens", "output_tokens", *_ADDED)
_GENERATING = ("/completions", "/responses", "/messages")
_BEGINS = re.compile(rb'"usage"\s*:\s*(?=\{)')
_LONGEST = 1 << 14
"""No usage is longer."""

_CHARACTERS = 4
"""So many make a token, where nobody counts them."""


class UsageReader:
    """Finds the usage in a reply, whole or streamed, in bytes that pass.

    Within a string the quotes would have a backslash, so that what is found is no text.

    >>> reader = UsageReader()
    >>> for piece in (b'{"choices": [], "us', b'age": {"prompt_tokens": 7, "comp', b'letion_tokens": 5}}'):
    ...     reader.feed(piece)
    >>> reader.told
    {'prompt_tokens': 7, 'completion_tokens': 5}
    """

    def __init__(self) -> None:
        self.told: dict[str, int] = {}
        self.size = 0
        self.events = 0
        self._rest = b""

    def feed(self, data: bytes) -> None:
        """Take in what has arrived."""
        self.size += len(data)
        self.events += data.count(b"data:")
        text = self._rest + data
        found = text.find(b'"usage"')
        while found >= 0:
            begins = _BEGINS.match(text, found)
            if begins and not self._read(text[begins.end() : begins.end() + _LONGEST]) and len(text) - found < _LONGEST:
                break  # its end is yet to come
            if not begins and len(text) - found < 16:
                break
            found = text.find(b'"usage"', found + 1)
        self._rest = text[found:] if found >= 0 else text[-6:]

    def _read(self, text: bytes) -> bool:
        """Take in a usage, where it is whole; what came later counts, for it grows."""
        try:
            usage, _ = json.JSONDecoder().raw_decode(text.decode(errors="replace"))
        except (ValueError, RecursionError):
            return False
        counts = {name: usage.get(name) for name in _TOLD}
        self.told |= {name: value for name, value in counts.items() if type(value) is int and 0 <= value < 1 << 40}
        return True

    @property
    def tokens(self) -> tuple[int, int] | None:
        """Those of the prompt and of the completion; None where nothing was told."""
        told = self.told
        if not told:
            return None
        prompt = told.get("prompt_tokens", told.get("input_tokens", 0)) + sum(told.get(name, 0) for name in _ADDED)
        return prompt, told.get("completion_tokens", told.get("output_tokens", 0))


class Bill:
    """One request's bill; where there are neither keys nor prices nobody reads it, and nothing is done for it."""

    def __init__(self, key: Key | None, prices: Prices) -> None:
        self.key = key
        self.wanted = key is not None or bool(prices)
        self.counts = Counts()
        self.estimated = False
        self.sent = False
        """Whether the upstream was asked for it."""
        self._prices = prices
        self._price: Price | None = None
        self._samples = 1
        self._prompt = 0
        """What is sent, in tokens, where nobody counts them."""
        self._billed = False

    @property
    def max_samples(self) -> int | None:
        """The most samples that the key allows."""
        return self.key.limits.max_samples if self.key else None

    def send(self, model: str | None, body: Mapping[str, Any], samples: int = 1) -> None:
        """Note what is asked for; refused where it would cost nobody knows what, and the key's money is limited."""
        if not self.wanted:
            return
        self._price = self._prices.of(model)
        if self._price is None and self.key and self.key.limits.money_per_month:
            shown = "it" if model is None else f'"{model[:100]}"'
            message = f"{shown} has no price here, and what this key may spend is limited"
            raise GatewayError(403, message, kind="permission_error", param="model", code="no_price")
        self._samples = samples
        self._prompt = -(-_length(body) // _CHARACTERS)

    def vote(self, outcome: Outcome, at_once: int) -> None:
        """Bill a vote; the full budget would take requests of so many draws, each of which bills its prompt."""
        if not self.wanted:
            return
        counts = Counts(1, 0, 1, outcome.samples, outcome.samples_saved, tokens_saved=outcome.tokens_saved)
        counts.prompt_tokens, counts.completion_tokens = outcome.prompt_tokens, outcome.completion_tokens
        self.estimated = outcome.usage_estimated
        if self.estimated:
            guessed = sum(one.tokens or 0 for one in outcome.responses if one.estimated)
            counts.estimated_tokens = outcome.cancelled_tokens + guessed
        if self._price:
            counts.cost = counts.cost_full = self._price.of(outcome.prompt_tokens, outcome.completion_tokens)
            if outcome.stop_reason in SETTLED:
                prompt = max((one.prompt_tokens for one in outcome.responses), default=0)
                requests = math.ceil(outcome.budget / max(at_once, 1))
                counts.cost_full = self._price.of(prompt * requests, outcome.completion_tokens + outcome.tokens_saved)
        self.counts, self._billed = counts, True

    def whole(self, body: bytes) -> None:
        """Bill a reply that is here."""
        if self.wanted:
            reader = UsageReader()
            reader.feed(body)
            self._bill(reader)

    async def passing(self, pieces: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
        """The pieces of a reply as they are; it is billed when they have passed."""
        reader = UsageReader()
        assert isinstance(pieces, AsyncGenerator)  # noqa: S101
        try:
            async with aclosing(pieces):
                async for piece in pieces:
                    reader.feed(piece)
                    yield piece
        finally:
            self._bill(reader)

    def relayed(self, response: Response, path: str) -> Response:
        """A reply that is passed back, read on its way."""
        if self.wanted and response.status_code < 400 and isinstance(response, StreamingResponse):
            self._prompt = self._prompt if path.endswith(_GENERATING) else 0
            response.body_iterator = self.passing(response.body_iterator)  # type: ignore[arg-type]
        return response

    def _bill(self, reader: UsageReader) -> None:
        tokens = reader.tokens
        if tokens is None and self._prompt:  # nobody counts: an event of a stream is about a token
            said = max(1, reader.events - 3) if reader.events else reader.size // _CHARACTERS
            tokens, self.estimated = (self._prompt, said), True
        prompt, completion = tokens or (0, 0)
        counts = Counts(1, samples=self._samples if prompt + completion else 0)
        counts.prompt_tokens, counts.completion_tokens = prompt, completion
        counts.estimated_tokens = counts.tokens if self.estimated else 0
        if self._price:
            counts.cost = counts.cost_full = self._price.of(prompt, completion)
        self.counts, self._billed = counts, True

    def cut_off(self) -> None:
        """Bill what was sent for a client that hung up before there was a reply."""
        if self.sent and not self._billed:
            self._bill(UsageReader())

    def _money(self) -> dict[str, float]:
        return {"cost": self.counts.cost, "cost_full": self.counts.cost_full} if self._price and self._billed else {}

    def told(self) -> dict[str, float]:
        """What is said of it in a `suffice` object."""
        return {name: round(value, 9) for name, value in self._money().items()}

    def headers(self) -> dict[str, str]:
        """The same as headers."""
        return {f"x-suffice-{name.replace('_', '-')}": f"{value:.8f}" for name, value in self._money().items()}

    def line(self) -> dict[str, Any]:
        """What the log says of it."""
        if not self.wanted or not self._billed:
            return {}
        tokens = {"prompt_tokens": self.counts.prompt_tokens, "tokens": self.counts.completion_tokens}
        return tokens | ({"usage_estimated": True} if self.estimated else {}) | self.told()

    def measure(self) -> None:
        """Tell Prometheus."""
        if self._price and self._billed:
            metrics.COST.inc(self.counts.cost)
            metrics.COST_FULL.inc(self.counts.cost_full)
        if self.key:
            name = self.key.name
            metrics.KEY_REQUESTS.labels(name).inc(self.counts.requests)
            metrics.KEY_SAMPLES.labels(name).inc(self.counts.samples)
            metrics.KEY_TOKENS.labels(name, "prompt").inc(self.counts.prompt_tokens)
            metrics.KEY_TOKENS.labels(name, "completion").inc(self.counts.completion_tokens)
            metrics.KEY_COST.labels(name).inc(self.counts.cost)


def bill_of(request: Request) -> Bill:
    """The bill that was begun when the request came in."""
    bill: Bill = request.state.bill
    return bill


def deployment_of(path: str) -> str | None:
    """The model that a path names, as Azure's do.

    >>> deployment_of("/openai/deployments/gpt-4o/chat/completions")
    'gpt-4o'
    """
    named = re.search(r"/deployments/([^/?]+)/", path)
    return named[1] if named else None


_SAID = ("messages", "input", "prompt", "system", "instructions")
_NOT_SAID = {"data", "url", "image_url", "file_data", "id", "type", "role"}


def _length(body: Mapping[str, Any]) -> int:
    """How many characters of text a request says."""
    length = 0
    waiting = [body[name] for name in _SAID if name in body]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            length += len(one)
        elif isinstance(one, list):
            waiting += one
        elif isinstance(one, dict):
            waiting += [value for name, value in one.items() if name not in _NOT_SAID]
    return length
