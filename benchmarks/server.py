"""What a real server gains: asking once, 32 times, and just enough times, on an idle server and under load.

python benchmarks/server.py --base-url http://127.0.0.1:8000/v1 [--questions FILE] [--out DIR] [--quick]
python benchmarks/server.py --simulate   # a server that slows down with its load as vLLM did on an H200: upstream.py
python benchmarks/server.py --local      # the embedded model

Each way to ask is a process of its own with a limit on its time; what it came to is written when it has ended, so that
nothing is lost where the next one fails. Tables are printed, and written beside the figures (JSON) and a picture.
"""

import argparse
import asyncio
import json
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import fmean, quantiles
from typing import Any

import aiohttp
import openai
from gateway import POOL, cpu_of, gateway, simulated
from pictures import draw_server

import suffice
from suffice.answers import Keys, get_extractor
from suffice.live.batches.questions import Questions
from suffice.live.dialects import CHAT
from suffice.live.prompts import get_prompt, put, suited
from suffice.planning import UNIVERSAL, prepare
from suffice.response import Response
from suffice.tally import Tally

BUDGET = 32
SAMPLING: dict[str, Any] = {"temperature": 0.7, "max_tokens": 512}
LIMITS = {"load": (120.0, 0.7), "idle": (120.0, 5.0)}
"""Seconds that one way may take: so many, or so many a question where that is more."""

TITLES = {"load": "Under load: {} questions at once", "idle": "Idle: {} questions, one at a time"}

WAYS: dict[str, tuple[str, dict[str, Any]]] = {
    "n=1": ("straight", {"n": 1}),
    "n=32": ("straight", {"n": BUDGET}),
    "sc": ("library", {"controller": "sc"}),
    "plan": ("library", {}),
    "plan, flow by launch": ("library", {"flow": "order=launch"}),
    "plan, flow by arrival": ("library", {"flow": "order=arrival"}),
    "plan, flow by launch +12": ("library", {"flow": "order=launch,extra=12"}),
    "plan, flow auto": ("library", {"flow": "auto"}),
    "suffice run, sc": ("run", {"controller": "sc"}),
    "suffice run, plan": ("run", {}),
    "gateway": ("gateway", {}),
    "gateway, flow auto": ("gateway", {"flow": "auto"}),
}
"""How it is asked, and with what."""

_FIRST = ("n=32", "plan", "plan, flow auto", "gateway", "gateway, flow auto")
_REST = ("suffice run, sc", "suffice run, plan", "plan, flow by launch", "plan, flow by arrival", "n=1", "sc")
ORDER = [
    *(("load", way) for way in _FIRST),
    *(("idle", way) for way in (*_FIRST, "n=1")),
    *(("load", way) for way in _REST),
    *(("idle", way) for way in ("plan, flow by launch +12", "plan, flow by launch", "plan, flow by arrival", "sc")),
]
"""What matters most comes first: the time may end before all is done."""


@dataclass(frozen=True)
class Answered:
    """One question as it was answered: after how long, what it took, and with what."""

    id: str
    seconds: float
    tokens: int
    samples: int
    answer: str | None


@dataclass
class Measured:
    """What a way came to."""

    part: str
    way: str
    asked: int
    wall: float = 0.0
    cpu: float = 0.0
    """Processor seconds of whoever asked; through the gateway, of the gateway."""
    generated: int | None = None
    """The tokens that the server says it has generated, those of draws that were cancelled among them."""
    answered: list[Answered] = field(default_factory=list)
    trouble: str = ""

    def figures(self, full: "Measured | None", gold: dict[str, str | None]) -> dict[str, Any]:
        """In brief, beside the full vote."""
        seconds = [one.seconds for one in self.answered]
        if not seconds:
            return {"way": self.way, "trouble": self.trouble or "nothing was answered"}
        cuts = quantiles([*seconds, *seconds], n=100)
        tokens = self.generated / len(seconds) if self.generated else fmean(one.tokens for one in self.answered)
        votes = {one.id: one.answer for one in full.answered} if full else {}
        both = [(one.answer, votes[one.id]) for one in self.answered if one.id in votes]
        graded = [(one.answer, gold[one.id]) for one in self.answered if gold.get(one.id)]
        return {
            "way": self.way,
            "wall": self.wall,
            "a_second": len(seconds) / self.wall,
            "p50": cuts[49],
            "p95": cuts[94],
            "tokens": tokens,
            "samples": fmean(one.samples for one in self.answered),
            "agreement": 100 * fmean(same(*pair) for pair in both) if both else None,
            "accuracy": 100 * fmean(same(*pair) for pair in graded) if graded else None,
            "cpu": self.cpu,
            "trouble": self.trouble,
        }


def same(first: str | None, second: str | None) -> bool:
    """Whether two answers are one, as votes have it."""
    keys = Keys()
    return keys.key(first) == keys.key(second)


@dataclass(frozen=True)
class Task:
    """What one process does: a way, on questions, for so long."""

    base_url: str
    model: str
    part: str
    way: str
    questions: list[dict[str, str | None]]
    limit: float

    @property
    def messages(self) -> list[list[dict[str, Any]]]:
        """What is sent for each question."""
        prompt = get_prompt(suited(self.model)[0])
        return [put(question["question"] or "", prompt) for question in self.questions]

    @property
    def fields(self) -> dict[str, Any]:
        """What else is sent."""
        return {**SAMPLING, **suited(self.model)[1]}


Ask = Callable[[list[dict[str, Any]]], Awaitable[tuple[int, int, str | None]]]
"""From messages to the tokens, the samples and the answer."""


async def measure(task: Task) -> Measured:
    """One way, in this process."""
    kind, options = WAYS[task.way]
    measured = Measured(task.part, task.way, len(task.questions))
    async with (
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), read_bufsize=1 << 20) as http,
        openai.AsyncOpenAI(base_url=task.base_url, api_key="none") as client,
    ):
        if kind == "library":
            prepare(BUDGET, UNIVERSAL)
            suffice.get_controller("plan").next_round(Tally(BUDGET))
            ask = by_library(client, task, options)
        else:
            ask = by_http(http, task, options)
        begun, cpu = time.monotonic(), processor_seconds()

        async def one(place: int) -> None:
            since = time.monotonic()
            tokens, samples, answer = await ask(task.messages[place])
            name = task.questions[place]["id"] or ""
            measured.answered.append(Answered(name, time.monotonic() - since, tokens, samples, answer))
            measured.wall = time.monotonic() - begun
            progress(f"{task.part}, {task.way}: {len(measured.answered)} of {measured.asked}", end="\r")

        try:
            async with asyncio.timeout(task.limit):
                if task.part == "load":
                    await asyncio.gather(*map(one, range(len(task.questions))))
                else:
                    for place in range(len(task.questions)):
                        await one(place)
        except TimeoutError:
            measured.trouble = f"stopped after {task.limit:.0f} s: {len(measured.answered)} of {measured.asked}"
            measured.wall = time.monotonic() - begun
        except Exception as error:  # whatever it is, what came before it is kept
            measured.trouble = f"{type(error).__name__}: {error}"[:200]
        measured.cpu = processor_seconds() - cpu
    return measured


def by_library(client: openai.AsyncOpenAI, task: Task, options: dict[str, Any]) -> Ask:
    async def ask(messages: list[dict[str, Any]]) -> tuple[int, int, str | None]:
        outcome = await suffice.asample(
            client, messages, model=task.model, budget=BUDGET, timeout_seconds=task.limit, **options, **task.fields
        )
        return outcome.tokens, outcome.samples, outcome.answer

    return ask


def by_http(http: aiohttp.ClientSession, task: Task, options: dict[str, Any]) -> Ask:
    """Straight, or from the gateway, which is there by the same URL."""

    async def drawn(messages: list[dict[str, Any]], draws: int) -> list[Response]:
        """So many responses of one reply; of several where a server gives no more than a few at once."""
        body = {"model": task.model, "messages": messages, **task.fields, **({"n": draws} if draws > 1 else {})}
        async with http.post(f"{task.base_url}/chat/completions", json=body) as reply:
            if reply.status == 200:
                return CHAT.read(await reply.read(), draws)
            if reply.status != 400 or draws == 1:
                raise RuntimeError(f"status {reply.status}: {(await reply.text())[:150]}")
        halves = await asyncio.gather(drawn(messages, draws // 2), drawn(messages, draws - draws // 2))
        return [*halves[0], *halves[1]]

    async def ask(messages: list[dict[str, Any]]) -> tuple[int, int, str | None]:
        responses = await drawn(messages, options.get("n", 1))
        tokens = sum(one.tokens or 0 for one in responses)
        if told := responses[0].reply.get("suffice"):
            return tokens, told["samples"], told["answer"]
        return tokens, len(responses), voted(messages, responses)

    return ask


def voted(messages: list[dict[str, Any]], responses: Sequence[Response]) -> str | None:
    """What most of the responses say."""
    extractor, keys = get_extractor("auto").for_request(messages), Keys()
    tally = Tally(len(responses))
    for response in responses:
        tally.add(keys.key(extractor.extract(response)))
    return tally.leader


def by_run(task: Task, folder: Path) -> Measured:
    """`suffice run`, as anybody would type it: its time is that of the whole command."""
    asked, out = folder / "questions.jsonl", folder / "outcomes.jsonl"
    asked.write_text("".join(json.dumps(question) + "\n" for question in task.questions))
    fields = [part for name, value in task.fields.items() for part in (f"--{name.replace('_', '-')}", str(value))]
    options = [part for name, value in WAYS[task.way][1].items() for part in (f"--{name}", str(value))]
    at_once = str(BUDGET * len(task.questions) if task.part == "load" else BUDGET)
    where = ["--base-url", task.base_url, "--model", task.model, "--concurrency", at_once]
    command = [sys.executable, "-m", "suffice", "run", str(asked), "--out", str(out), *where, *options, *fields]
    measured = Measured(task.part, task.way, len(task.questions))
    begun, cpu = time.monotonic(), processor_seconds(resource.RUSAGE_CHILDREN)
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=task.limit)
        measured.trouble = "" if ended.returncode == 0 else ended.stderr.strip()[-200:]
    except subprocess.TimeoutExpired:
        measured.trouble = f"stopped after {task.limit:.0f} s"
    measured.wall = time.monotonic() - begun
    measured.cpu = processor_seconds(resource.RUSAGE_CHILDREN) - cpu
    for line in out.read_text().splitlines() if out.exists() else ():
        told = json.loads(line)
        one = Answered(told["id"], told["seconds"], told["tokens"], told["samples"], told["answer"])
        measured.answered.append(one)
    return measured


def processor_seconds(who: int = resource.RUSAGE_SELF) -> float:
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def in_process(task: Task, folder: Path) -> Measured:
    """Measure one way in a process of its own, which is ended where it outlasts its limit."""
    kind, options = WAYS[task.way]
    if kind == "run":
        return by_run(task, folder)
    if kind != "gateway":
        return _in_process(task, folder)
    given = [part for name, value in options.items() for part in (f"--{name}", str(value))]
    with gateway(task.base_url.removesuffix("/v1"), *given) as (root, process):
        url = f"{root}/v1"
        with suppress(Exception):  # the first plan of a gateway takes its time
            asyncio.run(measure(Task(url, task.model, "idle", task.way, task.questions[:1], 20)))
        cpu = cpu_of(process)
        measured = _in_process(Task(**{**asdict(task), "base_url": url}), folder)
        measured.cpu = cpu_of(process) - cpu
        return measured


def _in_process(task: Task, folder: Path) -> Measured:
    given, found = folder / "task.json", folder / "measured.json"
    given.write_text(json.dumps(asdict(task)))
    command = [sys.executable, __file__, "--work", str(given), str(found)]
    try:
        ended = subprocess.run(command, timeout=task.limit + 30)
        told = json.loads(found.read_text())
    except (subprocess.TimeoutExpired, OSError, ValueError) as error:
        status = "" if isinstance(error, subprocess.TimeoutExpired) else f" with status {ended.returncode}"
        return Measured(task.part, task.way, len(task.questions), trouble=f"its process was ended{status}")
    return Measured(**{**told, "answered": [Answered(**one) for one in told["answered"]]})


def counters(base_url: str) -> dict[str, float]:
    """What the server says of itself, as vLLM does; nothing where it says nothing."""
    with suppress(OSError, ValueError):
        told = fetched(f"{base_url.removesuffix('/v1')}/metrics").decode()
        found = re.findall(r"^vllm:(\w+)(?:\{.*\})? ([\d.e+]+)$", told, re.MULTILINE)
        return {name: float(value) for name, value in found}
    return {}


def fetched(url: str, data: bytes | None = None) -> bytes:
    """What is there, or what comes of data that is sent there; OSError where nothing is."""
    with urllib.request.urlopen(url, data, timeout=5) as reply:
        body: bytes = reply.read()
        return body


def wait_until_idle(base_url: str) -> None:
    """Wait until the server has nothing to do: what was cancelled may take a moment to end."""
    for _ in range(50):
        if not counters(base_url).get("num_requests_running"):
            return
        time.sleep(0.2)


STORIES = (
    "{name} has {a} boxes with {b} pencils each. {other} takes {c} pencils out of every box, and then {name} buys {d} "
    "more pencils. How many pencils does {name} have now?",
    "A train ride costs ${a} on weekdays and ${b} at the weekend. {name} rides {c} times on each of the 5 weekdays "
    "and {d} times on each day of the weekend. How many dollars does {name} spend in {e} weeks?",
    "{name} reads {a} pages an hour and {other} reads {b}. {name} reads for {c} hours, and {other} for {d} hours more. "
    "How many more pages than {name} does {other} read? If it is fewer, give a negative number.",
    "A farmer has {f} eggs. He packs them in boxes of {c}, sells each full box for ${a}, and each egg that is left for "
    "${d}. How many dollars does he get?",
    "{name} is {a} years older than {other}, who is {c} times as old as their cousin. In {d} years the cousin will be "
    "{b}. How old will {name} be then?",
    "A tank holds {f} liters. {c} pumps fill it at {d} liters a minute each, and it loses {e} liters a minute. {name} "
    "stops one pump after {b} minutes. How many liters are in the tank after {g} minutes, if it was empty before?",
    "{name} earns ${a} an hour, and half as much again for every hour beyond 40 in a week. In {e} weeks {name} works "
    "{h} hours a week, and spends ${b} a day. How many dollars are left after these weeks?",
    "In a class of {h} students, {c} more play football than chess, and {d} play both. {e} play neither. How many play "
    "chess?",
)
NAMES = ("Mia", "Omar", "Lena", "Ravi", "Zoe", "Ken", "Ana", "Tom")


def made_up(number: int) -> list[dict[str, str | None]]:
    """So many word problems of a few steps; nobody knows their answers."""
    chance = random.Random(0)
    made = []
    for place in range(number):
        name, other = chance.sample(NAMES, 2)
        small = {letter: chance.randint(2, 9) for letter in "cde"}
        large = {"a": chance.randint(11, 48), "b": chance.randint(12, 60), "f": chance.randint(500, 2000)}
        more = {"g": chance.randint(61, 99), "h": chance.randint(41, 58)}
        story = STORIES[place % len(STORIES)].format(name=name, other=other, **small, **large, **more)
        made.append({"id": f"made-{place + 1}", "question": story, "gold": None})
    return made


def of_pool(number: int) -> list[dict[str, str | None]]:
    """So many questions of the pool that a simulated server answers from: it knows them by their names."""
    asked = repeated([{"id": one.id, "gold": one.gold} for one in suffice.load_pool(POOL).questions], number)
    return [{**one, "question": f"question {one['id']}"} for one in asked]


def of_file(path: Path) -> list[dict[str, str | None]]:
    """The questions of a file as `suffice run` takes it."""
    return [{"id": one.id, "question": one.question, "gold": one.gold} for one in Questions(path)]


def repeated(questions: list[dict[str, str | None]], number: int) -> list[dict[str, str | None]]:
    """So many of them, again and again where there are fewer."""
    times = -(-number // len(questions))
    again = [{**one, "id": f"{one['id']} again {time}"} for time in range(1, times) for one in questions]
    return [*questions, *again][:number]


COLUMNS = {
    "way": "way", "wall": "seconds", "a_second": "questions a second", "times": "of n=32", "p50": "p50 s",
    "p95": "p95 s", "tokens": "tokens a question", "share": "of n=32", "samples": "samples", "agreement": "agreement %",
    "accuracy": "accuracy %", "cpu": "processor s",
}  # fmt: skip
FORMS = {"a_second": ".2f", "times": ".2f", "p50": ".2f", "p95": ".2f", "tokens": ",.0f", "share": ".0%"}


def table(rows: list[dict[str, Any]], title: str) -> str:
    """Rows of figures as Markdown."""
    lines = [f"## {title}", "", f"| {' | '.join(COLUMNS.values())} |", "|---" * len(COLUMNS) + "|"]
    for row in rows:
        cells = [row["way"], *(_cell(row.get(name), FORMS.get(name, ".1f")) for name in list(COLUMNS)[1:])]
        lines.append(f"| {' | '.join(cells)} |")
    lines += [f"\n{row['way']}: {row['trouble']}." for row in rows if row["trouble"]]
    return "\n".join(lines) + "\n"


def _cell(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)


def rows_of(measured: Sequence[Measured], part: str, gold: dict[str, str | None]) -> list[dict[str, Any]]:
    """The figures of one part, in the order of the ways."""
    of_part = {one.way: one for one in measured if one.part == part}
    full = of_part.get("n=32")
    base = full.figures(full, gold) if full else {}
    rows = [of_part[way].figures(full, gold) for way in WAYS if way in of_part]
    for row in rows:
        if "tokens" in row and "tokens" in base:
            row |= {"times": row["a_second"] / base["a_second"], "share": row["tokens"] / base["tokens"]}
    return rows


def write(out: Path, measured: Sequence[Measured], sizes: dict[str, int], gold: dict[str, str | None]) -> str:
    """All figures so far, as JSON and as tables; the tables."""
    rows = {part: rows_of(measured, part, gold) for part in TITLES}
    tables = "\n".join(table(rows[part], TITLES[part].format(sizes[part])) for part in TITLES if rows[part])
    (out / "server.md").write_text(tables)
    told = {"figures": rows, "measured": [asdict(one) for one in measured]}
    (out / "server.json").write_text(json.dumps(told, indent=1))
    return tables


@contextmanager
def server_of(chosen: argparse.Namespace) -> Iterator[str]:
    """The URL of the server that is asked, which is started where there is none."""
    if chosen.simulate:
        with simulated("--like-h200") as (url, _):
            yield f"{url}/v1"
    elif chosen.local:
        with suffice.LocalServer() as local:
            yield local.base_url
    else:
        yield chosen.base_url.rstrip("/")


def progress(said: str, end: str = "\n") -> None:
    print(f"{said:<70}", end=end, file=sys.stderr, flush=True)


def run_all(chosen: argparse.Namespace, sizes: dict[str, int]) -> None:
    model = chosen.model or json.loads(fetched(f"{chosen.base_url}/models"))["data"][0]["id"]
    most = max(sizes.values())
    if chosen.simulate:
        questions = of_pool(most)
    else:
        questions = repeated(of_file(chosen.questions), most) if chosen.questions else made_up(most)
    gold = {question["id"] or "": question["gold"] for question in questions}
    ends = time.monotonic() + chosen.seconds
    measured: list[Measured] = []
    for part, way in ORDER:
        if chosen.ways and way not in chosen.ways:
            continue
        if time.monotonic() > ends - 5:
            measured.append(Measured(part, way, sizes[part], trouble="not begun: the time was over"))
            continue
        least, each = LIMITS[part]
        limit = min(max(least, each * sizes[part]), ends - time.monotonic())
        task = Task(chosen.base_url, model, part, way, questions[: sizes[part]], limit)
        wait_until_idle(chosen.base_url)
        if chosen.simulate:
            fetched(f"{chosen.base_url.removesuffix('/v1')}/reset", b"")  # all ways draw the same responses
        before = counters(chosen.base_url).get("generation_tokens_total")
        with tempfile.TemporaryDirectory() as folder:
            try:
                one = in_process(task, Path(folder))
            except Exception as error:  # one way that fails is no reason to give up the others
                one = Measured(part, way, sizes[part], trouble=f"{type(error).__name__}: {error}"[:300])
        wait_until_idle(chosen.base_url)
        after = counters(chosen.base_url).get("generation_tokens_total")
        one.generated = round(after - before) if before is not None and after is not None else None
        measured.append(one)
        rate = len(one.answered) / one.wall if one.wall else 0.0
        progress(f"{part}, {way}: {one.wall:.1f} s, {rate:.2f} questions a second {one.trouble}")
        write(chosen.out, measured, sizes, gold)
    print(write(chosen.out, measured, sizes, gold))
    draw_server({part: rows_of(measured, part, gold) for part in TITLES}, chosen.out / "server.png")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--base-url", help="of an OpenAI-compatible server, with its /v1")
    options.add_argument("--simulate", action="store_true", help="a simulated server, as fast as vLLM on an H200")
    options.add_argument("--local", action="store_true", help="the embedded model")
    options.add_argument("--model", help="the first that the server has, unless it is given")
    options.add_argument("--questions", type=Path, help="JSON lines with id, question and gold; word problems if none")
    options.add_argument("--out", type=Path, default=Path())
    options.add_argument("--quick", action="store_true", help="few questions, to see that all works")
    options.add_argument("--seconds", type=float, default=480, help="begin nothing after so many")
    options.add_argument("--ways", action="append", choices=list(WAYS), help="these alone; repeat for more")
    options.add_argument("--at-once", type=int, default=128, help="questions under load")
    options.add_argument("--one-by-one", type=int, default=12, help="questions on the idle server")
    options.add_argument("--work", nargs=2, type=Path, help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.work:
        given, found = chosen.work
        found.write_text(json.dumps(asdict(asyncio.run(measure(Task(**json.loads(given.read_text())))))))
        return
    if bool(chosen.base_url) + chosen.simulate + chosen.local != 1:
        options.error("give --base-url, or --simulate, or --local")
    chosen.out.mkdir(parents=True, exist_ok=True)
    sizes = {"load": 16, "idle": 3} if chosen.quick else {"load": chosen.at_once, "idle": chosen.one_by_one}
    with server_of(chosen) as chosen.base_url:
        run_all(chosen, sizes)


if __name__ == "__main__":
    main()
