"""One look for all pictures: a colour and a marker for each method, told apart by the colour-blind too."""

import re

BLACK, ORANGE, SKY, GREEN = "#6e6e6e", "#e69f00", "#56b4e9", "#009e73"
YELLOW, BLUE, RED, PURPLE = "#b5a900", "#0072b2", "#d55e00", "#cc79a7"
"""The palette of Okabe and Ito, black and yellow so that they can be read on white and on black."""

COLOURS = {"sc": BLACK, "asc": ORANGE, "esc": GREEN, "rl": BLUE, "plan": RED, "doubling": SKY, "boinf": PURPLE}
MARKERS = {"sc": "s", "asc": "^", "esc": "D", "rl": "o", "plan": "*", "doubling": "v", "boinf": "P"}
"""In Matplotlib's letters."""

OTHERS = [(SKY, "v"), (PURPLE, "P"), (YELLOW, "X"), (GREEN, "<"), (ORANGE, ">"), (BLUE, "D"), (RED, "s"), (BLACK, "o")]
"""What is no method of its own takes these in turn."""


def looks(names: list[str]) -> list[tuple[str, str]]:
    """A colour and a marker for each name: its method's own, which the name begins with, or the next that is free.

    >>> looks(["plan", "plan:penalty_draw=0.01"])
    [('#d55e00', '*'), ('#56b4e9', 'v')]
    """
    taken: set[tuple[str, str]] = set()
    found = []
    for number, name in enumerate(names):
        method = re.split("[:, ]", name)[0]
        own = [(COLOURS[method], MARKERS[method])] if method in COLOURS else []
        free = [look for look in own + OTHERS if look not in taken] or [OTHERS[number % len(OTHERS)]]
        taken.add(free[0])
        found.append(free[0])
    return found
