"""What the last questions of a run take, at the simulated H200 of upstream.py, on a clock that does not wait.

python benchmarks/tail.py [--at-once 128] [--seeds 4]

The votes are real ones; only time and the server are not. Those who know how many draws each question will take have
that from a run before: no rule can do better for the tokens.
"""

import argparse
import asyncio
import json
import selectors
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from statistics import fmean
from typing import Any

import numpy as np
from gateway import POOL
from server import BUDGET, SAMPLING, of_pool
from upstream import LIKE_H200, Upstream, cut

from suffice import Controller, Plan, Sampling, Tally
from suffice.live.dialects import CHAT
from suffice.live.servers.gate import Limiter
from suffice.live.servers.hosts import Fleet, Host
from suffice.live.servers.server import Server

Show = Callable[[bytes], object]


class Skipping(selectors.DefaultSelector):
    """Waits for nobody: the clock is put forward instead."""

    now = 0.0

    def select(self, timeout: float | None = None) -> Any:
        self.now += max(0.0, timeout or 0.0)
        return super().select(0)


class Loop(asyncio.SelectorEventLoop):
    """Threads' work is done at once: it takes no time on this clock."""

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> Any:  # type: ignore[override]
        done: Future[Any] = Future()
        done.set_result(func(*args))
        return asyncio.wrap_future(done, loop=self)


class Simulated(Upstream):
    """The server, asked without HTTP."""

    async def post(self, path: str, body: dict[str, Any], feed: Show) -> None:
        drawn = [cut(self.draw(body["messages"][0]["content"]), body["max_tokens"]) for _ in range(body.get("n") or 1)]
        if body.get("stream"):
            async for piece in self.stream(drawn[0]):
                feed(piece)
            return
        tokens = await asyncio.gather(*(self.generate(one.tokens) for one in drawn))
        said = [{"message": {"content": self.text(one.answer, one.tokens)}} for one in drawn]
        choices = [{"index": place, **one, "finish_reason": "stop"} for place, one in enumerate(said)]
        feed(json.dumps({"choices": choices, "usage": {"completion_tokens": sum(tokens)}}).encode())


class Knowing(Controller):
    """A plan that asks for all that a question will take at once, where few draws are under way beside the most."""

    def __init__(self, needed: int, load: Callable[[], float], below: float) -> None:
        self._plan, self._needed, self._load, self._below = Plan(), needed, load, below

    def is_quick(self, budget: int) -> bool:
        return True

    def decide(self, tally: Tally) -> int:
        asked = self._plan.next_round(tally)
        known = tally.draws and asked and self._load() < self._below
        return max(1, self._needed - tally.draws) if known else asked


def timed(main: Callable[[], Awaitable[None]]) -> float:
    """How many seconds it takes on the clock."""
    clock, real = Skipping(), time.monotonic
    time.monotonic = lambda: clock.now
    try:
        with asyncio.Runner(loop_factory=lambda: Loop(clock)) as runner:
            runner.run(main())  # type: ignore[arg-type]
        return clock.now
    finally:
        time.monotonic = real


def run(names: list[str], way: str, needed: dict[str, int], below: float = 0.0) -> tuple[float, int, dict[str, int]]:
    """The seconds and tokens of all questions at once, and the draws of each."""
    speed: dict[str, Any] = LIKE_H200
    server, host, most = Simulated([POOL], **speed), Host(), 1
    drawn: dict[str, int] = {}

    def load() -> float:
        nonlocal most
        most = max(most, host.demand)
        return host.demand / most

    async def ask(name: str) -> None:
        controller = "sc" if way == "n=32" else Knowing(needed.get(name, 0), load, below)
        voting = Sampling(controller=controller, flow="auto" if way == "plan, flow auto" else None).voting
        asked = Server(Fleet([host]), lambda host: server.post, Limiter(BUDGET), CHAT)
        fields = {"model": "pool", "messages": [{"role": "user", "content": name}], **SAMPLING}
        drawn[name] = (await voting.begin(asked, fields, np.random.default_rng(0)).outcome()).samples

    async def main() -> None:
        await asyncio.gather(*map(ask, names))

    return timed(main), server.tokens, drawn


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--at-once", type=int, default=128)
    options.add_argument("--seeds", type=int, default=4)
    chosen = options.parse_args()
    found: dict[str, list[tuple[float, float]]] = {}
    for seed in range(chosen.seeds):
        asked = of_pool(chosen.at_once * (seed + 1))[chosen.at_once * seed :]
        names = [str(one["question"]) for one in asked]
        seconds, tokens, _ = run(names, "n=32", {})
        needed: dict[str, int] = {}
        ways = [("plan", 0.0), ("plan, flow auto", 0.0)]
        for way, below in [*ways, *((f"plan that knows, below {share}", share) for share in (0.2, 0.5, 2.0))]:
            took, spent, drawn = run(names, way, needed, below)
            needed = needed or drawn
            found.setdefault(way, []).append((seconds / took, spent / tokens))
    print(f"| {chosen.at_once} questions at once | questions a second, of n=32 | least | most | tokens, of n=32 |")
    print("|---|---|---|---|---|")
    for way, figures in found.items():
        times, shares = zip(*figures, strict=True)
        print(f"| {way} | {fmean(times):.2f} | {min(times):.2f} | {max(times):.2f} | {fmean(shares):.1%} |")


if __name__ == "__main__":
    main()
