"""The checker for controllers: all of ours pass it, and what is broken is told why."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
import pytest

from suffice import ArrayController, Controller, ControllerError, Plan, SavedController, Tallies, Tally, get_controller
from suffice.controllers import file_kind
from suffice.planning.controller import Mixture
from suffice.tally import FloatArray, IntArray
from suffice.testing import check_controller

OURS = [
    "sc",
    "sc:draws=3",
    "asc",
    "esc",
    "esc:window=3",
    "doubling",
    "boinf:factor=3",
    "plan",
    "plan:penalty_draw=0.02,penalty_round=0,actions=1+2+4",
    "rl",
    "rl:penalty_draw=0.02",
    Mixture((Plan(0.02), Plan(0.001)), (0.4, 0.6)),
]


@pytest.mark.parametrize("controller", OURS, ids=str)
def test_ours_pass(controller: str | Controller) -> None:
    check_controller(controller)


@pytest.mark.parametrize("controller", ["once", "sc", "asc", "esc", "doubling", "boinf", "plan"])
@pytest.mark.parametrize("budget", [1, 2, 7])
def test_ours_pass_with_small_budgets(controller: str, budget: int) -> None:
    check_controller(controller, budget)


class Broken(Controller):
    """Draws until some answer was given twice, and breaks a rule on the way."""

    def decide(self, tally: Tally) -> int:
        return 0 if tally.top(1)[0] >= 2 else 1


def test_a_plain_one_passes() -> None:
    check_controller(Broken())


class Negative(Broken):
    def decide(self, tally: Tally) -> int:
        return -1 if tally.draws == 3 else super().decide(tally)


class Half(Broken):
    def decide(self, tally: Tally) -> int:
        return 1.5  # type: ignore[return-value]


class Raises(Broken):
    def decide(self, tally: Tally) -> int:
        return 1 if tally.votes.popitem()[1] else 0


class ByName(Broken):
    def decide(self, tally: Tally) -> int:
        return 0 if tally.leader == "answer 0" else 1


class Moody(Broken):
    def __init__(self) -> None:
        self.moods = count()

    def decide(self, tally: Tally) -> int:
        return 1 + next(self.moods) % 2 if tally.draws < 4 else 0


class Greedy(Broken):
    def decide(self, tally: Tally) -> int:
        tally.round_ends.append(tally.draws)
        return super().decide(tally)


class Twofold(ArrayController):
    """One and many are two rules."""

    def decide(self, tally: Tally) -> int:
        return 1 if tally.draws < 3 else 0

    def decide_many(self, tallies: Tallies) -> IntArray:
        return np.where(tallies.draws < 4, 1, 0)


class Herd(ArrayController):
    """What it decides depends on the company."""

    def decide_many(self, tallies: Tallies) -> IntArray:
        return np.where(tallies.draws < (3 if len(tallies) == 1 else 4), 1, 0)


class Fickle(Broken):
    def __init__(self) -> None:
        self.asked = count()

    def for_question(self, random: np.random.Generator) -> Controller:
        return get_controller("sc:draws=2" if next(self.asked) % 2 else "sc:draws=3")


@file_kind("forgetful")
@dataclass(frozen=True)
class Forgetful(SavedController):
    votes: int = 3

    @property
    def card(self) -> Mapping[str, Any]:  # type: ignore[override]
        return {"kind": "forgetful", "format": 1}

    def decide_many(self, tallies: Tallies) -> IntArray:
        return np.where(tallies.top(1)[:, 0] < self.votes, 1, 0)

    def tensors(self) -> dict[str, FloatArray]:
        return {"votes": np.array([float(self.votes)])}

    @classmethod
    def from_file(cls, tensors: dict[str, FloatArray], card: Mapping[str, Any]) -> "Forgetful":
        return cls(2)


@pytest.mark.parametrize(
    ("controller", "words"),
    [
        (Negative(), "asked for -1 draws: it must be a whole number, 0 or more: on a tally of"),
        (Half(), "asked for 1.5 draws: it must be a whole number, 0 or more: on a tally of no draws yet"),
        (Raises(), "must decide, and raised KeyError"),
        (ByName(), "must not depend on what answers are called"),
        (Moody(), "must decide the same again"),
        (Greedy(), "must leave the tally as it is, and changed it"),
        (Twofold(), "must decide alike by arrays, which asked for 1, and alone: 0"),
        (Herd(), "must do the same in a replay as live: it took 4 draws in 4 rounds, and live 3 in 3"),
        (Fickle(), "must serve a question the same under the same chance"),
        (Forgetful(), "must decide the same once saved and loaded, and its file drew"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Controller) else "",
)
def test_what_is_broken_is_told_why_and_on_what_tally(controller: Controller, words: str) -> None:
    with pytest.raises(ControllerError) as caught:
        check_controller(controller, budget=12)
    assert words in str(caught.value)
    assert "on a tally of " in str(caught.value) and "(budget 12)" in str(caught.value)


def test_a_budget_that_is_none_is_refused() -> None:
    with pytest.raises(Exception, match=r"budget must be a whole number, at least 1, not 2\.5"):
        check_controller("asc", 2.5)  # type: ignore[arg-type]
