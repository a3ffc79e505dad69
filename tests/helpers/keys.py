"""A file of keys, and a gateway that asks for them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from helpers.gateways import gateway
from suffice.gateway.accounts.keys import Limits, add_key
from suffice.testing import FakeServer


def bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


class Desk:
    """A file of keys, with an operator's key in it."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "keys.toml"
        self.state = folder / "state"
        self.operator = bearer(add_key(self.path, "boss", Limits(), operator=True))

    def add(self, name: str, **limits: Any) -> dict[str, str]:
        """The headers of a new key."""
        return bearer(add_key(self.path, name, Limits(**limits)))

    @contextmanager
    def gateway(self, upstream: FakeServer, **settings: Any) -> Iterator[str]:
        with gateway(upstream, keys=str(self.path), state=str(self.state), **settings) as url:
            yield url

    def usage(self, url: str) -> dict[str, dict[str, Any]]:
        reply = httpx.get(f"{url}/v1/suffice/usage", headers=self.operator)
        assert reply.status_code == 200, reply.text
        return {key["name"]: key for key in reply.json()["keys"]}
