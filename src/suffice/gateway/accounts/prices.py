"""What tokens cost, by model."""

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from math import inf
from typing import Any

from suffice.errors import OptionError


@dataclass(frozen=True)
class Price:
    """What a million tokens cost, those of prompts and those that are generated.

    >>> Price(0.15, 0.60).of(1000, 500)
    0.00045
    """

    input: float
    output: float

    def of(self, prompt_tokens: float, completion_tokens: float) -> float:
        """What so many cost."""
        return (self.input * prompt_tokens + self.output * completion_tokens) / 1e6


class Prices:
    """A price for each model: by its name, else by the longest pattern that fits; `*` fits all.

    >>> prices = Prices({"gpt-4o*": {"input": 2.5, "output": 10}, "gpt-4o-mini": {"input": 0.15, "output": 0.6}})
    >>> prices.of("gpt-4o-mini"), prices.of("gpt-4o-2026"), prices.of("qwen")
    (Price(input=0.15, output=0.6), Price(input=2.5, output=10), None)
    """

    def __init__(self, table: Mapping[str, Mapping[str, float]]) -> None:
        self._by_name = {name: Price(**price) for name, price in table.items()}
        self._patterns = sorted((name for name in table if set(name) & set("*?[")), key=len, reverse=True)
        self.of = lru_cache(maxsize=1000)(self._of)

    def _of(self, model: str | None) -> Price | None:
        name = model or ""
        if name in self._by_name:
            return self._by_name[name]
        fitting = next((pattern for pattern in self._patterns if fnmatchcase(name, pattern)), None)
        return self._by_name[fitting] if fitting is not None else None


def read_prices(given: Any) -> dict[str, dict[str, float]]:
    """Prices as a table.

    >>> read_prices({"gpt-4o*": {"input": 2.5, "output": 10}})
    {'gpt-4o*': {'input': 2.5, 'output': 10}}
    """
    if not isinstance(given, Mapping):
        raise OptionError(f"must be a table of models, not {given!r}", "prices")
    return {name: _checked(name, price) for name, price in given.items()}


def _checked(name: str, price: Any) -> dict[str, float]:
    if not isinstance(price, Mapping) or set(price) != {"input", "output"}:
        raise OptionError(f"of {name} must be an input and an output, for a million tokens each", "prices")
    for kind, value in price.items():
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < inf:
            raise OptionError(f"of {name}: {kind} must be a number, 0 or more, not {value!r}", "prices")
    return dict(price)
