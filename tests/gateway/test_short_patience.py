"""The gateway's patience: no vote takes many times what its first response took."""

import random
from itertools import count
from typing import Any

import httpx
import pytest
from helpers.gateways import ASK, answered, gateway, post
from helpers.live import boxed, until

from suffice.gateway import Settings
from suffice.testing import FakeServer, Reply, completion

_spelling = count()


def slow_after_the_first(request: dict[str, Any], number: int) -> Reply:
    texts = [f"{next(_spelling)} {boxed(42)}" for _ in range(request.get("n", 1))]
    return Reply(completion(texts), delay=0.0 if number == 0 else 300.0)


@pytest.mark.parametrize(
    ("settings", "wish"),
    [
        ({"patience": 3.0}, {}),
        ({"patience": 0.0}, {"suffice": {"patience": 2}}),
        ({"patience": 0.0, "policy": [{"model": "fake", "patience": 2}]}, {}),
    ],
    ids=["operator", "request", "policy"],
)
def test_the_leader_goes_back_when_patience_ends(settings: dict[str, Any], wish: dict[str, Any]) -> None:
    reply, _ = answered(slow_after_the_first, ASK | wish, vote="auto", **settings)
    told = reply.json()["suffice"]
    assert (told["answer"], told["stop_reason"], told["samples"]) == ("42", "patience", 1)
    assert reply.headers["x-suffice-stop-reason"] == "patience" and told["certainty"] is not None


@pytest.mark.parametrize(
    ("settings", "reason", "late"),
    [
        ({"patience": 3.0}, "patience", 1),
        ({"patience": 3.0, "flow": "extra=2"}, "patience", 5),
        ({"deadline_seconds": 1.0}, "deadline", 1),
    ],
    ids=["patience", "in flow", "deadline"],
)
def test_votes_that_are_cut_short_are_audited_and_teach_nothing(
    settings: dict[str, Any], reason: str, late: int
) -> None:
    """They are the likeliest to disagree; the requests after the first are late, and those of the audit are not."""

    def script(request: dict[str, Any], number: int) -> Reply:
        texts = [f"{next(_spelling)} {boxed(7 if number else 42)}" for _ in range(request.get("n", 1))]
        return Reply(completion(texts), delay=300.0 if 1 <= number <= late else 0.0)

    options = {"vote": "auto", "audit": 1.0, "budget": 8, **settings}
    with FakeServer(script) as upstream, gateway(upstream, **options) as url:
        told = post(url, ASK).json()["suffice"]
        assert (told["stop_reason"], told["samples"]) == (reason, 1)

        def audits() -> Any:
            return httpx.get(f"{url}/v1/suffice/audits", trust_env=False).json()

        assert until(lambda: audits()["all"]["audits"] == 1)
        (kind,) = audits()["kinds"]
        assert (kind["agreed"], kind["samples"], kind["samples_full"], kind["learned_from"]) == (0, 1, 8, 0)


def test_a_request_may_have_more_patience_and_none_that_is_no_number() -> None:
    with FakeServer(lambda request, number: boxed(42)) as upstream, gateway(upstream, patience=3.0) as url:
        assert post(url, ASK | {"suffice": {"patience": 0}}).json()["suffice"]["stop_reason"] == "controller"
        refused = post(url, ASK | {"suffice": {"patience": -1}})
        assert refused.status_code == 400 and "suffice.patience" in refused.json()["error"]["message"]
    assert Settings().patience == 3.0


def test_an_upstream_that_refuses_is_left_with_what_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever has nothing gets the refusal, and whoever has something the leader of that."""
    monkeypatch.setattr("suffice.live.servers.retry.MAX_WAIT_SECONDS", 1.0)
    busy = Reply({"error": {"message": "too many"}}, 429, {"retry-after": "0.5"})
    with FakeServer(lambda request, number: busy) as upstream, gateway(upstream, vote="auto", patience=3.0) as url:
        nothing = post(url, ASK)
        assert nothing.status_code == 429 and int(nothing.headers["retry-after"]) >= 1
    chance = random.Random(0)

    def script(request: dict[str, Any], number: int) -> Any:
        return busy if chance.random() < 0.5 else [f"{next(_spelling)} {boxed(42)}"] * request.get("n", 1)

    with FakeServer(script) as upstream, gateway(upstream, vote="auto", patience=3.0) as url:
        replies = [post(url, ASK) for _ in range(4)]
    assert {reply.status_code for reply in replies} <= {200, 429}
    assert all(reply.json()["suffice"]["answer"] == "42" for reply in replies if reply.status_code == 200)
