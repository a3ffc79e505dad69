"""Votes on whatever a coroutine function answers: for models that are reached in another way than by a server."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace

import numpy as np

from suffice.answers import Extractor, Read, get_extractor
from suffice.controllers import Controller, get_controller
from suffice.live.draws import Failure
from suffice.live.outcome import Outcome
from suffice.live.vote import Vote, Voting
from suffice.response import Response

Ask = Callable[[int], Awaitable[Response]]
"""One response, by the number of its draw."""


async def vote_on(
    ask: Ask,
    question: str,
    *,
    controller: str | Controller = "plan",
    budget: int,
    answer: str | Extractor | Read = "auto",
    concurrency: int,
) -> Outcome:
    """Ask just enough times; `question` is what the answers are read in the light of."""
    extractor = get_extractor(answer).for_request([{"role": "user", "content": question}])
    voting = Voting(get_controller(controller), extractor, budget)
    return await Vote(voting, CalledDraws(ask, concurrency), np.random.default_rng()).outcome()


class CalledDraws:
    """Draws that are calls, so many at once; one that raises is a failure."""

    arriving_tokens = cancelled_tokens = 0
    runs_on = False

    def __init__(self, ask: Ask, concurrency: int) -> None:
        self.in_flight = 0
        self._ask = ask
        self._slots = asyncio.Semaphore(concurrency)
        self._launched = 0
        self._arrived: asyncio.Queue[Response | Failure] = asyncio.Queue()
        self._tasks: set[asyncio.Task[None]] = set()

    def launch(self, draws: int) -> list[int]:
        """Start so many draws, in parallel; their numbers."""
        numbers = list(range(self._launched, self._launched + draws))
        for number in numbers:
            task = asyncio.create_task(self._draw(number))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        self._launched += draws
        self.in_flight += draws
        return numbers

    async def next(self) -> Response | Failure:
        """Wait for the next draw to arrive, and take it."""
        arrived = await self._arrived.get()
        self.in_flight -= 1
        return arrived

    async def close(self) -> None:
        """End what is in flight, at once."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _draw(self, number: int) -> None:
        async with self._slots:
            begun = time.monotonic()
            try:
                response = await self._ask(number)
            except Exception as error:  # whatever a model of somebody else's raises
                self._arrived.put_nowait(Failure(str(error) or type(error).__name__, number, error))
            else:
                self._arrived.put_nowait(replace(response, draw=number, seconds=time.monotonic() - begun))
