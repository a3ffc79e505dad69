"""Ray: real clusters of two nodes on this machine, of which one is killed in the middle of the work."""

import fcntl
import os
import re
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest
import ray
from helpers.batches import drawn, mostly_right, read_lines, sums, url
from helpers.commands import fails, suffice, works
from helpers.executors import check_executor
from helpers.pools import make_pool
from helpers.tasks import At, ForgottenError, hold, length, square, wait
from ray.cluster_utils import Cluster

from suffice import Result, evaluate, load_pool
from suffice.executors import Executor, Ray, Task
from suffice.testing import FakeServer, Reply

pytestmark = [pytest.mark.slow, pytest.mark.timeout(480)]  # a cluster takes its time where all cores are busy

T = TypeVar("T")

SMALL: dict[str, Any] = {"num_cpus": 1, "object_store_memory": 80 << 20, "include_dashboard": False}

CONFIG = {"health_check_period_ms": 1000, "worker_niceness": 0}
"""A dead node is known to be one after five seconds and not fifteen, and work is done while other tests run."""


class Nodes:
    """A cluster of two nodes of one core each, the second of which can be killed, and comes back."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        for last in (False, False, True):  # Ray gives a node thirty seconds to begin: too few where all cores are busy
            try:
                self.cluster: Any = Cluster(initialize_head=True, head_node_args=SMALL | {"_system_config": CONFIG})
                self.second = self.cluster.add_node(**SMALL)
                return
            except Exception:
                if last:
                    raise

    def kill(self) -> None:
        """The cluster does not know it at once."""
        self.cluster.remove_node(self.second, allow_graceful=False)
        self.second = None

    def mend(self) -> None:
        """Two nodes, and no other that the cluster takes for alive."""
        try:
            if self.second is None:
                self.second = self.cluster.add_node(**SMALL)
            self.cluster.wait_for_nodes(timeout=60)
        except Exception:  # it took too long: another cluster
            self.end()
            self.begin()

    def end(self) -> None:
        ray.shutdown()
        self.cluster.global_state.disconnect()  # it would end this process where it misses its cluster for a minute
        self.cluster.shutdown()


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    """One cluster at a time, however many processes run tests."""
    before = dict(os.environ)
    here = os.pathsep.join(filter(None, [str(Path(__file__).parent), os.environ.get("PYTHONPATH")]))
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "PYTHONPATH": here}
    os.environ.pop("RAY_ADDRESS", None)
    with (tmp_path_factory.getbasetemp().parent / "ray.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        nodes = Nodes()
        yield nodes
        nodes.end()
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture
def executor(nodes: Nodes) -> Iterator[Ray]:
    nodes.mend()
    yield Ray(nodes.cluster.address)


class Deadly(Executor):
    """Kills the second node as soon as it is at work on a task, and only then lets any task go on."""

    def __init__(self, ray: Ray, nodes: Nodes, folder: Path) -> None:
        self.workers = ray.workers
        self._ray = ray
        self._nodes = nodes
        self._folder = folder

    def run(self, tasks: Sequence[Task[Any]], watch: Any = None) -> Iterator[tuple[int, Any]]:
        def kill(number: int, told: Any) -> None:
            if not isinstance(told, At):
                watch(number, told)
            elif self._nodes.second and told.node == self._nodes.second.node_id:
                self._nodes.kill()
                with suppress(ProcessLookupError):  # it would end by itself, but perhaps not before its work is done
                    os.kill(told.process, signal.SIGKILL)
                (self._folder / "go").touch()

        held = [(hold, (self._folder, number, *task)) for number, task in enumerate(tasks)]
        yield from self._ray.run(held, kill)
        begun = [len((self._folder / str(number)).read_text().splitlines()) for number in range(len(tasks))]
        assert sorted(begun) == [1] * (len(tasks) - 1) + [2], "what was running there is begun again, and nothing else"


def though_a_node_dies(nodes: Nodes, folder: Path, work: Callable[[Executor], T]) -> T:
    """What comes of work in which a node dies; it is begun anew, elsewhere, where Ray gave that node nothing to do."""
    for attempt in range(2):
        place = folder / f"attempt {attempt}"
        place.mkdir()
        nodes.mend()
        with suppress(ForgottenError):
            return work(Deadly(Ray(nodes.cluster.address), nodes, place))
        nodes.end()
        nodes.begin()
    raise AssertionError("the second node was never at work")


def test_results_come_with_the_numbers_of_their_tasks_and_errors_are_the_run_s(executor: Ray) -> None:
    check_executor(executor, 9)
    assert (executor.workers, executor.standing) == (2, "2 nodes, 0 tasks in flight")


def test_what_tasks_share_is_sent_once(executor: Ray, monkeypatch: pytest.MonkeyPatch) -> None:
    put: list[Any] = []
    original = ray.put
    monkeypatch.setattr(ray, "put", lambda value: put.append(value) or original(value))  # type: ignore[func-returns-value]
    one, other = ["a"], ["a", "b"]
    tasks: list[Task[int]] = [(length, (texts,)) for texts in (one, one, one, other)]
    assert dict(executor.run(tasks)) == {0: 1, 1: 1, 2: 1, 3: 2}
    assert put == [one]


def test_an_interrupt_stops_what_runs_and_what_waits(executor: Ray) -> None:
    def interrupt(number: int, told: str) -> None:
        begun.append(number)
        if len(begun) == 1:
            raise KeyboardInterrupt

    begun: list[int] = []
    done = dict(executor.run([(wait, (number,)) for number in range(50)], interrupt))
    assert set(begun) == set(done), "what had begun ends with what it has"
    assert len(done) <= 2, "nothing else begins"


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    return sums(tmp_path, 12)


def asked(server: FakeServer) -> set[str]:
    return {request["messages"][-1]["content"] for request in server.requests}


def untimed(out: Path) -> str:
    return re.sub(r'"seconds": [\d.]+', "", out.read_text())


def test_a_run_stops_at_the_limit_for_all_and_a_rerun_goes_on(
    executor: Ray, nodes: Nodes, questions: Path, tmp_path: Path
) -> None:
    here, there, journal = (tmp_path / name for name in ("here.jsonl", "there.jsonl", "there.jsonl.journal"))
    with FakeServer(mostly_right) as server:
        options = ["--controller", "asc", "--budget", "8", "--seed", "5", "--model", "fake", *url(server)]
        works("run", questions, "--out", here, *options)
        limited = ["--max-tokens-total", "300", "--ray", nodes.cluster.address]
        done = suffice("run", questions, "--out", there, *options, *limited)
        assert done.returncode == 0 and "The limit on spending is reached" in done.stderr
        entries = read_lines(journal)[1:]
        spent = sum(one["response"]["tokens"] + 3 for one in entries if "response" in one)
        assert 300 <= spent <= 300 + 8 * 53, "no more than was in flight"
        before = len(server.requests)
        works("run", questions, "--out", there, *options)  # on one machine or on many, the journal is the same
        again = len(server.requests) - before
    assert untimed(there) == untimed(here)
    kept = drawn(journal)
    assert len(kept) == len(set(kept)) and again < len(kept)


def test_a_server_that_fails_is_given_up(executor: Ray, nodes: Nodes, questions: Path, tmp_path: Path) -> None:
    with FakeServer(lambda request, number: Reply({"error": {"message": "no"}}, status=400)) as server:
        options = [*url(server), "--model", "fake", "--concurrency", "1", "--ray", nodes.cluster.address]
        done = suffice("collect", questions, "--out", tmp_path / "out.jsonl", *options)
    assert done.returncode == 2 and "nothing but failures" in done.stderr


def test_addresses_are_answered(monkeypatch: pytest.MonkeyPatch, questions: Path, tmp_path: Path) -> None:
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    line = "ray job submit --working-dir . -- suffice"
    assert line in fails("evaluate", "smollm2-135m__arithmetic", "--ray", "http://head:8265")
    monkeypatch.setenv("RAY_ADDRESS", "http://head:8265")
    assert line in fails("advise", "smollm2-135m__arithmetic", "--max-mean-tokens", "900", "--ray", "auto")
    monkeypatch.setattr(ray, "init", refuse)
    assert 'no Ray cluster at "10.0.0.1:6379"' in fails(
        "evaluate", "smollm2-135m__arithmetic", "--ray", "10.0.0.1:6379"
    )
    command: list[str | Path] = ["collect", questions, "--out", tmp_path / "out.jsonl"]
    urls: list[str | Path] = ["--base-url", "http://127.0.0.1:1/v1", "--base-url", "http://127.0.0.1:2/v1"]
    said = fails(*command, *urls, "--model", "x", "--concurrency", "1", "--ray", "auto")
    assert "--concurrency must be 2 or more" in said


def refuse(**options: Any) -> None:
    raise ConnectionError("nobody\nis there")


def test_what_is_told_is_heard_while_a_task_runs_though_a_node_has_just_died(
    executor: Ray, nodes: Nodes, tmp_path: Path
) -> None:
    def run(folder: Path) -> dict[int, int]:
        folder.mkdir()
        task: Task[int] = (hold, (folder, 0, square, (3,)))
        return dict(Ray(nodes.cluster.address).run([task], lambda number, told: (folder / "go").touch()))

    nodes.kill()
    with ThreadPoolExecutor(3) as together:  # before the cluster knows of it
        assert list(together.map(run, map(tmp_path.joinpath, "abc"))) == [{0: 9}] * 3


def test_figures_are_the_same_to_the_last_digit_though_a_node_dies(nodes: Nodes, tmp_path: Path) -> None:
    def there_and_told(executor: Executor) -> tuple[list[Result], list[int]]:
        told: list[int] = []
        return evaluate(pools, controllers, repeats=7, executor=executor, progress=told.append), told

    pools, controllers = ["smollm2-135m__arithmetic", "qwen2.5-coder-1.5b__gsm8k"], ["asc", "boinf", "plan", "rl"]
    there, told = though_a_node_dies(nodes, tmp_path, there_and_told)
    assert sum(told) == 4 * sum(len(load_pool(pool).questions) for pool in pools), "nothing is told twice"
    for ours, theirs in zip(there, evaluate(pools, controllers, repeats=7), strict=True):
        assert ours.reward == theirs.reward and ours.certainty == theirs.certainty
        for metric, values in ours.by_question.items():
            np.testing.assert_array_equal(values, theirs.by_question[metric])


def test_controllers_are_the_same_though_a_node_dies_in_the_sweep(nodes: Nodes, tmp_path: Path) -> None:
    from suffice.training.runs import train
    from suffice.training.setting import TrainingJob

    job = TrainingJob((make_pool("a" * 40, "ab" * 20, "aab" * 14),), steps=2_000)
    there = though_a_node_dies(nodes, tmp_path, lambda executor: train(job, seeds=2, executor=executor))
    here = train(job, seeds=2, executor="here")
    assert [one.seed for one in there] == [one.seed for one in here]
    for ours, theirs in zip(there, here, strict=True):
        assert ours.controller.card == theirs.controller.card
        for (weights, _), (others, _) in zip(ours.controller.layers, theirs.controller.layers, strict=True):
            np.testing.assert_array_equal(weights, others)


def test_a_collection_is_the_same_file_though_a_node_dies(
    executor: Ray, nodes: Nodes, questions: Path, tmp_path: Path
) -> None:
    def deadly(request: dict[str, Any], number: int) -> Reply:
        if number == 15:
            killer.start()
        return mostly_right(request, number)

    killer = threading.Thread(target=nodes.kill)
    options = ["--samples", "8", "--seed", "5", "--model", "fake", "--keep-text"]
    here, there = tmp_path / "here.jsonl", tmp_path / "there.jsonl"
    with FakeServer(mostly_right) as server:
        works("collect", questions, "--out", here, *url(server), *options)
    with FakeServer(deadly) as one, FakeServer(mostly_right) as other:
        works("collect", questions, "--out", there, *url(one, other), *options, "--ray", nodes.cluster.address)
        asked_for = len(one.requests) + len(other.requests)
        assert asked(one) and asked(other) and not asked(one) & asked(other), "a question stays on one server"
    killer.join()
    assert there.read_bytes() == here.read_bytes()
    kept = drawn(tmp_path / "there.jsonl.journal")
    assert sorted(kept) == sorted((f"q{number}", draw) for number in range(12) for draw in range(8))
    assert asked_for <= 12 * 8 + 2 * 8, "only what was in flight, or had just arrived, is asked for again"
