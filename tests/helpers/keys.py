"""A file of keys, and a gateway that asks for them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from helpers.gateways import gateway
from suffice.gateway.keys import add_key, digest_of
from suffice.testing import FakeServer


def bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


class Desk:
    """A file of keys."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "keys"
        self.state = folder / "state"

    def add(self, name: str) -> dict[str, str]:
        """The headers of a new key."""
        return bearer(add_key(self.path, name))

    @contextmanager
    def gateway(self, upstream: FakeServer, **settings: Any) -> Iterator[str]:
        with gateway(upstream, keys=str(self.path), **settings) as url:
            yield url


def key_file(folder: Path, **secrets: str) -> str:
    """The path of a file with these keys, by name."""
    path = folder / "keys"
    path.write_text("".join(f"{name} {digest_of(secret)}\n" for name, secret in secrets.items()))
    return str(path)
