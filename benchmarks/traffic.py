"""Chat traffic that no rule was written for, through the gateway at first sight: what it costs, what comes back.

python benchmarks/traffic.py [CORPUS.jsonl [ask]]    samples are counted at the upstream, also those no reply tells of

With ask the model reads: asked for its final answer alone, it says what its response answers.

A line of the corpus is a kind: its messages, whether there is an answer to vote on, that answer and others to accept,
responses with what each answers, and extra fields of the request. What comes back is one of those responses, and right
if that one is.
"""

import json
import random
import sys
from collections import Counter
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx

from suffice.answers import AskExtractor
from suffice.testing import FakeServer, Reply, completion

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))
RUNS = 12
SURE = 0.9


@dataclass
class Figures:
    """What came of one kind."""

    kind: dict[str, Any]
    samples: list[int] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    exact: list[bool] = field(default_factory=list)
    right: list[bool] = field(default_factory=list)
    sure: list[bool] = field(default_factory=list)
    """Of the replies that claim to be certain, whether each is right."""
    evidence: Counter[str] = field(default_factory=Counter)

    @property
    def once(self) -> float:
        """How often one response is right."""
        return _mean([is_right(self.kind, one) for one in self.kind["responses"]])

    @property
    def upstream_is_right(self) -> bool:
        """Whether most responses that answer are right."""
        said = Counter(one["answer"] for one in self.kind["responses"] if one["answer"] is not None)
        return said.most_common(1)[0][0] in _accepted(self.kind)

    def __str__(self) -> str:
        about = f"{self.kind['kind']} ({self.kind.get('lang', 'en')})"
        seen = ", ".join(f"{kind} {times}" for kind, times in self.evidence.most_common())
        costs = f"{_mean(self.samples):5.2f} samples, at most {max(self.samples)}"
        if not self.kind["vote"]:
            return f"  {about:45} {costs}, {_mean(self.exact):.0%} byte for byte  {seen}"
        return f"  {about:45} {costs}, {_mean(self.right):.2f} right, {self.once:.2f} once  {seen}"


def _mean(figures: list[Any]) -> float:
    return sum(figures) / len(figures) if figures else 0.0


def _accepted(kind: dict[str, Any]) -> list[Any]:
    return [kind["answer"], *(kind.get("accept") or [])]


def is_right(kind: dict[str, Any], response: dict[str, Any]) -> bool:
    """Whether a response gives the kind's answer."""
    return response["answer"] in _accepted(kind)


def measure(kinds: list[dict[str, Any]], answer: str = "auto") -> list[Figures]:
    """Every kind so many times through a gateway that finds answers like this."""
    from helpers.gateways import AT_FIRST_SIGHT, gateway

    by_messages = {json.dumps(kind["messages"]): kind for kind in kinds}
    chance = random.Random(7)
    said: list[tuple[bytes, list[dict[str, Any]]]] = []

    read: list[str] = []

    def script(request: dict[str, Any], number: int) -> Reply:
        *before, last = request["messages"]
        if last["content"] == AskExtractor.follow_up:
            kind = by_messages[json.dumps(before[:-1])]
            read.append(next(one["answer"] for one in kind["responses"] if one["text"] == before[-1]["content"]) or "-")
            return Reply(completion(read[-1:]))
        kind = by_messages[json.dumps(request["messages"])]
        drawn = [chance.choice(kind["responses"]) for _ in range(request.get("n") or 1)]
        cut = "length" if (request.get("max_tokens") or request.get("max_completion_tokens") or 99) <= 8 else "stop"
        said.append((json.dumps(completion([one["text"] for one in drawn], finish_reason=cut)).encode(), drawn))
        return Reply(said[-1][0])

    figures = [Figures(kind) for kind in kinds]
    with (
        redirect_stdout(StringIO()),
        FakeServer(script, remember=False) as server,
        gateway(server, answer=answer, **AT_FIRST_SIGHT) as url,
    ):
        for of in figures * RUNS:
            said.clear()
            read.clear()
            body = {"model": "fake", "messages": of.kind["messages"], **(of.kind.get("extra") or {})}
            reply = httpx.post(f"{url}/v1/chat/completions", json=body, timeout=60)
            drawn = [one for _, responses in said for one in responses]
            told, text = reply.json().get("suffice") or {}, reply.json()["choices"][0]["message"]["content"]
            given = next((one for one in drawn if one["text"] == text), None)
            of.samples.append(len(drawn))
            of.tokens.append(sum(1 + len(text) // 4 for text in [*(one["text"] for one in drawn), *read]))
            of.exact.append(reply.content == said[0][0])
            of.right.append(given is not None and is_right(of.kind, given))
            of.evidence[str(told.get("evidence") or "none") if told else "once"] += 1
            if (told.get("certainty") or 0) > SURE:
                of.sure.append(of.right[-1])
    return figures


def main() -> None:
    """Measure a corpus, and print by kind and in all."""
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "tests" / "corpus" / "heldout.jsonl"
    figures = measure([json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()], *sys.argv[2:3])
    without, having = ([one for one in figures if one.kind["vote"] is vote] for vote in (False, True))
    for one in [*without, *having]:
        print(one)
    if without:
        samples = [samples for one in without for samples in one.samples]
        exact = _mean([exact for one in without for exact in one.exact])
        print(f"{len(without)} kinds without an answer: {_mean(samples):.2f} samples, at most {max(samples)}, ", end="")
        print(f"{exact:.1%} byte for byte")
    if having:
        right, once = _mean([_mean(one.right) for one in having]), _mean([one.once for one in having])
        worse = [one.kind["kind"] for one in having if _mean(one.right) < one.once - 0.5 / RUNS]
        print(f"{len(having)} kinds with one: {right:.3f} right, {once:.3f} once, ", end="")
        print(f"{_mean([_mean(one.samples) for one in having]):.1f} samples of ", end="")
        print(f"{_mean([_mean(one.tokens) for one in having]):.0f} tokens; worse than once: {worse or 'none'}")
        for least, most in pairwise((0.0, 0.1, 0.2, 0.3, 0.4, 1.0)):
            alike = sorted(samples for one in having if least <= 1 - one.once < most for samples in one.samples)
            if alike:
                print(f"  of responses {least:.0%} to {most:.0%} wrong: {_mean(alike):.1f} samples, ", end="")
                print(f"from {alike[len(alike) // 10]} to {alike[len(alike) * 9 // 10]} in four of five requests")
        sure = [(right, one.upstream_is_right) for one in having for right in one.sure]
        wrong, upstream = (_mean([not of[place] for of in sure]) for place in (0, 1))
        print(f"certain by more than {SURE}: {len(sure)}, {wrong:.1%} wrong, {upstream:.1%} where the upstream is")


if __name__ == "__main__":
    main()
