"""The file of keys: who may ask, by name and with limits; the keys themselves are kept hashed."""

import hashlib
import json
import re
import secrets
import tomllib
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields
from math import inf
from pathlib import Path
from typing import Any

from suffice.errors import OptionError
from suffice.gateway.policies import ClientPolicy
from suffice.paths import alone_in, write_whole
from suffice.settings import setting

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Limits:
    """What one key may take; None where there is no limit.

    >>> Limits(requests_per_minute=60).given
    {'requests_per_minute': 60}
    """

    requests_per_minute: int | None = setting(None, "The most requests in 60 seconds.")
    tokens_per_day: int | None = setting(None, "The most tokens, of prompts and completions, in a day (UTC).")
    max_samples: int | None = setting(None, "The most samples of a request.")
    money_per_month: float | None = setting(None, "The most money in a month (UTC), at the gateway's prices.")

    def __post_init__(self) -> None:
        for name, value in self.given.items():
            fits = isinstance(value, int | float if name == "money_per_month" else int)
            if not fits or isinstance(value, bool) or not 0 < value < inf:
                kind = "a number above 0" if name == "money_per_month" else "a whole number, at least 1"
                raise OptionError(f"must be {kind}, not {value!r}", name)

    @property
    def given(self) -> dict[str, Any]:
        """Those that are set."""
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True)
class Key:
    """A client, known by a key of which the file has the digest only."""

    name: str
    sha256: str
    limits: Limits = Limits()
    operator: bool = False
    """Whether it may see the usage of all."""
    policy: ClientPolicy = field(default_factory=ClientPolicy)
    """What holds for its requests otherwise than for all."""


_POLICY = ("vote", "budget", "patience", "controller")
"""What of a policy a key's own table may say: `max_samples` is among its limits."""


def digest_of(key: str) -> str:
    """What the file has of a key. It is random and long, so that a plain hash can't be searched.

    >>> len(digest_of("sk-suffice-x"))
    64
    """
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()


def read_keys(path: Path) -> tuple[Key, ...]:
    """The keys of a file."""
    try:
        return _keys_in(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise OptionError(f"{path}: it can't be read: {reason}") from None
    except OptionError as error:
        raise OptionError(f"{path}: {error}") from None


def _keys_in(text: str) -> tuple[Key, ...]:
    try:
        read = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise OptionError(f"not TOML: {error}") from None
    tables = read.pop("keys", {})
    if read:
        raise OptionError(f'there is no "{next(iter(read))}" in a file of keys; write [keys.NAME]')
    if not isinstance(tables, dict) or not all(isinstance(table, dict) for table in tables.values()):
        raise OptionError("each key is a table: [keys.NAME]")
    keys = tuple(_key(name, table) for name, table in tables.items())
    taken: dict[str, str] = {}
    for key in keys:
        if key.sha256 in taken:
            raise OptionError(f"keys.{key.name} has the same sha256 as keys.{taken[key.sha256]}")
        taken[key.sha256] = key.name
    return keys


def _key(name: str, table: dict[str, Any]) -> Key:
    check_name(name)
    limits = {one.name for one in fields(Limits)}
    for given in table:
        if given not in {"sha256", "operator", *limits, *_POLICY}:
            there_are = ", ".join(["sha256", *(one.name for one in fields(Limits)), "operator", *_POLICY])
            raise OptionError(f'keys.{name}: there is no "{given}"; there are {there_are}')
    digest, operator = table.get("sha256"), table.get("operator", False)
    if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
        raise OptionError(f"keys.{name}: sha256 must be 64 hexadecimal digits, as suffice keys add writes them")
    if not isinstance(operator, bool):
        raise OptionError(f"keys.{name}: operator must be true or false, not {operator!r}")
    try:
        policy = ClientPolicy(name, **{one: table[one] for one in table if one in _POLICY})
        return Key(name, digest, Limits(**{one: table[one] for one in table if one in limits}), operator, policy)
    except OptionError as error:
        raise OptionError(f"keys.{name}: {error}") from None


def check_name(name: str) -> None:
    """Refuse a name that would be odd in a log, or as a label of a metric."""
    if not _NAME.fullmatch(name):
        raise OptionError(f'a key\'s name is of letters, digits and . _ @ -, 64 at most, not "{name[:100]}"')


def add_key(path: Path, name: str, limits: Limits, *, operator: bool = False) -> str:
    """Add a key to the file, which is made where there is none; the key, which is not to be had again."""
    check_name(name)
    key = f"sk-suffice-{secrets.token_urlsafe(32)}"
    entry = {"sha256": digest_of(key), **limits.given, **({"operator": True} if operator else {})}
    # JSON's strings, numbers and truths are TOML's too.
    lines = [f"[keys.{_quoted(name)}]", *(f"{one} = {json.dumps(value)}" for one, value in entry.items())]

    def added(text: str) -> str:
        if name in {one.name for one in _keys_in(text)}:
            raise OptionError(f'there is a key "{name}" already; remove it first')
        gap = "" if not text or text.endswith("\n\n") else "\n" if text.endswith("\n") else "\n\n"
        return text + gap + "\n".join(lines) + "\n"

    _rewrite(path, added, there=False)
    return key


def remove_key(path: Path, name: str) -> None:
    """Take a key out of the file; all else stays as it was written."""

    def removed(text: str) -> str:
        before = {one.name: one for one in _keys_in(text)}
        if name not in before:
            raise OptionError(f'there is no key "{name}"')
        rest = _without_table(text, name)
        before.pop(name)
        try:
            kept = {one.name: one for one in _keys_in(rest)}
        except OptionError:
            kept = {}
        if kept != before:
            raise OptionError(f'"{name}" is not in a table of its own: take it out by hand')
        return rest or "# There is no key here.\n"  # an empty file is one that somebody is about to write

    _rewrite(path, removed, there=True)


def _quoted(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name)


def _without_table(text: str, name: str) -> str:
    """The text without the table's lines; comments right above the next table are that one's."""
    header = re.compile(rf"""\[\s*keys\s*\.\s*(["']?){re.escape(name)}\1\s*\]\s*(#.*)?""")
    lines = text.splitlines(keepends=True)
    first = next((place for place, line in enumerate(lines) if header.fullmatch(line.strip())), len(lines))
    last = next((place for place in range(first + 1, len(lines)) if lines[place].lstrip().startswith("[")), len(lines))
    if last < len(lines):
        while last > first + 1 and lines[last - 1].lstrip().startswith("#"):
            last -= 1
    return "".join([*lines[:first], *lines[last:]])


def _rewrite(path: Path, change: Callable[[str], str], *, there: bool) -> None:
    """Change the file at once or not at all, one after another, for its owner's eyes only."""
    path = path.resolve()
    try:
        with alone_in(path.parent):
            text = path.read_text(encoding="utf-8") if there or path.exists() else ""
            try:
                changed = change(text)
            except OptionError as error:
                raise OptionError(f"{path}: {error}") from None
            write_whole(path, changed.encode(), 0o600)
    except UnicodeDecodeError:
        raise OptionError(f"{path}: it can't be read: it is not UTF-8") from None
    except OSError as error:
        raise OptionError(f"{path}: it can't be changed: {error.strerror}") from None
