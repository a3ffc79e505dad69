"""A simulated LLM server: the answers and lengths of a pool's responses, so many tokens a second, so many slots.

python benchmarks/upstream.py --port 9000 --pool qwen2.5-coder-1.5b__gsm8k

A token of each takes (1 + draws under way / HALVED_BY) / TOKENS_PER_SECOND. `--like-h200` is fitted to vLLM 0.24 on one
H200 with a model of 1.5B, where a response of 314 tokens took 0.78 s, 32 together 1.33, and 3,840 came at 21,150 tokens
a second.
"""

import argparse
import asyncio
import heapq
import json
import math
import random
import re
import time
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Awaitable
from typing import Any, NamedTuple, TypeVar

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

import suffice
from suffice.testing import message, response

T = TypeVar("T")

LIKE_H200 = {"tokens_per_second": 408.0, "slots": 1024, "halved_by": 54.0}
"""By these 314 tokens take 0.78 s alone, 32 responses together 1.39, and thousands come at 20,700 tokens a second."""


class Drawn(NamedTuple):
    """A response of the pool, as much of it as was asked for."""

    answer: str | None
    tokens: int
    finish_reason: str = "stop"


class Engine:
    """Generates so many draws together, each at the same speed, which falls with their number; others wait.

    Its clock counts the tokens that each draw under way has had since the beginning.
    """

    def __init__(self, tokens_per_second: float, slots: int, halved_by: float) -> None:
        self.tokens_per_second, self.slots, self.halved_by = tokens_per_second, slots, halved_by
        self.running = 0
        self._clock = self._moment = 0.0
        self._ends: list[tuple[float, int, asyncio.Future[None]]] = []
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._number = 0
        self._timer: asyncio.TimerHandle | None = None

    @property
    def clock(self) -> float:
        """The tokens of a draw that began with the first and never ended."""
        now = time.monotonic()
        self._clock += (now - self._moment) * self._speed
        self._moment = now
        return self._clock

    @property
    def _speed(self) -> float:
        return self.tokens_per_second / (1 + self.running / self.halved_by)

    async def start(self) -> float:
        """Wait for a place; what the clock says then."""
        if self.running >= self.slots:
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            await turn
        begun = self.clock
        self.running += 1
        self._wake()
        return begun

    def end(self) -> None:
        """Give the place back."""
        _ = self.clock
        self.running -= 1
        self._wake()
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                break

    async def until(self, clock: float) -> None:
        """Wait until the clock says so."""
        turn = asyncio.get_running_loop().create_future()
        self._number += 1
        heapq.heappush(self._ends, (clock, self._number, turn))
        self._wake()
        await turn

    def _wake(self) -> None:
        now = self.clock
        while self._ends and (self._ends[0][0] <= now + 1e-6 or self._ends[0][2].done()):
            turn = heapq.heappop(self._ends)[2]
            if not turn.done():
                turn.set_result(None)
        if self._timer:
            self._timer.cancel()
        self._timer = None
        if self._ends:
            wait = (self._ends[0][0] - now) / self._speed
            self._timer = asyncio.get_running_loop().call_later(wait, self._wake)


class Upstream:
    """Answers "question ID" with responses to it, in a random order of its own that begins again when it ends.

    "question ID again 1" has another order.
    """

    def __init__(
        self,
        pools: list[str],
        tokens_per_second: float = 0.0,
        slots: int = 1_000_000,
        halved_by: float = math.inf,
        faults: float = 0.0,
        log: str | None = None,
    ) -> None:
        self.questions = {one.id: one for pool in pools for one in suffice.load_pool(pool).questions}
        self.tokens_per_second = tokens_per_second
        self.faults = faults
        self.log = open(log, "a", buffering=1) if log else None  # noqa: PTH123, SIM115
        self.engine = Engine(tokens_per_second, slots, halved_by)
        self.wordy = halved_by < math.inf
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
                Route("/metrics", self.metrics),
            ]
        )

    async def reset(self, request: Request) -> Response:
        """Begin again with every question's first response, so that methods draw the same."""
        self.left.clear()
        return Response(status_code=204)

    def metrics(self, request: Request) -> Response:
        """What vLLM calls them."""
        told = {"generation_tokens_total": self.tokens, "num_requests_running": self.engine.running}
        return Response("".join(f"vllm:{name} {value}\n" for name, value in told.items()))

    async def complete(self, request: Request) -> Response:
        body = json.loads(await request.body())
        self.requests += 1
        if self.log:
            self.log.write(f"{body.get('user')} {time.time():.3f}\n")
        if self.random.random() < self.faults:
            return Response("overloaded", 503)
        content, most = body["messages"][-1]["content"], body.get("max_tokens") or math.inf
        drawn = [cut(self.draw(content), most) for _ in range(body.get("n") or 1)]
        if body.get("stream"):
            return StreamingResponse(self.stream(drawn[0]), media_type="text/event-stream")
        lasted = await self.watched(request, asyncio.gather(*(self.generate(one.tokens) for one in drawn)))
        if lasted is None:
            return Response(status_code=499)
        messages = [{"role": "assistant", "content": self.text(one.answer, one.tokens)} for one in drawn]
        choices = [
            {"index": place, "message": message, "finish_reason": one.finish_reason}
            for place, (message, one) in enumerate(zip(messages, drawn, strict=True))
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

    async def stream(self, drawn: Drawn) -> AsyncIterator[bytes]:
        """The response in a few pieces, or token by token; one that nobody reads any more ends where it is."""
        tokens, word = drawn.tokens, self.event({"content": "word "}, None)
        step = 1 if self.wordy else max(1, int(self.tokens_per_second * 0.02))
        begun = await self.engine.start() if self.tokens_per_second else 0.0
        done = 0
        try:
            while done < tokens:
                yield word if self.wordy else self.event({"content": "" if done else " "}, None)
                done += min(step, tokens - done)
                if self.tokens_per_second:
                    await self.engine.until(begun + done)
            yield self.event({"content": self.text(drawn.answer, 0)}, None)
            yield self.event({}, drawn.finish_reason)
            usage = {"prompt_tokens": 20, "completion_tokens": tokens, "total_tokens": 20 + tokens}
            yield b"data: " + json.dumps({"choices": [], "usage": usage}).encode() + b"\n\ndata: [DONE]\n\n"
        finally:
            self.tokens += done
            if self.tokens_per_second:
                self.engine.end()

    def text(self, answer: str | None, tokens: int) -> str:
        """What is said, after as many words as there are tokens, where it is wordy."""
        said = "I give up." if answer is None else rf"So it is \boxed{{{answer}}}."
        return "word " * tokens + said if self.wordy else said

    @staticmethod
    def event(delta: dict[str, str], reason: str | None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"

    def draw(self, content: str) -> Drawn:
        named = re.match(r"question (\S+)( again \d+)?", content)
        if not named:
            return Drawn("42", 1)
        question, asked = self.questions[named[1]], named[0]
        if not self.left[asked]:
            order = random.Random(asked)  # the same for whoever begins after a reset
            self.left[asked] = order.sample(range(len(question.answers)), len(question.answers))
        chosen = self.left[asked].pop()
        return Drawn(question.answers[chosen], int(question.token_counts[chosen]))

    async def generate(self, tokens: int) -> int:
        """Take as long as the tokens do; where that is cut short, what was generated is counted all the same."""
        if not self.tokens_per_second:
            self.tokens += tokens
            return tokens
        begun = await self.engine.start()
        try:
            await self.engine.until(begun + tokens)
        finally:
            self.tokens += min(tokens, round(self.engine.clock - begun))
            self.engine.end()
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


def cut(drawn: Drawn, most: float) -> Drawn:
    """What is longer than it may be has no answer."""
    return drawn if drawn.tokens <= most else Drawn(None, int(most), "length")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--port", type=int, required=True)
    options.add_argument("--pool", action="append", default=[])
    options.add_argument("--tokens-per-second", type=float, default=0.0)
    options.add_argument("--slots", type=int, default=1_000_000)
    options.add_argument("--halved-by", type=float, default=math.inf, help="so many draws at once halve the speed")
    options.add_argument("--like-h200", action="store_true", help="as fast as vLLM is on an H200")
    options.add_argument("--faults", type=float, default=0.0)
    options.add_argument("--log", help="a file for the user and the time of each request")
    chosen = options.parse_args()
    given = {name: getattr(chosen, name) for name in LIKE_H200}
    speed = LIKE_H200 if chosen.like_h200 else given
    upstream = Upstream(chosen.pool, **speed, faults=chosen.faults, log=chosen.log)
    uvicorn.run(upstream.app, port=chosen.port, log_level="error", access_log=False, backlog=4096)


if __name__ == "__main__":
    main()
