"""How many files one question crosses: what a newcomer has to open to follow it."""

import httpx
import openai
from helpers.gateways import ASK, MESSAGES, always, gateway
from helpers.walks import walked

import suffice
from suffice.testing import FakeServer

LIVE, GATEWAY = 25, 34
"""The most that a live question, and a vote of the gateway, may cross: a change that takes more needs a reason."""


def test_a_live_question_crosses_few_files() -> None:
    with (
        walked() as crossed,
        FakeServer(always) as server,
        openai.OpenAI(base_url=server.base_url, api_key="none") as client,
    ):
        suffice.sample(client, MESSAGES, model="fake")
        crossed.clear()  # what is made once is not of the question
        assert suffice.sample(client, MESSAGES, model="fake").answer == "42"
        files = sorted(crossed)
    assert "live/vote.py" in files
    assert len(files) <= LIVE, files


def test_a_vote_of_the_gateway_crosses_few_files() -> None:
    with walked() as crossed, FakeServer(always) as server, gateway(server) as url:
        path = f"{url}/v1/chat/completions"
        httpx.post(path, json=ASK, timeout=60)
        crossed.clear()
        assert httpx.post(path, json=ASK, timeout=60).json()["suffice"]["answer"] == "42"
        files = sorted(crossed)
    assert "gateway/pipeline.py" in files
    assert len(files) <= GATEWAY, files
