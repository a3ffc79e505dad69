import numpy as np
import pytest
from scipy import integrate, stats

from suffice import ControllerError, Tally, get_controller
from suffice.controllers.boinf import largest_probabilities
from suffice.controllers.consol import log_likelihood_ratios


def next_round(spec: str, budget: int, *votes: int) -> int:
    tally = Tally(budget)
    tally.add_round(str(answer) for answer, count in enumerate(votes) for _ in range(count))
    return get_controller(spec).next_round(tally)


# What the package `consol` 0.3.0 draws next, with its mixture SPRT and as many trials as the budget.
PACKAGE = [
    (32, 0, 0, 3), (32, 1, 0, 2), (32, 2, 0, 1), (32, 3, 0, 0), (32, 2, 1, 2), (32, 3, 1, 1), (32, 4, 1, 0),
    (32, 5, 2, 0), (32, 5, 5, 3), (32, 9, 6, 0), (32, 16, 15, 1), (256, 60, 60, 3), (256, 100, 95, 0),
    (256, 126, 126, 3), (256, 127, 127, 0),
]  # fmt: skip


@pytest.mark.parametrize(("budget", "first", "second", "draws"), PACKAGE)
def test_consol_draws_what_the_package_does(budget: int, first: int, second: int, draws: int) -> None:
    assert next_round("consol", budget, first, second) == draws


@pytest.mark.parametrize(("first", "second"), [(1, 0), (3, 1), (5, 5), (12, 4)])
def test_its_ratio_is_that_of_the_marginal_likelihoods(first: int, second: int) -> None:
    density = stats.beta(3, 3)
    seen, _ = integrate.quad(lambda p: p**first * (1 - p) ** second * density.pdf(p) / density.sf(0.5), 0.5, 1)
    expected = np.log(seen) - (first + second) * np.log(0.5)
    assert log_likelihood_ratios(np.array(first), np.array(second), 3) == pytest.approx(expected)


def test_consol_needs_a_vote_and_takes_parameters_in_range() -> None:
    tally = Tally(32)
    tally.add_round([None] * 4)
    assert get_controller("consol").decide(tally) == 3
    for wrong in ("alpha=0", "beta=1", "prior=-1"):
        with pytest.raises(ControllerError, match="must be above 0"):
            get_controller(f"consol:{wrong}")


@pytest.mark.parametrize("budget", [2, 8, 64, 512])
@pytest.mark.parametrize("rule", ["consol", "boinf"])
def test_rules_serve_any_budget(rule: str, budget: int) -> None:
    assert 0 < next_round(rule, budget) <= budget
    assert next_round(rule, budget, budget // 2, budget // 2 - 1) in (0, 1, 2, 3)
    assert next_round(rule, budget, budget) == 0


@pytest.mark.parametrize("votes", [(256, 255), (260, 240, 12), (400, 2, 1), (60, 59, 58, 57)])
def test_boinf_s_quadrature_holds_for_large_budgets(votes: tuple[int, ...]) -> None:
    leader, others = stats.gamma(votes[0] + 1), [stats.gamma(shape) for shape in (*(v + 1 for v in votes[1:]), 1.3)]
    low, high = leader.ppf([1e-13, 1 - 1e-13])
    expected, _ = integrate.quad(
        lambda x: leader.pdf(x) * np.prod([other.cdf(x) for other in others]), low, high, epsabs=1e-12, limit=400
    )
    assert largest_probabilities(np.array([votes]), 0.3)[0] == pytest.approx(expected, abs=1e-9)
