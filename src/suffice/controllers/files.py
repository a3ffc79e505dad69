"""Controller files: one .safetensors file with the network's weights and a card that says what it was trained for."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from suffice.controllers.learned import ACTIVATIONS, LearnedController
from suffice.errors import ControllerError
from suffice.paths import is_there, write_whole
from suffice.tally import FloatArray

FORMAT = 1
CARD = "suffice"
"""The key of the file's metadata that holds the card, as JSON."""


def save_controller(controller: LearnedController, path: Path) -> None:
    """Write a controller and its card."""
    from safetensors.numpy import save

    tensors = {
        f"layers.{number}.{name}": np.ascontiguousarray(tensor, np.float32)
        for number, layer in enumerate(controller.layers)
        for name, tensor in zip(("weight", "bias"), layer, strict=True)
    }
    write_whole(path, save(tensors, metadata={CARD: json.dumps(dict(controller.card))}))


def load_controller(path: str | Path) -> LearnedController:
    """Read a controller file."""
    from safetensors import SafetensorError, safe_open

    if not is_there(Path(path)):
        raise ControllerError(f"{path}: there is no such controller file")
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        card = json.loads(metadata[CARD])
        _check_format(path, card)
        controller = LearnedController(_layers(tensors, card), card)
    except (SafetensorError, OSError, KeyError, ValueError, TypeError):
        raise ControllerError(f"{path}: this is not a whole controller file; make one with suffice train") from None
    return controller


def _check_format(path: str | Path, card: dict[str, Any]) -> None:
    if card["format"] > FORMAT:
        raise ControllerError(f"{path}: this controller has format {card['format']}, newer than this suffice knows")


def _layers(tensors: dict[str, FloatArray], card: dict[str, Any]) -> Sequence[tuple[FloatArray, FloatArray]]:
    """The layers in order; ValueError where they don't fit each other and the card."""
    count = len(tensors) // 2
    layers = [(tensors[f"layers.{number}.weight"], tensors[f"layers.{number}.bias"]) for number in range(count)]
    width = card["top"] + 2
    for weights, biases in layers:
        if weights.shape != (len(biases), width) or not (np.isfinite(weights).all() and np.isfinite(biases).all()):
            raise ValueError
        width = len(biases)
    if width != len(card["actions"]) + 1 or card["activation"] not in ACTIVATIONS:
        raise ValueError
    return layers
