"""Servers as they are named: an address, and what may be said of it."""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from pydantic import Field

from suffice.errors import OptionError
from suffice.options import Options, read_texts

PLACEHOLDER_KEY = "none"  # sent where there is no key: local servers need none, and clients insist on one
KEY_ENV = "OPENAI_API_KEY"


class Target(Options):
    """A server: its address, its part of the questions, the variable with its key, and its models."""

    url: str = ""
    weight: float = Field(default=1.0, gt=0, lt=1e6)
    key_env: str = KEY_ENV
    models: Sequence[str] = ()

    @property
    def key(self) -> str:
        key = os.environ.get(self.key_env, "").strip()
        if not key.isascii():
            raise OptionError(f"{self.key_env} has characters in it that no key has; set it again")
        if not key and self.key_env != KEY_ENV:
            raise OptionError(f"{self.key_env}: the variable is not set; put the server's key into it")
        return key or PLACEHOLDER_KEY

    def client_settings(self, argument: str) -> dict[str, Any]:
        """What a client of it is made with; OPENAI_BASE_URL is where it is unless it has an address."""
        return {"api_key": self.key, "base_url": whole_url(self.url, argument) if self.url else None}


def read_targets(given: str | Iterable[str | Mapping[str, Any] | Target], argument: str) -> tuple[Target, ...]:
    """Read servers, each a Target, a table, or a text: the address, and other fields after it.

    >>> read_targets("http://a/v1 weight=2 key_env=KEY_A models=small,large", "upstream")[0].models
    ['small', 'large']
    """
    if isinstance(given, Mapping | Target) or not isinstance(given, Iterable):
        raise OptionError(f"must be a server's address, or a list of them, not {given!r}"[:200], argument)
    return tuple(_read(one, argument) for one in ([given] if isinstance(given, str) else given) if one)


def _read(given: str | Mapping[str, Any] | Target, argument: str) -> Target:
    if isinstance(given, Target):
        return given
    if isinstance(given, str):
        url, *said = given.split()
        given = {"url": url} | dict(one.partition("=")[::2] for one in said)
    if not isinstance(given, Mapping) or not given.get("url"):
        raise OptionError(f"must be an address, or a table with one (url), not {given!r}", argument)
    try:
        return Target(**read_texts(Target, given))
    except OptionError as error:
        raise OptionError(f"is wrong: {error}", argument) from None


def whole_url(base_url: str, argument: str) -> str:
    """Return an address with the path that nearly all have."""
    try:
        parts = urlsplit(base_url)
        known = parts.scheme in ("http", "https") and bool(parts.hostname)
        _ = parts.port
    except ValueError:
        known = False
    if not known:
        shown = base_url.rpartition("@")[2]  # what may stand before it is a password
        raise OptionError(f"{shown}: it must be like http://localhost:8000", argument)
    return base_url if parts.path.strip("/") else f"{base_url.rstrip('/')}/v1"
