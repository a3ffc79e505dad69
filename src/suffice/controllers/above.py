"""Rooms that stand on this one and have controllers too: they register them when they are imported."""

import importlib

ROOMS = ("suffice.planning",)


def import_rooms() -> None:
    """Have all controllers of ours registered, before one is looked for by its name or in a file."""
    for room in ROOMS:
        importlib.import_module(room)
