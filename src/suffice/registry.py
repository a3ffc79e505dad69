"""Things that are chosen by name: `NAME` or `NAME:key=value,key=value`, the same string everywhere.

What is registered here comes first; what other packages offer as entry points is found when it is asked for.
"""

import inspect
import re
from collections.abc import Callable
from difflib import get_close_matches
from functools import cached_property
from importlib.metadata import EntryPoints, entry_points
from typing import Any, Generic, TypeVar

from suffice.errors import SufficeError
from suffice.settings import read_arguments

T = TypeVar("T")
R = TypeVar("R")


class Registry(Generic[T]):
    """Makers of one kind of thing by name; their parameters are read by the types in their signatures.

    `adopt` turns what is registered into its maker, and refuses by a ValueError what is no such thing.
    """

    def __init__(
        self, kind: str, group: str, error: type[SufficeError], adopt: Callable[[Any], Callable[..., T]] | None = None
    ) -> None:
        self.kind = kind
        self.group = group
        self._error = error
        self._adopt = adopt or (lambda registered: registered)
        self._makers: dict[str, Callable[..., T]] = {}
        self._homes: dict[str, tuple[str, str]] = {}
        """Where what is registered was defined: its module, and its name there."""
        self._rests: dict[str, str] = {}

    def register(self, name: str, rest: str = "") -> Callable[[R], R]:
        """Make a class or function usable by name.

        Where `rest` names it, all that follows `NAME:` is one text, whatever is in it, and the only parameter of what
        is registered, which is then the maker itself.
        """
        some = f"{'an' if self.kind[0] in 'aeiou' else 'a'} {self.kind}"
        if not re.fullmatch(r"[a-z][a-z0-9_-]*", name):
            raise self._error(f'"{name}" can\'t name {some}: use lower-case letters, digits, "-" and "_"')

        def add(registered: R) -> R:
            try:
                make: Any = registered if rest else self._adopt(registered)
            except ValueError as error:
                raise self._error(f'"{name}" {error}') from None
            kind: Any = registered if hasattr(registered, "__qualname__") else type(registered)
            home = kind.__module__, kind.__qualname__
            if self._homes.setdefault(name, home) != home:  # a module that is loaded again may come again
                where = self._homes[name][0]
                raise self._error(f'there is already {some} "{name}", in {where}: choose another name')
            self._makers[name] = make
            if rest:
                self._rests[name] = rest
            return registered

        return add

    def names(self) -> list[str]:
        """What can be asked for by name, sorted; packages are not loaded for it."""
        return sorted((self._makers.keys() | self._plugins.names) - self._rests.keys())

    def forms(self) -> list[str]:
        """The names, and what takes a text after its name."""
        return [*self.names(), *(f"{name}:{rest}" for name, rest in self._rests.items())]

    def get(self, spec: str) -> T:
        """What a string describes, newly made."""
        name, _, settings = spec.partition(":")
        if name not in self._makers:
            self._load(name)
        make = self._makers[name]
        if rest := self._rests.get(name):
            given = [settings] if settings else []
            try:
                inspect.signature(make).bind(*given)
            except TypeError:
                raise self._error(f'{self.kind} "{spec}": {rest} must be given, as in {name}:{rest}') from None
            return make(*given)
        try:
            return make(**read_arguments(make, settings))
        except (SufficeError, TypeError, ValueError) as error:
            raise self._error(f'{self.kind} "{spec}": {error}') from None

    @cached_property
    def _plugins(self) -> EntryPoints:
        return entry_points(group=self.group)

    def _load(self, name: str) -> None:
        """Register what another package offers under this name."""
        offers = list(self._plugins.select(name=name))
        packages = " and ".join(sorted({plugin.dist.name if plugin.dist else plugin.module for plugin in offers}))
        if not offers:
            near = get_close_matches(name, self.names(), n=1)
            hint = f'; did you mean "{near[0]}"?' if near else ""
            raise self._error(f'unknown {self.kind} "{name}": there are {", ".join(self.forms())}{hint}')
        if len({plugin.value for plugin in offers}) > 1:
            raise self._error(f'the {self.kind} "{name}" is in {packages}: remove all of them but one')
        try:
            self.register(name)(offers[0].load())
        except Exception as error:
            culprit = f'the {self.kind} "{name}" of the package {packages}'
            reason = " ".join(str(error).split()) or type(error).__name__
            raise self._error(f"{culprit} can't be loaded: {reason}") from error


def classes_of(base: type, method: str) -> Callable[[Any], Any]:
    """What adopts the classes of a base that can be made, and nothing else."""

    def adopt(registered: Any) -> Any:
        if isinstance(registered, type) and issubclass(registered, base) and not inspect.isabstract(registered):
            return registered
        raise ValueError(f"must be a class of {base.__name__} with a {method} method")

    return adopt
