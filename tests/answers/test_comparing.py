"""Comparing formulas: in processes that can be killed, for so long a vote, and with nobody waiting for the slow."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from suffice.answers import Keys
from suffice.answers.keys import BUDGET, QUICK, SLOW, FormulaComparison
from suffice.killable import KillableWorker

ENDLESS = "(x+y+z+w)^{97}", "(x+y+z+w)^{96}"


@pytest.fixture(scope="module")
def worker() -> Iterator[KillableWorker]:
    worker = KillableWorker("equal")
    yield worker
    worker.close()


def answered(worker: KillableWorker) -> int:
    """The process of a worker that compares as it should."""
    assert worker.run("equal", r"\sqrt{12}", r"2\sqrt{3}", seconds=10.0)
    assert worker.process
    return worker.process.pid


def test_a_comparison_that_is_too_slow_is_ended_and_the_process_goes_on(worker: KillableWorker) -> None:
    process = answered(worker)
    assert worker.run("equal", *ENDLESS, seconds=0.1) is None
    assert answered(worker) == process


def test_a_process_that_was_killed_is_replaced(worker: KillableWorker) -> None:
    os.killpg(answered(worker), signal.SIGKILL)
    process = answered(worker)
    children = Path(f"/proc/{process}/task/{process}/children")
    if children.exists():
        os.kill(int(children.read_text()), signal.SIGKILL)
        assert worker.run("equal", "2", "3") is False, "no reply is taken for that of another task"
        answered(worker)


def test_what_was_interrupted_is_no_reply_to_the_next_task(worker: KillableWorker) -> None:
    answered(worker)
    with pytest.raises(KeyboardInterrupt):
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        worker.run("equal", *ENDLESS, seconds=60.0)
    answered(worker)


def test_a_process_that_is_stuck_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("suffice.killable.STUCK_SECONDS", 4.0)
    worker = KillableWorker("search")
    assert worker.run("search", "(4.)", "a 42") == "42" and worker.process
    os.killpg(worker.process.pid, signal.SIGSTOP)
    assert worker.run("search", "(4.)", "a 43", seconds=0.1) == "43"
    worker.close()


@pytest.mark.filterwarnings("ignore:.*fork")
def test_a_process_that_was_forked_compares_for_itself() -> None:
    assert FormulaComparison(r"\sqrt{75}", r"5\sqrt{3}", QUICK).begin().result()
    child = os.fork()
    if child == 0:
        os._exit(0 if FormulaComparison(r"\sqrt{75}", r"5\sqrt{3}", QUICK).begin().result() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_workers_end_with_the_process_that_started_them_however_that_ends() -> None:
    program = "import os\nfrom suffice.killable import SEARCHER\nSEARCHER.run('search', '(a)', 'a')\n"
    program += "print(SEARCHER.process.pid, flush=True)\nos.kill(os.getpid(), 9)"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ended.returncode == -signal.SIGKILL
    with pytest.raises(ProcessLookupError):
        while True:  # they read that there are no more tasks, in their own time
            os.killpg(int(ended.stdout), 0)


def test_quick_comparisons_do_not_wait_for_slow_ones() -> None:
    slow = [FormulaComparison(*ENDLESS, SLOW).begin() for _ in range(12)]
    assert FormulaComparison(r"\sqrt{12}", r"2\sqrt{3}", QUICK).begin().result() is True
    assert [one.cancel() for one in slow][-1], "the last had not even begun"


def compared(keys: Keys, answer: str, too_slow: set[str]) -> list[FormulaComparison]:
    """What is compared to find the key of an answer, where these forms can't be, and all others are different."""
    finding, asked, verdict = keys.finding(answer), list[FormulaComparison](), None
    try:
        while True:
            asked.append(finding.send(verdict))
            verdict = None if {asked[-1].a, asked[-1].b} & too_slow else False
    except StopIteration:
        return asked


def test_a_vote_with_a_slow_formula_leaves_the_quick_lane() -> None:
    keys = Keys()
    assert compared(keys, "x+1", set()) == []
    assert compared(keys, "x+2", set()) == [FormulaComparison("x+1", "x+2", QUICK)]
    first = compared(keys, "x+3", {"x+3"})
    assert [one.lane for one in first] == [QUICK, SLOW, SLOW]
    assert all(one.lane is SLOW for one in compared(keys, "x+4", set()))


def test_an_answer_that_was_too_slow_twice_is_compared_as_written_and_others_by_their_meaning() -> None:
    keys = Keys()
    for answer in ("x+1", "x+2", "x+3"):
        compared(keys, answer, {"x+3"})
    assert [one.a for one in compared(keys, "x+4", set())] == ["x+1", "x+2"]
    assert keys.key("x+3") == "x+3"


def test_a_vote_compares_for_so_long_and_then_as_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("suffice.answers.keys.time.monotonic", count().__next__)  # a second a slow comparison
    keys, answers = Keys(), [f"x+{number}1" for number in range(32)]
    patience = [one.patience for answer in answers for one in compared(keys, answer, set(answers))]
    assert patience == [None, *(BUDGET - spent for spent in range(int(BUDGET)))]
    assert list(map(keys.key, answers)) == answers
