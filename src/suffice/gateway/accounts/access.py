"""Who may ask, and what each request is charged to: a layer around handlers, which know nothing of it."""

import asyncio
import hmac
import math
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any

from starlette.responses import Response

from suffice.gateway.accounts.keys import Key, digest_of
from suffice.gateway.accounts.prices import Price, Prices
from suffice.gateway.accounts.store import Counts, UsageStore
from suffice.gateway.accounts.usage import Usage
from suffice.gateway.door import Exchange, Handler, Line
from suffice.gateway.errors import GatewayError
from suffice.gateway.operations import metrics
from suffice.gateway.operations.costs import Account
from suffice.gateway.operations.shared import SharedCounters
from suffice.gateway.settings import Settings
from suffice.live import Outcome
from suffice.live.dialects.base import as_json
from suffice.live.outcome import SETTLED


class Bill(Account):
    """One request's bill: whose it is, the tokens it took by what the upstream says, and what they cost."""

    reads_replies = True

    def __init__(self, key: Key | None, prices: Prices | None = None) -> None:
        super().__init__()
        self.key = key
        self.name, self.policy = (key.name, key.policy) if key else (None, None)
        self.max_samples = key.limits.max_samples if key else None
        self.operator = bool(key and key.operator)
        self.sees_all = key is None or key.operator
        self.counts = Counts()
        """What is counted of it unless it is charged."""
        self.estimated_tokens = 0
        self._costs: tuple[float, ...] = ()
        self._prices = prices
        self._price: Price | None = None

    def expect(self, model: str | None, body: Mapping[str, Any], samples: int) -> None:
        """Note what is asked for; refused where it would cost nobody knows what, and the key's money is limited."""
        super().expect(model, body, samples)
        self._price = self._prices.of(model) if self._prices else None
        if self._price is None and self.key and self.key.limits.money_per_month:
            shown = "it" if model is None else f'"{model[:100]}"'
            message = f"{shown} has no price here, and what this key may spend is limited"
            raise GatewayError(403, message, kind="permission_error", param="model", code="no_price")

    def charge_vote(self, outcome: Outcome, at_once: int) -> None:
        """Bill a vote; the full budget would take requests of so many draws, each of which bills its prompt."""
        super().charge_vote(outcome, at_once)
        guessed = sum(one.tokens or 0 for one in outcome.responses if one.estimated)
        self.estimated_tokens = outcome.cancelled_tokens + guessed
        if self._price:
            over_one, cost = outcome.over_one, self._price.of(outcome.prompt_tokens, outcome.completion_tokens)
            full = cost
            if outcome.named and outcome.stop_reason in SETTLED:
                prompt = max((one.prompt_tokens for one in outcome.responses), default=0)
                requests = math.ceil(outcome.budget / max(at_once, 1))
                full = self._price.of(prompt * requests, outcome.completion_tokens + outcome.tokens_saved)
            self._costs = cost, self._price.of(over_one.prompt_tokens, over_one.tokens), full

    def charge_tokens(self, samples: int, prompt: int, completion: int, *, estimated: bool) -> None:
        """Bill a reply that took so many."""
        super().charge_tokens(samples, prompt, completion, estimated=estimated)
        self.estimated_tokens = prompt + completion if estimated else 0
        if self._price:
            cost = self._price.of(prompt, completion)
            self._costs = cost, 0.0, cost

    def costs(self) -> dict[str, float]:
        """What the request cost, what of that over one response, and the full budget, where there is a price."""
        names = ("cost", "cost_over_one", "cost_full")
        return {name: round(cost, 9) for name, cost in zip(names, self._costs, strict=False)}


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
        """The same handler for those who may ask, each request charged to its account, where there are any."""
        if not (self.asks_for_key or self._prices):
            return handler

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
        if self.asks_for_key:
            exchange.caller = key.name if key else _mark(given(request.headers))
        exchange.at_end.append(lambda: self._charge(bill, exchange.line))
        if key and self._usage:
            exchange.line["key"] = key.name
            if not request.url.path.startswith("/v1/suffice/"):
                bill.counts = Counts(refused=1)  # unless it is admitted
                self._usage.admit(key, spends=request.method == "POST")
                bill.counts = Counts(requests=1)

    def _charge(self, bill: Bill, line: Line) -> None:
        """Put the request's bill into the figures, and into the usage of its key."""
        counts = bill.counts
        if bill.charged:
            counts = replace(Counts.of(line), estimated_tokens=bill.estimated_tokens)
        metrics.COST.inc(counts.cost)
        metrics.COST_FULL.inc(counts.cost_full)
        if bill.key and self._usage:
            name = bill.key.name
            self._usage.add(name, counts)
            metrics.KEY_REQUESTS.labels(name).inc(counts.requests)
            metrics.KEY_SAMPLES.labels(name).inc(counts.samples)
            metrics.KEY_TOKENS.labels(name, "prompt").inc(counts.prompt_tokens)
            metrics.KEY_TOKENS.labels(name, "completion").inc(counts.completion_tokens)
            metrics.KEY_OVER_ONE_TOKENS.labels(name).inc(counts.over_one_tokens)
            metrics.KEY_COST.labels(name).inc(counts.cost)

    async def tell_usage(self, exchange: Exchange) -> Response:
        """The usage of all keys, for an operator."""
        if self._usage is None:
            raise GatewayError(404, "there are no keys with names here, whose usage could be told", code="not_found")
        if not exchange.account.operator:
            raise GatewayError(403, "the usage of keys is told to an operator's key only", kind="permission_error")
        return Response(as_json(await asyncio.to_thread(self._usage.summary)), media_type="application/json")


def _mark(keys: list[str]) -> str:
    """What tells a key without a name from others."""
    return digest_of("\n".join(keys))[:32]


_KEY_HEADERS = ("x-api-key", "api-key")
"""Where Anthropic's clients and Azure's put their key; all others say Authorization: Bearer."""


def given(headers: Mapping[str, str]) -> list[str]:
    """What a request gives as its key, wherever it does."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return [token.strip() if scheme.lower() == "bearer" else "", *(headers.get(name, "") for name in _KEY_HEADERS)]


def presented(headers: Mapping[str, str], keys: tuple[str, ...]) -> bool:
    """Whether a request has one of the keys; in the same time whichever it is, and whether it is."""
    matches = [hmac.compare_digest(digest_of(one), key) for one in given(headers) for key in keys]
    return any(matches)
