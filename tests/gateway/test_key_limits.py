"""Keys with names and limits: who is let in, how much each may take, and what is told of it."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from helpers.gateways import ASK, MESSAGES, always, gateway, post
from helpers.keys import Desk, bearer

from suffice.testing import FakeServer

pytestmark = pytest.mark.usefixtures("quick")

PRICES = {"fake": {"input": 10.0, "output": 100.0}}


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


@pytest.fixture
def moment(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Set the clock that limits go by; it stands still at noon of the 15th of January."""
    now = [1_768_478_400.0]
    monkeypatch.setattr(time, "time", lambda: now[0])

    def later(seconds: float) -> None:
        now[0] += seconds

    return later


def test_named_keys_are_let_in_beside_others_and_named_in_the_log(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    monkeypatch.setenv("ALICE", "sk-unnamed")
    ann = desk.add("ann")
    with FakeServer(always) as upstream, desk.gateway(upstream, api_key_env=("ALICE",)) as url:
        assert httpx.get(f"{url}/healthz").headers["x-suffice-key"] == "required"
        assert post(url, ASK).status_code == post(url, ASK, headers=bearer("sk-wrong")).status_code == 401
        assert post(url, ASK, headers=ann).status_code == 200
        assert post(url, ASK, headers={"x-api-key": ann["authorization"].split()[1]}).status_code == 200
        assert post(url, ASK, headers=bearer("sk-unnamed")).status_code == 200
        shown = httpx.get(f"{url}/v1/suffice/recent", headers=ann).json()["recent"]
        assert {line["key"] for line in shown} == {None}, "who else asks is for the operator to see"
        shown = httpx.get(f"{url}/v1/suffice/recent", headers=desk.operator).json()["recent"]
        assert "ann" in {line.get("key") for line in shown}
    out = capfd.readouterr().out
    lines = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    assert [line.get("key") for line in lines if line["kind"] == "vote"] == ["ann", "ann", None]
    assert "sk-" not in out and "sk-" not in desk.path.read_text()


DIALECTS: dict[str, dict[str, Any]] = {
    "chat/completions": ASK,
    "responses": {"model": "fake", "input": "What is 6 * 7?"},
    "messages": {**ASK, "max_tokens": 99},
}


@pytest.mark.parametrize("path", DIALECTS)
def test_over_a_limit_it_is_429_as_the_dialect_has_it(desk: Desk, path: str, moment: Callable[[float], None]) -> None:
    ann = desk.add("ann", requests_per_minute=2)
    with FakeServer(always) as upstream, desk.gateway(upstream) as url:

        def ask() -> httpx.Response:
            return httpx.post(f"{url}/v1/{path}", json=DIALECTS[path], headers=ann)

        assert [ask().status_code, ask().status_code] == [200, 200]
        served = upstream.served
        moment(30)
        refused = ask()
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "31")
        error = refused.json()["error"]
        assert error["type"] == "rate_limit_error" and "2 requests a minute" in error["message"]
        assert "come back in 31 seconds" in error["message"]
        if path == "messages":
            assert refused.json()["type"] == "error"
        else:
            assert (error["code"], error["param"]) == ("rate_limit_exceeded", "requests_per_minute")
        assert upstream.served == served
        moment(31)
        assert ask().status_code == 200
        assert desk.usage(url)["ann"]["refused"] == 1 and desk.usage(url)["ann"]["requests"] == 3


def test_tokens_of_a_day_and_money_of_a_month_run_out_and_come_back(
    desk: Desk, moment: Callable[[float], None]
) -> None:
    talker, spender = desk.add("talker", tokens_per_day=50), desk.add("spender", money_per_month=0.004)
    with FakeServer(always) as upstream, desk.gateway(upstream, prices=PRICES, controller="sc:draws=4") as url:
        # A vote is one request with a prompt of 5 and 4 responses of 10: 45 tokens, for 0.00405.
        assert [post(url, ASK, headers=talker).status_code for _ in range(3)] == [200, 200, 429]
        refused = post(url, ASK, headers=talker)
        assert refused.headers["retry-after"] == str(12 * 3600)
        assert "50 tokens a day, and has used 90" in refused.json()["error"]["message"]
        assert httpx.get(f"{url}/v1/models", headers=talker).status_code == 200, "what spends nothing is no matter"
        assert [post(url, ASK, headers=spender).status_code for _ in range(2)] == [200, 429]
        refused = post(url, ASK, headers=spender)
        assert refused.headers["retry-after"] == str(16 * 86400 + 12 * 3600)
        assert "0.004 a month, and has spent 0.0040" in refused.json()["error"]["message"]
        moment(86400)
        assert post(url, ASK, headers=talker).status_code == 200
        assert post(url, ASK, headers=spender).status_code == 429
        moment(16 * 86400)
        assert post(url, ASK, headers=spender).status_code == 200
        used = desk.usage(url)
        assert used["talker"]["used"]["tokens_per_day"] == 0 and used["talker"]["tokens"] == 135
        assert used["spender"]["used"]["money_per_month"] == pytest.approx(0.00405)
        assert used["spender"]["cost"] == used["spender"]["cost_full"] == pytest.approx(0.0081)
        assert used["spender"]["cost_over_one"] == pytest.approx(0.006)


def test_max_samples_bounds_votes_and_n(desk: Desk) -> None:
    ann = desk.add("ann", max_samples=3)
    with FakeServer(always) as upstream, desk.gateway(upstream, controller="sc", budget=8) as url:
        told = post(url, ASK, headers=ann).json()["suffice"]
        assert (told["samples"], told["budget"]) == (3, 3)
        told = post(url, ASK | {"suffice": {"budget": 8}}, headers=ann).json()["suffice"]
        assert (told["samples"], told["budget"]) == (3, 3), "cut, as by max_budget, and said"
        assert post(url, ASK, headers=desk.operator).json()["suffice"]["samples"] == 8
        refused = post(url, ASK | {"n": 4}, headers=ann)
        assert refused.status_code == 400 and "3 at most with this key" in refused.json()["error"]["message"]
        assert post(url, ASK | {"n": 3}, headers=ann).status_code == 200


@pytest.mark.parametrize("number", ["500", "500.0", '"500"', '"5e2"', "1e400", "NaN", "9" * 400, '1, "n": 500, "n": 1'])
@pytest.mark.parametrize("path", ["chat/completions", "completions", "engines/x/completions"])
def test_n_is_under_the_limit_in_any_form(shared: tuple[FakeServer, str], path: str, number: str) -> None:
    upstream, url = shared
    body = b'{"model": "fake", "prompt": "hi", "messages": [{"role": "user", "content": "hi"}], "n": %s}'
    reply = httpx.post(f"{url}/v1/{path}", content=body % number.encode())
    assert reply.status_code == 400
    if "500" in number and "," not in number:
        assert '"n" may be 64 at most' in reply.json()["error"]["message"]
    reply = httpx.post(f"{url}/v1/{path}", content=(body % b"1").replace(b'"n"', b'"best_of": 500, "n"'))
    assert reply.status_code == 400
    assert upstream.served == 0


@pytest.fixture(scope="module")
def shared() -> Iterator[tuple[FakeServer, str]]:
    with FakeServer(always) as upstream, gateway(upstream, vote="auto") as url:
        yield upstream, url


def test_the_usage_is_the_operator_s_to_see(desk: Desk) -> None:
    ann = desk.add("ann", requests_per_minute=5, max_samples=4)
    with FakeServer(always) as upstream, desk.gateway(upstream, controller="sc") as url:
        post(url, ASK, headers=ann)
        assert httpx.get(f"{url}/v1/suffice/usage").status_code == 401
        refused = httpx.get(f"{url}/v1/suffice/usage", headers=ann)
        assert refused.status_code == 403 and refused.json()["error"]["type"] == "permission_error"
        told = desk.usage(url)
        assert list(told) == ["boss", "ann"] and told["boss"]["operator"]
        assert told["ann"] == {
            "name": "ann", "operator": False, "removed": False, "requests": 1, "refused": 0, "votes": 1, "samples": 4,
            "over_one_samples": 3, "over_one_tokens": 30, "samples_saved": 0,
            "prompt_tokens": 5, "completion_tokens": 40, "tokens": 45, "estimated_tokens": 0,
            "over_one_prompt_tokens": 0, "tokens_saved": 0,
            "cost": None, "cost_over_one": None, "cost_full": None, "cost_saved": None,
            "limits": {"requests_per_minute": 5, "tokens_per_day": None, "max_samples": 4, "money_per_month": None},
            "used": {"requests_per_minute": 1, "tokens_per_day": 45, "money_per_month": 0.0},
        }  # fmt: skip
        figures = httpx.get(f"{url}/metrics").text
        assert 'suffice_key_tokens_total{key="ann",kind="completion"}' in figures
    with FakeServer(always) as upstream, gateway(upstream) as url:
        assert httpx.get(f"{url}/v1/suffice/usage").status_code == 404


def test_counters_survive_a_restart_and_a_broken_file(desk: Desk, capfd: Any) -> None:
    ann = desk.add("ann", tokens_per_day=50, requests_per_minute=100)
    with FakeServer(always) as upstream:
        with desk.gateway(upstream) as url:
            assert post(url, ASK, headers=ann).status_code == 200
        with desk.gateway(upstream) as url:
            told = desk.usage(url)["ann"]
            assert (told["requests"], told["used"]["tokens_per_day"]) == (1, 45)
            assert told["used"]["requests_per_minute"] == 1
            assert [post(url, ASK, headers=ann).status_code for _ in range(2)] == [200, 429]
        (desk.state / "usage.db").write_bytes(b"this is no database" * 1000)
        with desk.gateway(upstream) as url:
            assert post(url, ASK, headers=ann).status_code == 200
            assert desk.usage(url)["ann"]["requests"] == 1
    assert "it was put aside" in capfd.readouterr().err
    assert [path.read_bytes()[:7] for path in desk.state.glob("usage.db.broken-*")] == [b"this is"]


def test_a_model_without_a_price_is_refused_where_money_is_limited(desk: Desk) -> None:
    ann, bob = desk.add("ann", money_per_month=5.0), desk.add("bob")
    with FakeServer(always) as upstream, desk.gateway(upstream, prices=PRICES) as url:
        for path in ("chat/completions", "embeddings"):
            reply = httpx.post(f"{url}/v1/{path}", json=ASK | {"model": "other"}, headers=ann)
            assert reply.status_code == 403 and '"other" has no price here' in reply.json()["error"]["message"]
        assert upstream.served == 0
        reply = post(url, ASK | {"model": "other"}, headers=bob)
        assert reply.status_code == 200 and "x-suffice-cost" not in reply.headers


def test_clients_of_openai_s_library_see_a_rate_limit(desk: Desk) -> None:
    key = desk.add("ann", requests_per_minute=1)["authorization"].split()[1]
    with (
        FakeServer(always) as upstream,
        desk.gateway(upstream) as url,
        openai.OpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0) as client,
    ):
        client.chat.completions.create(model="fake", messages=MESSAGES)
        with pytest.raises(openai.RateLimitError, match="come back in") as refused:
            client.chat.completions.create(model="fake", messages=MESSAGES, stream=True)
        assert 1 <= int(refused.value.response.headers["retry-after"]) <= 61
