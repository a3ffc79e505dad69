"""A minute's limit as arithmetic: it holds over every 60 seconds, and whoever waits as told is let in."""

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice.gateway.accounts.store import DAY, month_of
from suffice.gateway.accounts.windows import SECONDS, WIDTH, Window


def empty() -> Window:
    return Window(memoryview(bytearray(8 * WIDTH)).cast("q"))


def summed(gaps: list[int]) -> list[float]:
    return [1e9 + end / 4 for end in accumulate(gaps)]


MOMENTS = st.lists(st.integers(0, 100), max_size=60).map(summed)


@given(moments=MOMENTS, most=st.integers(1, 8))
def test_no_minute_has_more_than_the_most(moments: list[float], most: int) -> None:
    window, taken = empty(), list[float]()
    for now in moments:
        recent = sum(moment > now - SECONDS for moment in taken)
        blurred = sum(int(moment) >= int(now) - SECONDS for moment in taken)
        assert window.count(now) == blurred
        if window.take(most, now) == 0:
            taken.append(now)
            assert recent < most
        else:
            assert blurred >= most, "nobody is refused for what is over a minute old"


@given(moments=MOMENTS, most=st.integers(1, 4))
def test_whoever_waits_as_told_is_let_in_and_no_sooner(moments: list[float], most: int) -> None:
    window = empty()
    for now in moments:
        wait = window.take(most, now)
        if wait:
            assert 1 <= wait <= SECONDS + 1
            assert wait == 1 or window.count(now + wait - 1.01) >= most
            assert window.count(now + wait) < most


@given(moments=MOMENTS, most=st.integers(1, 8))
def test_what_is_recalled_after_a_restart_is_what_was_known(moments: list[float], most: int) -> None:
    window, again = empty(), empty()
    for now in moments:
        window.take(most, now)
    now = moments[-1] if moments else 1e9
    for second, count in window.buckets():
        again.recall(second, count, now)
        again.recall(second, count, now)
    assert again.count(now) == window.count(now)


def test_a_clock_that_is_set_back_stands_still() -> None:
    window = empty()
    assert window.take(1, 1000.0) == 0
    assert window.take(1, 10.0) > 0
    assert window.take(1, 1061.0) == 0


@pytest.mark.parametrize(("day", "first"), [(0, 0), (30, 0), (31, 31), (58, 31), (59, 59), (20_468, 20_454)])
def test_months_begin_on_their_first_day(day: int, first: int) -> None:
    assert month_of(day) == first
    assert DAY == 24 * 60 * 60
