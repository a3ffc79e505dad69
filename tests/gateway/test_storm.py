"""A storm in miniature: many clients at once before a server that takes few requests a second."""

import asyncio
import time
from typing import Any

import httpx
import pytest
from helpers.gateways import ASK, gateway
from helpers.live import boxed

from suffice.testing import FakeServer, Reply

pytestmark = pytest.mark.slow

CLIENTS, A_SECOND = 40, 25


class Granting:
    """Grants so many requests a second, with as many in stock, and refuses the rest."""

    def __init__(self, status: int, headers: dict[str, str]) -> None:
        self.granted = self.refused = 0
        self._refusal = Reply({"error": {"message": "slow down"}}, status, headers)
        self._stock, self._seen = float(A_SECOND), time.monotonic()

    def __call__(self, request: dict[str, Any], number: int) -> Reply | list[str | None]:
        now = time.monotonic()
        self._stock = min(A_SECOND, self._stock + (now - self._seen) * A_SECOND)
        self._seen = now
        if self._stock < 1:
            self.refused += 1
            return self._refusal
        self._stock -= 1
        self.granted += 1
        return [boxed(42)] * request.get("n", 1)


async def storm(url: str, rounds: int) -> list[int]:
    async def client(http: httpx.AsyncClient) -> list[int]:
        return [(await http.post(f"{url}/v1/chat/completions", json=ASK)).status_code for _ in range(rounds)]

    async with httpx.AsyncClient(timeout=100, limits=httpx.Limits(max_connections=None)) as http:
        statuses = await asyncio.gather(*(client(http) for _ in range(CLIENTS)))
        return [status for each in statuses for status in each]


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("headers", [{}, {"retry-after": "0.2"}], ids=["", "with Retry-After"])
def test_in_a_storm_hardly_more_is_asked_than_is_granted_and_nobody_starves(
    status: int, headers: dict[str, str]
) -> None:
    granting = Granting(status, headers)
    with FakeServer(granting, remember=False) as upstream, gateway(upstream, controller="sc:draws=2") as url:
        assert asyncio.run(storm(url, rounds=3)) == [200] * CLIENTS * 3
    assert granting.granted == CLIENTS * 3, "each vote is one request"
    assert granting.refused <= granting.granted / 4
