"""The gateway learns from its votes, audits some of them, and keeps what it promises."""

import os
import signal
from pathlib import Path
from random import Random
from typing import Any

import httpx
import pytest
from helpers.commands import fails
from helpers.gateways import ASK, free_port, gateway, post
from helpers.learners import learner_of
from helpers.live import until
from helpers.serving import serving

from suffice import OptionError
from suffice.gateway import Settings
from suffice.testing import FakeServer

pytestmark = pytest.mark.usefixtures("quick")


def easy(request: dict[str, Any], number: int) -> list[str]:
    return [r"\boxed{42}"] * request.get("n", 1)


def split(request: dict[str, Any], number: int) -> list[str]:
    """Two of three say one thing: what few draws elect is often not what many do."""
    chance = Random(number)
    return [rf"\boxed{{{chance.choice('112')}}}" for _ in range(request.get("n", 1))]


def told(url: str) -> dict[str, Any]:
    found: dict[str, Any] = httpx.get(f"{url}/v1/suffice/audits", trust_env=False).json()
    return found


def samples(url: str, **wish: Any) -> int:
    reply = post(url, {**ASK, "suffice": wish}).json()
    count: int = reply["suffice"]["samples"]
    return count


def test_easy_traffic_needs_fewer_samples_and_a_restart_keeps_that(tmp_path: Path) -> None:
    with FakeServer(easy) as upstream:
        with gateway(upstream, state=str(tmp_path)) as url:
            first = samples(url)
            for _ in range(40):
                samples(url)
            assert until(lambda: samples(url) < first)
            assert samples(url) >= 2, "one response alone shows nothing"
            assert samples(url, learn=False) == first, "one request may do without"
            assert samples(url, topic="poems") == first, "of another topic nothing is known yet"
            (kind,) = [one for one in told(url)["kinds"] if not one["topic"]]
            assert kind["model"] == "fake" and kind["learned_from"] > 40
        with gateway(upstream, state=str(tmp_path)) as url:
            samples(url)
            assert until(lambda: samples(url) < first)
        with gateway(upstream, state=str(tmp_path), learn=False) as url:
            assert {samples(url) for _ in range(3)} == {first}
        (tmp_path / "learned").joinpath(next((tmp_path / "learned").glob("*.json")).name).write_text("rubbish")
        with gateway(upstream, state=str(tmp_path)) as url, pytest.warns(UserWarning, match="put aside"):
            assert samples(url) == first
            assert until(lambda: bool(list((tmp_path / "learned").glob("*.corrupt"))))


def test_workers_share_what_they_learn_and_after_a_kill_it_is_whole(tmp_path: Path) -> None:
    options = ["--vote", "always", "--workers", "2", "--state", str(tmp_path)]

    def seen() -> int:
        return sum(learner_of(file.read_bytes()).seen for file in (tmp_path / "learned").glob("*.json"))

    with FakeServer(easy) as upstream:
        with serving("--upstream", upstream.base_url, *options) as (url, process):
            first = samples(url)
            for _ in range(40):
                samples(url)
            assert until(lambda: all(samples(url) < first for _ in range(12))), "both are among those who answer"
            assert until(lambda: seen() > 40)
            workers = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            for one in (process.pid, *map(int, workers)):
                os.kill(one, signal.SIGKILL)
        assert seen() > 40


def test_what_the_full_vote_would_elect_follows_what_was_learned() -> None:
    with FakeServer(easy) as upstream, gateway(upstream, controller="plan:fewest=4") as url:
        before = post(url, ASK).json()["suffice"]["same_as_full_vote"]
        for _ in range(40):
            post(url, ASK)
        assert until(lambda: post(url, ASK).json()["suffice"]["same_as_full_vote"] > before)


def test_audits_draw_to_the_full_budget_and_prove_what_is_saved() -> None:
    with FakeServer(easy) as upstream, gateway(upstream, audit=1.0, budget=16, learn=False) as url:
        few = post(url, {**ASK, "suffice": {"topic": "sums"}}).json()["suffice"]["samples"]
        assert until(lambda: told(url)["all"]["audits"] == 1)
        proof = told(url)
        (kind,) = proof["kinds"]
        assert (kind["topic"], kind["agreed"], kind["samples"], kind["samples_full"]) == ("sums", 1, few, 16)
        assert proof["all"]["tokens_saved"] == pytest.approx(1 - few / 16)
        assert "agreement 100.0 % (95 % interval 2.5–100.0, 1 audits)" in proof["all"]["said"]
        asked = sum(request.get("n", 1) for request in upstream.requests)
        assert asked == 16, "nothing was drawn twice"
        metrics = httpx.get(f"{url}/metrics", trust_env=False).text
        assert 'suffice_audits_total{agreed="yes"}' in metrics and "suffice_audit_tokens_total" in metrics


def test_a_promise_that_is_broken_lowers_the_price() -> None:
    greedy = {"controller": "plan:penalty_draw=0.2,penalty_round=0.2", "budget": 16, "learn": False}
    with FakeServer(split) as upstream, gateway(upstream, audit=1.0, min_agreement=99, **greedy) as url:
        first = samples(url)
        assert until(lambda: bool(samples(url)) and told(url)["kinds"][0]["price_factor"] < 1)
        assert until(lambda: samples(url) > first)
        assert told(url)["kinds"][0]["penalty_draw"] < 0.2
        assert told(url)["kinds"][0]["min_agreement"] == 0.99


def test_a_mean_of_samples_raises_the_price() -> None:
    lavish = {"controller": "plan:penalty_draw=0.0001,penalty_round=0", "budget": 16, "learn": False}
    with FakeServer(split) as upstream, gateway(upstream, max_mean_samples=4, **lavish) as url:
        first = samples(url)
        assert until(lambda: samples(url) < first and told(url)["kinds"][0]["price_factor"] > 1)


@pytest.mark.parametrize(
    "settings, sentence",
    [
        ({"audit": 2.0}, "audit must be a number, at least 0 and at most 1"),
        ({"audit": 0.1, "forward_auth": True}, "audit would draw audits with the clients' own keys"),
        ({"min_agreement": 99}, "min_agreement is known only by audits"),
        ({"min_agreement": 101, "audit": 0.1}, "min_agreement must be between 0 and 100, in percent, not 101"),
        ({"min_agreement": 100, "audit": 0.1}, "min_agreement must be between 0 and 100"),
        ({"min_agreement": 0, "audit": 0.1}, "min_agreement must be between 0 and 100"),
        ({"max_mean_samples": 99.0}, "max_mean_samples must be between 1 and the budget of 32"),
        ({"max_mean_samples": 8.0, "min_agreement": 90, "audit": 0.1}, "can't both be promised"),
        ({"max_mean_samples": 8.0, "controller": "asc"}, 'needs the controller plan, whose price it sets, not "asc"'),
        ({"over_one": 0.0}, "above 0"),
        ({"over_one": float("nan")}, "above 0"),
        ({"over_one": 0.5, "controller": "asc"}, "needs the controller plan"),
        ({"over_one": 0.5, "min_agreement": 99, "audit": 0.1}, "can't both be kept"),
    ],
)
def test_promises_that_can_t_be_kept_are_refused(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(OptionError, match=sentence):
        Settings(upstream="http://127.0.0.1:1/v1", **settings)


def test_agreement_is_promised_in_percent(tmp_path: Path) -> None:
    config = tmp_path / "gateway.toml"
    config.write_text("min_agreement = 0.995")
    common = ["serve", "--upstream", "http://127.0.0.1:9/v1", "--port", str(free_port()), "--audit", "0.1"]
    for option in (["--min-agreement", "0.995"], ["--config", str(config)]):
        assert "min-agreement is in percent: give 99.5 for 0.995" in fails(*common, *option).replace("_", "-")
