"""The samples that a vote will take, foretold by typical questions."""

import pytest

from suffice import get_controller
from suffice.planning.forecast import typical_draws


def test_dearer_draws_are_fewer() -> None:
    plan, dear = get_controller("plan"), get_controller("plan:penalty_draw=0.05")
    assert 2 < typical_draws(dear, 32) < typical_draws(plan, 32) < 20


@pytest.mark.parametrize(("controller", "draws"), [("once", 1), ("sc", 12), ("sc:draws=5", 5)])
def test_what_does_not_depend_on_answers_is_foretold_exactly(controller: str, draws: int) -> None:
    assert typical_draws(get_controller(controller), 12) == draws
