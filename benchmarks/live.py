"""The embedded model asked live, one question at a time, beside the replay of the pool that was collected from it."""

import time
from pathlib import Path
from statistics import fmean
from typing import Any

import openai

import suffice
from suffice.answers import Keys
from suffice.live.batches.questions import Questions
from suffice.live.prompts import WORKED, put

QUESTIONS = Path(__file__).parent.parent / "docs" / "live" / "arithmetic.jsonl"
POOL = "smollm2-135m__arithmetic"
CONTROLLERS = ("sc", "asc", "rl", "plan")
SAMPLING: dict[str, Any] = {"temperature": 1.0, "max_tokens": 128}


def main() -> None:
    questions = Questions(QUESTIONS)
    replayed = suffice.evaluate(suffice.load_pool(POOL), list(CONTROLLERS))
    print("| controller | accuracy % | samples | rounds | tokens | seconds |")
    print("|---|---|---|---|---|---|")
    with suffice.LocalServer() as server, openai.OpenAI(base_url=server.base_url, api_key="none") as client:
        for name, replay in zip(CONTROLLERS, replayed, strict=True):
            outcomes, right = [], []
            begun = time.monotonic()
            for question in questions:
                messages = put(question.question, WORKED)
                outcome = suffice.sample(client, messages, model=server.model, controller=name, **SAMPLING)
                outcomes.append(outcome)
                right.append(is_right(outcome, question.gold))
            seconds = (time.monotonic() - begun) / len(questions)
            figures = [
                (100 * fmean(right), replay.accuracy or 0.0, ".1f"),
                (fmean(one.samples for one in outcomes), replay.samples, ".1f"),
                (fmean(one.rounds for one in outcomes), replay.rounds, ".1f"),
                (fmean(one.tokens for one in outcomes), replay.total_tokens or 0.0, ".0f"),
            ]
            cells = [f"{live:{form}} / {replay:{form}}" for live, replay, form in figures]
            print(f"| `{name}` | {' | '.join(cells)} | {seconds:.1f} |", flush=True)


def is_right(outcome: suffice.Outcome, gold: str | None) -> bool:
    keys = Keys()
    for response in outcome.responses:
        keys.key(response.answer)
    return outcome.answer is not None and outcome.answer == keys.find(gold)


if __name__ == "__main__":
    main()
