"""Votes on whatever a coroutine function answers: for models that are reached in another way than by a server."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace

import numpy as np

from suffice.errors import OptionError
from suffice.live.draws import Failure, QueuedDraws, Unfinished
from suffice.live.outcome import Outcome
from suffice.live.sampling import Sampling
from suffice.live.vote import Vote
from suffice.response import Response
from suffice.tally import Tally

Ask = Callable[[int], Awaitable[Response]]
"""One response, by the number of its draw."""


async def vote_on(ask: Ask, question: str, sampling: Sampling) -> Outcome:
    """Ask just enough times.

    Args:
        ask: Gives one response, by the number of its draw; it is called again for each.
        question: What the answers are read in the light of.
        sampling: How to ask; retries and timeouts are for `ask` to see to.

    Returns:
        The outcome.

    Raises:
        OptionError: where log probabilities are wanted, which such models don't tell.
        SampleError: where all draws of a round failed.
    """
    if sampling.voting.wants_signals:
        raise OptionError("can't be had: the model tells no log probabilities", "signals")
    extractor = sampling.extractor.for_request([{"role": "user", "content": question}])
    voting = replace(sampling.voting, extractor=extractor)
    vote = Vote(voting, CalledDraws(ask, sampling.concurrency), np.random.default_rng())
    return await vote.outcome(sampling.deadline_seconds)


class CalledDraws(QueuedDraws):
    """Draws that are calls, so many at once; one that raises is a failure."""

    unfinished = Unfinished()

    def __init__(self, ask: Ask, concurrency: int) -> None:
        super().__init__()
        self._ask = ask
        self._concurrency = concurrency
        self._slots = asyncio.Semaphore(concurrency)
        self._launched = 0

    @property
    def room(self) -> int:
        """How many more calls may be under way."""
        return self._concurrency - self.in_flight

    def launch(
        self, draws: int, tally: Tally | None = None, *, single: bool = True, streamed: bool = False
    ) -> list[int]:
        """Start so many draws, in parallel; their numbers. Each is a call of its own in any case."""
        numbers = list(range(self._launched, self._launched + draws))
        for number in numbers:
            self._begin(self._draw(number), 1)
        self._launched += draws
        return numbers

    async def _draw(self, number: int) -> None:
        async with self._slots:
            begun = time.monotonic()
            try:
                response = await self._ask(number)
            except Exception as error:  # whatever a model of somebody else's raises
                self._arrived.put_nowait(Failure(str(error) or type(error).__name__, number, error))
            else:
                self._arrived.put_nowait(replace(response, draw=number, seconds=time.monotonic() - begun))
