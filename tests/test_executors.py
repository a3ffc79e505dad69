"""Where work runs: here and in processes, with the same results."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from helpers.commands import POOL, fails
from helpers.executors import check_executor
from helpers.pools import make_pool

from suffice import Flow, OptionError, Result, SufficeError, advise, compare, evaluate, load_pool
from suffice.executors import Executor, Here, Link, Processes, Task, get_executor

EXECUTORS = ["here", "processes:workers=2"]


def process_of(number: int, link: Link) -> int:
    return os.getpid()


def die(link: Link) -> None:
    os._exit(1)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_results_come_with_the_numbers_of_their_tasks_and_errors_are_the_run_s(executor: str) -> None:
    check_executor(get_executor(executor), 5)


def test_processes_are_others_and_what_can_not_be_sent_stays_here() -> None:
    tasks: list[Task[int]] = [(process_of, (0,)), (process_of, (1,))]
    assert os.getpid() not in dict(Processes(2).run(tasks)).values()
    local: Task[int] = (lambda link: os.getpid(), ())
    assert dict(Processes(2).run([local, local])) == dict.fromkeys((0, 1), os.getpid())
    assert dict(Processes(2).run(tasks[:1])) == {0: os.getpid()}


def test_there_are_as_many_processes_as_cores_unless_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    for cores, workers in ((5, 5), (None, 1)):
        monkeypatch.setattr(os, "cpu_count", lambda cores=cores: cores)
        assert get_executor("processes").workers == workers


def test_a_process_that_dies_is_told_in_a_sentence() -> None:
    with pytest.raises(SufficeError, match="a process ended before its work was done"):
        list(Processes(2).run([(die, ()), (die, ())]))


def test_executors_have_names_and_parameters() -> None:
    assert isinstance(get_executor("here"), Here)
    assert get_executor("processes:workers=3").workers == 3
    with pytest.raises(OptionError, match=r'unknown executor "proceses".*did you mean "processes"'):
        get_executor("proceses")
    with pytest.raises(OptionError, match="workers must be a whole number, at least 1, not 0"):
        get_executor("processes:workers=0")


def test_ray_is_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    needs = "this needs ray, of the extra ray: pip install 'suffice[ray]'"
    with pytest.raises(OptionError, match=re.escape(needs)):
        get_executor("ray:address=local")
    for command in (["evaluate", POOL], ["advise", POOL, "--max-mean-tokens", "1"], ["train", POOL, "--out", "c"]):
        assert fails(*command, "--ray", "auto") == f"suffice: {needs}\n"


def same(ours: Sequence[Result], theirs: Sequence[Result]) -> bool:
    for one, other in zip(ours, theirs, strict=True):
        for field in fields(Result):
            if field.name not in ("by_question", "reliability"):
                assert getattr(one, field.name) == getattr(other, field.name), field.name
        assert one.reliability is not None and other.reliability is not None
        assert (one.reliability.sums == other.reliability.sums).all()
        for metric, values in one.by_question.items():
            np.testing.assert_array_equal(values, other.by_question[metric])
    return True


def test_figures_are_the_same_to_the_last_digit_wherever_they_are_made() -> None:
    pools = ["smollm2-135m__arithmetic", "qwen2.5-coder-1.5b__gsm8k"]
    here = evaluate(pools, ["asc", "boinf", "plan", "rl"], repeats=7)
    assert same(here, evaluate(pools, ["asc", "boinf", "plan", "rl"], repeats=7, executor="processes:workers=2"))
    flow = {"flow": Flow("arrival", 2), "repeats": 2}
    one, two = (evaluate(pools[0], ["plan"], executor=executor, **flow) for executor in EXECUTORS)  # type: ignore[arg-type]
    assert same(one, two)


def test_comparisons_and_advice_are_the_same_too() -> None:
    pool = load_pool("smollm2-135m__arithmetic")
    one, two = (compare(pool, ["asc", "rl"], repeats=3, executor=executor)[0] for executor in EXECUTORS)
    assert same([*one.results, one.baseline, *one.checkpoints], [*two.results, two.baseline, *two.checkpoints])
    advice = [
        advise(pool, ["asc", "sc"], max_tokens=1e6, min_agreement=50, repeats=1, executor=executor)
        for executor in EXECUTORS
    ]
    assert advice[0] == advice[1]


class Recording(Executor):
    """A third executor, which needs nothing but itself."""

    workers = 3

    def __init__(self) -> None:
        self.tasks = 0

    def run(self, tasks: Sequence[Task[Any]], watch: Any = None) -> Iterator[tuple[int, Any]]:
        self.tasks += len(tasks)
        yield from reversed(list(Here().run(tasks)))


def test_a_third_executor_needs_no_change_elsewhere() -> None:
    pool = make_pool(*["ab" * 16] * 20)
    recording = Recording()
    assert same(evaluate(pool, ["asc"], repeats=2, executor=recording), evaluate(pool, ["asc"], repeats=2))
    assert recording.tasks > 3
    recording.tasks = 0
    three = ["sc", "asc", "esc"]
    assert same(evaluate(pool, three, repeats=2, executor=recording), evaluate(pool, three, repeats=2))
    assert recording.tasks == 3 * 4, "where questions are few for so many workers, controllers are tasks"


def test_an_interrupt_is_heard_when_all_processes_have_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = []
    submit = ProcessPoolExecutor.submit

    def interrupted(pool: ProcessPoolExecutor, *task: Any) -> Any:
        os.kill(os.getpid(), signal.SIGINT)
        begun.append(submit(pool, *task))
        return begun[-1]

    monkeypatch.setattr(ProcessPoolExecutor, "submit", interrupted)
    with ThreadPoolExecutor() as others, pytest.raises(KeyboardInterrupt):
        others.submit(int)  # a thread that hears signals too
        list(Processes(2).run([(process_of, (0,)), (process_of, (1,))]))
    assert len(begun) == 2


def test_an_interrupt_stops_replays_in_processes() -> None:
    script = (
        "import suffice, sys\n"
        "if __name__ == '__main__':\n"
        "    pool = suffice.load_pool('qwen2.5-coder-1.5b__dapo')\n"
        "    print('begun', flush=True)\n"
        "    told = lambda n: print('told', flush=True)\n"
        "    suffice.evaluate([pool] * 40, ['boinf'], repeats=400, progress=told, executor='processes:workers=2')\n"
    )
    run = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert run.stdout is not None
    while run.stdout.readline() != "told\n":
        assert run.poll() is None
    os.kill(run.pid, signal.SIGINT)
    _, errors = run.communicate(timeout=60)
    assert "KeyboardInterrupt" in errors and "Traceback" in errors and "evaluate" in errors
    assert run.returncode in (1, -signal.SIGINT, 130)
