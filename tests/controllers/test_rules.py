import itertools
from collections.abc import Iterator

import numpy as np
import pytest
from adaptive_consistency import BetaStoppingCriteria
from helpers.tallies import tally_by_votes, tally_of
from scipy import integrate, stats

from suffice import ControllerError, Tally, get_controller
from suffice.controllers.rules import BestOfInfinity, largest_probabilities, log_likelihood_ratios


def partitions(total: int, largest: int | None = None) -> Iterator[tuple[int, ...]]:
    if total == 0:
        yield ()
    for part in range(min(total, largest or total), 0, -1):
        for rest in partitions(total - part, part):
            yield (part, *rest)


def decide(spec: str, tally: Tally) -> int:
    return get_controller(spec).decide(tally)


DECISIONS: dict[str, list[tuple[str, list[str | None], int]]] = {
    "once draws one, whatever it says": [("once", [], 1), ("once", ["a"], 0), ("once", [None], 0)],
    "sc draws its number at once and stops": [("sc", [], 32), ("sc:draws=8", [], 8), ("sc", ["a"], 0)],
    "asc draws on while there are no votes": [("asc:threshold=0.4", [], 1), ("asc:threshold=0.4", [None, None], 1)],
    "esc stops at a unanimous window": [
        ("esc:window=3", [], 3),
        ("esc:window=3", [*"aab"], 3),
        ("esc:window=3", [*"aabaaa"], 0),
    ],
    "esc's windows do not slide": [("esc:window=3", [*"baaabb"], 3)],
    "esc is not unanimous with a none": [("esc:window=3", ["a", "a", None], 3), ("esc:window=3", [None] * 3, 3)],
    "esc judges a window that lost draws when it is full again": [
        ("esc:window=3", [*"aa"], 1),
        ("esc:window=3", [*"aaa"], 0),
    ],
    "doubling doubles until the leader dominates": [
        ("doubling", [], 2),
        ("doubling", [*"ab"], 2),
        ("doubling", [*"abac"], 4),
        ("doubling", [*"abaa"], 0),
    ],
    "doubling's shares are of the answers given": [
        ("doubling", ["a", None, None, None], 0),
        ("doubling", [None, None], 2),
    ],
    "boinf never stops in a tie or without votes": [
        ("boinf:factor=0.001", [*"abba"], 1),
        ("boinf:factor=0.001", [None], 1),
        ("boinf:factor=0.001", [], 1),
    ],
}


@pytest.mark.parametrize("claim", DECISIONS)
def test_rules_decide_as_published(claim: str) -> None:
    for spec, given, draws in DECISIONS[claim]:
        assert decide(spec, tally_of(given)) == draws, (spec, given)


def test_a_round_is_cut_to_the_budget() -> None:
    assert get_controller("sc:draws=64").next_round(Tally(32)) == 32


@pytest.mark.parametrize("threshold", [0.6, 0.75, 0.95, 0.99])
def test_asc_is_adaptive_consistency_on_every_tally(threshold: float) -> None:
    peer = BetaStoppingCriteria(threshold)
    for votes in itertools.chain.from_iterable(partitions(draws) for draws in range(1, 13)):
        names = [name for name, count in enumerate(votes) for _ in range(count)]
        stops = peer.should_stop(names)["stop"]
        assert (decide(f"asc:threshold={threshold}", tally_by_votes(*votes)) == 0) == stops, votes


SMALL = [(1,), (3, 1), (5, 4), (5, 5), (12, 3, 3, 1), (20, 2, 2, 2, 1, 1, 1, 1), (31, 1)]
LARGE = [(256, 255), (260, 240, 12), (400, 2, 1), (60, 59, 58, 57)]


@pytest.mark.parametrize("votes", SMALL + LARGE)
def test_boinf_quadrature_is_the_integral(votes: tuple[int, ...]) -> None:
    leader, others = stats.gamma(votes[0] + 1), [stats.gamma(shape) for shape in (*(v + 1 for v in votes[1:]), 1.3)]
    low, high = leader.ppf([1e-13, 1 - 1e-13])
    expected, _ = integrate.quad(
        lambda x: leader.pdf(x) * np.prod([other.cdf(x) for other in others]), low, high, epsabs=1e-12, limit=400
    )
    assert largest_probabilities(np.array([votes]), 0.3)[0] == pytest.approx(expected, abs=1e-9)


def test_boinf_quadrature_is_the_chance_under_the_dirichlet() -> None:
    shares = np.random.default_rng(0).dirichlet([6, 4, 2, 1.3], size=200_000)
    expected = (shares.argmax(axis=1) == 0).mean()
    assert largest_probabilities(np.array([[5, 3, 1]]), 0.3)[0] == pytest.approx(expected, abs=4e-3)


def test_boinf_stops_when_the_bayes_factor_is_reached() -> None:
    votes = (6, 1)
    lead = largest_probabilities(np.array([votes]), 0.3)[0]
    factor = 3 * lead / (1 - lead)
    assert decide(f"boinf:factor={factor * 0.999}", tally_by_votes(*votes)) == 0
    assert decide(f"boinf:factor={factor * 1.001}", tally_by_votes(*votes)) == 1


def test_best_of_infinity_stops_at_a_factor_that_is_reached_exactly() -> None:
    votes = np.array([[leader] for leader in range(1, 30)])
    leads = largest_probabilities(votes, 0.3)
    factors = 2 * leads / (1 - leads)
    exact = np.flatnonzero(factors * (1 - leads) == 2 * leads)
    assert exact.size, "where it is, to the last bit"
    for row in exact:
        tally = tally_of(["7"] * int(votes[row, 0]))
        reached, missed = BestOfInfinity(float(factors[row])), BestOfInfinity(float(np.nextafter(factors[row], np.inf)))
        assert (reached.decide(tally), missed.decide(tally)) == (0, 1)


def next_round(spec: str, votes: tuple[int, ...], budget: int) -> int:
    return get_controller(spec).next_round(tally_by_votes(*votes, budget=budget))


# What the package `consol` 0.3.0 draws next, with its mixture SPRT and as many trials as the budget.
PACKAGE = [
    (32, 0, 0, 3), (32, 1, 0, 2), (32, 2, 0, 1), (32, 3, 0, 0), (32, 2, 1, 2), (32, 3, 1, 1), (32, 4, 1, 0),
    (32, 5, 2, 0), (32, 5, 5, 3), (32, 9, 6, 0), (32, 16, 15, 1), (256, 60, 60, 3), (256, 100, 95, 0),
    (256, 126, 126, 3), (256, 127, 127, 0),
]  # fmt: skip


@pytest.mark.parametrize(("budget", "first", "second", "draws"), PACKAGE)
def test_consol_draws_what_the_package_does(budget: int, first: int, second: int, draws: int) -> None:
    assert next_round("consol", (first, second), budget) == draws


@pytest.mark.parametrize(("first", "second"), [(1, 0), (3, 1), (5, 5), (12, 4)])
def test_its_ratio_is_that_of_the_marginal_likelihoods(first: int, second: int) -> None:
    density = stats.beta(3, 3)
    seen, _ = integrate.quad(lambda p: p**first * (1 - p) ** second * density.pdf(p) / density.sf(0.5), 0.5, 1)
    expected = np.log(seen) - (first + second) * np.log(0.5)
    assert log_likelihood_ratios(np.array(first), np.array(second), 3) == pytest.approx(expected)


def test_consol_needs_a_vote_and_takes_parameters_in_range() -> None:
    tally = tally_of([None] * 4)
    assert get_controller("consol").decide(tally) == 3
    for wrong in ("alpha=0", "beta=1", "prior=-1"):
        with pytest.raises(ControllerError, match="must be above 0"):
            get_controller(f"consol:{wrong}")


@pytest.mark.parametrize("budget", [2, 8, 64, 512])
@pytest.mark.parametrize("rule", ["consol", "boinf"])
def test_rules_serve_any_budget(rule: str, budget: int) -> None:
    assert 0 < next_round(rule, (), budget) <= budget
    assert next_round(rule, (budget // 2, budget // 2 - 1), budget) in (0, 1, 2, 3)
    assert next_round(rule, (budget,), budget) == 0
