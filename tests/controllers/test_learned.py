import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from helpers.tallies import tally_of
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file

from suffice import ControllerError, LearnedController, Tally, get_controller, load_controller, save_controller
from suffice.controllers.learned import ACTIVATIONS
from suffice.tally import Standings


def network(seed: int = 0, **card: object) -> LearnedController:
    """A controller with random weights, large enough to take every action somewhere."""
    random = np.random.default_rng(seed)
    usual = {"kind": "learned", "format": 1, "budget": 32, "top": 5, "first": 4, "activation": "tanh"}
    full = {**usual, "actions": [1, 2, 4], **card}
    sizes = [int(full["top"]) + 2, 8, len(full["actions"]) + 1]  # type: ignore[call-overload, arg-type]
    layers = [
        (random.normal(size=(n, m)).astype(np.float32) * 4, random.normal(size=n).astype(np.float32))
        for m, n in pairwise(sizes)
    ]
    return LearnedController(layers, full)


def test_the_first_round_is_fixed_and_made_up_when_draws_were_lost() -> None:
    controller = network()
    assert controller.decide(Tally(32)) == 4
    tally = tally_of(["a", "b", None])
    assert controller.decide(tally) == 1


@given(st.integers(0, 2**32 - 1), st.lists(st.sampled_from([None, *"abcdefg"]), min_size=4, max_size=32))
def test_a_decision_is_the_network_s_most_likely_action(seed: int, answers: list[str | None]) -> None:
    """Of a network of its own each time: one alone may hardly depend on some of its parts where it is asked."""
    controller = network(seed)
    tally = tally_of(answers)
    values = tally.state(5).astype(np.float32)
    for weights, biases in controller.layers[:-1]:
        values = ACTIVATIONS["tanh"](weights @ values + biases)
    weights, biases = controller.layers[-1]
    assert controller.decide(tally) == [0, 1, 2, 4][int(np.argmax(weights @ values + biases))]


def decisions(controller: LearnedController) -> list[int]:
    """In many states after the first round."""
    random = np.random.default_rng(0)
    draws = random.integers(4, 32, 5000)
    standings = Standings(random.integers(-1, 5, (5000, 32)))
    return list(controller.decide_many(standings.at(np.arange(5000), draws)))


def test_random_networks_do_take_every_action() -> None:
    assert {asked for seed in range(3) for asked in decisions(network(seed))} == {0, 1, 2, 4}


def test_saved_and_loaded_it_decides_the_same_in_every_state(tmp_path: Path) -> None:
    controller = network()
    save_controller(controller, tmp_path / "c.safetensors")
    loaded = load_controller(tmp_path / "c.safetensors")
    assert isinstance(loaded, LearnedController)
    assert decisions(loaded) == decisions(controller)
    assert loaded.card == controller.card
    named = get_controller(f"file:{tmp_path}/c.safetensors")
    assert isinstance(named, LearnedController) and named.card == controller.card


def test_other_sizes_work_too() -> None:
    controller = network(budget=12, top=3, first=2, actions=[3, 5])
    assert controller.decide(Tally(12)) == 2
    tally = tally_of("abcabcabc", 12)
    assert controller.next_round(tally) in (0, 3)


def test_another_budget_is_refused() -> None:
    with pytest.raises(ControllerError, match="budget of 32 can't serve a budget of 16"):
        network().decide(Tally(16))


def test_a_broken_or_foreign_file_is_refused(tmp_path: Path) -> None:
    whole = tmp_path / "c.safetensors"
    save_controller(network(), whole)
    data, tensors = whole.read_bytes(), load_file(whole)
    card = json.dumps(dict(network().card))
    bad = tmp_path / "bad.safetensors"

    def refused(words: str) -> None:
        with pytest.raises(ControllerError, match=words):
            load_controller(bad)

    refused("no such controller file")
    for piece in (b"", b"{}", data[:100], data[:-1], b"PK\x03\x04 a zip file"):
        bad.write_bytes(piece)
        refused("not a whole controller file")
    bad.unlink()
    bad.mkdir()
    refused("not a whole controller file")
    bad.rmdir()
    for metadata in (None, {"other": "file"}, {"suffice": "{"}, {"suffice": "[]"}, {"suffice": "{}"}):
        save_file(tensors, bad, metadata=metadata)
        refused("not a whole controller file")
    changes: list[dict[str, object]] = [{"first": 40}, {"first": "4"}, {"budget": 32.0}, {"kind": "odd"}, {"format": 0}]
    changes += [{"top": 4}, {"actions": [1]}, {"activation": "sine"}]
    for change in changes:
        save_file(tensors, bad, metadata={"suffice": json.dumps({**json.loads(card), **change})})
        refused("not a whole controller file")
    for part in ("weight", "bias"):
        for number in (np.nan, np.inf):
            broken = tensors[f"layers.0.{part}"].copy()
            broken.flat[0] = number
            save_file({**tensors, f"layers.0.{part}": broken}, bad, metadata={"suffice": card})
            refused("not a whole controller file")
    save_file(tensors, bad, metadata={"suffice": card.replace('"format": 1', '"format": 2')})
    refused("newer than this suffice knows")


@pytest.mark.parametrize(
    ("reward", "samples", "rounds", "said"),
    [(0.76, 32, 8, ["sc"]), (0.75, 20, 5, ["sc"]), (0.76, 20, 5, []), (0.76, 32, 0.5, []), (0.8, 32, 8, [])],
)
def test_it_tells_which_rules_did_as_well(reward: float, samples: float, rounds: float, said: list[str]) -> None:
    rules = {"sc": {"reward": 0.76, "samples": 32, "rounds": 1}}
    controller = network(reward=reward, samples=samples, rounds=rounds, rules=rules)
    assert [rule.split()[0] for rule in controller.no_better_than()] == said
