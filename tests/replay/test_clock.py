"""Flow, replayed with a clock."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import suffice
from suffice.replay.run import Clocked, run

SIZE = 12
ANSWERS = st.lists(st.sampled_from(["1", "2", "3", None]), min_size=SIZE, max_size=SIZE)
TOKENS = st.lists(st.integers(1, 50), min_size=SIZE, max_size=SIZE)
CONTROLLERS = st.sampled_from(["asc", "plan", "boinf"])


@given(ANSWERS, CONTROLLERS, st.sampled_from(["launch", "arrival"]))
def test_with_equal_lengths_and_nothing_extra_flow_is_rounds(
    answers: list[str | None], controller: str, order: str
) -> None:
    chosen = suffice.get_controller(controller)
    flowed = Clocked(answers, [7] * SIZE).run(chosen, suffice.Flow(order))
    rounds = run(chosen, answers)
    assert (flowed.tally.answers, flowed.tally.leader) == (rounds.answers, rounds.leader)
    assert (flowed.latency, flowed.launches) == (7 * rounds.rounds, rounds.rounds)
    assert flowed.launched == rounds.draws and flowed.spent == 7 * rounds.draws


@given(ANSWERS, TOKENS, CONTROLLERS, st.integers(0, 4), st.sampled_from([None, 1, 2, 5]))
def test_what_flow_takes_adds_up(
    answers: list[str | None], tokens: list[int], controller: str, extra: int, slots: int | None
) -> None:
    chosen = suffice.get_controller(controller)
    for order in ("launch", "arrival"):
        one = Clocked(answers, tokens, slots).run(chosen, suffice.Flow(order, extra))
        assert one.tally.draws <= one.launched <= SIZE
        assert one.spent <= sum(tokens[: one.launched]) and one.latency <= sum(tokens)
        if slots == 1:
            assert one.spent == one.latency, "one slot is always busy"
        if order == "launch":
            assert one.tally.answers == answers[: one.tally.draws], "no bias to short responses"
            assert one.spent >= sum(tokens[: one.tally.draws])


@given(ANSWERS, TOKENS, CONTROLLERS)
def test_rounds_on_the_clock_are_the_rounds(answers: list[str | None], tokens: list[int], controller: str) -> None:
    chosen = suffice.get_controller(controller)
    timed, plain = Clocked(answers, tokens).run(chosen), run(chosen, answers)
    ends = [0, *plain.round_ends]
    assert timed.tally.answers == plain.answers and timed.spent == sum(tokens[: plain.draws])
    assert timed.latency == sum(max(tokens[a:b]) for a, b in zip(ends, plain.round_ends, strict=False))
    assert Clocked(answers, tokens, slots=1).run(chosen).latency == timed.spent


def test_a_cancelled_draw_is_spent_as_far_as_it_got() -> None:
    # asc stops after four that agree; with four extra in flight the fifth is cancelled at 10.
    one = Clocked(["1"] * 5, [10, 10, 10, 10, 99]).run(suffice.get_controller("asc"), suffice.Flow("arrival", 4))
    assert (one.latency, one.launched, one.tally.draws, one.spent) == (10, 5, 4, 50)


def test_evaluate_tells_the_clock_in_both_modes() -> None:
    pool = suffice.load_pool("smollm2-135m__arithmetic")
    (rounds,) = suffice.evaluate(pool, "plan", repeats=3)
    assert (rounds.latency_tokens, rounds.spent_tokens) == (rounds.sequential_tokens, rounds.total_tokens)
    assert rounds.launched == rounds.samples
    (clocked,) = suffice.evaluate(pool, "plan", repeats=3, slots=32)
    few = replace(pool, questions=pool.questions[:4])
    (rounds_of_many,), (clocked_of_many,) = (suffice.evaluate(few, "plan", repeats=20, slots=n) for n in (None, 32))
    assert clocked_of_many.certainty == pytest.approx(rounds_of_many.certainty), "it is told of the same repeats"
    alike = ["accuracy", "agreement", "samples", "rounds", "latency_tokens", "spent_tokens", "confidence", "share"]
    for metric in alike:
        assert getattr(clocked, metric) == pytest.approx(getattr(rounds, metric)), metric
    (flow,) = suffice.evaluate(pool, "plan", repeats=3, flow=suffice.Flow("arrival", 4))
    assert flow.latency_tokens is not None and rounds.latency_tokens is not None
    assert flow.latency_tokens < 0.7 * rounds.latency_tokens and flow.launched > flow.samples
    (rl,) = suffice.evaluate(pool, "rl", repeats=3, flow=suffice.Flow())
    assert rl.samples < 32
    with pytest.raises(suffice.ControllerError):
        suffice.evaluate(pool, "sc", flow=suffice.Flow())


def test_rounds_in_flow_are_the_moments_at_which_draws_were_started() -> None:
    chosen = suffice.get_controller("asc")
    # Two in flight: the second arrives at 1 and waits for the first; nothing is started until that counts, at 10.
    # There both count, and two more are started, which arrive at 20 and 30; another, of 20, waits from 25 to 30 too.
    one = Clocked(["1"] * 6, [10, 1, 10, 20, 5, 5]).run(chosen, suffice.Flow("launch", 1))
    assert (one.tally.draws, one.launched, one.launches, one.latency) == (5, 5, 3, 30)
    # Counted as they arrive, one follows one: two at the start, then one at 1, 2, 3, and the stop is at 4.
    one = Clocked(["1"] * 6, [10, 1, 1, 1, 1, 1]).run(chosen, suffice.Flow("arrival", 1))
    assert (one.tally.draws, one.launched, one.launches, one.latency) == (4, 5, 4, 4)
