"""The file of keys: a name and the SHA-256 of a secret a line."""

import hashlib
import re
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from suffice.errors import OptionError
from suffice.paths import alone_in

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_DIGEST = re.compile(r"[0-9a-f]{64}")


class Key(NamedTuple):
    """The name of a client, and the SHA-256 of its secret."""

    name: str
    sha256: str


def digest_of(secret: str) -> str:
    """Return the SHA-256 of a secret. Secrets are random and long, so a plain hash is enough."""
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()


KEY_HEADERS = ("x-api-key", "api-key")
"""Headers with the key of Anthropic's and Azure's clients; others send Authorization: Bearer."""


def presented(headers: Mapping[str, str]) -> list[str]:
    """Return the secrets in a request's headers."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return [token.strip() if scheme.lower() == "bearer" else "", *(headers.get(name, "") for name in KEY_HEADERS)]


def read_keys(path: Path) -> tuple[Key, ...]:
    """Read a file of keys; empty lines and lines that begin with # are skipped.

    Raises:
        OptionError: if the file can't be read, or has a line that is no key.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise OptionError(f"{path}: it can't be read: {reason}", "keys") from None
    keys: dict[str, Key] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if len(words) != 2 or not _NAME.fullmatch(words[0]) or not _DIGEST.fullmatch(words[1]):
            wanted = "a name (letters, digits and . _ @ -, at most 64) and the SHA-256 of a secret (64 hex digits)"
            raise OptionError(f"{path}, line {number}: must be {wanted}", "keys")
        key = Key(*words)
        if key.sha256 in keys:
            raise OptionError(f"{path}, line {number}: {key.name} has the secret of {keys[key.sha256].name}", "keys")
        keys[key.sha256] = key
    return tuple(keys.values())


def add_key(path: Path, name: str) -> str:
    """Append a key to a file, which is made if there is none. Return the secret, which is kept nowhere."""
    if not _NAME.fullmatch(name):
        raise OptionError(f'a name has letters, digits and . _ @ -, at most 64, not "{name[:100]}"')
    secret = f"sk-suffice-{secrets.token_urlsafe(32)}"
    path = path.resolve()
    try:
        with alone_in(path.parent):
            path.touch()  # no secret is in it, and a container may read it as another user
            text = path.read_bytes()
            read_keys(path)
            gap = b"" if text.endswith(b"\n") or not text else b"\n"
            with path.open("ab") as file:
                file.write(gap + f"{name} {digest_of(secret)}\n".encode())
    except OSError as error:
        raise OptionError(f"{path}: it can't be changed: {error.strerror}", "keys") from None
    return secret
