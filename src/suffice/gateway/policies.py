"""Policies: what holds for some keys and models otherwise than for all; of those that fit, the most specific wins."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from fnmatch import fnmatchcase
from typing import Any

from suffice.errors import OptionError, whole_number


@dataclass(frozen=True)
class ClientPolicy:
    """What a key, a model or both of them change; None where it says nothing. Names may be patterns, as `qwen*`.

    >>> ClientPolicy(model="qwen*", budget=8).fits("ann", "qwen3"), ClientPolicy(key="bob").fits("ann", "qwen3")
    (True, False)
    """

    key: str | None = None
    model: str | None = None
    vote: str | None = None
    max_samples: int | None = None
    budget: int | None = None
    patience: float | None = None
    controller: str | None = None

    def __post_init__(self) -> None:
        for name, value in self.given.items():
            if name in ("max_samples", "budget"):
                whole_number(name, value)
            elif name == "patience":
                if isinstance(value, bool) or not isinstance(value, int | float):
                    raise OptionError(f"must be a number, 0 or more, not {value!r}", name)
            elif not isinstance(value, str):
                raise OptionError(f"must be text, not {value!r}", name)

    @property
    def given(self) -> dict[str, Any]:
        """What it says."""
        return {name: value for name, value in asdict(self).items() if value is not None and name not in _FOR}

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
    """Policies as tables.

    >>> read_policies([{"model": "qwen*", "vote": "shadow"}])[0].given
    {'vote': 'shadow'}
    """
    if not isinstance(given, Sequence) or isinstance(given, str):
        raise OptionError("must be tables: [[policy]]", "policy")
    return tuple(one if isinstance(one, ClientPolicy) else _policy(one) for one in given)


def _policy(table: Any) -> ClientPolicy:
    names = [field.name for field in fields(ClientPolicy)]
    if not isinstance(table, Mapping):
        raise OptionError("must be tables: [[policy]]", "policy")
    for name in table:
        if name not in names:
            raise OptionError(f'has no "{name}"; there are {", ".join(names)}', "policy")
    if not any(isinstance(table.get(name), str) for name in _FOR):
        raise OptionError("must name a key, a model, or both", "policy")
    return ClientPolicy(**table)
