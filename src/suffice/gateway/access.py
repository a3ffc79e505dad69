"""Which key a request presents."""

import hmac
import sys
from collections.abc import Mapping
from pathlib import Path

from suffice.errors import OptionError
from suffice.gateway.keys import digest_of, read_keys
from suffice.gateway.operations import metrics
from suffice.paths import WatchedFile


class KeyRing:
    """The keys in force, read again when their file changes. A broken file changes nothing."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = WatchedFile(path)
        self._keys = read_keys(path)

    def name_of(self, headers: Mapping[str, str]) -> str | None:
        """Return the name of the key that a request presents, None if there is none. Compare in constant time."""
        if self._file.has_changed():
            self._read_again()
        digests = [digest_of(secret) for secret in _presented(headers)]
        matches = [key.name for key in self._keys for digest in digests if hmac.compare_digest(digest, key.sha256)]
        return matches[0] if matches else None

    def _read_again(self) -> None:
        try:
            self._keys = read_keys(self._path)
        except OptionError as error:
            metrics.KEY_RELOADS.labels("refused").inc()
            print(f"suffice: {error}; the old keys stay in force", file=sys.stderr, flush=True)
        else:
            metrics.KEY_RELOADS.labels("taken").inc()


_KEY_HEADERS = ("x-api-key", "api-key")
"""Where Anthropic's clients and Azure's put their key; all others send Authorization: Bearer."""


def _presented(headers: Mapping[str, str]) -> list[str]:
    """Return the secrets in a request's headers."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return [token.strip() if scheme.lower() == "bearer" else "", *(headers.get(name, "") for name in _KEY_HEADERS)]
