"""Advice on a question on which all agree, in responses of 10 tokens: what is cheap and what is quick is known."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers.commands import works
from helpers.pools import make_pool

import suffice

SETTLED = make_pool("a" * 32)

# asc stops after four that agree: one after the other they take 40 tokens of time, and no more in all; with four more
# than are asked for on their way, all five arrive at 10, and the fifth was for nothing.
CHEAP, QUICK = (40, 40), (10, 50)


@pytest.mark.parametrize(
    ("limit", "found"),
    [
        ({"max_latency": 1000}, CHEAP),
        ({"max_latency": 40}, CHEAP),
        ({"max_latency": 10}, QUICK),
        ({"max_tokens": 1000}, QUICK),
        ({"max_tokens": 50}, QUICK),
        ({"max_tokens": 40}, CHEAP),
        ({"max_tokens": 1000, "slots": 1}, CHEAP),
    ],
)
def test_the_cheapest_in_time_or_the_quickest_in_budget(limit: dict[str, Any], found: tuple[int, int]) -> None:
    advice = suffice.advise(SETTLED, ["asc"], repeats=2, **limit)
    assert (advice.chosen.latency, advice.chosen.tokens) == found
    front = [(choice.latency, choice.tokens) for choice in advice.front]
    assert front[0] == (CHEAP if "slots" in limit else QUICK) and front[-1] == CHEAP


def test_asking_once_is_told_beside_it_and_never_advised() -> None:
    divided = make_pool("ab" * 16)
    advice = suffice.advise(divided, ["sc"], max_tokens=1000, repeats=20)
    assert (advice.once.tokens, advice.once.latency) == (10, 10) and 30 < advice.once.agreement < 70
    assert advice.once not in advice.choices and advice.once.accuracy == pytest.approx(50, abs=20)


@pytest.mark.parametrize(("seconds", "found"), [("2.5", QUICK), ("10", CHEAP)])
def test_a_latency_in_seconds_is_so_many_tokens(
    write_pool: Callable[..., Path], tmp_path: Path, seconds: str, found: tuple[int, int]
) -> None:
    path = write_pool({"id": "q", "gold": "1", "answers": ["1"] * 32, "tokens": [10] * 32})
    options = ["--controller", "asc", "--tokens-per-second", "4", "--max-latency", seconds, "--repeats", "1"]
    said = works("advise", path, *options, "--json", tmp_path / "a.json").splitlines()[-1]
    chosen = json.loads((tmp_path / "a.json").read_text())["chosen"]
    assert (chosen["latency_tokens"], chosen["spent_tokens"]) == found
    assert said.startswith("Use --") and ("extra=4 " in said) == (found == QUICK) and "--controller asc" in said
