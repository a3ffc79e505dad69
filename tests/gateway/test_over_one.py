"""The cap on tokens over one response: the price of a draw rises until it holds, and nobody is refused."""

import random
from contextlib import ExitStack
from typing import Any

import httpx
import pytest
from helpers.gateways import ASK, always, figures, gateway, post
from helpers.live import boxed
from hypothesis import given
from hypothesis import strategies as st

from suffice.planning.promises import HOUR, ROOM, OverOneCap
from suffice.testing import FakeServer

pytestmark = pytest.mark.usefixtures("quick")

POEM: dict[str, Any] = {"model": "fake", "messages": [{"role": "user", "content": "Write a poem about the sea."}]}


@given(st.lists(st.tuples(st.integers(1, 50), st.integers(0, 400), st.integers(0, 30)), max_size=300))
def test_over_any_stretch_no_more_is_spent_than_was_earned_and_the_room(traffic: list[tuple[int, int, int]]) -> None:
    """Whatever comes, as long as nothing is spent while it is exhausted; and but for the vote that exhausts it."""
    cap, now, rows = OverOneCap(0.5), 0.0, []
    for once, wanted, seconds in traffic:
        now += seconds
        rows.append((once, 0 if cap.exhausted else wanted))
        cap.observe(rows[-1][1], once, now)
    earned = [over_one - 0.5 * once for once, over_one in rows]
    room = ROOM * 0.5 * sum(once for once, _ in rows)
    for start in range(0, len(rows), 7):
        assert sum(earned[start:]) <= room + 400


def test_the_price_rises_step_by_step_and_falls_again() -> None:
    cap, factors = OverOneCap(0.5), []
    for second in range(1000):
        cap.observe(0, 100, second)
    for second in range(60):
        cap.observe(150, 100, 1000 + second)
        factors.append(cap.factor)
    assert factors[0] == 1 and factors == sorted(factors) and len(set(factors)) > 8 and cap.exhausted
    for second in range(200):
        cap.observe(0, 100, 1100 + second)
    assert cap.factor == 1 and not cap.exhausted
    cap.observe(0, 100, 1000 + 2 * HOUR)
    assert cap.spent == 0, "the last hour counts"


def test_votes_under_way_count_before_they_have_ended() -> None:
    cap = OverOneCap(0.5)
    for second in range(1000):
        cap.observe(0, 100, second)
    for _ in range(50):
        cap.observe(400, 100, 1000)
        for _ in range(7):
            cap.observe(0, 100, 1000)
    assert cap.typical == pytest.approx(400, rel=0.01) and not cap.exhausted
    with ExitStack() as under_way:
        while not cap.exhausted:
            under_way.enter_context(cap.expecting())
        assert cap.under_way == pytest.approx(ROOM * 0.5 * 1400 * 100 / 400, abs=1)
    assert not cap.exhausted


def test_where_traffic_falls_off_less_may_be_spent_before_it_is_earned() -> None:
    cap = OverOneCap(0.5)
    for minute in range(60):
        cap.observe(0, 1000 if minute < 30 else 10, 60 * minute)
    cap.observe(ROOM * 0.5 * 900, 10, 3600)
    assert cap.exhausted, "by the hour's 30,000 it would not be"


def test_votes_get_fewer_and_nobody_is_refused() -> None:
    chance = random.Random(3)

    def script(request: dict[str, Any], number: int) -> list[str]:
        return [boxed(chance.choice([42, 42, 42, 7, 8])) for _ in range(request.get("n", 1))]

    with FakeServer(script) as upstream, gateway(upstream, vote="auto", over_one=0.5) as url:
        for _ in range(20):
            post(url, POEM)
        replies = [post(url, ASK) for _ in range(20)]
        told = httpx.get(f"{url}/v1/suffice/recent").json()
        price = figures(url)["suffice_price_factor"]
        for _ in range(200):
            post(url, POEM)
        again = post(url, ASK)
    spent = [int(reply.headers["x-suffice-over-one"]) for reply in replies]
    assert spent[0] > 0 == min(spent) and {reply.status_code for reply in replies} == {200}
    assert sum(spent) <= 0.5 * 40 + 31, "but for the last vote"
    assert replies[spent.index(0)].json()["suffice"]["samples"] == 1 and price >= 1
    assert " % over one response in the last hour, of 50 % at most: " in told["costs"]["cap"]
    assert int(again.headers["x-suffice-over-one"]) > 0, "when it is earned, there are votes again"


def test_it_holds_for_whatever_controller_a_client_names() -> None:
    asked = ASK | {"suffice": {"controller": "sc", "budget": 8}}
    with FakeServer(always) as upstream, gateway(upstream, vote="auto", over_one=0.1) as url:
        told = [post(url, asked).json()["suffice"] for _ in range(3)]
    assert [one["samples"] for one in told] == [8, 1, 1]
    assert ["samples_saved" in one for one in told] == [True, False, False], "what it forbids is not saved"
