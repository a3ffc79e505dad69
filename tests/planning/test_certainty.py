import numpy as np
import pytest
from helpers.tallies import tally_by_votes, tally_of
from hypothesis import given
from hypothesis import strategies as st

from suffice import Tally, certainty, load_pool
from suffice.planning import UNIVERSAL, Prior, certainties
from suffice.planning.confidence import MOST_FOR_ONE_VOTE
from suffice.planning.model import CONCENTRATIONS, DISCOUNTS, posterior
from suffice.replay import certainty_reliability
from suffice.replay.reliability import pooled
from suffice.tally import Standings

VOTES = st.lists(st.integers(1, 12), min_size=1, max_size=8)


def sure(votes: list[int], none: int = 0, prior: Prior = UNIVERSAL) -> float:
    found = certainty(tally_by_votes(*votes, none=none, budget=512), prior)
    assert found is not None
    return found


def simulated(votes: list[int], episodes: int) -> float:
    """How often the leader has the largest share: Dirichlet shares, and the rest broken like a stick."""
    random = np.random.default_rng(0)
    parts = np.sort(votes)[::-1]
    points = random.choice(220, episodes, p=posterior(parts.tolist(), UNIVERSAL).ravel())
    alpha, discount = CONCENTRATIONS[points // 10][:, None], DISCOUNTS[points % 10][:, None]
    shares, rest = random.gamma(parts - discount), alpha + len(parts) * discount
    # Pieces come with chances by their size, so that a large one after so many is out of the question.
    broken = random.beta(1 - discount, rest + discount * np.arange(1, 401))
    left = np.cumprod(np.column_stack([random.gamma(rest), 1 - broken[:, :-1]]), axis=1)
    return float((shares[:, 0] >= np.column_stack([shares, broken * left]).max(axis=1)).mean())


@pytest.mark.parametrize("votes", [[1], [2], [4], [2, 1], [3, 3], [5, 3, 1], [10, 8, 5, 4, 1, 1], [1] * 32])
def test_it_is_what_a_simulation_of_the_model_finds(votes: list[int]) -> None:
    episodes = 4000
    found = sure(votes)
    # Four standard errors of the simulation.
    assert found == pytest.approx(simulated(votes, episodes), abs=4 * (found * (1 - found) / episodes) ** 0.5)


def test_it_tells_hard_from_easy_when_the_budget_is_spent() -> None:
    assert sure([1] * 32) < 0.03
    assert sure([16, 16]) == pytest.approx(0.5, abs=0.01)
    assert sure([32]) > 0.999
    assert sure([2]) == pytest.approx(0.88, abs=0.005)
    assert sure([4]) == pytest.approx(0.99, abs=0.005)


@pytest.mark.parametrize("votes", [[512], [256, 255, 1], [1] * 512, [40] * 12 + [2] * 16])
def test_it_is_a_probability_up_to_512_draws(votes: list[int]) -> None:
    assert 0 < sure(votes) <= 1


def test_the_answers_that_are_level_share_what_is_there() -> None:
    assert sure([256, 256]) == pytest.approx(0.5, abs=1e-4)
    assert sure([100] * 4) == pytest.approx(0.25, abs=1e-4)


@given(VOTES)
def test_a_vote_for_the_leader_raises_it(votes: list[int]) -> None:
    votes.sort(reverse=True)
    assert sure([votes[0] + 1, *votes[1:]]) >= sure(votes) - 1e-6


@given(VOTES, st.integers(1, 9))
def test_a_draw_without_an_answer_changes_nothing(votes: list[int], none: int) -> None:
    assert sure(votes, none) == sure(votes)


def test_without_votes_there_is_none() -> None:
    assert certainty(Tally()) is certainty(tally_of([None] * 32)) is None


def test_fewer_than_two_votes_never_give_much_whatever_the_prior() -> None:
    agreeing = Prior((1.0, *(0.0,) * 219))
    assert sure([2], prior=agreeing) > 0.98
    assert sure([1], prior=agreeing) == MOST_FOR_ONE_VOTE < 0.9


def test_many_at_once_are_as_one_by_one() -> None:
    answers = np.random.default_rng(0).integers(-1, 4, (50, 12))
    rows = np.arange(50)
    for draws in (1, 5, 12):
        found = certainties(Standings(answers).at(rows, np.full(50, draws)))
        for row, value in zip(answers, found, strict=True):
            tally = tally_of((None if code < 0 else str(code) for code in row[:draws]), 12)
            one = certainty(tally)
            assert one == value or (one is None and np.isnan(value))


@pytest.mark.parametrize(("draws", "points"), [(4, 4), (8, 3), (16, 3), (32, 4)])
def test_it_is_calibrated_on_the_bundled_pools(draws: int, points: float) -> None:
    """Against the majority of 128; the pools together, since a decile of one has few outcomes."""
    pools = [load_pool(f"qwen2.5-coder-1.5b__{name}") for name in ("dapo", "gsm8k", "math500")]
    together = pooled(certainty_reliability(pool, draws) for pool in pools)
    assert together is not None
    assert together.calibration_error < points
    assert sum(decile["share"] for decile in together.deciles) == pytest.approx(100)
