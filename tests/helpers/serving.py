"""`suffice serve` as a real process."""

import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import httpx

from helpers.commands import SUFFICE
from helpers.gateways import free_port


@contextmanager
def serving(*options: str, before: Sequence[str] = (), **variables: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Its URL once it answers, and the process; it lets nobody wait at its end unless the options say otherwise."""
    port = free_port()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OPENAI_")} | variables
    ending = () if "--unready-seconds" in options else ("--unready-seconds", "0")
    command = [SUFFICE, *before, "serve", "--port", str(port), *ending, *options]
    process = subprocess.Popen(command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    url = f"http://127.0.0.1:{port}"
    end = time.monotonic() + 150
    while True:
        try:
            httpx.get(f"{url}/healthz")
            break
        except httpx.HTTPError:
            assert process.poll() is None and time.monotonic() < end, process.communicate()
            time.sleep(0.1)
    try:
        yield url, process
    finally:
        process.terminate()
        process.communicate(timeout=60)
