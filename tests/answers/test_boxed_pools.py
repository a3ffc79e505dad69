"""Boxed answers of the pools read as before: the new rules for other texts take nothing from them."""

from pathlib import Path

import pytest

from suffice import Pool, bundled_pools, load_pool
from suffice.answers import get_extractor
from suffice.live.prompts import get_prompt, put


def boxed_answers_are_kept(pool: Pool) -> None:
    extractor = get_extractor("auto").for_request(put("How much is it?", get_prompt("paper")), asked=False)
    for question in pool.questions:
        for answer in question.labels:
            text = f"First we add 3 and 4.\n\nSo the total is \\boxed{{{answer}}}, as in step 2."
            if answer.count("{") == answer.count("}"):
                whole = get_extractor("boxed")(text) or ""
                assert extractor(text) in (whole, whole.rpartition("=")[2].strip()), "of an equation, its end"


@pytest.mark.parametrize("name", bundled_pools())
def test_boxed_answers_of_bundled_pools_are_kept(name: str) -> None:
    boxed_answers_are_kept(load_pool(name))


def test_boxed_answers_of_other_pools_are_kept(shared_pools: Path) -> None:
    for path in sorted(shared_pools.glob("*.jsonl")):
        boxed_answers_are_kept(load_pool(path))
