"""The draws of one question: launched by the controller's word, and taken as they arrive."""

import asyncio
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import count, islice
from typing import Protocol

from suffice.live.dialects.base import Meter
from suffice.live.facts import Asking
from suffice.live.server import DrawError, Server
from suffice.live.tracing import TRACING
from suffice.response import Response


@dataclass(frozen=True)
class Failure:
    """A draw that failed for good."""

    message: str
    draw: int
    cause: Exception | None = None


class Draws(Protocol):
    """A source of responses to one question."""

    @property
    def in_flight(self) -> int:
        """How many draws were launched and not yet taken."""

    @property
    def arriving_tokens(self) -> int:
        """What the draws in flight have generated so far, where they stream."""

    @property
    def cancelled_tokens(self) -> int:
        """What draws had generated that were ended before they arrived."""

    @property
    def runs_on(self) -> bool:
        """Whether the server does not stream what it was asked to, so that draws that are ended may run on there."""

    def launch(self, draws: int) -> list[int]:
        """Start so many draws, in parallel; their numbers."""

    async def next(self) -> Response | Failure:
        """Wait for the next draw to arrive, and take it."""

    async def close(self) -> None:
        """End what is in flight, at once."""


class ServerDraws:
    """Draws from a server: one request for many where it honours `n`, else one for each."""

    def __init__(self, server: Server, asking: Asking, numbers: Iterable[int] | None = None) -> None:
        self.in_flight = 0
        self.cancelled_tokens = 0
        self.runs_on = False
        self._server = server
        self._asking = asking
        self._numbers = iter(count() if numbers is None else numbers)
        self._arrived: asyncio.Queue[Response | Failure | Exception] = asyncio.Queue()
        self._tasks: set[asyncio.Task[None]] = set()
        self._meters: list[Meter] = []
        self._traced = TRACING.draws(server.dialect, asking.fields)

    @property
    def arriving_tokens(self) -> int:
        """What the draws in flight have generated so far, where they stream."""
        return sum(meter.generated for meter in self._meters)

    def launch(self, draws: int) -> list[int]:
        """Start so many draws, in parallel; their numbers."""
        numbers = list(islice(self._numbers, draws))
        self._traced.launched(numbers)
        task = asyncio.create_task(self._start(numbers))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        self.in_flight += draws
        return numbers

    async def next(self) -> Response | Failure:
        """Wait for the next draw to arrive, and take it."""
        arrived = await self._arrived.get()
        if isinstance(arrived, Exception):
            raise arrived
        self.in_flight -= 1
        return arrived

    async def close(self) -> None:
        """End what is in flight, at once."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            # To be cancelled meanwhile must not disturb the tasks: they are closing their connections.
            await asyncio.wait(self._tasks)
        self._traced.closed()

    async def _start(self, numbers: list[int]) -> None:
        try:
            await self._draw(numbers)
        except Exception as error:  # a mistake in the request, or in this program: whoever waits must know
            self._arrived.put_nowait(error)

    async def _draw(self, numbers: list[int]) -> bool:
        """Bring the draws of these numbers in; False where none of them could be had."""
        most = self._server.most_at_once(self._asking)
        if len(numbers) > most:
            pieces = (self._draw(numbers[start : start + most]) for start in range(0, len(numbers), most))
            return any(await asyncio.gather(*pieces))
        begun = time.monotonic()
        meter = self._server.dialect.meter()
        self._meters.append(meter)
        try:
            with self._traced.asking(numbers):
                responses = await self._server.ask(self._asking, numbers, meter)
        except DrawError as error:
            if error.refused and len(numbers) > 1:
                return await self._draw_fewer(numbers, error)
            self._fail(numbers, error)
            return False
        except asyncio.CancelledError:
            self.cancelled_tokens += meter.generated
            raise
        finally:
            self._meters.remove(meter)
        self.runs_on |= self._asking.streamed and not meter.streamed
        seconds = round(time.monotonic() - begun, 3)
        for number, response in zip(numbers, responses, strict=False):
            self._arrive(number, replace(response, draw=number, seconds=seconds))
        if len(responses) < len(numbers):
            self._server.facts.gave(self._asking, len(responses))
            await self._draw(numbers[len(responses) :])
        return True

    async def _draw_fewer(self, numbers: list[int], error: DrawError) -> bool:
        """Half as many at once: perhaps the server refused their number and nothing else."""
        half = len(numbers) // 2
        if not await self._draw(numbers[:half]):
            self._fail(numbers[half:], error)
            return False
        self._server.facts.took(self._asking, half, str(error))
        await self._draw(numbers[half:])
        return True

    def _fail(self, numbers: list[int], error: DrawError) -> None:
        for number in numbers:
            self._arrive(number, Failure(str(error), number, error.cause))

    def _arrive(self, number: int, arrived: Response | Failure) -> None:
        self._traced.arrived(number, arrived, self._server.host.name)
        self._arrived.put_nowait(arrived)
