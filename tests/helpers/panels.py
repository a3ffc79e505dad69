"""Voters that are made up: how often each is right, and what it says where it is not."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from helpers.live import boxed
from suffice.panel import PoolVoter
from suffice.pools import Pool, Question
from suffice.testing import Reply, Script

HARD = 0.4
"""The share of questions on which the small voter mostly errs."""


def made_voter(name: str, price: float, right_if_hard: float, questions: int = 60, gold: bool = True) -> PoolVoter:
    """Right nearly always on easy questions and as often as said on hard ones; wrong answers are spread."""
    random = np.random.default_rng([len(name), questions])
    made = []
    for number in range(questions):
        right = right_if_hard if number < HARD * questions else 0.97
        wrong = random.integers(1, 5, 40)
        answers = tuple(
            "right" if chance < right else f"wrong {wrong[place]}" for place, chance in enumerate(random.random(40))
        )
        made.append(Question(f"q{number}", "right" if gold else None, answers, (100,) * 40))
    return PoolVoter(name, price, Pool(name, tuple(made)))


def small_and_large(gold: bool = True) -> list[PoolVoter]:
    """A cheap voter that is weak on hard questions, and a dear one that is not."""
    return [made_voter("small", 1, 0.3, gold=gold), made_voter("large", 20, 0.85, gold=gold)]


def written(voter: PoolVoter, folder: Path) -> str:
    """The voter as an option of the command line."""
    path = folder / f"{voter.name}.jsonl"
    rows = [{"id": one.id, "gold": one.gold, "answers": one.answers, "tokens": one.tokens} for one in voter.pool]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return f"{voter.name}={path},price={voter.price:g}"


def saying(answers: Iterable[object]) -> Script:
    """One answer after the other, in however many requests."""
    left = iter(answers)
    return lambda request, number: [boxed(next(left)) for _ in range(request.get("n", 1))]


def down(request: dict[str, Any], number: int) -> Reply:
    return Reply({"error": {"message": "out of order"}}, 401)


def wavering(request: dict[str, Any], number: int) -> list[str]:
    """7 and 8 in turn, from one request."""
    return [boxed(7 + place % 2) for place in range(request.get("n", 1))]


def panel_file(folder: Path, controller: str = "cascade:first=2,then=3", **servers: str) -> Path:
    """A panel of voters at these addresses, the first the cheapest."""
    path = folder / "panel.toml"
    tables = [
        f'[[voter]]\nname = "{name}"\nmodel = "{name}-model"\nbase_url = "{url}"\nprice = {price}\n'
        for price, (name, url) in enumerate(servers.items(), 1)
    ]
    path.write_text(f'name = "both"\ncontroller = "{controller}"\n' + "".join(tables))
    return path
