"""Votes that end early: no answers, copies, no more time. They cost what they cost, and save nothing."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from helpers.gateways import ASK, behind, figures, logged, post
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


CUT_SHORT = {
    "no answer": (FORCED, said(PROSE), "no answer"),
    "copies": (GREEDY, said(boxed(42)), "repeats"),
    "time is up": (HASTY, slow, "deadline"),
}


@pytest.mark.parametrize(("body", "script", "reason"), CUT_SHORT.values(), ids=CUT_SHORT.keys())
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
