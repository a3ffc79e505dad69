"""A model that gets worse overnight, behind the gateway: when feedback shows it, and the risk of what is sure after.

    python benchmarks/overnight.py

A scripted upstream answers questions whose right answers are known. It is calibrated on 100 labels by day, then asked
by day, after it has changed, and after it is mended; some share of the replies get feedback.
"""

import random
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import httpx
import numpy as np
from gateway import gateway

from suffice import Pool, Question, calibrate
from suffice.report.markdown import markdown_table
from suffice.testing import FakeServer, Reply, completion

RISK = 0.1
EACH = 400
WINDOW = 100


@dataclass(frozen=True)
class Day:
    """How a model is: the shares of questions that mislead it, always alike, and that divide it; others it knows."""

    misled: float
    divided: float
    torn: float = 0.45
    """Of a question that divides it: the share of responses that are right; many others say the same wrong thing."""
    known: float = 0.97
    """The same of a question that it knows."""

    def response(self, question: int, chance: random.Random) -> str:
        """A response to a question, whose number is the right answer."""
        fate = random.Random(question).random()
        right = 0.0 if fate < self.misled else self.torn if fate < self.misled + self.divided else self.known
        if chance.random() < right:
            return str(question)
        return str(-question) if fate < self.misled or chance.random() < 0.5 else str(-chance.randint(1, 9))


GOOD = Day(misled=0.02, divided=0.15)
WORSE = {
    "misled by one in four": Day(misled=0.25, divided=0.15),
    "torn by two in five": Day(misled=0.02, divided=0.4, torn=0.3),
}


def main() -> None:
    rows = []
    for name, night in WORSE.items():
        for share in (1.0, 0.3):
            rows += [[name, f"{share:.0%}", *row] for row in overnight(night, share)]
    headings = ["change", "feedback on", "requests", "sure enough", "wrong among them", "promises broken", "threshold"]
    print(markdown_table(headings, rows))


def overnight(night: Day, share: float) -> Iterator[list[str]]:
    """What is sure enough and how much of it is wrong, by stretches of requests."""
    now, chance = [GOOD], random.Random(7)

    def script(request: dict[str, Any], number: int) -> Reply:
        question = int(request["messages"][-1]["content"].split()[-1])
        texts = [rf"So it is \boxed{{{now[0].response(question, chance)}}}." for _ in range(request.get("n", 1))]
        return Reply({**completion(texts), "id": f"chatcmpl-{number}"})

    with tempfile.TemporaryDirectory() as folder, FakeServer(script, remember=False) as server:
        right = Path(folder) / "right.json"
        calibrate(labelled(100)).save(right)
        options = ("--vote", "always", "--right", str(right), "--risk", f"{RISK}", "--no-learn", "--state", folder)
        with gateway(server.base_url.removesuffix("/v1"), *options) as (url, _), httpx.Client() as client:
            told: list[tuple[bool, bool]] = []
            for number, day in enumerate([GOOD] * EACH + [night] * EACH + [GOOD] * EACH):
                now[0] = day
                told.append(ask(client, url, 1000 + number, tell=chance.random() < share))
                if len(told) == WINDOW:
                    wrong = [not is_right for sure, is_right in told if sure]
                    (kind,) = client.get(f"{url}/v1/suffice/audits").json()["kinds"]
                    force = kind["right"]
                    least = "none" if force["threshold"] is None else f"{force['threshold']:.3f}"
                    risk = f"{fmean(wrong):.1%}" if wrong else "–"
                    part = f"{len(wrong) / WINDOW:.0%}"
                    yield [f"{number + 1 - WINDOW}–{number}", part, risk, str(force["broken"]), least]
                    told = []


def ask(client: httpx.Client, url: str, question: int, tell: bool) -> tuple[bool, bool]:
    """Whether the answer is sure enough, and whether it is right; which is perhaps told."""
    body = {"model": "fake", "messages": [{"role": "user", "content": f"What is {question}"}]}
    reply = client.post(f"{url}/v1/chat/completions", json=body, timeout=60).json()
    found = reply["suffice"]
    is_right = found["answer"] == str(question)
    if tell:
        client.post(f"{url}/v1/suffice/feedback", json={"id": reply["id"], "gold": str(question)}).raise_for_status()
    return bool(found["sure"]), is_right


def labelled(questions: int) -> Pool:
    """Questions by day, with their gold answers."""
    chance = random.Random(1)
    made = [
        Question(f"{number}", f"{number}", tuple(GOOD.response(number, chance) for _ in range(32)), None)
        for number in np.arange(5000, 5000 + questions).tolist()
    ]
    return Pool("by day", tuple(made))


if __name__ == "__main__":
    main()
