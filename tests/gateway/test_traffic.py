"""Ordinary traffic at first sight: what has no answer costs one sample, and what shows that it has one is voted on."""

import json
import random
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from helpers.corpus import PRINCIPLES, Kind, kinds
from helpers.gateways import AT_FIRST_SIGHT, gateway

from suffice.testing import FakeServer, Reply, completion

RUNS = 4
TEXTS, ANSWERS = list(kinds("texts")), [kind for name in PRINCIPLES for kind in kinds(name)]


class Upstream:
    """Says something from the corpus to whoever asks, at random, and remembers the bytes."""

    def __init__(self) -> None:
        self.said: list[bytes] = []
        self._random = random.Random(0)
        self._kinds = {json.dumps(kind.messages): kind for kind in (*TEXTS, *ANSWERS)}

    def __call__(self, request: dict[str, Any], number: int) -> Reply:
        kind = self._kinds[json.dumps(request["messages"])]
        texts = [self._random.choice(kind.responses)[0] for _ in range(request.get("n", 1))]
        self.said.append(json.dumps(completion(texts), indent=1).encode())
        return Reply(self.said[-1])


@pytest.fixture(scope="module")
def traffic() -> Iterator[tuple[str, Upstream]]:
    script = Upstream()
    with FakeServer(script, remember=False) as server, gateway(server, **AT_FIRST_SIGHT) as url:
        yield f"{url}/v1/chat/completions", script


def ask(url: str, kind: Kind) -> httpx.Response:
    return httpx.post(url, json={"model": "fake", "messages": kind.messages}, timeout=60)


def test_what_has_no_answer_costs_little_and_comes_back_as_it_was_said(traffic: tuple[str, Upstream]) -> None:
    url, upstream = traffic
    samples, exact = [], []
    for kind in TEXTS:
        for _ in range(RUNS):
            upstream.said.clear()
            reply = ask(url, kind)
            samples.append(sum(len(json.loads(said)["choices"]) for said in upstream.said))
            exact.append(reply.content == upstream.said[0])
    assert sum(samples) / len(samples) <= 1.75, "two of these kinds look like an answer: what movers cost, a share"
    assert sum(exact) / len(exact) >= 0.95


def test_what_shows_that_it_has_one_answer_elects_it_and_the_rest_is_passed_on(traffic: tuple[str, Upstream]) -> None:
    url, upstream = traffic
    right, passed_on = [], 0
    for kind in ANSWERS:
        for _ in range(RUNS):
            upstream.said.clear()
            reply = ask(url, kind)
            told = reply.json()
            if "suffice" in told:
                right.append(dict(kind.responses)[told["choices"][0]["message"]["content"]] == kind.answer)
            else:
                assert reply.content == upstream.said[0]
                passed_on += 1
    assert sum(right) / len(right) >= 0.95, "of single responses 0.81 are"
    assert len(right) >= 0.3 * (len(right) + passed_on)
