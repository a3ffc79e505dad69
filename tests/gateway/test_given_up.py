"""Votes that are given up: nothing to vote on, copies, no more time. They cost what they cost, and save nothing."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from helpers.gateways import ASK, answered, behind, figures, logged, post
from helpers.live import boxed

from suffice.testing import Reply, completion

pytestmark = pytest.mark.usefixtures("quick")

PROSE = "Water rises, cools and falls, as it has for a long while."
GREEDY = ASK | {"temperature": 0}
FORCED = ASK | {"model": "fake+vote"}
HASTY = ASK | {"suffice": {"deadline_seconds": 2, "controller": "asc"}}


def said(*texts: str) -> Any:
    """A script that says these, then the last of them for ever."""
    waiting: Iterator[str] = iter(texts)
    return lambda request, number: [next(waiting, texts[-1]) for _ in range(request.get("n", 1))]


def slow(request: dict[str, Any], number: int) -> Reply:
    return Reply(completion([boxed(42)]), delay=30 if number else 0)


GIVEN_UP = {
    "a scout alone": (ASK, said("2 + 3 = 5", PROSE), "no answer"),
    "no answer": (FORCED, said(PROSE), "no answer"),
    "copies": (GREEDY, said(boxed(42)), "repeats"),
    "time is up": (HASTY, slow, "deadline"),
}


@pytest.mark.parametrize(("body", "script", "reason"), GIVEN_UP.values(), ids=GIVEN_UP.keys())
def test_it_is_nowhere_counted_as_saved(body: Any, script: Any, reason: str, capfd: Any) -> None:
    def saved() -> list[float]:
        return [figures(url)[f"suffice_{name}_saved_total"] for name in ("samples", "tokens")]

    with behind(script, vote="auto") as (_, url):
        before = saved()
        reply = post(url, body)
        assert saved() == before, "metrics"
        totals = httpx.get(f"{url}/v1/suffice/recent").json()["totals"]
    (line,) = logged(capfd, kind="vote")
    assert line["stop_reason"] == reason
    assert [one.get(name, 0) for one in (line, totals) for name in ("samples_saved", "tokens_saved")] == [0] * 4
    assert line["samples"] == totals["samples"] >= 1
    told = reply.json().get("suffice", {})
    assert {told.get(name, 0) for name in ("samples_saved", "tokens_saved", "seconds_saved")} == {0}


def test_a_scout_that_stands_alone_is_passed_back_as_it_was_said_and_headers_tell_what_it_took() -> None:
    reply, _ = answered(said("2 + 3 = 5", PROSE), ASK, vote="auto")
    assert reply.json() == completion(["2 + 3 = 5"]), "its own usage, and no suffice object"
    told = {name: reply.headers[f"x-suffice-{name}"] for name in ("samples", "rounds", "tokens", "stop-reason")}
    assert told == {"samples": "4", "rounds": "2", "tokens": "40", "stop-reason": "no answer"}


def test_a_stream_of_it_has_the_same_before_it_in_comments() -> None:
    reply, _ = answered(said("2 + 3 = 5", PROSE), ASK | {"stream": True}, streams=True, vote="auto")
    lines = reply.text.splitlines()
    *_, last = (json.loads(line.removeprefix(": suffice ")) for line in lines if line.startswith(": suffice "))
    assert (last["draws"], last["tokens"]) == (4, 40)
    assert not any('"suffice"' in line for line in lines if line.startswith("data: "))


def test_a_vote_on_a_sum_goes_on_where_most_have_an_answer_though_no_two_the_same() -> None:
    five, six = "2 + 3 = 5", "2 + 3 = 6"
    first = {(five, five, PROSE, PROSE): None, (five, six, "2 + 3 = 7", PROSE): "5", (five, five, six, PROSE): "5"}
    for texts, elected in first.items():
        reply, _ = answered(said(*texts, five), ASK, vote="auto")
        assert reply.json().get("suffice", {}).get("answer") == elected
