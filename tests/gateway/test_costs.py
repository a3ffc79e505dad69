"""What a vote costs over one response, and what it changed, is told wherever it is told of."""

import json
from itertools import cycle, islice
from typing import Any

import httpx
import pytest
from helpers.gateways import ASK, always, answered, behind, figures, gateway, logged, post, under_way
from helpers.live import boxed, until

from suffice.gateway.operations.costs import MOST_GROUPS, MOST_MODELS, SpendingByGroup, model_label
from suffice.testing import FakeServer, Reply, Script, completion

pytestmark = pytest.mark.usefixtures("quick")


def said(*answers: object) -> Script:
    """Each draw the next of these, again and again."""
    left = cycle(map(boxed, answers))
    return lambda request, number: list(islice(left, request.get("n", 1)))


def test_the_object_the_headers_the_log_and_the_metrics_tell_it(capfd: Any) -> None:
    with FakeServer(said(7, 42, 42, 42, 42)) as upstream, gateway(upstream, controller="sc:draws=5") as url:
        before = figures(url)
        reply = post(url, ASK)
        after = figures(url)
    told, (line,) = reply.json()["suffice"], logged(capfd, kind="vote")
    assert told["over_one"] == {"samples": 4, "tokens": 40, "prompt_tokens": 0} and told["changed"]
    assert reply.headers["x-suffice-over-one"] == "4"
    assert (line["evidence"], line["over_one_samples"], line["over_one_tokens"]) == ("boxed", 4, 40) and line["changed"]
    of = '{evidence="boxed",model="fake"}'
    for name, more in {"over_one_samples": 4, "over_one_tokens": 40, "changed_votes": 1}.items():
        series = f"suffice_{name}_total{of}"
        assert after[series] - before.get(series, 0) == more
    once = 'suffice_once_tokens_total{model="fake"}'
    assert after[once] - before.get(once, 0) == 10


def test_prompts_that_are_sent_again_are_told_beside() -> None:
    told = answered(said(42, 42, 7), ASK, controller="asc").reply.json()["suffice"]
    assert not told["changed"]
    assert told["over_one"]["prompt_tokens"] == 5 * (told["rounds"] - 1) > 0


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        ({}, False),
        ({"suffice": {}}, True),
        ({"suffice": {"budget": 16}}, True),
        ({"model": "fake+vote"}, True),
    ],
)
@pytest.mark.parametrize("vote", ["auto", "always"])
def test_saved_is_told_against_what_the_client_named_alone(vote: str, asked: Any, named: bool, capfd: Any) -> None:
    if vote == "always" and "model" in asked:
        pytest.skip("a suffix is no wish where there is always a vote")
    with FakeServer(always) as upstream, gateway(upstream, vote=vote) as url:
        told = post(url, ASK | asked).json()["suffice"]
        costs = httpx.get(f"{url}/v1/suffice/recent").json()["costs"]
    (line,) = logged(capfd, kind="vote")
    for one, names in ((told, ("samples_saved", "tokens_saved", "seconds_saved")), (line, ("samples_saved",))):
        assert [name in one for name in names] == [named] * len(names)
    assert bool(costs["savings"]) == named and costs["said"].startswith("+3.0 samples a request on 100 %")


def test_what_is_passed_on_costs_nothing_over_one_and_is_part_of_the_traffic() -> None:
    poem = {"model": "fake", "messages": [{"role": "user", "content": "Write a poem about the sea."}]}
    with FakeServer(always) as upstream, gateway(upstream, vote="auto") as url:
        relayed = post(url, poem)
        post(url, ASK)
        told = httpx.get(f"{url}/v1/suffice/recent").json()
    assert relayed.headers["x-suffice-over-one"] == "0"
    assert told["costs"]["said"] == (
        "+3.0 samples a request on 50 % of the traffic, 2.50 times the tokens; 0 % of these answers changed"
    )
    assert {(one["evidence"], one["votes"], one["over_one_tokens"]) for one in told["costs"]["groups"]} == {
        ("boxed", 1, 30),
        ("none", 0, 0),
    }


@pytest.mark.parametrize("stream", [False, True])
def test_what_a_vote_took_counts_when_its_client_hangs_up(stream: bool) -> None:
    def script(request: dict[str, Any], number: int) -> Reply:
        return Reply(completion([boxed(place) for place in range(request.get("n", 1))]), delay=200 * (number > stream))

    with FakeServer(script) as upstream, gateway(upstream, controller="esc") as url:
        before = figures(url)
        streaming = httpx.stream("POST", f"{url}/v1/chat/completions", json=ASK | {"stream": True})
        with streaming if stream else under_way(url, ASK, upstream):
            assert until(lambda: len(upstream.requests) >= 2 + stream)
        assert until(lambda: httpx.get(f"{url}/v1/suffice/recent").json()["recent"])
        told = httpx.get(f"{url}/v1/suffice/recent").json()
        after = figures(url)
    (group,) = told["costs"]["groups"]
    assert (group["votes"], group["over_one_samples"], group["over_one_tokens"], group["changed"]) == (1, 9, 40, 0)
    for name, taken in {'over_one_tokens_total{evidence="boxed",': 40, "once_tokens_total{": 10}.items():
        series = f'suffice_{name}model="fake"}}'
        assert after[series] - before.get(series, 0) == taken
    assert told["totals"]["votes"] == 1


def test_audits_tell_how_often_one_response_agrees() -> None:
    with behind(said(7, 42, 42, 42), controller="sc:draws=4", budget=8, audit=1) as (_, url):
        for _ in range(2):
            post(url, ASK)
        told: dict[str, Any] = {"audits": 0}
        while told["audits"] < 2:
            told = httpx.get(f"{url}/v1/suffice/audits").json()["all"]
    assert (told["agreement"], told["once_agreement"]) == (1.0, 0.0)
    assert told["said"].endswith("for 50.0 % of the full tokens; one response 0.0 %")


def test_the_fields_of_an_object_change_where_one_of_them_does() -> None:
    left = cycle([41, 14, 14])
    objects = lambda request, number: [json.dumps({"total": one}) for one in islice(left, request.get("n", 1))]  # noqa: E731
    body = ASK | {"response_format": {"type": "json_object"}}
    told = answered(objects, body, controller="sc:draws=6").reply.json()["suffice"]
    assert told["fields"]["/total"]["value"] == 14 and told["changed"]


def test_models_and_groups_are_bounded_whatever_clients_name() -> None:
    costs = SpendingByGroup()
    for number in range(MOST_GROUPS + 9):
        costs.add({"kind": "relay", "status": 200, "model": f"odd-\ud800-{number}", "tokens": 1})
    assert len(costs.groups) == MOST_GROUPS + 1 and costs.total.requests == MOST_GROUPS + 9
    labels = {model_label(f"model {number}") for number in range(2 * MOST_MODELS)}
    assert len(labels) <= MOST_MODELS + 1 and "other" in labels


def test_totals_are_of_all_requests_that_ask_a_model() -> None:
    open_question = {"model": "fake", "messages": [{"role": "user", "content": "Autumn?"}]}

    def script(request: dict[str, Any], number: int) -> str:
        return always(request, number) if "6 * 7" in str(request) else "Leaves of amber, and none for sale. " * 10

    with FakeServer(script) as upstream, gateway(upstream, vote="auto") as url:
        httpx.get(f"{url}/v1/models")
        for body in (ASK, open_question, ASK | {"n": 2}):
            post(url, body)
        totals = httpx.get(f"{url}/v1/suffice/recent").json()["totals"]
    told = [totals[name] for name in ("requests", "votes", "samples", "tokens", "over_one_samples", "once_tokens")]
    assert told == [3, 1, 7, 70, 3, 40]
