"""A fake server that speaks every dialect, for testing what samples one: every reply is scripted, faults and all."""

import asyncio
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from typing import Any

from suffice.testing.replies import Stream, reply_at, stream_at, with_logprobs


@dataclass(frozen=True)
class Reply:
    r"""What the server does with a request: after `delay` seconds it sends the body.

    Of a body that is to be dropped it sends the first half and hangs up; of an endless one it sends the body for ever.

    >>> busy = Reply({"error": {"message": "busy"}}, status=429, headers={"retry-after": "1"})
    >>> with FakeServer(lambda request, number: busy if number == 0 else r"\boxed{42}") as server:
    ...     server.served
    0
    """

    body: bytes | dict[str, Any] = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    dropped: bool = False
    endless: bool = False


Script = Callable[[dict[str, Any], int], Reply | str | Sequence[str | None]]
"""From a request's body, and how many there were before it, to the reply, or to the text of the choices.

>>> script: Script = lambda request, number: ["7"] * (request.get("n") or 1) if number else Reply(status=503)
>>> script({}, 0).status, script({"n": 2}, 1)
(503, ['7', '7'])
"""


MOST_DRAWS = 1000
"""A request for more draws than this is taken for nonsense, and gets one."""


class FakeServer(AbstractContextManager["FakeServer"]):
    r"""Serves a script on a port of this machine, a free one unless it is named, in a thread of its own.

    It lists its models; one that has none lets nobody in who asks for them. Where log probabilities are asked for, a
    text that is scripted comes with them: `logprob` gives that of each of its tokens, and None leaves them out.

    >>> with FakeServer(lambda request, number: r"\boxed{42}") as server:
    ...     server.base_url.startswith("http://127.0.0.1:")
    True
    """

    def __init__(
        self,
        script: Script,
        *,
        remember: bool = True,
        streams: bool = False,
        port: int = 0,
        models: Sequence[str] = ("fake",),
        logprob: Callable[[str], float] | None = lambda text: -len(text) / 100,
    ) -> None:
        self.requests: list[dict[str, Any]] = []
        self.bodies: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.served = 0
        """How many requests there were; their bodies and headers are remembered unless told otherwise."""
        self.connections = 0
        self.in_flight = 0
        self.most_in_flight = 0
        """The most draws that were wanted at one moment."""
        self.hung_up = 0
        """How many clients went away before they had their reply."""
        self._script = script
        self._port = port
        self._models = models
        self._logprob = logprob
        self._remember = remember
        self._streams = streams
        self.generated = 0
        """How many pieces of streams were sent."""
        self._started = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)
        self._thread.start()
        self._started.wait()

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Hang up on everybody."""
        self._loop.call_soon_threadsafe(self._ending.set)
        self._thread.join()

    async def _serve(self) -> None:
        self._loop, self._ending = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._accept, "127.0.0.1", self._port, backlog=4096)
        self.base_url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        self._started.set()
        await self._ending.wait()
        for listening in server.sockets:
            self._loop.remove_reader(listening.fileno())
        for _ in range(5):  # whoever was let in a moment ago has a handler by then, which ends with this loop
            await asyncio.sleep(0)
        server.close()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while await self._answer(reader, writer):
                pass
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self.connections -= 1
            if self._ending.is_set():  # nobody waits until all is sent
                writer.transport.abort()
            else:
                writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; whether the connection stays open for another."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        fields = (line.partition(":") for line in head[1:] if line)
        headers = {name.lower(): value.strip() for name, _, value in fields}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        if head[0].startswith("GET"):
            models = [{"id": name, "object": "model"} for name in self._models]
            writer.write(_http(Reply({"object": "list", "data": models}) if models else Reply({}, 401)))
            return True
        path = head[0].split()[1]
        request: dict[str, Any] = {}
        with suppress(ValueError, RecursionError):
            request = json.loads(body)
        request = request if isinstance(request, dict) else {}
        number = self.served
        self.served += 1
        if self._remember:
            self.requests.append(request)
            self.bodies.append(body)
            self.headers.append(headers)
            self.paths.append(path)
        wanted = request.get("n")
        draws = wanted if isinstance(wanted, int) and 0 < wanted <= MOST_DRAWS else 1
        self.in_flight += draws
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            where, _, _ = path.partition("?")
            reply = self._script(request, number)
            if isinstance(reply, str):
                reply = [reply] * draws
            if not isinstance(reply, Reply):
                reply = Reply(with_logprobs(reply_at(where, reply), request, self._logprob))
            if self._streams and request.get("stream") and isinstance(reply.body, dict) and reply.status == 200:
                return await self._stream(reader, writer, reply, stream_at(where, reply.body))
            return not await self._left(reader, reply.delay) and await self._send(writer, reply)
        finally:
            self.in_flight -= draws

    async def _stream(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, reply: Reply, stream: Stream
    ) -> bool:
        """Send the first choice word by word, which takes as long as the reply's delay, and then the usage."""
        before, pieces, after = stream
        writer.write(_head(200, {"content-type": "text/event-stream", "connection": "close"} | reply.headers))
        writer.write(before)
        for place, piece in enumerate(pieces):
            if reply.dropped and place >= len(pieces) // 2:
                return False
            if await self._left(reader, reply.delay / len(pieces)):
                return False
            writer.write(piece)
            self.generated += 1
        writer.write(after)
        await writer.drain()
        return False

    async def _left(self, reader: asyncio.StreamReader, delay: float) -> bool:
        """Wait, and tell whether the client went away meanwhile."""
        if delay > 0:
            with suppress(TimeoutError):
                await asyncio.wait_for(reader.read(1), delay)
                self.hung_up += 1
                return True
        return False

    async def _send(self, writer: asyncio.StreamWriter, reply: Reply) -> bool:
        data = _http(reply)
        if reply.endless:
            try:
                while True:
                    writer.write(data)
                    await writer.drain()
                    data = reply.body if isinstance(reply.body, bytes) else b" "
            except OSError:
                self.hung_up += 1
            return False
        writer.write(data[: len(data) // 2] if reply.dropped else data)
        await writer.drain()
        return not reply.dropped


def _http(reply: Reply) -> bytes:
    body = json.dumps(reply.body).encode() if isinstance(reply.body, dict) else reply.body
    headers = {"content-type": "application/json"} | reply.headers
    if not reply.endless:
        headers["content-length"] = str(len(body))
    return _head(reply.status, headers) + body


def _head(status: int, headers: Mapping[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {status} -", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    return "\r\n".join(lines).encode()
