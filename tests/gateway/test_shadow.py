"""In the shadow every request is passed on as it is, and what a vote would have taken is told from the reply."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from helpers.corpus import PRINCIPLES, kinds
from helpers.gateways import ASK, BODIES, always, behind, figures, gateway, logged, post
from helpers.live import boxed, until

from suffice.testing import FakeServer

pytestmark = pytest.mark.usefixtures("quick")

POEM: dict[str, Any] = {"model": "fake", "messages": [{"role": "user", "content": "Write a poem about the sea."}]}


@pytest.mark.parametrize("path", BODIES)
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_the_client_has_the_upstream_s_bytes_and_the_log_what_auto_would_do(
    path: str, streamed: bool, capfd: Any
) -> None:
    body = BODIES[path] | ({"stream": True} if streamed else {})
    with FakeServer(always, streams=True) as upstream:
        plain = httpx.post(f"{upstream.base_url}/{path}", json=body).content
        with gateway(upstream, vote="shadow") as url:
            reply = httpx.post(f"{url}/v1/{path}", json=body)
        assert reply.content == plain and reply.headers["x-suffice-no-vote"] == "shadow"
        assert upstream.served == 2
    (line,) = logged(capfd, method="POST")
    assert (line["kind"], line["would_vote"], line["evidence"]) == ("relay", True, "boxed")
    assert line["expected_tokens"] == pytest.approx(10 * line["expected_samples"], abs=1) and line["tokens"] == 10
    assert 4 < line["expected_samples"] < 20


@pytest.mark.parametrize("more", [{"n": 3}, {"tools": [{"type": "function", "function": {"name": "f"}}]}, {"x": 1}])
@pytest.mark.parametrize(
    "asked", [{}, {"model": "fake+vote"}, {"suffice": {"budget": 8}}], ids=["", "suffix", "object"]
)
def test_what_is_asked_for_is_passed_on_all_the_same(more: Any, asked: Any) -> None:
    with FakeServer(always) as upstream, gateway(upstream, vote="shadow") as url:
        assert post(url, ASK | more | asked).status_code == 200
    assert upstream.requests == [ASK | more]


def test_it_foretells_a_vote_where_auto_holds_one(capfd: Any) -> None:
    corpus = [kind for name in (*PRINCIPLES, "texts") for kind in kinds(name)][::4]
    said = {json.dumps(kind.messages): kind.responses[0][0] for kind in corpus}

    def script(request: dict[str, Any], number: int) -> list[str]:
        return [said[json.dumps(request["messages"])]] * request.get("n", 1)

    with FakeServer(script) as upstream, gateway(upstream, vote="shadow") as url:
        for kind in corpus:
            post(url, {"model": "fake", "messages": kind.messages})
        assert upstream.served == len(corpus)
    foretold = [line["would_vote"] for line in logged(capfd, method="POST")]
    with FakeServer(script) as upstream, gateway(upstream, vote="auto") as url:
        for kind in corpus:
            post(url, {"model": "fake", "messages": kind.messages})
    held = [line["kind"] == "vote" for line in logged(capfd, method="POST")]
    assert foretold == held and 0 < sum(held) < len(held)


def test_metrics_and_the_page_s_figures_tell_it() -> None:
    with FakeServer(always) as upstream, gateway(upstream, vote="shadow") as url:
        before = figures(url)
        for body in (ASK, POEM):
            post(url, body)
        after = figures(url)
        costs = httpx.get(f"{url}/v1/suffice/recent").json()["costs"]
    of = 'evidence="boxed",model="fake"'
    name = f'suffice_shadow_requests_total{{{of},would_vote="yes"}}'
    assert after[name] - before.get(name, 0) == 1
    (group,) = [one for one in costs["groups"] if one["would_vote"]]
    name = f"suffice_shadow_over_one_tokens_total{{{of}}}"
    assert after[name] - before.get(name, 0) == group["expected_tokens"] - group["tokens"]
    times = (group["expected_tokens"] + 10) / 20
    sentence = f"auto would vote on 50 % of requests and spend {times:.1f} times the tokens"
    assert costs["shadow"] == sentence


def test_what_votes_took_before_is_what_they_will_take(tmp_path: Path) -> None:
    with FakeServer(always) as upstream:
        with gateway(upstream, state=str(tmp_path), controller="sc:draws=3") as url:
            for _ in range(40):
                post(url, ASK)
        with gateway(upstream, state=str(tmp_path), vote="shadow") as url:

            def expected() -> float | None:
                post(url, ASK)
                recent = httpx.get(f"{url}/v1/suffice/recent").json()["recent"]
                return recent[0].get("expected_samples") if recent else None

            assert until(lambda: expected() == 3)


def test_a_model_alone_may_be_in_the_shadow_and_no_forecast_is_made_up(capfd: Any) -> None:
    policy = [{"model": "fake", "vote": "shadow", "budget": 8}]
    with behind(always, vote="off", policy=policy) as (_, url):

        def foretold() -> bool:
            post(url, ASK)
            return bool(httpx.get(f"{url}/v1/suffice/recent").json()["costs"]["shadow"])

        assert until(foretold)
    told = [line["would_vote"] for line in logged(capfd, method="POST") if "would_vote" in line]
    assert all(told) and told


def test_a_reply_that_can_not_be_read_is_passed_on_and_nothing_is_foretold(capfd: Any) -> None:
    with behind(lambda request, number: boxed("x" * (1 << 20)), vote="shadow") as (_, url):
        assert len(post(url, ASK).content) > 1 << 20
    assert "would_vote" not in logged(capfd, method="POST")[0]
