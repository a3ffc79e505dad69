"""What several tests need: pools made up on the spot, and the real ones where they are at hand."""

import json
import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import settings

from suffice import Pool, Question

settings.register_profile("suffice", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("suffice")

SHARED_POOLS = Path(__file__).parents[2] / "shared" / "pools"


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


def make_pool(*answers: Sequence[str | None], gold: str | None = "a", tokens: int | None = 10) -> Pool:
    """A pool with these answers, all of the same length."""
    return Pool(
        "toy",
        tuple(
            Question(f"q{number}", gold, tuple(given), None if tokens is None else (tokens,) * len(given))
            for number, given in enumerate(answers)
        ),
    )


@pytest.fixture(autouse=True, scope="session")
def cache_folder(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Tests keep their tables to themselves."""
    os.environ["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="session", autouse=True)
def interruptible() -> None:
    """Ctrl-C works here and in processes started from here, also where this one was started in the background."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
