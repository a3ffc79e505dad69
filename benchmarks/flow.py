"""Flow against rounds, self-consistency and its_hub, on one simulated upstream whose parallelism is limited.

Questions are asked one at a time; the upstream counts what it generated, also for requests that were cancelled.
"""

import argparse
import asyncio
import csv
import random
import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, quantiles
from typing import Any

import httpx
import openai
from gateway import HERE, running
from its_hub.core.algorithms.adaptive_self_consistency import AdaptiveSelfConsistency
from its_hub.core.algorithms.beta_self_consistency import BetaSelfConsistency
from its_hub.core.lms.openai_lm import OpenAICompatibleLanguageModel
from pictures import draw_methods

import suffice
from suffice import Flow
from suffice.answers import answer_key
from suffice.report.files import table_csv

POOLS = [f"qwen2.5-coder-1.5b__{name}" for name in ("dapo", "gsm8k", "math500")]
SPEED, SLOTS = 4000, 32
FIGURE = HERE.parent / "docs" / "flow.png"

Ask = Callable[[str], Awaitable[str | None]]


def ours(client: Any, **options: Any) -> Ask:
    async def ask(question: str) -> str | None:
        messages = [{"role": "user", "content": question}]
        return (await suffice.asample(client, messages, model="pool", **options)).answer

    return ask


def theirs(algorithm: Any, url: str) -> Ask:
    lm = OpenAICompatibleLanguageModel(f"{url}/v1", "none", "pool")

    async def ask(question: str) -> str | None:
        message = await algorithm.ainfer(lm, question, 32)
        return answer_key(message["content"])

    return ask


def boxed(response: str) -> str:
    found = re.search(r"\\boxed\{(.*)\}", response)
    return found[1] if found else response


@dataclass(frozen=True)
class Measured:
    """What a method came to: its answers, the tokens of a question in the mean, and the seconds of each."""

    answers: list[str | None]
    accuracy: float
    tokens: float
    seconds: list[float]

    def agreement(self, full: "Measured") -> float:
        """How often the answer is the full vote's on the same draws, in percent."""
        return 100 * fmean(own == other for own, other in zip(self.answers, full.answers, strict=True))


async def measure(ask: Ask, url: str, questions: list[suffice.Question]) -> Measured:
    async with httpx.AsyncClient() as http:
        await http.post(f"{url}/reset")
        before = (await http.get(f"{url}/spent")).json()["tokens"]
        times, answers, right = [], [], []
        for question in questions:
            begun = time.monotonic()
            answer = await ask(f"question {question.id}")
            times.append(time.monotonic() - begun)
            answers.append(answer)
            right.append(answer is not None and answer == answer_key(rf"\boxed{{{question.gold}}}"))
        await asyncio.sleep(0.2)
        spent = (await http.get(f"{url}/spent")).json()["tokens"] - before
    return Measured(answers, 100 * fmean(right), spent / len(questions), times)


async def compare(url: str, questions: list[suffice.Question]) -> list[dict[str, Any]]:
    found: dict[str, Measured] = {}
    rows = []
    async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none") as client:
        methods: dict[str, Ask] = {
            "SC@32": ours(client, controller="sc"),
            "rounds, plan": ours(client, controller="plan"),
            "rounds, rl": ours(client, controller="rl"),
            "flow by launch, plan": ours(client, controller="plan", flow=Flow()),
            "flow by launch +8, plan": ours(client, controller="plan", flow=Flow(extra=8)),
            "flow by arrival +4, plan": ours(client, controller="plan", flow=Flow("arrival", 4)),
            "flow by arrival +8, plan": ours(client, controller="plan", flow=Flow("arrival", 8)),
            "flow by arrival +4, rl": ours(client, controller="rl", flow=Flow("arrival", 4)),
            "its_hub Beta": theirs(BetaSelfConsistency(consistency_space_projection_func=boxed), url),
            "its_hub adaptive": theirs(AdaptiveSelfConsistency(consistency_space_projection_func=boxed), url),
        }
        print("| method | agreement % | accuracy % | tokens | of SC | p50 s | p95 s | mean s | of SC |")
        print("|---|---|---|---|---|---|---|---|---|")
        for name, ask in methods.items():
            one = found[name] = await measure(ask, url, questions)
            full = found["SC@32"]
            cuts, mean = quantiles(one.seconds, n=100), fmean(one.seconds)
            times = f"{cuts[49]:.2f} | {cuts[94]:.2f} | {mean:.2f} | {mean / fmean(full.seconds):.2f}"
            shares = f"{one.agreement(full):.1f} | {one.accuracy:.1f}"
            print(f"| {name} | {shares} | {one.tokens:.0f} | {one.tokens / full.tokens:.0%} | {times} |", flush=True)
            rows.append({"method": name, "agreement": one.agreement(full), "tokens": one.tokens, "seconds": mean})
    return rows


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--questions", type=int, default=30, help="of each pool")
    options.add_argument("--csv", type=Path, default=HERE.parent / "docs" / "results" / "flow.csv")
    options.add_argument("--redraw", action="store_true", help="draw the picture of what was measured before")
    chosen = options.parse_args()
    if not chosen.redraw:
        rows = measured(chosen.questions)
        chosen.csv.write_text(table_csv(rows))
    with chosen.csv.open(newline="") as file:
        points = {
            row["method"]: (float(row["seconds"]), float(row["tokens"]), float(row["agreement"]))
            for row in csv.DictReader(file)
        }
    draw_methods(points, ("mean seconds for a question", "tokens generated for a question"), FIGURE)


def measured(each: int) -> list[dict[str, Any]]:
    """All methods on so many questions of each pool."""
    chance = random.Random(0)
    questions = [one for name in POOLS for one in chance.sample(suffice.load_pool(name).questions, each)]
    pools = [part for name in POOLS for part in ("--pool", name)]
    limits = ["--tokens-per-second", str(SPEED), "--slots", str(SLOTS)]
    with running(str(HERE / "upstream.py"), *pools, *limits) as (url, _):
        return asyncio.run(compare(url, questions))


if __name__ == "__main__":
    main()
