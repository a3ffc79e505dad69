"""The gateway for hours in minutes: many clients, upstreams that are killed, keys, hostile bodies,
reloads, and a drain and restart in the middle; whether anything is lost, anything leaks, and memory grows.

python benchmarks/soak_gateway.py [--minutes 10] [--clients 300]
"""

import argparse
import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any, TextIO

import httpx
from failover import Mortal, until_ready
from gateway import POOL, free_port

import suffice
from suffice.gateway.keys import add_key

KILLS = 10
"""How often an upstream is killed in the whole time: every minute in ten minutes."""

HOSTILE = [
    b"", b"{", b"null", b"[]", b'{"model": "pool"}', b'{"messages": 7}', "{}".encode("utf-16"), b"\xff\xfe\x00",
    b'{"model": "pool", "messages": [{"role": "user", "content": "hi"}], "n": "500"}',
    b'{"model": "pool", "messages": [{"role": "user", "content": "hi"}], "suffice": {"budget": 1e99}}',
    b'{"model": "pool", "messages": ' + b"[" * 100_000, b"{" + b'"a":{' * 50_000,
]  # fmt: skip

GAUGES = ("suffice_draws_in_flight", "suffice_requests_in_progress", "suffice_requests_queued")


class Run:
    """One gateway after the other on the same port, in front of two upstreams."""

    def __init__(self, folder: Path, upstreams: list[Mortal], workers: int) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = folder / "gateway.log"
        self.is_ending = False
        self._folder = folder
        self._workers = workers
        self._upstreams = upstreams
        self.keys = [add_key(folder / "keys", f"client-{number}") for number in range(9)]
        self._out: TextIO = self.log.open("a")

    async def start(self) -> None:
        command = [sys.executable, "-m", "suffice", "serve", "--port", str(self.port)]
        for one in self._upstreams:
            command += ["--upstream", f"http://127.0.0.1:{one.port}/v1"]
        command += ["--keys", str(self._folder / "keys"), "--state", str(self._folder / "state")]
        command += ["--workers", str(self._workers), "--vote", "always", "--drain-seconds", "20"]
        self.process = subprocess.Popen(command, stdout=self._out, stderr=self._out)
        await self._until_healthy()
        self.is_ending = False

    async def _until_healthy(self) -> None:
        async with httpx.AsyncClient(trust_env=False) as http:
            while True:
                try:
                    await http.get(f"{self.url}/healthz")
                    return
                except httpx.HTTPError:
                    await asyncio.sleep(0.1)

    async def drain(self) -> float:
        """How many seconds it took to end."""
        begun = time.monotonic()
        self.is_ending = True
        self.process.send_signal(signal.SIGTERM)
        while self.process.poll() is None:
            await asyncio.sleep(0.02)
        return time.monotonic() - begun

    def reload(self) -> None:
        self.process.send_signal(signal.SIGHUP)

    def state(self) -> tuple[int, int]:
        """Memory in MB that is its own, and open descriptors, of all its processes."""
        memory = descriptors = 0
        for process in [self.process.pid, *_children(self.process.pid)]:
            folder = Path(f"/proc/{process}")
            try:
                told = dict(line.split(":", 1) for line in (folder / "smaps_rollup").read_text().splitlines()[1:])
                memory += int(told["Pss"].split()[0])
                descriptors += len(list((folder / "fd").iterdir()))
            except OSError:
                continue
        return memory >> 10, descriptors

    async def gauges(self) -> dict[str, float]:
        async with httpx.AsyncClient(trust_env=False, timeout=60) as http:
            lines = (await http.get(f"{self.url}/metrics")).text.splitlines()
        return {name: float(line.split()[1]) for name in GAUGES for line in lines if line.startswith(f"{name} ")}


def _children(process: int) -> list[int]:
    try:
        found = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    except OSError:
        return []
    return [one for child in found for one in (int(child), *_children(int(child)))]


class Trace:
    """Whether a request had to make a connection, or went over one that was kept."""

    def __init__(self) -> None:
        self.is_new = False

    async def __call__(self, event: str, about: dict[str, Any]) -> None:
        self.is_new |= event == "connection.connect_tcp.started"


class Clients:
    """What the clients meet with."""

    def __init__(self, run: Run) -> None:
        self.replies: Counter[str] = Counter()
        self.lost: Counter[str] = Counter()
        self.refused = self.closed = 0
        self.seconds: list[float] = []
        self._run = run
        self._questions = suffice.load_pool(POOL).questions

    async def work(self, number: int, http: httpx.AsyncClient, end: float) -> None:
        chance = random.Random(number)
        while time.monotonic() < end:
            await self.ask(chance, http)

    async def ask(self, chance: random.Random, http: httpx.AsyncClient) -> None:
        content = f"question {chance.choice(self._questions).id}"
        body = {"model": "pool", "messages": [{"role": "user", "content": content}], "stream": chance.random() < 0.3}
        hostile = chance.random() < 0.01
        sent = chance.choice(HOSTILE) if hostile else json.dumps(body).encode()
        key = chance.choice(self._run.keys)
        headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
        patience = 0.05 if chance.random() < 0.02 else 120.0
        begun = time.monotonic()
        url = f"{self._run.url}/v1/chat/completions"
        while True:  # who is refused a connection asks again: nobody has heard of the request
            trace = Trace()
            try:
                async with asyncio.timeout(patience):
                    reply = await http.post(url, content=sent, headers=headers, extensions={"trace": trace})
            except httpx.ConnectError:
                self.refused += 1
                await asyncio.sleep(0.5)
            except TimeoutError:
                self.replies["hung up" if patience < 1 else "no reply in 120 s"] += 1
                return
            except (httpx.ReadError, httpx.RemoteProtocolError, httpx.WriteError) as error:
                if trace.is_new or not self._run.is_ending:
                    self.lost[f"{type(error).__name__} on {'a new' if trace.is_new else 'a kept'} connection"] += 1
                    return
                self.closed += 1  # an idle connection was closed while the request was on the way: so is this one
            except httpx.HTTPError as error:
                self.lost[f"{type(error).__name__}: {error}"] += 1
                return
            else:
                break
        self.seconds.append(time.monotonic() - begun)
        self.replies[_what(reply, hostile, bool(body["stream"]))] += 1
        if reply.status_code == 429:
            await asyncio.sleep(1)


def _what(reply: httpx.Response, hostile: bool, streamed: bool) -> str:
    if hostile:
        return f"hostile: {reply.status_code}"
    if reply.status_code != 200:
        return str(reply.status_code)
    if not streamed:
        return "200" if "choices" in reply.json() else "200 but no answer"
    if '"error"' in reply.text:
        return "200, ended by an error event"
    return "200" if "[DONE]" in reply.text else "200 but cut off"


async def kill_in_turn(upstreams: list[Mortal], period: float, end: float) -> None:
    for number in range(KILLS):
        await asyncio.sleep(period * 0.7)
        one = upstreams[number % 2]
        one.kill()
        await asyncio.sleep(min(5.0, period * 0.3))
        one.start()
        await until_ready(one.port)
        if time.monotonic() + period > end:
            return


async def disturb(run: Run, period: float, end: float, told: list[str]) -> None:
    """Reload twice in each period, and drain and restart in the middle."""
    middle = (time.monotonic() + end) / 2
    while time.monotonic() < end - period / 2:
        await asyncio.sleep(period / 2)
        if middle and time.monotonic() > middle:
            middle = 0.0
            told.append(f"drained in {await run.drain():.1f} s, ended with {run.process.returncode}")
            await run.start()
            continue
        run.reload()


async def report(run: Run, clients: Clients, begun: float, end: float, rows: list[tuple[int, int]]) -> None:
    step = (end - begun) / 10
    print("| seconds | replies | lost | refused, asked again | memory (MB) | descriptors |\n|---|---|---|---|---|---|")
    for number in range(1, 11):
        await asyncio.sleep(max(0.0, begun + number * step - time.monotonic()))
        rows.append(run.state())
        count = sum(clients.replies.values())
        cells = [round(number * step), count, sum(clients.lost.values()), clients.refused, *rows[-1]]
        print(f"| {' | '.join(map(str, cells))} |", flush=True)


async def soak(run: Run, upstreams: list[Mortal], minutes: float, count: int) -> bool:
    await run.start()
    before = run.state()
    clients, told, rows = Clients(run), list[str](), list[tuple[int, int]]()
    begun = time.monotonic()
    end, period = begun + 60 * minutes, 60 * minutes / KILLS
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(timeout=300, limits=limits, trust_env=False) as http:
        await asyncio.gather(
            kill_in_turn(upstreams, period, end),
            disturb(run, period, end, told),
            report(run, clients, begun, end, rows),
            *(clients.work(number, http, end) for number in range(count)),
        )
    for _ in range(100):
        gauges = await run.gauges()
        if not any(gauges.values()):
            break
        await asyncio.sleep(0.1)
    after = run.state()
    told.append(f"drained in {await run.drain():.1f} s, ended with {run.process.returncode}")
    lines = [line for line in run.log.read_text().splitlines() if '"path": "/v1/chat/completions"' in line]
    others = [line for line in run.log.read_text().splitlines() if not line.startswith("{")]
    seconds = sorted(clients.seconds)
    print(f"\n{count} clients for {minutes:g} minutes, {len(upstreams[0].deaths) + len(upstreams[1].deaths)} kills")
    print(f"replies: {dict(clients.replies.most_common())}; lost: {dict(clients.lost)}")
    print(
        f"asked again: {clients.refused} times refused during the restart, {clients.closed} on an idle connection that"
    )
    print(f"was closed while the request was on the way; {'; '.join(told)}")
    replies = sum(clients.replies.values()) - clients.replies["hung up"]
    print(f"{replies} replies, {len(lines)} lines in the log, {len(others)} other lines in it")
    print(f"p50 {seconds[len(seconds) // 2]:.2f} s, p99 {seconds[int(0.99 * len(seconds))]:.2f} s")
    print(f"memory and descriptors: {before} at first, {rows} under load, {after} at rest; still under way: {gauges}")
    for line in others[-20:]:
        print("  log:", line)
    return not clients.lost and not any(gauges.values())


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--minutes", type=float, default=10)
    options.add_argument("--clients", type=int, default=300)
    options.add_argument("--workers", type=int, default=2)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        upstreams = [Mortal(folder / f"upstream-{number}.log") for number in (1, 2)]
        run = Run(folder, upstreams, chosen.workers)
        try:
            for one in upstreams:
                asyncio.run(until_ready(one.port))
            held = asyncio.run(soak(run, upstreams, chosen.minutes, chosen.clients))
        finally:
            for one in upstreams:
                one.kill()
            if run.process.poll() is None:
                os.kill(run.process.pid, signal.SIGKILL)
    sys.exit(not held)


if __name__ == "__main__":
    main()
