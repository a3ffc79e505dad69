"""What Ray costs on one machine: a sweep beside processes, small tasks, responses to the journal, a million questions.

python benchmarks/on_ray.py (a script of the name ray.py would hide Ray)
"""

import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from suffice import advise, load_pool
from suffice.executors import AnyExecutor, Link, Processes, Ray, Task
from suffice.live.batches.asker import Answered, BatchConfig, Ledger
from suffice.live.batches.batch import Batch, Spent
from suffice.live.batches.journal import Journal
from suffice.live.batches.questions import Asked, Questions
from suffice.live.batches.shards import Actor, RayShard
from suffice.response import Response

POOL = "qwen2.5-coder-1.5b__gsm8k"
TASKS = 10_000
QUESTIONS = 1_000_000
RESPONSES, SAMPLES = 20_000, 20
TEXT = "A text of a response, as long as one that is short. " * 20


def sweep(executor: AnyExecutor) -> float:
    begun = time.perf_counter()
    advise(load_pool(POOL), max_tokens=1e9, min_agreement=0, repeats=20, executor=executor)
    return time.perf_counter() - begun


def nothing(number: int, link: Link) -> int:
    return number


def tasks_a_second(executor: Any) -> float:
    tasks: list[Task[int]] = [(nothing, (number,)) for number in range(TASKS)]
    begun = time.perf_counter()
    assert sum(1 for _ in executor.run(tasks)) == TASKS
    return TASKS / (time.perf_counter() - begun)


class Fluent(Actor):
    """An actor whose server answers at once."""

    async def ask(self, method: str, question: Asked, there: Sequence[Any], *more: Any) -> Answered | None:
        responses = [Response(TEXT, "stop", tokens=100, draw=draw).to_json() for draw in there]
        await asyncio.gather(*(self.record(question, {"extracted": "42", "response": one}) for one in responses))
        return None


class Instant:
    """A shard that has nothing to ask."""

    at_once, weight = 64, 1.0

    async def collect(self, question: Asked, missing: Sequence[int], ledger: Ledger) -> None:
        """Done."""

    async def answer(self, question: Asked, there: Sequence[Response], ledger: Ledger, learned: Any = None) -> None:
        """Done."""


def responses_a_second(ray: Any, folder: Path) -> tuple[float, float]:
    """From actors to the journal on disk; and the megabytes a second that this is."""
    terms = BatchConfig({}, [])
    shards = [RayShard(ray, 1.0, 64, ray.put(terms), [], []) for _ in range(2)]
    for shard in shards:
        shard._kind = ray.remote(num_cpus=0)(Fluent)
    questions = [Asked(str(number), "What?") for number in range(RESPONSES // SAMPLES)]

    async def main() -> float:
        journal = Journal(folder / "journal", {})
        batch = Batch(shards, terms, journal, Spent())
        await batch.collect(questions[:4], SAMPLES)  # the actors have begun
        begun = time.perf_counter()
        await batch.collect(questions, SAMPLES)
        taken = time.perf_counter() - begun
        for shard in shards:
            await shard.close()
        journal.close()
        return taken

    taken = asyncio.run(main())
    return RESPONSES / taken, (folder / "journal").stat().st_size / taken / 1e6


def million(folder: Path) -> None:
    """Print seconds and peak megabytes of a million questions read, shared out over shards and worked on."""
    begun = time.perf_counter()
    questions = Questions(folder / "questions.jsonl")
    read = time.perf_counter() - begun
    journal = Journal(folder / "million.journal", {})
    terms = BatchConfig({}, [])
    batch = Batch([Instant() for _ in range(8)], terms, journal, Spent())
    asyncio.run(batch.collect(questions, 1))
    journal.close()
    taken = time.perf_counter() - begun
    print(read, taken - read, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def in_a_process(folder: Path, questions: int, length: int) -> list[float]:
    with (folder / "questions.jsonl").open("w") as file:
        for number in range(questions):
            file.write(json.dumps({"id": f"question-{number}", "question": f"{number} {'x' * length}"}) + "\n")
    (folder / "million.journal").unlink(missing_ok=True)
    command = [sys.executable, __file__, "million", str(folder)]
    return [float(figure) for figure in subprocess.run(command, capture_output=True, check=True).stdout.split()]


def main() -> None:
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for questions, length in ((QUESTIONS // 10, 100), (QUESTIONS, 100), (QUESTIONS, 1000)):
            read, asked, peak = in_a_process(folder, questions, length)
            about = f"{questions:,} questions of {length} characters"
            print(f"{about}: read in {read:.1f} s, shared out and worked on in {asked:.1f} s, {peak:.0f} MiB at most")
        begun = time.perf_counter()
        executor = Ray("local")
        print(f"a Ray cluster on this machine: begun in {time.perf_counter() - begun:.1f} s")
        tasks_a_second(executor)  # its processes have begun
        print(f"{TASKS:,} small tasks: {tasks_a_second(executor):,.0f} a second on Ray", end=", ")
        print(f"{tasks_a_second(Processes()):,.0f} a second in processes, their beginning counted")
        first, again = sweep(executor), sweep(executor)
        print(f"a sweep: {first:.1f} s on Ray, again {again:.1f} s, {sweep('processes'):.1f} s in processes")
        rate, megabytes = responses_a_second(executor._ray, folder)
        print(f"responses from actors to the journal: {rate:,.0f} a second, {megabytes:.1f} MB/s")


if __name__ == "__main__":
    if sys.argv[1:2] == ["million"]:
        million(Path(sys.argv[2]))
    else:
        main()
