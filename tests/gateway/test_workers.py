"""`suffice serve --workers 2`, a real process for all of these: what its workers share, who replaces them, the end."""

import json
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from subprocess import Popen
from typing import Any

import httpx
import pytest
from helpers.collector import collector
from helpers.gateways import ASK, post
from helpers.keys import Desk
from helpers.live import boxed, until
from helpers.serving import serving

from suffice.testing import FakeServer, Reply, completion

pytestmark = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="there is no /proc here")

MINE = """
import suffice

@suffice.register("mine")
class Mine(suffice.Controller):
    def decide(self, tally):
        return 0 if tally.draws else 3
"""
OPTIONS = ("--workers", "2", "--vote", "always", "--controller", "mine", "--drain-seconds", "3")
FOR_EVER = ASK | {"messages": [{"role": "user", "content": "What is 6 * 7, for ever?"}]}
TRACE = "0af7651916cd43dd8448eb211c80319c"
SENT = {"traceparent": f"00-{TRACE}-b7ad6b7169203331-01"}
# Only what a client traces is traced; what is left is sent at the end.
TRACED = {"OTEL_TRACES_SAMPLER": "parentbased_always_off", "OTEL_BSP_SCHEDULE_DELAY": "600000"}


def some_for_ever(request: dict[str, Any], number: int) -> Reply:
    delay = 600 if "for ever" in json.dumps(request) else 0
    return Reply(completion([boxed(42)] * request.get("n", 1)), delay=delay)


@dataclass(frozen=True)
class Started:
    """The process, its workers, what is before and behind it, and the keys to it."""

    url: str
    process: Popen[str]
    upstream: FakeServer
    desk: Desk
    ann: dict[str, str]
    spans: Iterator[dict[str, Any]]

    def workers(self) -> list[int]:
        """The processes that answer."""
        pid = self.process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return [int(one) for one in children if b"spawn_main" in Path(f"/proc/{one}/cmdline").read_bytes()]

    def figure(self, name: str) -> float:
        """What /metrics says."""
        lines = httpx.get(f"{self.url}/metrics", timeout=60).text.splitlines()
        return sum(float(line.split()[-1]) for line in lines if line.startswith(f"{name} "))


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Started]:
    folder = tmp_path_factory.mktemp("workers")
    (folder / "mine.py").write_text(MINE)
    desk = Desk(folder)
    ann = desk.add("ann")
    options = [*OPTIONS, "--keys", str(desk.path), "--state", str(desk.state)]
    with FakeServer(some_for_ever, remember=False) as upstream, collector() as (address, spans):
        more: dict[str, Any] = TRACED | {"OTEL_EXPORTER_OTLP_ENDPOINT": address}
        before = ["--import", str(folder / "mine.py")]
        with serving("--upstream", upstream.base_url, *options, before=before, **more) as (url, process):
            yield Started(url, process, upstream, desk, ann, spans)


def test_workers_know_what_was_imported_and_share_their_metrics(started: Started) -> None:
    before = started.figure('suffice_requests_total{outcome="vote"}')
    for _ in range(20):
        reply = post(started.url, ASK, headers=started.ann)
        assert reply.status_code == 200, reply.text
        assert reply.json()["suffice"]["samples"] == 3
    assert started.figure('suffice_requests_total{outcome="vote"}') == before + 20
    recent = httpx.get(f"{started.url}/v1/suffice/recent", headers=started.ann, timeout=60)
    assert recent.json()["workers"] == 2


def test_what_a_worker_had_under_way_ends_with_it(started: Started) -> None:
    def ask() -> None:
        with suppress(httpx.HTTPError):
            post(started.url, FOR_EVER, headers=started.ann)

    threading.Thread(target=ask, daemon=True).start()
    assert until(lambda: started.upstream.in_flight == 3, 60)
    assert started.figure("suffice_draws_in_flight") == 3
    for worker in started.workers():
        os.kill(worker, signal.SIGKILL)
    assert until(lambda: started.upstream.connections == 0, 60)

    def none_in_flight() -> bool:
        with suppress(httpx.HTTPError):
            return started.figure("suffice_draws_in_flight") == 0
        return False

    assert until(none_in_flight, 60), "others have taken the place of the dead, and don't count for them"


def test_they_drain_together_and_send_what_they_traced(started: Started) -> None:
    """The last one: it ends the process."""
    url = started.url
    for _ in range(4):
        assert post(url, ASK, headers=started.ann | SENT).status_code == 200
    with ThreadPoolExecutor(4) as clients:
        asking = [clients.submit(post, url, FOR_EVER, headers=started.ann) for _ in range(4)]
        assert until(lambda: started.upstream.in_flight == 12, 60)
        started.process.send_signal(signal.SIGTERM)
        assert until(lambda: _ends(url), 60)
    assert [one.result().status_code for one in asking] == [503] * 4
    assert started.process.wait(60) == 0
    got: list[dict[str, Any]] = []
    while sum(span["name"] == "vote fake" for span in got) < 4:
        got.append(next(started.spans))
    assert {span["trace"] for span in got} == {TRACE} and {span["path"] for span in got} == {"/v1/traces"}
    assert {span["resource"]["service.name"] for span in got} == {"suffice"}
    assert all(span["events"] > 1 for span in got if span["name"] == "vote fake")
    ids = {span["id"] for span in got}
    assert any(span["parent"] in ids for span in got if span["name"] == "chat fake")


def _ends(url: str) -> bool:
    """Whether it says that it is not ready, or is gone: on a busy machine nobody may look in between."""
    try:
        return httpx.get(f"{url}/readyz", timeout=60).status_code == 503
    except httpx.TransportError:
        return True
