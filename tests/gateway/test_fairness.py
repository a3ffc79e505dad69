"""Requests that are hard to answer, and those of others beside them."""

import asyncio
from typing import Any

import httpx
import pytest
from helpers.gateways import gateway

from suffice.testing import FakeServer


def test_formulas_that_are_slow_to_compare_hold_up_no_other_vote(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("suffice.answers.keys.BUDGET", 1.0)

    def script(request: dict[str, Any], number: int) -> list[str]:
        slow = "slow" in request["messages"][0]["content"]
        answers = [rf"(x+y+z+w)^{{{97 - place % 5}}}" for place in range(32)] if slow else [r"\sqrt{12}", r"2\sqrt{3}"]
        return [rf"\boxed{{{answers[place % len(answers)]}}}" for place in range(request["n"])]

    async def ask(client: httpx.AsyncClient, question: str) -> Any:
        body = {"model": "m", "messages": [{"role": "user", "content": question}], "suffice": {"controller": "sc"}}
        return (await client.post("/v1/chat/completions", json=body)).json()["suffice"]

    async def votes(url: str) -> list[Any]:
        async with httpx.AsyncClient(base_url=url, timeout=None, trust_env=False) as client:
            return await asyncio.gather(*(ask(client, "slow") for _ in range(9)), ask(client, "What is the root?"))

    with FakeServer(script) as server, gateway(server, budget=8, deadline_seconds=60.0) as url:
        *slow, other = asyncio.run(votes(url))
    assert other["stop_reason"] == "budget" and other["votes"] == {r"\sqrt{12}": 8}, "they were compared by meaning"
    for outcome in slow:
        assert outcome["stop_reason"] == "budget"
        assert sorted(outcome["votes"].values()) == [1, 1, 2, 2, 2], "those that are too slow, as they are written"
