"""Before it is ready, the gateway has planned for the budgets that its settings name, or has run out of time."""

import threading
from pathlib import Path

import pytest

import suffice
from suffice.gateway import Settings
from suffice.gateway.operations.warming import warm_up
from suffice.planning import is_ready
from suffice.tally import Tally


def test_plans_and_confidences_of_the_settings_are_ready_and_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    controller = "plan:penalty_draw=0.0123"
    assert warm_up(Settings(upstream="http://127.0.0.1:9/v1", controller=controller, budget=11, max_budget=13))
    assert is_ready(11) and is_ready(13)
    assert all(suffice.get_controller(controller).is_quick(budget) for budget in (11, 13))
    assert list(tmp_path.rglob("*.npz")), "workers read them there"


def test_a_plan_that_takes_too_long_does_not_hold_up_the_start() -> None:
    planned = threading.Event()

    @suffice.register("tests-slow-to-plan")
    class SlowToPlan(suffice.Controller):
        def decide(self, tally: Tally) -> int:
            planned.wait(60)
            return 1

    settings = Settings(upstream="http://127.0.0.1:9/v1", controller="tests-slow-to-plan")
    assert not warm_up(settings, seconds=0.01)
    planned.set()
    assert warm_up(settings)


def test_a_controller_that_fails_is_told_at_the_start() -> None:
    with pytest.raises(suffice.SufficeError, match="up to a budget of 512"):
        warm_up(Settings(upstream="http://127.0.0.1:9/v1", budget=600))
