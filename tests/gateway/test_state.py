"""Where what is learned is kept: files that are whole at any moment, and lists that all see in one order."""

import multiprocessing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from helpers.gateways import ASK, always, gateway, post
from helpers.learners import learner_of
from helpers.live import until

from suffice.gateway.operations import state
from suffice.gateway.operations.state import FileState, SharedLog
from suffice.live.audits import Audit
from suffice.planning.learning import Learner
from suffice.testing import FakeServer

EASY = (3,)


def taught(times: int) -> Learner:
    learner = Learner()
    for _ in range(times):
        learner.observe_partition(EASY)
    return learner


def seen(path: Path) -> int:
    return learner_of(path.read_bytes()).seen


def test_a_value_is_what_is_made_of_the_one_before(tmp_path: Path) -> None:
    kept = FileState(tmp_path / "new")
    assert kept.version("one") == 0
    kept.update("one", lambda data: b"1" if data is None else b"broken")
    version = kept.version("one")
    assert version
    kept.update("one", lambda data: None)
    assert kept.version("one") == version, "None leaves it"
    kept.update("one", lambda data: (data or b"") + b"2")
    assert (tmp_path / "new" / "one").read_bytes() == b"12" and kept.version("one") >= version


@pytest.mark.parametrize("data", [b"", b"{}", b"suffice-learned-1 0\n{}", b"suffice-learned-9 ab\n{}"])
def test_a_file_that_is_not_whole_is_put_aside(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "learned"
    path.write_bytes(data)
    with pytest.warns(UserWarning, match="put aside as learned.corrupt"):
        taught(5).sync(partial(FileState(tmp_path).update, "learned"))
    assert (tmp_path / "learned.corrupt").read_bytes() == data
    assert seen(path) == 5


def _work(folder: Path) -> None:
    learner = Learner()
    for _ in range(20):
        learner.observe_partition(EASY)
        learner.sync(partial(FileState(folder).update, "learned"))


def test_workers_at_once_lose_nothing(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=_work, args=(tmp_path,)) for _ in range(2)]
    for worker in workers:
        worker.start()
    _work(tmp_path)
    for worker in workers:
        worker.join()
    assert seen(tmp_path / "learned") == 60


def audit_log(folder: Path) -> SharedLog[Audit]:
    return SharedLog(FileState(folder), "audits.jsonl", Audit.read)


def test_all_see_the_same_audits_and_none_of_what_a_crash_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = audit_log(tmp_path), audit_log(tmp_path)
    audits = [Audit(number % 2 == 0, 4, 32, 40, 320, True, topic=str(number)) for number in range(4)]
    assert one.news() == []
    one.append(audits[0])
    other.append(audits[1])
    assert one.news() == other.news() == audits[:2]
    path = tmp_path / "audits.jsonl"
    with path.open("ab") as file:
        file.write(b'{"agreed": true, "sam\n')
    one.append(audits[2])
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    assert other.news() == [], "half a line is left for the next time"
    path.write_bytes(whole)
    assert other.news() == audits[2:3] and other.news() == []
    assert audit_log(tmp_path).news() == audits[:3]
    monkeypatch.setattr(state, "MAX_LOG_BYTES", len(whole.splitlines()[-1]) + 9)
    assert audit_log(tmp_path).news() == audits[2:3], "of a long one the end"


@pytest.mark.usefixtures("quick")
def test_a_place_that_can_t_be_used_stops_nobody_and_is_used_when_it_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    tries = 0

    def full(self: Any, *arguments: Any) -> None:
        nonlocal tries
        tries += 1
        raise OSError("no space left")

    monkeypatch.setattr(state, "SYNC_SECONDS", 0.01)
    with FakeServer(always) as upstream, gateway(upstream, state=str(tmp_path), audit=1.0, budget=4) as url:
        with monkeypatch.context() as patch:
            patch.setattr(FileState, "update", full)
            for method in ("append", "news"):
                patch.setattr(SharedLog, method, full)
            assert post(url, ASK).status_code == 200
            assert until(lambda: tries > 4)
        assert until(lambda: [seen(path) for path in (tmp_path / "learned").glob("*.json")] == [1])
    assert capfd.readouterr().err.count("no space left") == 1
