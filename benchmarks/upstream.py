"""A simulated LLM server: the answers and lengths of a pool's responses, so many tokens a second, so many slots.

python benchmarks/upstream.py --port 9000 --pool qwen2.5-coder-1.5b__gsm8k
"""

import argparse
import asyncio
import json
import random
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable
from typing import Any, TypeVar

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

import suffice
from suffice.testing import message, response

T = TypeVar("T")


class Upstream:
    """Answers "question ID" with responses to it, in a random order of its own that begins again when it ends."""

    def __init__(self, pools: list[str], tokens_per_second: float, slots: int, faults: float, log: str | None) -> None:
        self.questions = {one.id: one for pool in pools for one in suffice.load_pool(pool).questions}
        self.tokens_per_second = tokens_per_second
        self.faults = faults
        self.log = open(log, "a", buffering=1) if log else None  # noqa: PTH123, SIM115
        self.slots = asyncio.Semaphore(slots)
        self.left: dict[str, list[int]] = defaultdict(list)
        self.random = random.Random(0)
        self.tokens = self.requests = 0
        self.app = Starlette(
            routes=[
                Route("/v1/chat/completions", self.complete, methods=["POST"]),
                Route("/v1/responses", self.respond, methods=["POST"]),
                Route("/v1/messages", self.respond, methods=["POST"]),
                Route("/v1/models", lambda request: JSONResponse({"object": "list", "data": [{"id": "pool"}]})),
                Route("/reset", self.reset, methods=["POST"]),
                Route("/spent", lambda request: JSONResponse({"tokens": self.tokens, "requests": self.requests})),
            ]
        )

    async def reset(self, request: Request) -> Response:
        """Begin again with every question's first response, so that methods draw the same."""
        self.left.clear()
        return Response(status_code=204)

    async def complete(self, request: Request) -> Response:
        body = json.loads(await request.body())
        self.requests += 1
        if self.log:
            self.log.write(f"{body.get('user')} {time.time():.3f}\n")
        if self.random.random() < self.faults:
            return Response("overloaded", 503)
        drawn = [self.draw(body["messages"][-1]["content"]) for _ in range(body.get("n") or 1)]
        if body.get("stream"):
            return StreamingResponse(self.stream(*drawn[0]), media_type="text/event-stream")
        lasted = await self.watched(request, asyncio.gather(*(self.generate(tokens) for _, tokens in drawn)))
        if lasted is None:
            return Response(status_code=499)
        texts = ["I give up." if answer is None else rf"So it is \boxed{{{answer}}}." for answer, _ in drawn]
        choices = [
            {"index": place, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
            for place, text in enumerate(texts)
        ]
        usage = {"prompt_tokens": 20, "completion_tokens": sum(lasted), "total_tokens": 20 + sum(lasted)}
        reply: dict[str, Any] = {"id": "chatcmpl-1", "object": "chat.completion", "created": int(time.time())}
        return JSONResponse(reply | {"model": "pool", "choices": choices, "usage": usage})

    async def respond(self, request: Request) -> Response:
        """The same in the other dialects, for whoever says hello."""
        json.loads(await request.body())
        self.requests += 1
        say = response if request.url.path.endswith("/responses") else message
        return JSONResponse(say(r"So it is \boxed{42}.", tokens=1, prompt_tokens=20))

    async def stream(self, answer: str | None, tokens: int) -> AsyncIterator[bytes]:
        """The response in a few pieces; one that nobody reads any more ends where it is."""
        text = "I give up." if answer is None else rf"So it is \boxed{{{answer}}}."
        step = max(1, int(self.tokens_per_second * 0.02))
        done = 0
        try:
            async with self.slots:
                while done < tokens:
                    yield self.event({"content": "" if done else " "}, None)
                    now = min(step, tokens - done)
                    await asyncio.sleep(now / self.tokens_per_second if self.tokens_per_second else 0)
                    done += now
            yield self.event({"content": text}, None)
            yield self.event({}, "stop")
            usage = {"prompt_tokens": 20, "completion_tokens": tokens, "total_tokens": 20 + tokens}
            yield b"data: " + json.dumps({"choices": [], "usage": usage}).encode() + b"\n\ndata: [DONE]\n\n"
        finally:
            self.tokens += done

    @staticmethod
    def event(delta: dict[str, str], reason: str | None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"

    def draw(self, content: str) -> tuple[str | None, int]:
        if not content.startswith("question "):
            return "42", 1
        question = self.questions[content.removeprefix("question ")]
        if not self.left[question.id]:
            order = random.Random(question.id)  # the same for whoever begins after a reset
            self.left[question.id] = order.sample(range(len(question.answers)), len(question.answers))
        chosen = self.left[question.id].pop()
        return question.answers[chosen], int(question.token_counts[chosen])

    async def generate(self, tokens: int) -> int:
        """Take as long as the tokens do; where that is cut short, what was generated is counted all the same."""
        if not self.tokens_per_second:
            self.tokens += tokens
            return tokens
        async with self.slots:
            begun = time.monotonic()
            try:
                await asyncio.sleep(tokens / self.tokens_per_second)
            finally:
                self.tokens += min(tokens, round((time.monotonic() - begun) * self.tokens_per_second))
        return tokens

    async def watched(self, request: Request, work: Awaitable[T]) -> T | None:
        """The result of work that ends when the client is gone; None then."""
        doing = asyncio.ensure_future(work)

        async def left() -> None:
            while (await request.receive())["type"] != "http.disconnect":
                pass

        leaving = asyncio.ensure_future(left())
        await asyncio.wait({doing, leaving}, return_when=asyncio.FIRST_COMPLETED)
        leaving.cancel()
        if not doing.done():
            doing.cancel()
            await asyncio.wait({doing})
            return None
        return doing.result()


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--port", type=int, required=True)
    options.add_argument("--pool", action="append", default=[])
    options.add_argument("--tokens-per-second", type=float, default=0.0)
    options.add_argument("--slots", type=int, default=1_000_000)
    options.add_argument("--faults", type=float, default=0.0)
    options.add_argument("--log", help="a file for the user and the time of each request")
    chosen = options.parse_args()
    upstream = Upstream(chosen.pool, chosen.tokens_per_second, chosen.slots, chosen.faults, chosen.log)
    uvicorn.run(upstream.app, port=chosen.port, log_level="error", access_log=False, backlog=4096)


if __name__ == "__main__":
    main()
