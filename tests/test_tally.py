import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice import OptionError, Tallies, Tally
from suffice.tally import NONE, Standings

codes = st.integers(NONE, 4)


def tally_of(answers: list[int], budget: int = 32) -> Tally:
    tally = Tally(budget)
    tally.add_round(None if code == NONE else str(code) for code in answers)
    return tally


def test_the_leader_has_most_votes_and_in_a_tie_reached_the_count_first() -> None:
    assert tally_of([1, 2, 2]).leader == "2"
    assert tally_of([1, 2, 2, 1]).leader == "2"
    assert tally_of([1, 2, 1, 2]).leader == "1"
    assert list(tally_of([1, 2, 2, 1, 3]).votes.items()) == [("2", 2), ("1", 2), ("3", 1)], "it is listed first"


def test_none_costs_a_draw_and_never_votes() -> None:
    tally = tally_of([NONE, NONE, 3])
    assert (tally.draws, tally.votes) == (3, {"3": 1})
    assert tally_of([NONE, NONE]).leader is None


def test_rounds_end_where_they_were_said_to_and_the_budget_is_32_unless_said() -> None:
    assert (Tally().budget, Tally().left) == (32, 32)
    tally = Tally(8)
    tally.add_round(["a", "b"])
    tally.add("a")
    assert (tally.rounds, tally.draws, tally.left) == (1, 3, 5)
    tally.end_round()
    assert tally.round_ends == [2, 3]


def test_state_is_zero_at_the_start_and_scaled_later() -> None:
    assert not Tally(32).state().any()
    assert list(tally_of([1]).state()) == [1 / 32, 0, 0, 0, 0, 1 / 32, 0]
    # Votes 2, 1, 1 over 5 draws: entropy of (½, ¼, ¼) is 1.5 log 2.
    expected = [2 / 32, 1 / 32, 1 / 32, 0, 0, 5 / 32, 1.5 * np.log(2) / np.log(5)]
    assert tally_of([1, 1, 2, NONE, 3]).state() == pytest.approx(expected)


def test_state_counts_the_top_answers_only_and_two_at_least() -> None:
    assert tally_of([1, 2, 3]).state(k=2) == pytest.approx([1 / 32, 1 / 32, 3 / 32, 1])
    with pytest.raises(OptionError, match=r"^a state needs the top 2 vote counts at least$"):
        Tally(32).state(k=1)


@given(st.lists(codes, min_size=1, max_size=24))
def test_arrays_and_tally_agree_after_every_draw(answers: list[int]) -> None:
    standings = Standings(np.array([answers]))
    for draws in range(len(answers) + 1):
        tally = tally_of(answers[:draws], budget=len(answers))
        many = standings.at(np.array([0]), np.array([draws]))
        one = Tallies.of(tally)
        assert tuple(many.votes[0]) == tuple(one.votes[0]) == tally.top(len(answers))
        assert standings.leader[draws, 0] == (NONE if tally.leader is None else int(tally.leader))
        assert many.state()[0] == pytest.approx(tally.state())
        assert one.state()[0] == pytest.approx(tally.state())
        recent = answers[max(0, draws - 3) : draws]
        assert list(many.last(3)[0]) == [NONE] * (3 - len(recent)) + recent


@given(st.integers(1, 12).flatmap(lambda draws: st.lists(st.lists(codes, min_size=draws, max_size=draws), min_size=2)))
def test_each_row_stands_by_itself(rows: list[list[int]]) -> None:
    together = Standings(np.array(rows))
    for row, answers in enumerate(rows):
        alone = Standings(np.array([answers]))
        np.testing.assert_array_equal(together.votes[:, row], alone.votes[:, 0])
        np.testing.assert_array_equal(together.leader[:, row], alone.leader[:, 0])
        leader = tally_of(answers).leader
        assert together.reference[row] == (NONE if leader is None else int(leader))


@given(st.lists(codes, min_size=1, max_size=24), st.permutations(range(5)))
def test_names_of_answers_do_not_matter(answers: list[int], names: list[int]) -> None:
    renamed = [code if code == NONE else names[code] for code in answers]
    before, after = tally_of(answers), tally_of(renamed)
    assert before.top(32) == after.top(32)
    assert (before.leader is None and after.leader is None) or names[int(before.leader or 0)] == int(after.leader or 0)


@pytest.mark.parametrize("budget", [127, 128, 129, 300])
def test_counts_of_large_budgets_are_whole(budget: int) -> None:
    standings = Standings(np.zeros((1, budget), int))
    assert list(standings.votes[:, 0, 0]) == list(range(budget + 1))
    assert standings.votes.itemsize == (1 if budget < 128 else 2), "there are many of them"
