"""Whether the cap on tokens over one response holds: a gateway under traffic that changes, hour after hour.

python benchmarks/over_one.py [SHARE]    0.5 by default; the gateway's clock runs with the requests, one in two seconds

The share that was spent is told for every phase, and over the hour before each of its ends; and without a cap.
"""

import asyncio
import random
import re
import sys
import time
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx

from suffice.gateway import door
from suffice.testing import FakeServer, Reply, completion

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))
SECONDS = 2.0
REQUESTS = 600
AT_ONCE = 16
HOUR = 3600.0


@dataclass(frozen=True)
class Phase:
    """Traffic of one kind: how much of it has an answer, how often a response is right, how long responses are."""

    name: str
    votable: float
    right: float
    tokens: int
    requests: int = REQUESTS


PHASES = [
    Phase("some sums", 0.2, 0.8, 100),
    Phase("all sums, hard", 1.0, 0.4, 100),
    Phase("long texts", 0.1, 0.8, 800),
    Phase("all sums, easy", 1.0, 0.95, 100),
    Phase("half of each", 0.5, 0.6, 300),
    Phase("a quiet hour of sums", 1.0, 0.5, 100, REQUESTS // 4),
    Phase("all sums again", 1.0, 0.6, 200),
]


class Clock:
    """The time that the gateway believes in, and what it spent."""

    def __init__(self) -> None:
        self.now = 1e9
        self.spent: list[tuple[float, int, int]] = []
        """When a request ended, what one response took, and what was over that."""

    def share(self, since: float) -> float:
        """What was spent over one response since a moment, beside one response each."""
        once, over_one = (sum(row[place] for row in self.spent if row[0] > since) for place in (1, 2))
        return over_one / once if once else 0.0


def upstream(request: dict[str, Any], number: int) -> Reply:
    """Sums that are right as often as the question says, and texts of its length."""
    said = re.search(r"right ([\d.]+), (\d+) tokens", str(request["messages"]))
    assert said
    chance, texts = random.Random(f"{request['messages']}{number}"), []
    for _ in range(request.get("n") or 1):
        answer = 42 if chance.random() < float(said[1]) else chance.randint(1, 9)
        texts.append(
            rf"So it is \boxed{{{answer}}}." if "What is" in str(request["messages"]) else "Foam and salt. " * 30
        )
    return Reply(completion(texts, tokens=int(said[2])))


async def drive(url: str, clock: Clock) -> list[tuple[str, float, float]]:
    """All phases, one after the other: of each, what was spent in it, and over the hour before its end."""
    chance, told = random.Random(1), []
    turns = asyncio.Semaphore(AT_ONCE)

    async def ask(client: httpx.AsyncClient, phase: Phase, number: int) -> None:
        async with turns:
            asked = "What is 6 * 7?" if chance.random() < phase.votable else "Write a poem about the sea."
            content = f"{asked} Number {number}: right {phase.right}, {phase.tokens} tokens."
            clock.now += SECONDS * REQUESTS / phase.requests
            body = {"model": "m", "messages": [{"role": "user", "content": content}]}
            reply = await client.post(f"{url}/v1/chat/completions", json=body, timeout=60)
            over_one = (reply.json().get("suffice") or {}).get("over_one", {}).get("tokens", 0)
            clock.spent.append((clock.now, phase.tokens, over_one))

    async with httpx.AsyncClient() as client:
        for phase in PHASES:
            begun = clock.now
            await asyncio.gather(*(ask(client, phase, number) for number in range(phase.requests)))
            told.append((phase.name, clock.share(begun), clock.share(clock.now - HOUR)))
    return told


def soak(share: float | None) -> tuple[list[tuple[str, float, float]], Clock]:
    """The phases through a gateway with this cap, or none."""
    from helpers.gateways import gateway

    clock = Clock()
    vars(door)["time"] = SimpleNamespace(time=lambda: clock.now, monotonic=time.monotonic)
    with (
        redirect_stdout(StringIO()),
        FakeServer(upstream, remember=False) as server,
        gateway(server, vote="auto", over_one=share) as url,
    ):
        return asyncio.run(drive(url, clock)), clock


def main() -> None:
    """Tell of each phase what was spent with the cap and without."""
    share = float(sys.argv[1]) if len(sys.argv) > 1 else 0.5
    capped, clock = soak(share)
    free, _ = soak(None)
    print(f"tokens over one response, at most {share:.0%}: of a phase, of the hour before its end; without a cap")
    for (name, spent, hour), (_, unbounded, _) in zip(capped, free, strict=True):
        print(f"  {name:24} {spent:7.1%} {hour:7.1%} {unbounded:9.1%}")
    hours = []
    once = over_one = first = 0
    for last, (now, one, over) in enumerate(clock.spent):
        once, over_one = once + one, over_one + over
        while clock.spent[first][0] <= now - HOUR:
            once, over_one, first = once - clock.spent[first][1], over_one - clock.spent[first][2], first + 1
        if last % 10 == 0 and now - clock.spent[0][0] >= HOUR:
            hours.append(over_one / once)
    print(f"over any hour: {max(hours):.1%} at most, {sum(hours) / len(hours):.1%} in the mean")


if __name__ == "__main__":
    main()
