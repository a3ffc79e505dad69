"""Two upstreams, one of which is killed and restarted every few seconds, under load: what the clients notice.

python benchmarks/failover.py [--clients 100] [--minutes 2]
"""

import argparse
import asyncio
import contextlib
import random
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import httpx
from gateway import HERE, POOL, free_port, gateway

import suffice


class Mortal:
    """A simulated upstream that is killed without warning, and started again on the same port."""

    def __init__(self, log: Path) -> None:
        self.port = free_port()
        self.deaths: list[float] = []
        self._log = log
        self.start()

    def start(self) -> None:
        command = [sys.executable, str(HERE / "upstream.py"), "--pool", POOL, "--port", str(self.port)]
        options = ["--tokens-per-second", "1000", "--log", str(self._log)]
        self._process = subprocess.Popen([*command, *options], stderr=subprocess.DEVNULL)

    def kill(self) -> None:
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        self.deaths.append(time.time())

    def asked(self) -> dict[str, list[float]]:
        """When each question was asked here."""
        times: dict[str, list[float]] = defaultdict(list)
        for line in self._log.read_text().splitlines():
            mark, _, moment = line.partition(" ")
            times[mark].append(float(moment))
        return times


async def until_ready(port: int) -> None:
    async with httpx.AsyncClient(trust_env=False) as http:
        while True:
            with contextlib.suppress(httpx.HTTPError):
                await http.get(f"http://127.0.0.1:{port}/v1/models")
                return
            await asyncio.sleep(0.05)


async def flicker(mortal: Mortal, end: float) -> None:
    while time.monotonic() < end:
        await asyncio.sleep(random.uniform(2, 4))
        mortal.kill()
        await asyncio.sleep(random.uniform(0.5, 2))
        mortal.start()
        await until_ready(mortal.port)


async def client(number: int, url: str, end: float, http: httpx.AsyncClient, seen: dict[str, Any]) -> None:
    chance = random.Random(number)
    questions = suffice.load_pool(POOL).questions
    asked = 0
    while time.monotonic() < end:
        asked += 1
        mark = f"{number}-{asked}"
        body = {
            "model": "pool",
            "user": mark,
            "messages": [{"role": "user", "content": f"question {chance.choice(questions).id}"}],
        }
        begun = time.monotonic()
        try:
            reply = await http.post(f"{url}/v1/chat/completions", json=body)
            seen["statuses"][reply.status_code] += 1
            if reply.status_code == 200:
                told = reply.json()["suffice"]
                seen["sums"][sum(told["draws"]) == told["samples"] >= sum(told["votes"].values()) > 0] += 1
                seen["failures"] += told["failures"]
            else:
                seen["errors"].append(reply.text[:200])
        except httpx.HTTPError as error:
            seen["statuses"][type(error).__name__] += 1
        seen["seconds"].append(time.monotonic() - begun)


async def load(url: str, clients: int, seconds: float, mortal: Mortal) -> dict[str, Any]:
    seen: dict[str, Any] = {"statuses": Counter(), "sums": Counter(), "failures": 0, "errors": [], "seconds": []}
    end = time.monotonic() + seconds
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(timeout=300, limits=limits, trust_env=False) as http:
        await asyncio.gather(flicker(mortal, end), *(client(n, url, end, http, seen) for n in range(clients)))
    return seen


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--clients", type=int, default=100)
    options.add_argument("--minutes", type=float, default=2)
    options.add_argument("--folder", type=Path, required=True, help="where the upstreams' logs go")
    chosen = options.parse_args()
    logs = [chosen.folder / f"upstream-{number}.log" for number in (1, 2)]
    for log in logs:
        log.unlink(missing_ok=True)
    mortal, steady = (Mortal(log) for log in logs)
    try:
        for one in (mortal, steady):
            asyncio.run(until_ready(one.port))
        other = f"http://127.0.0.1:{steady.port}/v1"
        with gateway(f"http://127.0.0.1:{mortal.port}", "--upstream", other, "--vote", "always") as (url, _):
            seen = asyncio.run(load(url, chosen.clients, 60 * chosen.minutes, mortal))
            told = httpx.get(f"{url}/v1/suffice/recent", trust_env=False).json()["upstreams"]
    finally:
        deaths = list(mortal.deaths)
        mortal.kill()
        steady.kill()
    here, there = mortal.asked(), steady.asked()
    both = here.keys() & there.keys()
    unexplained = [
        mark for mark in both if not any(max(here[mark]) - 0.1 < death < min(there[mark]) + 0.1 for death in deaths)
    ]
    seconds = sorted(seen["seconds"])
    print(f"{chosen.clients} clients for {chosen.minutes:g} minutes, {len(deaths)} deaths")
    print(f"  replies {dict(seen['statuses'])}")
    print(
        f"  {len({*here, *there})} questions, {len(both)} on both upstreams, {len(unexplained)} of them with no death"
    )
    print(f"  {sum(map(len, here.values()))} requests at the mortal one, {sum(map(len, there.values()))} at the other")
    print(f"  counts add up: {dict(seen['sums'])}; failed draws {seen['failures']}; errors {Counter(seen['errors'])}")
    print(f"  p50 {seconds[len(seconds) // 2]:.2f} s, p99 {seconds[int(0.99 * len(seconds))]:.2f} s; now {told}")


if __name__ == "__main__":
    main()
