"""Policies: what holds for some keys and models otherwise than for all; of those that fit, the most specific wins."""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from pydantic import Field

from suffice.errors import OptionError
from suffice.options import Options


class ClientPolicy(Options):
    """What a key, a model or both of them change; None where it says nothing. Names may be patterns, as `qwen*`.

    >>> ClientPolicy(model="qwen*", budget=8).fits("ann", "qwen3"), ClientPolicy(key="bob").fits("ann", "qwen3")
    (True, False)
    """

    key: str | None = None
    model: str | None = None
    vote: str | None = None
    max_samples: int | None = Field(default=None, ge=1)
    budget: int | None = Field(default=None, ge=1)
    patience: float | None = Field(default=None, ge=0)
    controller: str | None = None

    @property
    def changes(self) -> dict[str, Any]:
        """The settings that it names."""
        return {name: value for name, value in self.given.items() if value is not None and name not in _FOR}

    def fits(self, key: str | None, model: str | None) -> bool:
        """Whether it is for this key and this model."""
        wanted = ((self.key, key), (self.model, model))
        return all(pattern is None or fnmatchcase(name or "", pattern) for pattern, name in wanted)

    @property
    def specificity(self) -> tuple[int, ...]:
        """Rises from a model to a key to both, from patterns to names, and from short patterns to long ones."""
        named = [pattern for pattern in (self.key, self.model) if pattern is not None]
        exact = [not set(pattern) & set("*?[") for pattern in named]
        return len(named), self.key is not None, *map(int, exact), *map(len, named)


_FOR = ("key", "model")


def read_policies(given: Any) -> tuple[ClientPolicy, ...]:
    """Read policies that are tables.

    >>> read_policies([{"model": "qwen*", "vote": "shadow"}])[0].changes
    {'vote': 'shadow'}
    """
    if not isinstance(given, Sequence) or not all(isinstance(one, Mapping | ClientPolicy) for one in given):
        raise OptionError("must be tables: [[policy]]", "policy")
    return tuple(one if isinstance(one, ClientPolicy) else _policy(one) for one in given)


def _policy(table: Mapping[str, Any]) -> ClientPolicy:
    if not any(isinstance(table.get(name), str) for name in _FOR):
        raise OptionError("must name a key, a model, or both", "policy")
    try:
        return ClientPolicy(**table)
    except OptionError as error:
        raise OptionError(f"can't be {dict(table)}: {error}", "policy") from None
