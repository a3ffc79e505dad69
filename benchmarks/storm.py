"""A storm: 40 clients before a server that takes 5 requests a second; what it is asked, and how they fare.

python benchmarks/storm.py
"""

import argparse
import asyncio
import time
from collections import Counter
from typing import Any

import httpx
from gateway import gateway

from suffice.testing import FakeServer, Reply

REFUSAL = {"error": {"message": "slow down", "type": "rate_limit_error"}}


class Granting:
    """Grants so many requests a second, with as many in stock."""

    def __init__(self, a_second: float, retry_after: str | None) -> None:
        self.granted = self.refused = 0
        self._a_second = self._stock = a_second
        self._headers = {"retry-after": retry_after} if retry_after else {}
        self._seen = time.monotonic()

    def __call__(self, request: dict[str, Any], number: int) -> Reply | list[str | None]:
        now = time.monotonic()
        self._stock = min(self._a_second, self._stock + (now - self._seen) * self._a_second)
        self._seen = now
        if self._stock < 1:
            self.refused += 1
            return Reply(REFUSAL, 429, self._headers)
        self._stock -= 1
        self.granted += 1
        return [rf"So it is \boxed{{{42 + place % 2}}}." for place in range(request.get("n", 1))]


async def storm(url: str, clients: int) -> tuple[Counter[int], list[float]]:
    statuses: Counter[int] = Counter()
    seconds: list[float] = []

    async def client(http: httpx.AsyncClient, number: int) -> None:
        body = {"model": "fake", "messages": [{"role": "user", "content": f"What is {number} * 7?"}]}
        begun = time.monotonic()
        statuses[(await http.post(f"{url}/v1/chat/completions", json=body)).status_code] += 1
        seconds.append(time.monotonic() - begun)

    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(timeout=600, limits=limits, trust_env=False) as http:
        await asyncio.gather(*(client(http, number) for number in range(clients)))
    return statuses, sorted(seconds)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--clients", type=int, default=40)
    options.add_argument("--a-second", type=float, default=5)
    chosen = options.parse_args()
    for retry_after in (None, "1"):
        granting = Granting(chosen.a_second, retry_after)
        split = ("--vote", "always", "--budget", "12", "--controller", "esc:window=4")  # three rounds, a request each
        with (
            FakeServer(granting, remember=False) as server,
            gateway(server.base_url.removesuffix("/v1"), *split) as (url, _),
        ):
            begun = time.monotonic()
            statuses, seconds = asyncio.run(storm(url, chosen.clients))
            lasted = time.monotonic() - begun
        print(
            f"{chosen.clients} clients, {chosen.a_second:g} requests a second granted, "
            f"{f'Retry-After {retry_after}' if retry_after else 'no Retry-After'}: replies {dict(statuses)}, "
            f"{granting.granted} requests granted and {granting.refused} refused in {lasted:.1f} s "
            f"({granting.granted / lasted:.1f} a second); a client waits {seconds[len(seconds) // 2]:.1f} s "
            f"in the median, {seconds[-1]:.1f} s at most",
            flush=True,
        )


if __name__ == "__main__":
    main()
