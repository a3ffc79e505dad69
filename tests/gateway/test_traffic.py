"""Ordinary traffic before the gateway as it comes: what has no answer costs one sample, what has one is voted on."""

import json
import random
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from helpers.corpus import Kind, kinds
from helpers.gateways import gateway

from suffice.answers import Keys
from suffice.testing import FakeServer, Reply, completion

RUNS = 4
TEXTS, ANSWERS = list(kinds("texts")), list(kinds("answers"))


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
    with FakeServer(script, remember=False) as server, gateway(server, vote="auto") as url:
        yield f"{url}/v1/chat/completions", script


def ask(url: str, kind: Kind) -> httpx.Response:
    return httpx.post(url, json={"model": "fake", "messages": kind.messages}, timeout=60)


def test_what_has_no_answer_costs_one_sample_and_comes_back_as_it_was_said(traffic: tuple[str, Upstream]) -> None:
    url, upstream = traffic
    samples = []
    for kind in TEXTS:
        for _ in range(RUNS):
            upstream.said.clear()
            reply = ask(url, kind)
            samples.append(1 if reply.content == upstream.said[-1] and len(upstream.said) == 1 else 32)
    assert sum(samples) / len(samples) <= 1.1


def test_what_has_one_answer_elects_it(traffic: tuple[str, Upstream]) -> None:
    url, _ = traffic
    right = []
    for kind in ANSWERS:
        for _ in range(RUNS):
            told = ask(url, kind).json().get("suffice", {})
            keys = Keys()
            right.append(keys.key(kind.answer) == keys.key(told.get("answer")))
    assert sum(right) / len(right) >= 0.95
