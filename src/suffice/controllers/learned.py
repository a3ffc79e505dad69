"""The learned controller: a small network that was trained by reinforcement learning, as a table of its decisions."""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from suffice.controllers.files import Layers, NetworkController, file_kind
from suffice.errors import ControllerError
from suffice.tally import FloatArray, IntArray, Tallies, state

ACTIVATIONS: dict[str, Callable[[FloatArray], FloatArray]] = {"tanh": np.tanh, "relu": lambda x: np.maximum(x, 0)}
MOST_STATES = 2_000_000
"""A table larger than this is refused: it would take minutes and gigabytes."""


@file_kind("learned")
class LearnedController(NetworkController):
    """Takes the network's most likely action in each state, after a first round of fixed size.

    `layers` are pairs of weights (outputs × inputs) and biases. `card` says what the network was trained for:
    budget, top, actions, first and activation are used here, the rest is for the reader.

    >>> from suffice import Tally
    >>> card = {"budget": 8, "top": 2, "first": 3, "actions": [1, 2], "activation": "tanh"}
    >>> stops = LearnedController([(np.zeros((3, 4)), np.array([1, 0, 0]))], card)
    >>> stops.budget, stops.first, stops.decide(Tally(8))
    (8, 3, 3)
    """

    def __init__(self, layers: Layers, card: Mapping[str, Any]) -> None:
        self.layers = layers
        self.card = card
        self.budget: int = card["budget"]
        self.top: int = card["top"]
        self.first: int = card["first"]
        self.draws_by_action = np.array([0, *card["actions"]])

    @classmethod
    def from_file(cls, tensors: dict[str, FloatArray], card: Mapping[str, Any]) -> "LearnedController":
        numbers = [card["budget"], card["top"], card["first"], *card["actions"]]
        layers = cls.layers_of(tensors, card["top"] + 2, numbers)
        outputs, known = len(layers[-1][1]), card["activation"] in ACTIVATIONS
        if card["first"] >= card["budget"] or outputs != len(card["actions"]) + 1 or not known:
            raise ValueError
        return LearnedController(layers, card)

    def __str__(self) -> str:
        return f"the controller learned for a budget of {self.budget}"

    def scores(self, states: FloatArray) -> FloatArray:
        """What the network gives each action in each state."""
        activation = ACTIVATIONS[self.card["activation"]]
        values = states.astype(np.float32)
        for weights, biases in self.layers[:-1]:
            values = activation(values @ weights.T + biases)
        weights, biases = self.layers[-1]
        return values @ weights.T + biases

    @cached_property
    def table(self) -> tuple[IntArray, IntArray]:
        """Keys of all states that can be met, in rising order, and how many draws the network asks for in each."""
        if (self.budget + 1) ** (self.top + 1) >= 2**63:
            raise _too_many(self.budget, self.top)
        tops = _sorted_counts(self.top, self.budget)
        given = tops.sum(axis=1)
        if (self.budget + 1 - np.maximum(given, self.first)).sum() > MOST_STATES:
            raise _too_many(self.budget, self.top)
        blocks = []
        for made in range(self.first, self.budget + 1):
            met = tops[given <= made]
            blocks.append(np.column_stack([np.full(len(met), made), met]))
        states = np.concatenate(blocks)
        draws, top = states[:, 0], states[:, 1:]
        scores = self.scores(state(top, draws, self.budget))
        return self._keys(draws, top), self.draws_by_action[scores.argmax(axis=1)]

    def decide_many(self, tallies: Tallies) -> IntArray:
        self.check_budget(tallies.budget)
        keys, asked = self.table
        found = np.searchsorted(keys, self._keys(tallies.draws, tallies.top(self.top)))
        # Before the first round is in there are no such keys: the look-up there is void.
        return np.where(
            tallies.draws < self.first, self.first - tallies.draws, asked[np.minimum(found, len(asked) - 1)]
        )

    def _keys(self, draws: IntArray, top: IntArray) -> IntArray:
        """Draws and top counts as the digits of one number."""
        digits = np.column_stack([draws, top]).astype(np.int64)
        return digits @ (self.budget + 1) ** np.arange(self.top, -1, -1)

    def check_budget(self, budget: int) -> None:
        if budget != self.budget:
            raise ControllerError(f"{self} can't serve a budget of {budget}: use its own, or train another")


def _too_many(budget: int, top: int) -> ControllerError:
    return ControllerError(f"a budget of {budget} with the top {top} counts has too many states: lower either")


def _sorted_counts(parts: int, total: int) -> IntArray:
    """All lists of so many vote counts, most first, that sum to at most the total."""
    counts = np.arange(total + 1)[:, None]
    for _ in range(parts - 1):
        # Each list goes on with any count that is no larger than its last and fits into the total.
        room = np.minimum(counts[:, -1], total - counts.sum(axis=1)) + 1
        if room.sum() > MOST_STATES:
            raise _too_many(total, parts)
        following = np.arange(room.sum()) - np.repeat(np.cumsum(room) - room, room)
        counts = np.column_stack([np.repeat(counts, room, axis=0), following])
    return counts
