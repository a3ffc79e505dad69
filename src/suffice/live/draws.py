"""The draws of one question, in order of arrival."""

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, NamedTuple

from suffice.live.dialects.base import StreamReader
from suffice.live.servers.hosts import DrawRequest
from suffice.live.servers.server import DrawError, Server
from suffice.live.tracing import TRACING, Span
from suffice.response import Response
from suffice.tally import Tally

SHORT = 32  # tokens of an answer that is asked for alone, at most


@dataclass(frozen=True)
class Failure:
    """A draw that failed for good."""

    message: str
    draw: int
    cause: Exception | None = None


class Unfinished(NamedTuple):
    """What draws have generated that is in no response."""

    arriving: int = 0  # tokens so far of draws in flight that stream
    cancelled: int = 0  # tokens of draws that were cancelled
    runs_on: bool = False  # whether the server does not stream, so that a cancelled draw may run on there
    prompts: int = 0  # requests that were cancelled, each of which sent the prompt
    untaken: int = 0  # draws that were cancelled while no server had them, as between two tries


class Draws(ABC):
    """A source of responses to one question, whose tasks put them into a queue."""

    def __init__(self) -> None:
        self._in_flight = 0
        self._arrived: asyncio.Queue[Response | Failure | Exception] = asyncio.Queue()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def in_flight(self) -> int:
        """The number of draws launched and not yet taken."""
        return self._in_flight

    @property
    def unfinished(self) -> Unfinished:
        return Unfinished()

    @property
    def ready(self) -> int:
        """The number of those in flight that have arrived."""
        return self._arrived.qsize()

    @property
    @abstractmethod
    def room(self) -> int:
        """The number of draws that the server can take now without getting much slower."""

    @abstractmethod
    def launch(self, draws: int, tally: Tally, *, single: bool = False, streamed: bool = False) -> list[int]:
        """Start draws; `single` ones arrive alone, and `streamed` ones can be cancelled. Return their numbers."""

    def _begin(self, draws: int, work: Callable[..., Awaitable[Any]], *arguments: Any) -> asyncio.Task[None]:
        async def bring() -> None:
            try:
                await work(*arguments)
            except Exception as error:  # a mistake in the request, or in this program
                self._arrived.put_nowait(error)

        task = asyncio.create_task(bring())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        self._in_flight += draws
        return task

    async def next(self) -> Response | Failure:
        arrived = await self._arrived.get()
        if isinstance(arrived, Exception):
            raise arrived
        self._in_flight -= 1
        return arrived

    async def close(self) -> None:
        """Cancel what is in flight."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            # To be cancelled meanwhile must not disturb the tasks: they are closing their connections.
            await asyncio.wait(self._tasks)
        self._in_flight, self._arrived = 0, asyncio.Queue()  # an audit may launch more


class ServerDraws(Draws):
    """Draws from a server: one request for many if it honours `n`, else one for each."""

    def __init__(
        self,
        server: Server,
        request: DrawRequest,
        numbers: Iterator[int],
        follow_up: str | None = None,
    ) -> None:
        super().__init__()
        self._cancelled_tokens = self._cancelled_prompts = self._untaken = 0
        self._runs_on = False
        self._server = server
        self._request = request
        self._follow_up = follow_up
        self._numbers = numbers
        self._readers: list[StreamReader] = []
        self._spans: dict[int, Span] = {}

    @property
    def unfinished(self) -> Unfinished:
        arriving = sum(reader.generated for reader in self._readers)
        return Unfinished(arriving, self._cancelled_tokens, self._runs_on, self._cancelled_prompts, self._untaken)

    @property
    def room(self) -> int:
        host = self._server.host
        return host.capabilities.pace.most_idle - host.demand

    def launch(self, draws: int, tally: Tally, *, single: bool = False, streamed: bool = False) -> list[int]:
        numbers = list(islice(self._numbers, draws))
        common = self._request
        for number in numbers:
            self._spans[number] = TRACING.begin("chat", common.fields, self._server.dialect, role="draw", draw=number)
        request = replace(common, single=common.single or single, streamed=common.streamed or streamed)
        task = self._begin(draws, self._draw, numbers, request)
        # These count at once: whoever decides in the same moment must know of them.
        pace = self._server.capabilities.pace
        pace.add(draws)
        task.add_done_callback(lambda _: pace.add(-draws))
        return numbers

    async def close(self) -> None:
        await super().close()
        for span in self._spans.values():
            span.failed(asyncio.CancelledError(), "")
            span.end()
        self._spans.clear()

    async def _draw(self, numbers: list[int], request: DrawRequest) -> bool:
        """Draw these numbers; return whether any could be had."""
        most = self._server.most_at_once(request)
        if len(numbers) > most:
            pieces = (self._draw(numbers[start : start + most], request) for start in range(0, len(numbers), most))
            return any(await asyncio.gather(*pieces))
        begun = time.monotonic()
        reader = self._reader(numbers, request)
        self._readers.append(reader)
        if len(numbers) > 1:
            for number in numbers:
                self._spans[number].set({"gen_ai.request.choice.count": len(numbers)})
        try:
            with self._spans[numbers[0]].current():  # the server goes on from the first
                responses = await self._server.ask(request, numbers, reader)
        except DrawError as error:
            if error.refused and len(numbers) > 1:
                return await self._draw_fewer(numbers, request, error)
            self._fail(numbers, error)
            return False
        except asyncio.CancelledError:
            if not reader.sent:
                self._untaken += len(numbers)
                raise
            self._cancelled_prompts += 1
            if request.streamed:
                self._cancelled_tokens += reader.generated
            else:
                pace = self._server.capabilities.pace
                self._cancelled_tokens += pace.tokens_in(time.monotonic() - begun, len(numbers))
                self._runs_on = True
            raise
        finally:
            self._readers.remove(reader)
        self._runs_on |= request.streamed and not reader.streamed
        if self._follow_up:
            responses = await asyncio.gather(*map(self._asked_for_the_answer, responses))
        for response in responses:
            self._arrive(response.draw, response)
        if len(responses) < len(numbers):
            self._server.capabilities.learn_most(request, len(responses))
            await self._draw(numbers[len(responses) :], request)
        return True

    def _reader(self, numbers: Sequence[int], request: DrawRequest) -> StreamReader:
        return StreamReader(self._server.dialect, request.signals)

    async def _asked_for_the_answer(self, response: Response) -> Response:
        """Ask the model for its answer alone; return the response with it."""
        dialect, fields = self._server.dialect, self._request.fields
        said = {"role": "assistant", "content": response.said or ""}, {"role": "user", "content": self._follow_up}
        asked = {"model": fields.get("model"), **dialect.fields([*dialect.messages(fields), *said])}
        short = DrawRequest({**asked, dialect.limit: SHORT, "temperature": 0})
        try:
            (final,) = await self._server.ask(short, [0], StreamReader(dialect))
        except DrawError:
            return response
        return replace(
            response,
            final=final.text if final.is_complete else None,
            tokens=None if response.tokens is None else response.tokens + (final.tokens or 0),
            seconds=response.seconds + final.seconds,
            prompt_tokens=response.prompt_tokens + final.prompt_tokens,
            final_tokens=0 if response.tokens is None else final.tokens or 0,
            final_prompt_tokens=final.prompt_tokens,
        )

    async def _draw_fewer(self, numbers: list[int], request: DrawRequest, error: DrawError) -> bool:
        """Draw half as many at once: perhaps the server refused their number alone."""
        half = len(numbers) // 2
        if not await self._draw(numbers[:half], request):
            self._fail(numbers[half:], error)
            return False
        self._server.capabilities.learn_most(request, half, str(error))
        await self._draw(numbers[half:], request)
        return True

    def _fail(self, numbers: list[int], error: DrawError) -> None:
        for number in numbers:
            self._arrive(number, Failure(str(error), number, error.cause))

    def _arrive(self, number: int, arrived: Response | Failure) -> None:
        span, host = self._spans.pop(number), self._server.host.name
        span.brought(arrived if isinstance(arrived, Response) else None, host)
        if isinstance(arrived, Failure):
            span.failed(arrived.cause, arrived.message)
        span.end()
        self._arrived.put_nowait(arrived)
