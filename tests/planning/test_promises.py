"""What is promised holds, whatever comes."""

from hypothesis import given
from hypothesis import strategies as st

from suffice.planning.promises import SLACK, AgreementPromise, SamplesPromise


@given(st.floats(0.5, 0.999), st.lists(st.booleans(), max_size=400))
def test_of_any_audits_in_a_row_hardly_more_disagree_than_was_promised(target: float, script: list[bool]) -> None:
    """The script says who disagrees where that is possible: with free draws the full budget is drawn, and agrees."""
    promise = AgreementPromise(target)
    balance, highest = 0.0, 0.0
    for wish in script:
        agreed = wish or promise.factor == 0
        promise.observe(agreed)
        balance += agreed - target
        highest = max(highest, balance)
        assert highest - balance <= SLACK + 1e-9


@given(st.floats(1, 32), st.lists(st.integers(1, 32), min_size=1, max_size=200))
def test_the_price_rises_with_what_is_drawn_and_stays_in_its_range(target: float, drawn: list[int]) -> None:
    promise = SamplesPromise(target, budget=32)
    for samples in drawn:
        before = promise.pressure
        promise.observe(samples)
        assert (promise.pressure - before) * (samples - target) >= 0
        assert 1 <= promise.factor <= 128
