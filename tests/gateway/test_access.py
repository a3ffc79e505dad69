"""Who may ask the gateway, within which limits, and what is told of it afterwards."""

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from helpers.gateways import ASK, MESSAGES, always, behind, figures, gateway, logged, post
from helpers.keys import key_file
from helpers.live import boxed, until

from suffice.testing import FakeServer, Reply, completion

pytestmark = pytest.mark.usefixtures("quick")


def test_a_request_chooses_within_what_the_operator_allows() -> None:
    with FakeServer(always) as upstream, gateway(upstream, budget=16, max_budget=20) as url:
        wishes = [{"controller": "sc"}, {"controller": "sc", "budget": 3}, {"controller": "sc", "budget": 1000}]
        replies = [post(url, ASK | {"suffice": wish}) for wish in wishes]
        replies.append(post(url, ASK, headers={"x-suffice-controller": "sc", "x-suffice-budget": "5"}))
        told = [reply.json()["suffice"]["samples"] for reply in replies]
        assert told == [16, 3, 20, 5]
        assert all("suffice" not in request for request in upstream.requests)


@pytest.mark.parametrize(
    ("wish", "field"),
    [
        ({"budget": 0}, "suffice.budget"),
        ({"budget": "many"}, "suffice.budget"),
        ({"controller": "nonsense"}, "suffice.controller"),
        ({"controller": 3}, "suffice.controller"),
        ({"controller": "file:/etc/passwd"}, "suffice.controller"),
        ({"answer": "nonsense"}, "suffice.answer"),
        ({"answer": "regex:("}, "suffice.answer"),
        ({"answer": "tool"}, "suffice.answer"),
        ({"deadline_seconds": -1}, "suffice.deadline_seconds"),
        ({"ignore": "x"}, "suffice.ignore"),
        ({"speed": 3}, "suffice.speed"),
        ("fast", "suffice"),
        *(({name: 10**9}, f"suffice.{name}") for name in ("budget", "deadline_seconds", "patience")),
    ],
)
def test_bad_settings_are_400_and_named(wish: Any, field: str) -> None:
    with FakeServer(always) as upstream, gateway(upstream) as url:
        reply = post(url, ASK | {"suffice": wish})
        assert (reply.status_code, reply.json()["error"]["param"]) == (400, field)
        message = reply.json()["error"]["message"]
        assert field in message or '"suffice"' in message
        assert "below 1e9, not 1000000000" in message or str(10**9) not in str(wish)
        assert upstream.requests == []


def test_a_header_of_ours_that_says_nothing_is_400_and_named() -> None:
    with FakeServer(always) as upstream, gateway(upstream) as url:
        reply = post(url, ASK, headers={"X-Suffice-Speed": "3"})
        assert (reply.status_code, reply.json()["error"]["param"]) == (400, "x-suffice-speed")
        assert "x-suffice-deadline-seconds" in reply.json()["error"]["message"] and upstream.requests == []


def test_limits_on_size_and_numbers() -> None:
    with FakeServer(always) as upstream, gateway(upstream, max_body_bytes=500) as url:
        assert post(url, ASK).status_code == 200
        assert post(url, ASK | {"pad": "x" * 500}).status_code == 413
        served, body = upstream.served, json.dumps(ASK | {"pad": "x" * 5000}).encode()
        pieces = (body[start : start + 100] for start in range(0, len(body), 100))
        reply = httpx.post(f"{url}/v1/chat/completions", content=pieces)
        assert "content-length" not in reply.request.headers
        assert reply.status_code == 413 and upstream.served == served
    slow = lambda request, number: Reply(completion([boxed(1)] * request.get("n", 1)), delay=0.3)  # noqa: E731

    async def many(url: str) -> list[int]:
        async with httpx.AsyncClient(timeout=30) as client:
            posts = [client.post(f"{url}/v1/chat/completions", json=ASK) for _ in range(6)]
            return sorted(reply.status_code for reply in await asyncio.gather(*posts))

    with FakeServer(slow) as upstream, gateway(upstream, max_requests=2, max_queue=2) as url:
        assert asyncio.run(many(url)) == [200] * 4 + [429] * 2
    with FakeServer(slow) as upstream, gateway(upstream, controller="sc:draws=4", fan_out=3, max_draws=5) as url:
        assert asyncio.run(many(url)) == [200] * 6
        assert upstream.most_in_flight <= 5
        assert max(request.get("n", 1) for request in upstream.requests) <= 3


def test_keys_are_asked_for_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = key_file(tmp_path, alice="sk-alice", bob="sk-bob")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-upstream")
    wrong = ("Bearer sk-eve", "Basic sk-bob")
    with FakeServer(always) as upstream, gateway(upstream, keys=keys) as url:
        for name, key in (("x-odd", "1"), *(("authorization", key) for key in wrong), ("x-api-key", "sk-eve")):
            for path in ("chat/completions", "completions", "embeddings"):
                reply = post(url, ASK, path, headers={name: key})
                assert (reply.status_code, reply.json()["error"]["code"]) == (401, "invalid_api_key")
                assert reply.headers["www-authenticate"] == "Bearer"
        for path in ("models", "suffice/recent"):
            assert httpx.get(f"{url}/v1/{path}").status_code == 401
        for path in ("", "page.js", "page.css", "healthz", "readyz", "metrics"):
            assert httpx.get(f"{url}/{path}").status_code == 200
        assert upstream.requests == []
        for key in ("sk-alice", "sk-bob"):
            assert post(url, ASK, headers={"authorization": f"Bearer {key}"}).status_code == 200
            assert post(url, ASK | {"n": 2}, headers={"authorization": f"Bearer {key}"}).status_code == 200
        for name in ("x-api-key", "api-key"):
            assert post(url, ASK, headers={name: "sk-bob"}).status_code == 200
        assert {headers["authorization"] for headers in upstream.headers} == {"Bearer sk-upstream"}
        assert {headers.get("x-api-key") for headers in upstream.headers} == {None, "sk-upstream"}
    with FakeServer(always) as upstream, gateway(upstream, forward_auth=True) as url:
        assert post(url, ASK, headers={"authorization": "Bearer sk-mine"}).status_code == 200
        assert upstream.headers[0]["authorization"] == "Bearer sk-mine"
        assert post(url, ASK, headers={"x-api-key": "sk-mine"}).status_code == 200
        assert upstream.headers[-1]["x-api-key"] == "sk-mine" and "authorization" not in upstream.headers[-1]


def test_other_web_sites_are_refused() -> None:
    with FakeServer(always) as upstream, gateway(upstream) as url:
        for site in ("cross-site", "same-site"):
            assert post(url, ASK, headers={"sec-fetch-site": site}).status_code == 403
        assert post(url, ASK, headers={"host": "evil.example"}).status_code == 403
        assert post(url, ASK, headers={"sec-fetch-site": "same-origin"}).status_code == 200


def test_pages_of_named_sites_may_ask(tmp_path: Path) -> None:
    site, other = "https://chat.example", "https://evil.example"
    asking = {"access-control-request-method": "POST", "access-control-request-headers": "authorization, x-odd"}
    settings: Any = {"cors_origins": (site,), "keys": key_file(tmp_path, alice="sk-alice")}
    with FakeServer(always) as upstream, gateway(upstream, **settings) as url:
        where = f"{url}/v1/chat/completions"
        preflight = httpx.options(where, headers={"origin": site, **asking})
        assert preflight.status_code == 200 and preflight.headers["access-control-allow-origin"] == site
        assert "x-odd" in preflight.headers["access-control-allow-headers"]
        assert httpx.options(where, headers={"origin": other, **asking}).status_code == 400
        page = {"sec-fetch-site": "cross-site", "authorization": "Bearer sk-alice"}
        reply = post(url, ASK, headers={**page, "origin": site})
        assert reply.status_code == 200 and reply.headers["access-control-expose-headers"] == "*"
        assert post(url, ASK, headers={**page, "origin": other}).status_code == 403
        refused = post(url, ASK, headers={"origin": site})
        assert (refused.status_code, refused.headers["access-control-allow-origin"]) == (401, site)
    with FakeServer(always) as upstream, gateway(upstream) as url:
        assert "access-control-allow-origin" not in post(url, ASK, headers={"origin": site}).headers


def test_metrics_and_recent_requests_count() -> None:
    with FakeServer(always) as upstream, gateway(upstream) as url:
        before = figures(url)
        for body in (ASK, ASK | {"suffice": {}}, ASK | {"suffice": {"budget": 16}}, ASK | {"n": 2}):
            post(url, body)
        after = figures(url)
        told = httpx.get(f"{url}/v1/suffice/recent").json()

    def grown(name: str) -> float:
        return after[name] - before.get(name, 0)

    assert grown('suffice_requests_total{outcome="vote"}') == 3
    assert grown('suffice_requests_total{outcome="relay"}') == 1
    assert grown("suffice_samples_sum") == 12 and grown("suffice_rounds_sum") == 3
    assert grown("suffice_samples_saved_total") == 28 + 12, "of what was asked for"
    assert grown('suffice_tokens_total{kind="completion"}') == 120 and grown("suffice_tokens_saved_total") == 400
    assert grown("suffice_same_as_full_vote_count") == 3 and grown("suffice_upstream_seconds_count") == 3
    assert after["suffice_draws_in_flight"] == 0
    known = ("requests", "votes", "samples", "samples_saved", "tokens", "tokens_saved")
    assert [told["totals"][name] for name in known] == [4, 3, 14, 40, 140, 400]
    assert [entry["kind"] for entry in told["recent"]] == ["relay", "vote", "vote", "vote"]
    assert "6 * 7" not in json.dumps(told) and "42" not in json.dumps([entry.get("answer") for entry in told["recent"]])


@pytest.mark.parametrize("log_text", [False, True])
def test_the_access_log_has_a_json_line_a_request_and_the_recent_list_no_text(log_text: bool, capfd: Any) -> None:
    with behind(always, log_text=log_text) as (_, url):
        post(url, ASK, headers={"authorization": "Bearer sk-secret"})
        post(url, b"nonsense")
        post(url, ASK | {"suffice": {"budget": "a secret wish"}})
        told = httpx.get(f"{url}/v1/suffice/recent").json()
    lines = logged(capfd, method="POST")
    assert [(line["status"], line["kind"]) for line in lines] == [(200, "vote"), (400, "error"), (400, "error")]
    assert (lines[0]["samples"], lines[0]["rounds"], lines[0]["stop_reason"]) == (4, 1, "controller")
    text = json.dumps(lines)
    assert ("6 * 7" in text) == ("a secret wish" in text) == log_text and "sk-secret" not in text
    assert [entry["kind"] for entry in told["recent"]] == ["error", "error", "vote"]
    assert not any({"question", "answer", "error"} & set(entry) for entry in told["recent"])
    assert "6 * 7" not in json.dumps(told) and "secret" not in json.dumps(told)


def test_odd_requests_are_400_and_odd_replies_still_replies() -> None:
    with FakeServer(always) as upstream, gateway(upstream, vote="auto") as url:
        for odd in (
            {"seed": 7.0, "suffice": {}}, {"suffice": {"budget": 10**400}}, {"suffice": {"deadline_seconds": 10**400}},
            {"suffice": {"controller": "\ud800"}}, {"suffice": {"answer": "\ud800"}}, {"suffice": {"\ud800": 1}},
            {"suffice": {"flow": "extra=-1"}}, {"suffice": {"controller": "plan:actions=" + "1+" * 1000}}, {"n": 1000},
        ):  # fmt: skip
            reply = post(url, json.dumps(ASK | odd).encode())
            assert reply.status_code == 400 and "message" in reply.json()["error"], odd
        assert not upstream.requests
        for fine in ({"modalities": 5}, {"model": "\ud800"}, {"model": {"a": 1}}, {"stream": "false"}, {"seed": [1]}):
            assert post(url, json.dumps(ASK | fine).encode()).status_code == 200, fine
        assert httpx.get(f"{url}/v1/suffice/recent").status_code == 200
    with FakeServer(lambda request, number: "\ud800 " + boxed(42)) as upstream, gateway(upstream) as url:
        assert post(url, ASK).json()["suffice"]["answer"] == "42"
        with openai.OpenAI(base_url=f"{url}/v1", api_key="none") as client:
            assert list(client.chat.completions.create(model="fake", messages=MESSAGES, stream=True))


def test_an_unforeseen_failure_has_openai_s_shape_and_a_line(monkeypatch: pytest.MonkeyPatch, capfd: Any) -> None:
    def fail(outcome: Any) -> Any:
        raise RuntimeError("secret detail")

    monkeypatch.setattr("suffice.live.outcome.Outcome.summary", fail)
    with FakeServer(always) as upstream, gateway(upstream) as url:
        whole, streamed = post(url, ASK), post(url, ASK | {"stream": True})
    assert whole.status_code == 500 and whole.json()["error"]["type"] == "server_error"
    assert "secret detail" not in whole.text + streamed.text
    assert [line["kind"] for line in logged(capfd)] == ["error", "error"]


def test_a_malicious_regular_expression_holds_up_nobody_else() -> None:
    evil = ASK | {"suffice": {"answer": "regex:(a+)+$", "controller": "sc", "budget": 8}}

    def script(request: dict[str, Any], number: int) -> str:
        return "a" * 40 + "!" if request["messages"][0]["content"] == "evil" else r"\boxed{x+y^2}"

    async def main(upstream: FakeServer, url: str) -> int:
        async with httpx.AsyncClient(timeout=60) as client:
            bad = evil | {"messages": [{"role": "user", "content": "evil"}]}
            others = [asyncio.create_task(client.post(f"{url}/v1/chat/completions", json=bad)) for _ in range(10)]
            assert await asyncio.to_thread(until, lambda: upstream.served >= 10)
            assert (await client.post(f"{url}/v1/chat/completions", json=ASK)).status_code == 200
            under_way = [other for other in others if other.cancel()]
            return len(under_way)

    with FakeServer(script) as upstream, gateway(upstream) as url:
        assert asyncio.run(main(upstream, url)) > 0, "it is not behind all of them"


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


def test_a_deadline_is_never_longer_than_the_operator_s() -> None:
    slow = lambda request, number: Reply(completion([boxed(1)]), delay=30)  # noqa: E731
    with FakeServer(slow) as upstream, gateway(upstream, deadline_seconds=0.5) as url:
        for body in (ASK, ASK | {"n": 2}):
            reply = post(url, body | {"suffice": {"deadline_seconds": 1000}})
            assert reply.status_code == 504 and "0.5 seconds" in reply.json()["error"]["message"]
        assert post(url, ASK, headers={"x-suffice-deadline-seconds": "1000"}).status_code == 504


def test_waiting_for_a_place_is_part_of_the_deadline() -> None:
    slow = lambda request, number: Reply(completion([boxed(1)] * request.get("n", 1)), delay=2)  # noqa: E731

    async def two(url: str) -> list[int]:
        async with httpx.AsyncClient(timeout=30) as client:
            body = ASK | {"suffice": {"deadline_seconds": 3.5, "controller": "sc:draws=1"}}
            posts = [client.post(f"{url}/v1/chat/completions", json=body) for _ in range(2)]
            return sorted(reply.status_code for reply in await asyncio.gather(*posts))

    with FakeServer(slow) as upstream, gateway(upstream, max_requests=1) as url:
        assert asyncio.run(two(url)) == [200, 504]
