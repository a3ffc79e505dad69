"""2,000 questions at concurrency 200 against a scripted server that fails one request in ten."""

import argparse
import asyncio
import gc
import random
import resource
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import openai

import suffice
from suffice.live.servers.server import QuestionContext
from suffice.testing import FakeServer, Reply, completion

FAULTS = [
    Reply({"error": {"message": "slow down"}}, 429, {"retry-after": "0.05"}),
    Reply({"error": {"message": "oops"}}, 500),
    Reply(completion([r"\boxed{1}"]), dropped=True),
    Reply(b'{"choices": [{"mess'),
    Reply(b"<html></html>", 200, {"content-type": "text/html"}),
    Reply(completion([None])),
    Reply(completion([r"\boxed{2}"]), delay=30),
]


def script(request: dict[str, Any], number: int) -> Reply:
    chance = random.Random(number)
    if chance.random() < 0.1:
        return chance.choice(FAULTS)
    texts = [rf"\boxed{{{chance.choice([1, 1, 1, 2, 3])}}}" for _ in range(request.get("n", 1))]
    return Reply(completion(texts), delay=chance.random() * 0.1)


def memory() -> int:
    """Bytes in use now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


async def soak(server: FakeServer, questions: int, concurrency: int, flow: suffice.Flow | None) -> None:
    sampling = suffice.Sampling(flow=flow, concurrency=concurrency, timeout_seconds=10.0)
    outcomes: dict[str, int] = {}
    measured: list[int] = []
    waiting = iter(range(questions))
    async with openai.AsyncOpenAI(base_url=server.base_url, api_key="none") as client:
        retries = list[bool]()
        asked = QuestionContext(on_attempt=lambda host, again: retries.append(again))
        upstream = replace(sampling.server(client), question=asked)

        async def worker() -> None:
            for number in waiting:
                messages = [{"role": "user", "content": f"question {number}"}]
                fields = {"model": "fake", "messages": messages}
                vote = sampling.voting.begin(upstream, fields, np.random.default_rng(number))
                try:
                    reason = (await vote.outcome()).stop_reason
                except suffice.SampleError as error:
                    reason = error.outcome.stop_reason
                outcomes[reason] = outcomes.get(reason, 0) + 1
                if sum(outcomes.values()) % (questions // 5) == 0:
                    gc.collect()
                    measured.append(memory() >> 20)

        begun = time.monotonic()
        await asyncio.gather(*(worker() for _ in range(concurrency)))
        seconds = time.monotonic() - begun
        left = len(asyncio.all_tasks()) - 1
        print(f"{questions} questions in {seconds:.1f} s at concurrency {concurrency}: outcomes {outcomes}")
        print(f"{server.served} requests, {sum(retries)} retries, {left} tasks left, memory {measured} MB")
    await asyncio.sleep(0.5)
    print(f"{server.connections} connections left on the server")
    assert sum(outcomes.values()) == questions and left == 0 and server.connections == 0


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--questions", type=int, default=2000)
    options.add_argument("--concurrency", type=int, default=200)
    options.add_argument("--flow", action="store_true", help="in flow, by launch, with 2 extra")
    chosen = options.parse_args()
    flow = suffice.Flow("launch", 2) if chosen.flow else None
    with FakeServer(script, remember=False, streams=chosen.flow) as server:
        asyncio.run(soak(server, chosen.questions, chosen.concurrency, flow))


if __name__ == "__main__":
    main()
