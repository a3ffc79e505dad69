"""One look for all pictures: a colour and a marker for each method, told apart by the colour-blind too."""

import re

BLACK, ORANGE, SKY, GREEN = "#6e6e6e", "#e69f00", "#56b4e9", "#009e73"
YELLOW, BLUE, RED, PURPLE = "#b5a900", "#0072b2", "#d55e00", "#cc79a7"
BROWN, VIOLET = "#8c5a2b", "#7a5bd0"
"""The palette of Okabe and Ito, to be read on white and on black; and two more."""

LOOKS = {
    "once": (PURPLE, "X"),
    "sc": (BLACK, "s"),
    "asc": (ORANGE, "^"),
    "esc": (GREEN, "D"),
    "rl": (BLUE, "o"),
    "plan": (RED, "*"),
    "rl_rounds": (SKY, "v"),
    "doubling": (SKY, "v"),
    "boinf": (PURPLE, "P"),
    "rounds": (BLACK, "s"),
    "flow": (BLUE, "o"),
    "advised": (RED, "*"),
    "front": (BLACK, "o"),
    "without": (BLACK, "s"),
    "learning": (RED, "*"),
    "right": (GREEN, "o"),
    "wrong": (RED, "X"),
}
"""A colour and one of Matplotlib's markers for what has its own."""

OTHERS = [
    *((SKY, "v"), (PURPLE, "P"), (YELLOW, "X"), (BROWN, "<"), (VIOLET, ">")),
    *((GREEN, "<"), (ORANGE, ">"), (BLUE, "D"), (RED, "s"), (BLACK, "o")),
]
"""All else takes these in turn, new colours first, then each colour with the next marker."""


def looks(names: list[str]) -> list[tuple[str, str]]:
    """A colour and a marker a name: those of its first word, or the next free ones.

    >>> looks(["plan", "plan:penalty_draw=0.01"])
    [('#d55e00', '*'), ('#56b4e9', 'v')]
    >>> len(set(looks([f"seed {number}" for number in range(12)])))
    12
    >>> len({colour for colour, _ in looks(["once", "sc", "asc", "esc", "rl", "plan", "4", "8", "16", "24"])})
    10
    """
    many = len(OTHERS)
    others = [(OTHERS[place % many][0], OTHERS[(place + place // many) % many][1]) for place in range(many**2)]
    found: list[tuple[str, str]] = []
    for name in names:
        own = LOOKS.get(re.split("[:, ]", name)[0])
        free = [look for look in (own, *others) if look and look not in found]
        new = [look for look in free if look == own or look[0] not in [colour for colour, _ in found]]
        found.append([*new, *free, *others][0])
    return found
