"""The gateway on loopback: what it costs, whether it keeps its promise, its_hub beside it, and a soak.

python benchmarks/gateway.py [overhead] [promise] [its_hub] [soak]
"""

import argparse
import asyncio
import os
import random
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean, quantiles
from typing import Any

import httpx

import suffice
from suffice.answers import answer_key

HERE = Path(__file__).parent
POOL = "qwen2.5-coder-1.5b__gsm8k"
ASK: dict[str, Any] = {"model": "pool", "messages": [{"role": "user", "content": "hello"}]}
DIALECTS: dict[str, dict[str, Any]] = {
    "/chat/completions": ASK,
    "/responses": {"model": "pool", "input": "hello"},
    "/messages": {**ASK, "max_tokens": 99},
}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def running(*command: str) -> Iterator[tuple[str, int]]:
    """The URL and process number of a server, once it answers."""
    port = free_port()
    arguments = [sys.executable, *command, "--port", str(port)]
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    for _ in range(600):
        try:
            httpx.get(f"{url}/v1/models")
            break
        except httpx.HTTPError:
            time.sleep(0.1)
    try:
        yield url, process.pid
    finally:
        process.terminate()
        process.wait()


def simulated(*options: str) -> Any:
    return running(str(HERE / "upstream.py"), "--pool", POOL, *options)


def gateway(upstream: str, *options: str) -> Any:
    return running("-m", "suffice", "serve", "--upstream", f"{upstream}/v1", *options)


def cpu_of(process: int) -> float:
    """The processor seconds that a process has used."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def milliseconds(seconds: list[float]) -> str:
    cuts = quantiles(seconds, n=100)
    return f"p50 {1000 * cuts[49]:.2f} ms, p99 {1000 * cuts[98]:.2f} ms"


async def load(
    url: str, clients: int, requests: int, body: Callable[[int], dict[str, Any]], path: str = "/chat/completions"
) -> tuple[list[Any], list[float], float]:
    """Send requests from so many clients at once; the replies, their times, and the time of all."""
    waiting = iter(range(requests))
    replies: list[Any] = []
    times: list[float] = []
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    async with httpx.AsyncClient(timeout=600, limits=limits, trust_env=False) as client:

        async def work() -> None:
            for number in waiting:
                begun = time.perf_counter()
                reply = await client.post(f"{url}/v1{path}", json=body(number))
                times.append(time.perf_counter() - begun)
                reply.raise_for_status()
                replies.append((number, reply.json()))

        begun = time.perf_counter()
        await asyncio.gather(*(work() for _ in range(clients)))
        return replies, times, time.perf_counter() - begun


def overhead() -> None:
    options = ("--controller", "sc:draws=1", "--vote", "always")
    with simulated() as (upstream, _), gateway(upstream, *options) as (url, _):
        for path, ask in DIALECTS.items():
            for clients, requests in ((1, 1500), (32, 6000)):
                overhead_of(path, ask, {"upstream": upstream, "gateway": url}, clients, requests)


def overhead_of(path: str, ask: dict[str, Any], servers: dict[str, str], clients: int, requests: int) -> None:
    figures = {}
    for _ in range(2):  # the first warms up
        for name, where in servers.items():
            _, times, seconds = asyncio.run(load(where, clients, requests, lambda number: ask, path))
            figures[name] = (times, requests / seconds)
    for name, (times, rate) in figures.items():
        print(f"{path}, {clients} clients, {name}: {milliseconds(times)}, {rate:.0f} requests a second")
    median = {name: quantiles(times, n=2)[0] for name, (times, _) in figures.items()}
    more = 1000 * (median["gateway"] - median["upstream"])
    share = figures["gateway"][1] / figures["upstream"][1]
    print(f"  {more:+.2f} ms at p50; {share:.0%} of the requests a second", flush=True)


def votes(url: str, upstream: str, suffice_wish: dict[str, Any]) -> dict[str, float]:
    """Ask each question of the pool 4 times, 16 at once, and grade the answers."""
    questions = suffice.load_pool(POOL).questions
    asked = [questions[place % len(questions)] for place in range(4 * len(questions))]

    def body(number: int) -> dict[str, Any]:
        content = f"question {asked[number].id}"
        return {"model": "pool", "messages": [{"role": "user", "content": content}], **suffice_wish}

    before = httpx.get(f"{upstream}/spent").json()["tokens"]
    replies, times, _ = asyncio.run(load(url, 16, len(asked), body))
    spent = httpx.get(f"{upstream}/spent").json()["tokens"] - before
    right = [
        answer_key(reply["choices"][0]["message"]["content"]) == answer_key(rf"\boxed{{{asked[number].gold}}}")
        for number, reply in replies
    ]
    samples = [reply["suffice"]["samples"] for _, reply in replies if "suffice" in reply]
    return {
        "accuracy": 100 * fmean(right),
        "samples": fmean(samples) if samples else 32,
        "tokens": spent / len(asked),
        "p50": quantiles(times, n=2)[0],
    }


def promise() -> None:
    names = ["sc", "asc", "esc", "rl", "plan"]
    replayed = suffice.evaluate(suffice.load_pool(POOL), names)
    print("| through the gateway / replayed | accuracy % | samples | tokens | p50 seconds |\n|---|---|---|---|---|")
    with simulated("--tokens-per-second", "2000") as (upstream, _), gateway(upstream) as (url, _):
        for name, replay in zip(names, replayed, strict=True):
            live = votes(url, upstream, {"suffice": {"controller": name}})
            cells = [
                f"{live['accuracy']:.1f} / {replay.accuracy or 0:.1f}",
                f"{live['samples']:.1f} / {replay.samples:.1f}",
                f"{live['tokens']:.0f} / {replay.total_tokens or 0:.0f}",
                f"{live['p50']:.2f}",
            ]
            print(f"| `{name}` | {' | '.join(cells)} |", flush=True)


def its_hub() -> None:
    theirs = running("-m", "its_hub.integration.iaas.app_server", "--log-level", "ERROR")
    with simulated("--tokens-per-second", "2000") as (upstream, _), theirs as (url, _):
        settings = {
            "endpoint": f"{upstream}/v1", "api_key": "none", "model": "pool", "alg": "self-consistency",
            "regex_patterns": [r"\\boxed\{(.*)\}"], "budget": 32,
        }  # fmt: skip
        httpx.post(f"{url}/configure", json=settings).raise_for_status()
        live = votes(url, upstream, {"budget": 32})
    print(
        f"its_hub 1.2.0, self-consistency, 32 samples: accuracy {live['accuracy']:.1f} %, {live['tokens']:.0f} tokens, "
        f"p50 {live['p50']:.2f} s"
    )


def state(process: int) -> str:
    folder = Path(f"/proc/{process}")
    memory = int((folder / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20
    return f"{memory} MB, {len(list((folder / 'fd').iterdir()))} descriptors"


def soak(minutes: float, clients: int = 300) -> None:
    counts: Counter[str] = Counter()
    questions = suffice.load_pool(POOL).questions

    async def client(number: int, url: str, end: float, http: httpx.AsyncClient) -> None:
        chance = random.Random(number)
        while time.monotonic() < end:
            content = f"question {chance.choice(questions).id}"
            body = {
                "model": "pool",
                "messages": [{"role": "user", "content": content}],
                "stream": chance.random() < 0.3,
            }
            patience = 0.05 if chance.random() < 0.05 else 120.0
            try:
                async with asyncio.timeout(patience):
                    reply = await http.post(f"{url}/v1/chat/completions", json=body)
                answered = "[DONE]" in reply.text if body["stream"] else "choices" in reply.json()
                counts[f"{reply.status_code}{'' if answered or reply.status_code != 200 else ' but no answer'}"] += 1
            except TimeoutError:
                counts["hung up" if patience < 1 else "timed out"] += 1
            except httpx.HTTPError as error:
                counts[type(error).__name__] += 1

    async def main(url: str, process: int) -> None:
        end = time.monotonic() + 60 * minutes
        limits = httpx.Limits(max_connections=None)
        async with httpx.AsyncClient(timeout=300, limits=limits, trust_env=False) as http:

            async def report() -> None:
                while time.monotonic() < end:
                    await asyncio.sleep(60 * minutes / 5)
                    print(f"  {sum(counts.values())} requests; the gateway: {state(process)}", flush=True)

            await asyncio.gather(report(), *(client(number, url, end, http) for number in range(clients)))

    options = ["--tokens-per-second", "1000", "--faults", "0.05"]
    with simulated(*options) as (upstream, _), gateway(upstream) as (url, process):
        print(f"soak: {clients} clients for {minutes:g} minutes; the gateway before: {state(process)}", flush=True)
        asyncio.run(main(url, process))
        time.sleep(3)
        print(f"soak: {dict(counts)}; the gateway after: {state(process)}")
        figures = httpx.get(f"{url}/metrics").text.splitlines()
        for name in (
            "suffice_draws_in_flight ",
            "suffice_requests_in_progress ",
            "suffice_retries_total ",
            "suffice_cancellations_total ",
        ):
            print(" ", *(line for line in figures if line.startswith(name)))


def main() -> None:
    parts: dict[str, Callable[[], None] | Callable[[], Awaitable[None]]] = {
        "overhead": overhead, "promise": promise, "its_hub": its_hub,
    }  # fmt: skip
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("parts", nargs="*", default=[*parts, "soak"])
    options.add_argument("--minutes", type=float, default=10)
    chosen = options.parse_args()
    for part in chosen.parts:
        if part == "soak":
            soak(chosen.minutes)
        else:
            parts[part]()


if __name__ == "__main__":
    main()
