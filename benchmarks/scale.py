"""How replay, training and collection grow with nodes: what one machine can measure, and what follows from it.

Prints the figures of docs/ray.md: those measured here, and the tables that are computed from them.
"""

import argparse
import asyncio
import json
import os
import pickle
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from typing import Any

import suffice
from suffice.executors import Executor, Link, Task
from suffice.live.batches.journal import Journal
from suffice.response import Response

NODES = (1, 10, 100, 1000)
CORES = 16
LINK = 1.25e9
"""Bytes a second in or out of a machine, at 10 Gbit/s."""

POOLS, QUESTIONS, CONTROLLERS = 1000, 500, 4
RUNS, STEPS = 50 * 20, 1_000_000
ASKED, SAMPLES, ANSWERED = 1_000_000, 8, 20.0
"""Questions, draws of each, and responses a second of one server; a node has one."""

CALLS_EACH = 2
"""Calls that a question takes at least: one to ask it, and one to take what was drawn."""

TASKS_EACH = 4
"""Into how many tasks a replay is cut for each core, as `suffice.replay` does."""

HEADROOM = 0.5
"""Whatever is busy for more of the time than this is the bottleneck: queues grow without bound above."""


@dataclass
class Measured:
    """What one machine tells."""

    tasks_a_second: float
    calls_a_second: float
    """Of an actor's methods."""
    replay_seconds: float
    """One controller over one question, all its repeats, on one core."""
    question_bytes: float
    result_bytes: float
    """A question in a task, and its figures for one controller in the result."""
    step_seconds: float
    job_bytes: int
    trained_bytes: int
    entry_bytes: int
    journal_a_second: float
    questions_bytes: float
    place_bytes: float
    """What the driver holds of a question: where it is in its file, and where its outcome is in the journal."""


class Weighing(Executor):
    """Runs tasks here, as they would be cut for so many workers, and weighs what would be sent."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self.sent: list[int] = []
        self.returned: list[int] = []
        self.seconds = 0.0

    def run(self, tasks: Sequence[Task[Any]], watch: Any = None) -> Iterator[tuple[int, Any]]:
        for number, task in enumerate(tasks):
            function, arguments = pickle.loads(self._weighed(task))
            begun = time.process_time()
            result = function(*arguments, Link())
            self.seconds += time.process_time() - begun
            self.returned.append(len(pickle.dumps(result)))
            yield number, result

    def _weighed(self, task: Task[Any]) -> bytes:
        packed = pickle.dumps(task)
        self.sent.append(len(packed))
        return packed


def nothing(number: int) -> int:
    return number


class Idle:
    async def nothing(self, number: int) -> int:
        return number


def handed_out(count: int) -> list[float]:
    """Small tasks a second on a local Ray, with 4 under way, as the executor has them on 2 cores, and with 1,000; and
    calls of an actor a second, with 1,000 under way.
    """
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    import ray

    quiet = {"include_dashboard": False, "log_to_driver": False, "object_store_memory": 200 << 20}
    ray.init("local", num_cpus=2, **quiet)
    try:
        task: Any = ray.remote(nothing)
        actor: Any = ray.remote(num_cpus=0)(Idle)
        call = actor.remote().nothing
        ray.get([one.remote(number) for one in (task, call) for number in range(200)])
        rates = []
        for remote, window in ((task, 4), (task, 1000), (call, 1000)):
            begun = time.perf_counter()
            running: list[Any] = []
            for number in range(count):
                running.append(remote.remote(number))
                if len(running) >= window:
                    done, running = ray.wait(running)
                    ray.get(done)
            ray.get(running)
            rates.append(count / (time.perf_counter() - begun))
    finally:
        ray.shutdown()
    return rates


def replay() -> tuple[float, float, float]:
    pool = suffice.load_pool("qwen2.5-coder-1.5b__dapo")
    controllers = ["plan", "asc", "esc", "sc"]
    suffice.evaluate(pool, controllers, repeats=2)
    scale = Weighing(workers=8)
    suffice.evaluate(pool, controllers, executor=scale)
    questions, ways = len(pool.questions), len(controllers)
    return (
        scale.seconds / questions / ways,
        sum(scale.sent) / questions,
        sum(scale.returned) / questions / ways,
    )


def training(steps: int) -> tuple[float, int, int]:
    from suffice.training.runs import train
    from suffice.training.setting import TrainingJob

    scale = Weighing(workers=1)
    train(TrainingJob(("qwen2.5-coder-1.5b__train",), steps=steps), executor=scale)  # type: ignore[arg-type]
    return scale.seconds / steps, scale.sent[0], scale.returned[0]


def journal(folder: Path, count: int) -> tuple[int, float]:
    """The bytes of a response in the journal, and how many of them it takes a second, each on disk."""
    response = Response("word " * 400, "stop", 400, prompt_tokens=120)
    entry = {"id": "question-0000000", "question": "0" * 16, "extracted": "42", "response": response.to_json()}

    async def main() -> float:
        book = Journal(folder / "pool.jsonl.journal", {})
        waiting = iter(range(count))

        async def add() -> None:
            for _ in waiting:
                await book.add(entry)

        begun = time.perf_counter()
        await asyncio.gather(*(add() for _ in range(256)))
        seconds = time.perf_counter() - begun
        book.close()
        return seconds

    return len(json.dumps(entry)) + 1, count / asyncio.run(main())


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def memory(path: Path, count: int) -> tuple[float, float, float]:
    """What a question takes in memory: read from its file, by id with its place in a journal, and while it is read."""
    with path.open("w") as file:
        for number in range(count):
            file.write(json.dumps({"id": f"question-{number:07}", "question": f"What is {number} * 7? " * 10}) + "\n")
    done = subprocess.run([sys.executable, __file__, "--hold", str(path)], capture_output=True, text=True, check=True)
    loaded, placed, peak = map(int, done.stdout.split())
    return loaded / count, placed / count, peak / count


def hold(path: Path) -> None:
    from suffice.live.batches.questions import Questions

    before = resident()
    questions = Questions(path)
    loaded, peak = resident(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    places = {question.id: number * 1000 for number, question in enumerate(questions)}
    print(loaded - before, resident() - loaded if places else 0, peak - before)


def size(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"


def span(seconds: float) -> str:
    for length, unit in ((86400, "days"), (3600, "h"), (60, "min")):
        if seconds >= 2 * length:
            return f"{seconds / length:.3g} {unit}"
    return f"{seconds:.3g} s"


def bottleneck(busy: dict[str, float], otherwise: str) -> str:
    """The one that is busy for longest, if that is long; else what the work itself waits for."""
    name = max(busy, key=lambda one: busy[one])
    return f"{name} ({busy[name]:.0%} busy)" if busy[name] > HEADROOM else otherwise


def table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    print(f"\n{title}\n\n| {' | '.join(head)} |\n|{'---:|' * (len(head) - 1)}---|")
    for row in rows:
        print(f"| {' | '.join(row)} |")


HEAD = ("nodes", "takes", "tasks a second", "out of the driver", "into the driver", "driver's memory", "bottleneck")


def replays(of: Measured) -> None:
    rows = []
    questions = POOLS * QUESTIONS
    for nodes in NODES:
        cores = nodes * CORES
        tasks = max(POOLS, TASKS_EACH * cores)
        work = questions * CONTROLLERS * of.replay_seconds
        sent, got = questions * of.question_bytes, questions * CONTROLLERS * of.result_bytes
        seconds = max(work / cores, tasks / of.tasks_a_second, (sent + got) / LINK)
        busy = {
            "the driver's tasks a second": tasks / of.tasks_a_second / seconds,
            "the driver's network": max(sent, got) / LINK / seconds,
        }
        rows.append(
            (f"{nodes:,}", span(seconds), f"{tasks / seconds:,.0f}", size(sent), size(got), size(sent + got),
             bottleneck(busy, "cores"))
        )  # fmt: skip
    table(f"Replay: {POOLS:,} pools of {QUESTIONS} questions, {CONTROLLERS} controllers, 100 repeats.", HEAD, rows)
    best = sqrt(questions * CONTROLLERS * of.replay_seconds * of.tasks_a_second / TASKS_EACH)
    print(f"\nIt is quickest on {best:,.0f} cores: on more, the driver has more tasks to hand out than it can.")


def trainings(of: Measured) -> None:
    rows = []
    one = STEPS * of.step_seconds
    for nodes in NODES:
        cores = nodes * CORES
        waves = -(-RUNS // cores)
        seconds = waves * one
        sent, got = nodes * of.job_bytes, RUNS * of.trained_bytes
        limit = "cores" if cores <= RUNS else f"the runs: {cores - RUNS:,} cores idle"
        rows.append(
            (f"{nodes:,}", span(seconds), f"{RUNS / seconds:.2g}", size(sent), size(got), size(got + of.job_bytes),
             limit)
        )  # fmt: skip
    table(f"Training: {RUNS:,} runs (50 seeds, 20 settings) of {STEPS:,} steps, a core each.", HEAD, rows)


def collections(of: Measured) -> None:
    rows = []
    responses = ASKED * SAMPLES
    for nodes in NODES:
        rate = min(nodes * ANSWERED, of.journal_a_second, of.calls_a_second / CALLS_EACH * SAMPLES)
        seconds = responses / rate
        sent, got = ASKED * 250.0, responses * float(of.entry_bytes)
        busy = {
            "the driver's calls": rate / SAMPLES * CALLS_EACH / of.calls_a_second,
            "the driver's journal": rate / of.journal_a_second,
            "the driver's network": got / LINK / seconds,
        }
        held = ASKED * (of.questions_bytes + of.place_bytes)
        rows.append(
            (f"{nodes:,}", span(seconds), f"{rate:,.0f} responses", size(sent), size(got), size(held),
             bottleneck(busy, "the servers"))
        )  # fmt: skip
    title = (
        f"Collection: {ASKED:,} questions, {SAMPLES} draws of 400 tokens each, {ANSWERED:g} responses a second a node."
    )
    table(title, HEAD, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=10_000)
    parser.add_argument("--questions", type=int, default=1_000_000)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--hold", type=Path)
    options = parser.parse_args()
    if options.hold:
        hold(options.hold)
        return
    print(f"load before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    close, wide, calls = handed_out(options.tasks)
    with tempfile.TemporaryDirectory() as folder:
        entry_bytes, journal_a_second = journal(Path(folder), 20_000)
        questions_bytes, place_bytes, peak_bytes = memory(Path(folder) / "questions.jsonl", options.questions)
    of = Measured(
        close, calls, *replay(), *training(options.steps), entry_bytes, journal_a_second, questions_bytes, place_bytes
    )
    print(f"{options.tasks:,} small tasks: {close:,.0f} a second with 4 under way, {wide:,.0f} with 1,000; ", end="")
    print(f"calls of an actor: {calls:,.0f} a second")
    print(f"replay: {1e3 * of.replay_seconds:.2f} ms for a question and controller, 100 repeats; ", end="")
    print(f"a question is {size(of.question_bytes)} in a task, its figures {size(of.result_bytes)} a controller")
    print(f"training: {1e6 * of.step_seconds:.0f} µs a step; a job is {size(of.job_bytes)}, ", end="")
    print(f"its result {size(of.trained_bytes)}")
    print(f"journal: {size(of.entry_bytes)} a response, {of.journal_a_second:,.0f} responses a second, synced to disk")
    print(f"{options.questions:,} questions: {of.questions_bytes:.0f} bytes each, ", end="")
    print(f"{peak_bytes:.0f} while they are read, and {of.place_bytes:.0f} for an id with its place in the journal")
    replays(of)
    trainings(of)
    collections(of)


if __name__ == "__main__":
    main()
