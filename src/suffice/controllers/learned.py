"""Learned controllers: small networks that were trained by reinforcement learning, and remember their decisions."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from suffice.controllers.files import SavedController, file_kind
from suffice.errors import ControllerError
from suffice.tally import FloatArray, IntArray, Tallies, Tally, state

MOST_KNOWN = 200_000
"""Decisions that are remembered, before all are forgotten."""

Layers = Sequence[tuple[FloatArray, FloatArray]]
"""Of a network: pairs of weights (outputs × inputs) and biases."""


class Decisions(dict[tuple[int, ...], int]):
    """A network's decisions by budget, draws and largest counts: each is worked out when it is first asked for.

    A state passes through the network alone, since in company its sums may be rounded otherwise.
    """

    def __init__(self, network: "NetworkController") -> None:
        self.network = network

    def __missing__(self, state: tuple[int, ...]) -> int:
        self.network.check_budget(state[0])
        if len(self) >= MOST_KNOWN:
            self.clear()
        asked = self[state] = self.network._pass_through(*state)
        return asked


class NetworkController(SavedController):
    """A saved controller with a small network, which sees the draws and the largest vote counts."""

    def __init__(self, layers: Layers, card: Mapping[str, Any], top: int) -> None:
        self.layers = layers
        self.card = card
        self.top = top
        self.first: int = card["first"]
        self._asked: list[int] = [0, *card["actions"]]
        self._decisions = Decisions(self)

    def __repr__(self) -> str:
        return f"<{self}>"

    @abstractmethod
    def _pass_through(self, budget: int, draws: int, *top: int) -> int:
        """The decision in one state by the network itself."""

    def decide(self, tally: Tally) -> int:
        return self._decisions[tally.budget, tally.draws, *tally.top(self.top)]

    def decide_many(self, tallies: Tallies) -> IntArray:
        states = np.column_stack([tallies.draws, tallies.top(self.top)])
        different, where = np.unique(states, axis=0, return_inverse=True)
        asked = [self._decisions[tallies.budget, *one] for one in different.tolist()]
        return np.array(asked, int)[where.ravel()]

    def tensors(self) -> dict[str, FloatArray]:
        return {
            f"layers.{number}.{name}": np.ascontiguousarray(tensor, np.float32)
            for number, layer in enumerate(self.layers)
            for name, tensor in zip(("weight", "bias"), layer, strict=True)
        }

    @staticmethod
    def layers_of(tensors: Mapping[str, FloatArray], width: int, numbers: Iterable[Any]) -> Layers:
        """The layers of a file, in order, for inputs of a width.

        ValueError where one doesn't fit the one before, or a number of the card is none above 0.
        """
        count = len(tensors) // 2
        if any(type(number) is not int or number < 1 for number in numbers) or count < 1 or len(tensors) != 2 * count:
            raise ValueError
        layers = [(tensors[f"layers.{number}.weight"], tensors[f"layers.{number}.bias"]) for number in range(count)]
        for weights, biases in layers:
            if weights.dtype.kind != "f" or weights.shape != (*biases.shape, width):
                raise ValueError
            if not (np.isfinite(weights).all() and np.isfinite(biases).all()):
                raise ValueError
            width = len(biases)
        return layers


Activation = Callable[[FloatArray], FloatArray]

ACTIVATIONS: dict[str, Activation] = {"tanh": np.tanh, "relu": lambda x: np.maximum(x, 0)}


def outputs(layers: Layers, values: FloatArray, activation: Activation = np.tanh) -> FloatArray:
    """What a network gives for each row of values."""
    for weights, biases in layers[:-1]:
        values = activation(values @ weights.T + biases)
    weights, biases = layers[-1]
    return values @ weights.T + biases


@file_kind("learned")
class LearnedController(NetworkController):
    """Takes the network's most likely action in each state, after a first round of fixed size.

    `layers` are pairs of weights (outputs × inputs) and biases. `card` says what the network was trained for:
    budget, top, actions, first and activation are used here, the rest is for the reader.

    >>> card = {"budget": 8, "top": 2, "first": 3, "actions": [1, 2], "activation": "tanh"}
    >>> stops = LearnedController([(np.zeros((3, 4)), np.array([1, 0, 0]))], card)
    >>> stops.budget, stops.first, stops.decide(Tally(8))
    (8, 3, 3)
    """

    def __init__(self, layers: Layers, card: Mapping[str, Any]) -> None:
        super().__init__(layers, card, card["top"])
        self.budget: int = card["budget"]

    @classmethod
    def from_file(cls, tensors: dict[str, FloatArray], card: Mapping[str, Any]) -> "LearnedController":
        numbers = [card["budget"], card["top"], card["first"], *card["actions"]]
        layers = cls.layers_of(tensors, card["top"] + 2, numbers)
        known = card["activation"] in ACTIVATIONS
        if card["first"] >= card["budget"] or len(layers[-1][1]) != len(card["actions"]) + 1 or not known:
            raise ValueError
        return LearnedController(layers, card)

    def __str__(self) -> str:
        return f"the controller learned for a budget of {self.budget}"

    def check_budget(self, budget: int) -> None:
        if budget != self.budget:
            raise ControllerError(f"{self} can't serve a budget of {budget}: use its own, or train another")

    def _pass_through(self, budget: int, draws: int, *top: int) -> int:
        if draws < self.first:
            return self.first - draws
        seen = state(np.array(top), np.array(draws), budget).astype(np.float32)
        return self._asked[outputs(self.layers, seen, ACTIVATIONS[self.card["activation"]]).argmax()]
