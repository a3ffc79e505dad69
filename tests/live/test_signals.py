"""Signals: what log probabilities come to, and how they travel from servers of all kinds to responses and pools."""

import json
import math
import random
from pathlib import Path
from typing import Any

import pytest
from helpers.batches import read_lines, sums, url
from helpers.commands import works
from helpers.live import ask_async, ask_sync, boxed
from hypothesis import given, settings
from hypothesis import strategies as st

import suffice
from suffice.live.signals import Token, load, signals_of
from suffice.testing import FakeServer, Reply, completion

pytestmark = pytest.mark.usefixtures("quick")

NAMES = {"logprob", "confidence", "tail", "lowest"}


@settings(max_examples=20, deadline=None)
@given(length=st.integers(0, 70), top=st.integers(1, 24), seed=st.integers(0, 1000))
def test_signals_are_what_the_card_of_the_pools_says(length: int, top: int, seed: int) -> None:
    chance = random.Random(seed)
    tokens = [(-chance.expovariate(1), [-chance.expovariate(1) for _ in range(top)]) for _ in range(length)]
    told = [
        {"token": "x", "logprob": own, "top_logprobs": [{"token": "y", "logprob": one} for one in likeliest]}
        for own, likeliest in tokens
    ]
    signals = signals_of(load(json.dumps(told).encode()))
    if not tokens:
        assert signals == {}
        return
    sure = [-math.fsum(sorted(likeliest)[-20:]) / min(top, 20) for _, likeliest in tokens]
    windows = [sure[start : start + 32] for start in range(max(1, len(sure) - 31))]
    assert signals == {
        "logprob": pytest.approx(math.fsum(own for own, _ in tokens) / len(tokens), abs=2e-6),
        "confidence": pytest.approx(math.fsum(sure) / len(sure), abs=2e-6),
        "tail": pytest.approx(math.fsum(sure[-32:]) / len(sure[-32:]), abs=2e-6),
        "lowest": pytest.approx(min(math.fsum(window) / len(window) for window in windows), abs=2e-6),
    }


def test_what_is_not_known_is_left_out() -> None:
    told = load(b'[{"token": "a", "logprob": -9999.0, "top_logprobs": []}, {"token": "b", "logprob": -2, "bytes": []}]')
    assert told == [Token(None, None), Token(-2.0, None)]
    assert signals_of(told) == {"logprob": -2.0}
    assert signals_of(load(b'[{"token": "a", "logprob": null}, {"token": "a", "logprob": NaN}]')) == {}


@pytest.mark.parametrize("api", ["chat", "responses"])
@pytest.mark.parametrize("flow", [None, suffice.Flow()], ids=["rounds", "flow"])
def test_every_response_has_its_signals(api: str, flow: suffice.Flow | None) -> None:
    with FakeServer(lambda request, number: f"So it is {boxed(42)}", streams=True, logprob=lambda text: -0.5) as server:
        outcome = ask_async(server, api=api, flow=flow, controller="asc", budget=3, signals=True)
        plain = ask_async(server, api=api, flow=flow, controller="asc", budget=1)
    assert outcome.answer == plain.answer == "42" and len(outcome.responses) == 3
    for response in outcome.responses:
        # The likeliest tokens that the server makes up are -0.5, -1.5, and so on for 20 of them.
        assert response.signals == {"logprob": -0.5, "confidence": 10.0, "tail": 10.0, "lowest": 10.0}
        assert "top_logprobs" not in json.dumps([response.choice, response.reply.get("output")]), "no list is kept"
    assert all(response.signals == {} for response in plain.responses)
    assert ["logprobs" in json.dumps(request) for request in server.requests][-1] is False


def test_not_too_many_are_asked_for_at_once() -> None:
    with FakeServer(lambda request, number: boxed(42)) as server:
        outcome = ask_sync(server, controller="sc:draws=10", signals=True)
    assert outcome.samples == 10 and all(response.signals.keys() == NAMES for response in outcome.responses)
    assert sorted(request.get("n", 1) for request in server.requests) == [2, 4, 4], "log probabilities are long"


@pytest.mark.parametrize(
    ("most", "words", "asked", "signals"),
    [
        (5, "top_logprobs must be at most 5", [20, 5], NAMES),
        (0, "top_logprobs: unknown", [20, 5, None], {"logprob"}),
        (None, "logprobs are not supported with this model", [20, 5, None, None], set()),
        (None, "extra inputs are not permitted", [20, None], set()),
    ],
)
@pytest.mark.filterwarnings("ignore:signals")
def test_a_server_that_refuses_is_asked_for_fewer_and_that_is_remembered(
    most: int | None, words: str, asked: list[int | None], signals: set[str]
) -> None:
    def script(request: dict[str, Any], number: int) -> Reply | str:
        wanted = request.get("top_logprobs", 0) if request.get("logprobs") else -1
        return boxed(42) if wanted <= (-1 if most is None else most) else Reply({"error": {"message": words}}, 400)

    with FakeServer(script) as server:
        first, second = (ask_sync(server, controller="sc:draws=2", signals=True) for _ in range(2))
    assert [request.get("top_logprobs") for request in server.requests] == [*asked, asked[-1]]
    assert {*first.responses[0].signals} == {*second.responses[1].signals} == signals
    assert first.failures == second.failures == ()


def test_where_replies_are_too_long_with_them_fewer_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "suffice.live.dialects.base.MOST_BYTES", 4000
    )  # 20 likeliest tokens for each of four take 5 kB, and 5 take 2
    with FakeServer(lambda request, number: boxed(42)) as upstream:
        outcome = ask_sync(upstream, controller="sc:draws=1", signals=True)
    assert outcome.failures == () and {*outcome.responses[0].signals} == NAMES
    assert [request["top_logprobs"] for request in upstream.requests] == [20, 5]


@pytest.mark.parametrize("silent", [True, False])
def test_who_tells_no_log_probabilities_is_noticed_once(silent: bool) -> None:
    def script(request: dict[str, Any], number: int) -> Reply | str:
        refused = Reply({"error": {"message": "You may not request logprobs from this model"}}, 403)
        return refused if request.get("logprobs") and not silent else boxed(42)

    with FakeServer(script, logprob=None) as server, pytest.warns(UserWarning) as told:
        for _ in range(3):
            assert ask_sync(server, signals=True).responses[0].signals == {}
    reason = "it leaves them out" if silent else "You may not request logprobs from this model"
    (warning,) = told
    assert "signals: asked for log probabilities, fake tells none: " in str(warning.message)
    assert reason in str(warning.message)


def test_an_error_of_another_kind_is_the_same_with_signals() -> None:
    with FakeServer(lambda request, number: Reply({"error": {"message": "the prompt is too long"}}, 400)) as server:
        with pytest.raises(suffice.SampleError, match="the prompt is too long"):
            ask_sync(server, controller="sc:draws=1", signals=True)
        first = server.served
        with pytest.raises(suffice.SampleError):
            ask_sync(server, controller="sc:draws=1", signals=True)
    assert server.requests[first]["top_logprobs"] == 20, "which says nothing of log probabilities"


def number_in(text: str) -> int:
    return int(text.partition("{")[2].partition("}")[0])


def collected(server: FakeServer, folder: Path, *options: str) -> list[dict[str, Any]]:
    out = folder / "pool.jsonl"
    works("collect", sums(folder, 2), "--out", out, "--samples", "3", *url(server), *options)
    return read_lines(out)


def test_a_collected_pool_and_its_journal_keep_the_signals(tmp_path: Path) -> None:
    with FakeServer(lambda request, number: boxed(number), logprob=lambda text: -number_in(text) - 1.0) as server:
        lines = collected(server, tmp_path, "--signals")
        journal = tmp_path / "pool.jsonl.journal"
        # What a crash left: the pool is not there yet, nor are the last two responses.
        (tmp_path / "pool.jsonl").unlink()
        journal.write_text("".join(journal.read_text().splitlines(keepends=True)[:-2]))
        again = collected(server, tmp_path, "--signals")
    assert server.served == 8, "only what was missing is asked for again"
    for line in [*lines, *again]:
        assert line["signals"]["logprob"] == [-int(answer) - 1.0 for answer in line["answers"]]
        assert line["signals"].keys() == NAMES and {len(told) for told in line["signals"].values()} == {3}
    assert "top_logprobs" not in journal.read_text(), "no list of tokens is kept"
    assert suffice.load_pool(tmp_path / "pool.jsonl").questions[0].answers == tuple(again[0]["answers"])


def test_without_signals_nothing_of_them_is_asked_or_kept(tmp_path: Path) -> None:
    with FakeServer(lambda request, number: boxed(42)) as server:
        lines = collected(server, tmp_path)
    assert all("signals" not in line for line in lines)
    assert not any("logprobs" in request for request in server.requests)
    assert '"signals": true' not in (tmp_path / "pool.jsonl.journal").read_text()


def test_a_response_that_has_no_tokens_told_is_null_in_the_pool(tmp_path: Path) -> None:
    def script(request: dict[str, Any], number: int) -> Reply | str:
        return boxed(42) if number % 3 else Reply(completion([boxed(42)]))

    with FakeServer(script) as server:
        lines = collected(server, tmp_path, "--signals", "--concurrency", "1")
    assert sum(line["signals"]["logprob"].count(None) for line in lines) == 2
