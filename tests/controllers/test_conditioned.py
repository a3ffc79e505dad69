import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from helpers.tallies import tally_of
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file

from suffice import (
    ConditionedController,
    ControllerError,
    LearnedController,
    Penalties,
    Plan,
    Tally,
    get_controller,
    load_controller,
    save_controller,
    shipped_controllers,
)
from suffice.controllers.conditioned import CONDITIONS, FEATURES, LARGEST_INPUT, conditions, features
from suffice.planning.controller import ceiling
from suffice.tally import Standings
from suffice.testing import check_controller

DEFAULT = Penalties()
OLDER = Path(__file__).parent / "older" / "learned-format-1.safetensors"


def network(seed: int = 0, penalties: Penalties = DEFAULT, **card: object) -> ConditionedController:
    """A controller with random weights, large enough to take every action somewhere."""
    random = np.random.default_rng(seed)
    ranges = {"budget": [2, 256], "penalty_draw": [0.001, 0.03], "penalty_round": [0.0, 0.05]}
    full = {"kind": "conditioned", "format": 1, "first": 4, "actions": [1, 2, 4], "ranges": ranges, **card}
    layers = [
        (random.normal(size=(n, m)).astype(np.float32), random.normal(size=n).astype(np.float32))
        for m, n in pairwise([FEATURES + CONDITIONS, 8, 8, 4])
    ]
    return ConditionedController(layers, full, penalties)


NETWORK = network()


@given(
    budget=st.integers(2, 256),
    answers=st.lists(st.sampled_from([None, *"aaaabbcdefgh"]), min_size=1, max_size=256),
    company=st.integers(1, 40),
)
def test_a_decision_is_the_same_alone_and_in_any_company(budget: int, answers: list[str | None], company: int) -> None:
    answers = (answers * budget)[:budget]
    codes = [-1 if answer is None else "abcdefgh".index(answer) for answer in answers]
    draws = np.linspace(0, budget - 1, company).astype(int)
    rows = Standings(np.array([codes])).at(np.zeros(company, int), draws)
    together, alone = NETWORK.decide_many(rows), network()
    assert together.tolist() == [alone.decide(tally_of(answers[:made], budget)) for made in draws]


@given(st.integers(2, 256), st.data())
def test_what_is_seen_is_within_the_bound_by_which_sums_are_known_to_be_exact(budget: int, data: st.DataObject) -> None:
    draws = data.draw(st.integers(0, budget - 1))
    top = sorted(data.draw(st.lists(st.integers(0, draws // 5), min_size=5, max_size=5)), reverse=True)
    seen = [*features(budget, draws, *top), *conditions(budget, 0.03, 0.05)]
    assert len(seen) == FEATURES + CONDITIONS
    assert min(seen) > -1e-9 and max(seen) < LARGEST_INPUT


def test_random_networks_do_take_every_action() -> None:
    random, taken = np.random.default_rng(0), set()
    networks = [network(seed) for seed in range(12)]
    for _ in range(20):
        tally = tally_of(random.choice(list("aaabcd"), random.integers(4, 60)).tolist(), 64)
        taken |= {one.decide(tally) for one in networks}
    assert taken == {0, 1, 2, 4}


@pytest.mark.parametrize("budget", [8, 32, 256])
def test_the_first_round_is_fixed_where_it_is_at_most_half_of_the_budget(budget: int) -> None:
    assert (NETWORK.decide(Tally(budget)), NETWORK.decide(tally_of(["a", None], budget))) == (4, 2)


@pytest.mark.parametrize("seed", range(5))
def test_it_stops_where_nobody_can_pass_the_leader_any_more_and_draws_on_without_a_vote(seed: int) -> None:
    assert network(seed).decide(tally_of(["a"] * 16 + ["b"] * 15, 32)) == 0
    assert network(seed).decide(tally_of(["a"] * 2, 3)) == 0
    for budget, draws in [(2, 0), (7, 0), (32, 8), (128, 100)]:
        assert network(seed).decide(tally_of([None] * draws, budget)) > 0


@pytest.mark.parametrize("budget", [2, 5, 16, 48])
def test_the_shipped_network_serves_any_budget_and_price_of_its_range(budget: int) -> None:
    check_controller("rl:penalty_draw=0.01,penalty_round=0.002", budget=budget)
    assert get_controller("rl:penalty_draw=0.03,penalty_round=0.05").decide(tally_of(["a"] * 10, 256)) == 0


def test_the_shipped_network_is_near_the_best_plan_where_two_answers_compete() -> None:
    """Unanimity ends a vote, and an even one goes on."""
    for budget in (16, 32, 64, 128):
        rl = get_controller("rl:penalty_draw=0.005")
        assert rl.decide(tally_of(["a"] * 8, budget)) == 0
        assert rl.decide(tally_of(["a", "b"] * 3, budget)) > 0


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("rl:penalty_draw=0.1", "penalty_draw must be between 0.001 and 0.03, not 0.1"),
        ("rl:penalty_draw=0.0005", "penalty_draw must be between 0.001 and 0.03, not 0.0005"),
        ("rl:penalty_round=0.06", "penalty_round must be between 0 and 0.05, not 0.06"),
        ("rl:penalty_draw=nan", "penalty_draw must be between"),
        (f"rl:file={OLDER}", "has its own budget and penalties: use it as file:"),
    ],
)
def test_what_is_out_of_range_is_refused_with_the_range(spec: str, words: str) -> None:
    with pytest.raises(ControllerError, match=words):
        get_controller(spec)
    for budget in (1, 257):
        with pytest.raises(ControllerError, match=f"rl serves budgets from 2 to 256, not {budget}"):
            get_controller("rl").decide(Tally(budget))


def test_saved_and_loaded_it_keeps_its_penalties_and_decisions(tmp_path: Path) -> None:
    path = tmp_path / "c.safetensors"
    save_controller(network(penalties=Penalties(0.02, 0.01)), path)
    loaded = load_controller(path)
    assert isinstance(loaded, ConditionedController) and loaded.penalties == Penalties(0.02, 0.01)
    check_controller(loaded)
    again = get_controller(f"rl:penalty_draw=0.002,file={path}")
    assert isinstance(again, ConditionedController) and again.penalties == Penalties(0.002, 0.005)
    tallies = [tally_of(list("abc"[: 1 + n % 3] * n), 64) for n in range(2, 20)]
    same = network(penalties=Penalties(0.002, 0.005))
    assert [again.decide(tally) for tally in tallies] == [same.decide(tally) for tally in tallies]


def test_a_controller_file_of_an_older_version_still_loads() -> None:
    older = load_controller(OLDER)
    assert isinstance(older, LearnedController) and older.budget == 32
    assert older.decide(Tally(32)) == 4
    assert older.decide(tally_of(["a"] * 4, 32)) == 0


def test_a_broken_file_is_refused(tmp_path: Path) -> None:
    whole, bad = tmp_path / "c.safetensors", tmp_path / "bad.safetensors"
    save_controller(NETWORK, whole)
    tensors = load_file(whole)
    ranges = dict(NETWORK.card["ranges"])
    changes: list[dict[str, object]] = [
        {"first": 0},
        {"actions": [1]},
        {"ranges": {}},
        {"ranges": {**ranges, "budget": [0, 5]}},
        {"ranges": {**ranges, "penalty_draw": [0.5, 1]}},
    ]
    for change in changes:
        controller = network()
        controller.card = {**controller.card, **change}
        save_controller(controller, bad)
        with pytest.raises(ControllerError, match="not a whole controller file"):
            load_controller(bad)
    huge = {**tensors, "layers.1.weight": tensors["layers.1.weight"] * np.float32(1e6)}
    for broken in (huge, {**tensors, "layers.0.bias": tensors["layers.0.bias"][:-1]}, {}):
        save_file(broken or {"x": np.zeros(1)}, bad, metadata={"suffice": json.dumps(dict(NETWORK.card))})
        with pytest.raises(ControllerError, match="not a whole controller file"):
            load_controller(bad)


def test_the_paper_s_penalties_are_among_the_shipped() -> None:
    shipped = shipped_controllers()
    assert {draw for draw, round_ in shipped if round_ == 0} == {0.001, 0.005, 0.0075, 0.015, 0.02, 0.03}
    assert all((one.penalties.draw, one.penalties.round) == pair for pair, one in shipped.items())


def test_it_is_measured_against_the_exact_plan_with_its_actions() -> None:
    assert ceiling("rl", Penalties(0.01, 0.002)) == Plan(0.01, 0.002, (1, 2, 4))
    assert ceiling("rl", Penalties(), 64) is ceiling("asc", Penalties()) is None
