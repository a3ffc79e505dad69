"""Who may ask, and what each request is charged to: a layer around handlers, which know nothing of it.

The bill of a request says whose it is, the tokens it took by what the upstream says, and what they cost.
"""

import asyncio
import hashlib
import hmac
import json
import math
import re
import signal
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any

from starlette.responses import Response

from suffice.gateway.accounts.keys import Key
from suffice.gateway.accounts.prices import Price, Prices
from suffice.gateway.accounts.store import Counts, UsageStore
from suffice.gateway.accounts.usage import Usage
from suffice.gateway.door import Account, Exchange, Handler, Line
from suffice.gateway.errors import GatewayError
from suffice.gateway.operations import metrics
from suffice.gateway.operations.shared import SharedCounters
from suffice.gateway.settings import Settings
from suffice.live import Outcome
from suffice.live.dialects.base import as_json
from suffice.live.outcome import SETTLED

_ADDED = ("cache_creation_input_tokens", "cache_read_input_tokens")
"""What Anthropic counts beside the tokens of the input, and others among them."""

_TOLD = ("prompt_tokens", "completion_tokens", "input_tokens", "output_tokens", *_ADDED)
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


class Bill(Account):
    """One request's bill."""

    def __init__(self, key: Key | None, prices: Prices | None = None) -> None:
        self.key = key
        self.reads_replies = bool(key or prices)
        self.name, self.policy = (key.name, key.policy) if key else (None, None)
        self.max_samples = key.limits.max_samples if key else None
        self.operator = bool(key and key.operator)
        self.sees_all = key is None or key.operator
        self.counts = Counts()
        self._estimated = False
        self._sent = False
        """Whether the upstream was asked for it."""
        self._prices = prices
        self._price: Price | None = None
        self._samples = 1
        self._prompt = 0
        """What is sent, in tokens, where nobody counts them."""
        self._billed = False

    def expect(self, model: str | None, body: Mapping[str, Any], samples: int) -> None:
        """Note what is asked for; refused where it would cost nobody knows what, and the key's money is limited."""
        self._price = self._prices.of(model) if self._prices else None
        if self._price is None and self.key and self.key.limits.money_per_month:
            shown = "it" if model is None else f'"{model[:100]}"'
            message = f"{shown} has no price here, and what this key may spend is limited"
            raise GatewayError(403, message, kind="permission_error", param="model", code="no_price")
        self._samples = samples
        self._prompt = -(-_length(body) // _CHARACTERS)

    def send(self, *, generates: bool = True) -> None:
        """Note that the upstream is being asked, and whether it is for tokens."""
        self._sent = True
        self._prompt = self._prompt if generates else 0

    def charge_vote(self, outcome: Outcome, at_once: int) -> None:
        """Bill a vote; the full budget would take requests of so many draws, each of which bills its prompt."""
        over_one = outcome.over_one
        counts = Counts(
            requests=1,
            votes=1,
            samples=outcome.samples,
            over_one_samples=over_one.samples,
            samples_saved=outcome.samples_saved,
            prompt_tokens=outcome.prompt_tokens,
            completion_tokens=outcome.completion_tokens,
            over_one_tokens=over_one.tokens,
            over_one_prompt_tokens=over_one.prompt_tokens,
            tokens_saved=outcome.tokens_saved,
        )
        self._estimated = outcome.usage_estimated
        if self._estimated:
            guessed = sum(one.tokens or 0 for one in outcome.responses if one.estimated)
            counts.estimated_tokens = outcome.cancelled_tokens + guessed
        if self._price:
            counts.cost = counts.cost_full = self._price.of(outcome.prompt_tokens, outcome.completion_tokens)
            counts.cost_over_one = self._price.of(over_one.prompt_tokens, over_one.tokens)
            if outcome.named and outcome.stop_reason in SETTLED:
                prompt = max((one.prompt_tokens for one in outcome.responses), default=0)
                requests = math.ceil(outcome.budget / max(at_once, 1))
                counts.cost_full = self._price.of(prompt * requests, outcome.completion_tokens + outcome.tokens_saved)
        self.counts, self._billed = counts, True

    def charge_reply(self, body: bytes) -> None:
        """Bill a reply that is here."""
        reader = UsageReader()
        reader.feed(body)
        self._bill(reader)

    async def charging(self, pieces: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
        """The pieces of a reply as they are; it is billed when they have passed."""
        reader = UsageReader()
        try:
            async with aclosing(pieces):
                async for piece in pieces:
                    reader.feed(piece)
                    yield piece
        finally:
            self._bill(reader)

    def _bill(self, reader: UsageReader) -> None:
        tokens = reader.tokens
        if tokens is None and self._prompt:  # nobody counts: an event of a stream is about a token
            said = max(1, reader.events - 3) if reader.events else reader.size // _CHARACTERS
            tokens, self._estimated = (self._prompt, said), True
        prompt, completion = tokens or (0, 0)
        counts = Counts(1, samples=self._samples if prompt + completion else 0)
        counts.prompt_tokens, counts.completion_tokens = prompt, completion
        counts.estimated_tokens = counts.tokens if self._estimated else 0
        if self._price:
            counts.cost = counts.cost_full = self._price.of(prompt, completion)
        self.counts, self._billed = counts, True

    def cut_off(self) -> None:
        """Bill what was sent for a client that hung up before there was a reply."""
        if self._sent and not self._billed:
            self._bill(UsageReader())

    def costs(self) -> dict[str, float]:
        """What the request cost, what of that over one response, and the full budget, where there is a price."""
        if not (self._price and self._billed):
            return {}
        names = ("cost", "cost_over_one", "cost_full")
        return {name: round(getattr(self.counts, name), 9) for name in names}

    def line(self) -> dict[str, Any]:
        """What the log says of it."""
        if not self._billed:
            return {}
        taken = {"samples": self.counts.samples} if self.counts.samples else {}
        taken |= {"prompt_tokens": self.counts.prompt_tokens, "tokens": self.counts.completion_tokens}
        return taken | ({"usage_estimated": True} if self._estimated else {}) | self.costs()

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
            metrics.KEY_OVER_ONE_TOKENS.labels(name).inc(self.counts.over_one_tokens)
            metrics.KEY_COST.labels(name).inc(self.counts.cost)


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


class Accounts:
    """The keys that are asked for, the prices, and the usage of each key."""

    def __init__(self, settings: Settings, counters: SharedCounters | None, store: UsageStore | None = None) -> None:
        self._unnamed = settings.unnamed_keys()
        self._prices = Prices(settings.prices) if settings.prices else None
        self._usage = Usage(settings, counters, store) if settings.keys else None
        self.asks_for_key = bool(self._unnamed or settings.keys)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Know what was counted before, and keep what is counted from now on; a SIGHUP brings new keys."""
        usage = self._usage
        if usage is None:
            yield
            return
        try:
            await asyncio.to_thread(usage.start)
            with suppress(AttributeError, NotImplementedError, RuntimeError, ValueError):  # Windows, or a thread
                asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, usage.reload)
            yield
        finally:
            await asyncio.to_thread(usage.stop)

    def around(self, handler: Handler) -> Handler:
        """The same handler for those who may ask, each request charged to its account."""

        async def handle(exchange: Exchange) -> Response:
            self._admit(exchange)
            return await handler(exchange)

        return handle

    def _admit(self, exchange: Exchange) -> None:
        """Refuse whoever has no key, or is over its limits."""
        request = exchange.request
        key = self._usage.who(given(request.headers)) if self._usage else None
        if self.asks_for_key and not key and not presented(request.headers, self._unnamed):
            message = "the key is missing or wrong: send it as Authorization: Bearer KEY, or as x-api-key"
            raise GatewayError(401, message, code="invalid_api_key", headers={"www-authenticate": "Bearer"})
        bill = Bill(key, self._prices)
        exchange.account = bill
        exchange.caller = key.name if key else _mark(given(request.headers)) if self.asks_for_key else ""
        exchange.at_end.append(lambda: self._charge(bill, exchange.line))
        if key and self._usage:
            exchange.line["key"] = key.name
            if not request.url.path.startswith("/v1/suffice/"):
                bill.counts = Counts(refused=1)  # unless it is admitted
                self._usage.admit(key, spends=request.method == "POST")
                bill.counts = Counts(requests=1)

    def _charge(self, bill: Bill, line: Line) -> None:
        """Put the request's bill into the log, the figures, and the usage of its key."""
        if line["kind"] == "cancelled":
            bill.cut_off()
        line |= bill.line()
        if bill.key and self._usage:
            self._usage.add(bill.key.name, bill.counts)
        bill.measure()

    async def tell_usage(self, exchange: Exchange) -> Response:
        """The usage of all keys, for an operator."""
        if self._usage is None:
            raise GatewayError(404, "there are no keys with names here, whose usage could be told", code="not_found")
        if not exchange.account.operator:
            raise GatewayError(403, "the usage of keys is told to an operator's key only", kind="permission_error")
        return Response(as_json(await asyncio.to_thread(self._usage.summary)), media_type="application/json")


def _mark(keys: list[str]) -> str:
    """What tells a key without a name from others."""
    return hashlib.sha256("\n".join(keys).encode("utf-8", "surrogateescape")).hexdigest()[:32]


_KEY_HEADERS = ("x-api-key", "api-key")
"""Where Anthropic's clients and Azure's put their key; all others say Authorization: Bearer."""


def given(headers: Mapping[str, str]) -> list[str]:
    """What a request gives as its key, wherever it does."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return [token.strip() if scheme.lower() == "bearer" else "", *(headers.get(name, "") for name in _KEY_HEADERS)]


def presented(headers: Mapping[str, str], keys: tuple[bytes, ...]) -> bool:
    """Whether a request has one of the keys; in the same time whichever it is, and whether it is."""
    digests = [hashlib.sha256(one.encode("utf-8", "surrogateescape")).digest() for one in given(headers)]
    matches = [hmac.compare_digest(digest, key) for digest in digests for key in keys]
    return any(matches)
