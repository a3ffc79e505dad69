"""`suffice serve` as a real process."""

import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from tempfile import NamedTemporaryFile, TemporaryFile
from typing import IO

import httpx

from helpers.commands import SUFFICE
from helpers.gateways import free_port


@contextmanager
def serving(
    *options: str, before: Sequence[str] = (), log: list[str] | None = None, **variables: str
) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Its URL once it answers, and the process; it lets nobody wait at its end unless the options say otherwise.

    At its end its lines are added to the log.
    """
    port = free_port()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OPENAI_")} | variables
    url = f"http://127.0.0.1:{port}"
    # A pipe that nobody reads would fill, and hold it up.
    with TemporaryFile("w+") as said, NamedTemporaryFile("w", suffix=".toml") as config:
        config.write("unready_seconds = 0\n")
        config.flush()
        ending = () if "--config" in options else ("--config", config.name)
        command = [SUFFICE, *before, "serve", "--port", str(port), *ending, *options]
        process = subprocess.Popen(command, env=environment, text=True, stdout=said, stderr=subprocess.STDOUT)
        try:
            end = time.monotonic() + 150
            while not _answers(url):
                assert process.poll() is None and time.monotonic() < end, _read(said)
                time.sleep(0.1)
            yield url, process
        finally:
            process.terminate()
            process.wait(60)
            if log is not None:
                log += _read(said).splitlines()


def _answers(url: str) -> bool:
    with suppress(httpx.HTTPError):
        httpx.get(f"{url}/healthz")
        return True
    return False


def _read(said: IO[str]) -> str:
    said.seek(0)
    return said.read()
