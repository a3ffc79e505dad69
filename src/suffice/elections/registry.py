"""From names to elections: `NAME`, `NAME:key=value,key=value` or `file:PATH`, the same string everywhere."""

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from suffice.elections.election import Election
from suffice.errors import OptionError
from suffice.registry import Registry

E = TypeVar("E", bound=type[Election])


def _adopt(registered: Any) -> Callable[..., Election]:
    if isinstance(registered, type) and issubclass(registered, Election) and not inspect.isabstract(registered):
        return registered
    raise ValueError("must be a class of Election with a weights method")


registry = Registry("election", "suffice.elections", OptionError, _adopt)


def register_election(name: str) -> Callable[[E], E]:
    """Make an election usable by name; its parameters are the arguments of its constructor."""
    return registry.register(name)


def election_names() -> list[str]:
    """The names that can be asked for, those of other packages among them, sorted.

    >>> {"majority", "weighted", "deepconf", "cisc"} <= set(election_names())
    True
    """
    return registry.names()


def get_election(spec: str | Election) -> Election:
    """The election that a string describes; an election is returned as it is.

    >>> get_election("weighted:signal=length,strength=-0.4")
    Weighted(signal='length', strength=-0.4)
    """
    return spec if isinstance(spec, Election) else registry.get(spec)
