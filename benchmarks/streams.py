"""What a streamed token costs the gateway, beside a bare proxy in the same run, and how late its first token is.

Then what a request with a whole reply costs it: passed on, and voted on.

python benchmarks/streams.py [--streams 48] [--at-once 16]
"""

import argparse
import asyncio
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from statistics import quantiles
from typing import Any

import aiohttp
import uvicorn
from gateway import POOL, cpu_of, gateway, load, running, simulated
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

import suffice

QUICK = ("--tokens-per-second", "1e6", "--halved-by", "1e9")
WHOLE = 400
REAL = ("--tokens-per-second", "40", "--halved-by", "1e9")


class Proxy:
    """Passes requests on, and replies back, and does nothing else."""

    def __init__(self, upstream: str) -> None:
        self.upstream = upstream
        self.app = Starlette(
            routes=[
                Route("/v1/chat/completions", self.complete, methods=["POST"]),
                Route("/v1/models", lambda request: JSONResponse({"data": []})),
            ],
            lifespan=self.session_open,
        )

    @asynccontextmanager
    async def session_open(self, app: Starlette) -> AsyncIterator[None]:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as self.session:
            yield

    async def complete(self, request: Request) -> Response:
        headers = {"content-type": "application/json"}
        data = await request.body()
        reply = await self.session.post(f"{self.upstream}/v1/chat/completions", data=data, headers=headers)

        async def pieces() -> AsyncIterator[bytes]:
            async for piece in reply.content.iter_any():
                yield piece
            reply.close()

        return StreamingResponse(pieces(), reply.status, media_type="text/event-stream")


async def stream(url: str, streams: int, at_once: int) -> tuple[int, list[float]]:
    """Read so many streams; their tokens, and after how many seconds each had its first."""
    questions = [question.id for question in suffice.load_pool(POOL).questions]
    waiting = iter(range(streams))
    tokens, firsts = 0, []
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def client() -> None:
            nonlocal tokens
            for number in waiting:
                messages = [{"role": "user", "content": f"question {questions[number % len(questions)]}"}]
                body = {"model": "pool", "messages": messages, "stream": True}
                begun, first = time.monotonic(), 0.0
                async with session.post(f"{url}/v1/chat/completions", json=body) as reply:
                    async for piece in reply.content.iter_any():
                        tokens += piece.count(b'"content": "word')
                        first = first or (b"word" in piece and time.monotonic() - begun) or 0.0
                firsts.append(first)

        await asyncio.gather(*(client() for _ in range(at_once)))
    return tokens, firsts


def whole(url: str, model: str, requests: int) -> int:
    """Ask for so many whole replies; the samples that they took."""
    questions = [question.id for question in suffice.load_pool(POOL).questions]

    def body(number: int) -> dict[str, Any]:
        content = f"question {questions[number % len(questions)]}"
        return {"model": model, "messages": [{"role": "user", "content": content}]}

    replies, _, _ = asyncio.run(load(url, 8, requests, body))
    return sum(reply.get("suffice", {}).get("samples", 1) for _, reply in replies)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--streams", type=int, default=48)
    options.add_argument("--at-once", type=int, default=16)
    options.add_argument("--upstream", help=argparse.SUPPRESS)
    options.add_argument("--port", type=int, help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.upstream:
        uvicorn.run(Proxy(chosen.upstream).app, port=chosen.port, log_level="error", access_log=False)
        return
    print("| streams | tokens | processor ms a token | first token after s, p50 | p95 |\n|---|---|---|---|---|")
    for speed, limits in (("as fast as can be", QUICK), ("40 tokens a second", REAL)):
        with simulated(*limits) as (upstream, _):
            bare = running(sys.argv[0], "--upstream", upstream)
            for name, proxy in (("bare proxy", bare), ("gateway", gateway(upstream))):
                with proxy as (url, process):
                    asyncio.run(stream(url, 4, 4))
                    before = cpu_of(process)
                    tokens, firsts = asyncio.run(stream(url, chosen.streams, chosen.at_once))
                    each = 1000 * (cpu_of(process) - before) / tokens
                    cuts = quantiles(firsts, n=100)
                    print(f"| {name}, {speed} | {tokens} | {each:.4f} | {cuts[49]:.2f} | {cuts[94]:.2f} |", flush=True)
    print("\n| whole replies | requests | samples each | processor ms a request |\n|---|---|---|---|")
    with simulated(*QUICK) as (upstream, _):
        for name, proxy, model in (
            ("bare proxy", running(sys.argv[0], "--upstream", upstream), "pool"),
            ("gateway, passed on", gateway(upstream), "pool+once"),
            ("gateway, voted on", gateway(upstream), "pool"),
        ):
            with proxy as (url, process):
                whole(url, model, 50)
                before = cpu_of(process)
                samples = whole(url, model, WHOLE)
                each = 1000 * (cpu_of(process) - before) / WHOLE
                print(f"| {name} | {WHOLE} | {samples / WHOLE:.1f} | {each:.2f} |", flush=True)


if __name__ == "__main__":
    main()
