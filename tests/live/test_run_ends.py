"""The sentences that `run` ends with: what it took over one response, what was never settled, what the rest saved."""

from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from helpers.batches import read_lines, url, write_lines
from helpers.commands import fails, works
from helpers.live import boxed
from helpers.panels import panel_file

from suffice.testing import FakeServer, Reply
from suffice.testing.replies import completion

LONG = "So, all things considered, and after I have looked at it from every side, it can only be this one: "
SAID = {"mute": cycle(["I can't tell."]), "copy": cycle([LONG + boxed(3)]), "turn": cycle([boxed(7), *[boxed(8)] * 9])}


def script(request: dict[str, Any], number: int) -> str:
    asked = str(request["messages"])
    return next((next(said) for name, said in SAID.items() if name in asked), boxed(1))


@pytest.mark.parametrize("names", [["mute", "copy", "turn", "one", "two"], ["mute"] * 3])
def test_it_ends_with_what_happened(names: list[str], tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    asked = [{"id": str(number), "question": f"What is {name}?"} for number, name in enumerate(names)]
    questions = write_lines(tmp_path / "questions.jsonl", asked)
    prices = ["--price-per-million-tokens", "100", "--price-per-million-prompt-tokens", "10"]
    with FakeServer(script) as server:
        said = works("run", questions, "--out", out, *url(server), "--controller", "asc", *prices)
    lines = read_lines(out)
    more = sum(line["samples"] - 1 for line in lines)
    # A response has 10 tokens; every draw of asc sends its prompt of 5.
    cost = f"{more * 10 / len(lines):.0f} tokens and {more * 5 / len(lines):.0f} of prompts sent again each"
    money = f"for {more * (10 * 100 + 5 * 10) / 1e6:.4f} in all"
    assert f"Over one response: +{more / len(lines):.1f} samples, {cost}, {money};" in said
    if set(names) == {"mute"}:
        assert "Of these 3 had no answer." in said and "saved" not in said.lower()
        return
    assert "20% of answers changed" in said
    assert "Of these 1 had no answer, 1 came back the same to the letter, which is no evidence." in said
    rest = [line for line in lines if line["stop_reason"] in ("controller", "budget")]
    saved, drawn = (sum(line[name] for line in rest) for name in ("samples_saved", "samples"))
    assert saved + drawn == 3 * 32
    assert f"The other 3 saved {saved} of 96 samples ({saved / 96:.0%}) of the budget" in said
    again = sum(line["over_one"]["prompt_tokens"] for line in rest)
    assert f"; with prompts sent again it took {10 * saved - again} tokens less." in said


@pytest.mark.parametrize("command", [["run", "--controller", "sc:draws=4"], ["collect", "--samples", "4"]])
def test_responses_that_were_cut_off_are_told(command: list[str], tmp_path: Path) -> None:
    def cuts_some_off(request: dict[str, Any], number: int) -> Reply:
        ends = "stop" if "one" in str(request["messages"]) else "length"
        return Reply(completion([boxed(1) if ends == "stop" else "So it is"] * request.get("n", 1), finish_reason=ends))

    asked = [{"id": name, "question": f"What is {name}?"} for name in ("one", "two")]
    questions = write_lines(tmp_path / "questions.jsonl", asked)
    with FakeServer(cuts_some_off) as server:
        said = works(command[0], questions, "--out", tmp_path / "out.jsonl", *url(server), *command[1:])
    assert "4 of 8 responses were cut off before their answer: --max-tokens is too small" in said


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (["--budget", "600"], "budget"),
        (["--controller", "rl", "--budget", "300"], "budget"),
        (["--panel", "--answer", "json"], "fields of JSON"),
    ],
)
def test_what_is_refused_leaves_nothing_behind(wrong: list[str], said: str, tmp_path: Path) -> None:
    questions = write_lines(tmp_path / "questions.jsonl", [{"id": "one", "question": "What is one?"}])
    with FakeServer(script) as server:
        panel = str(panel_file(tmp_path, small=server.base_url, large=server.base_url))
        options = ["--panel", panel, *wrong[1:]] if wrong[0] == "--panel" else [*url(server), *wrong]
        assert said in fails("run", questions, "--out", tmp_path / "out.jsonl", *options)
    assert sorted(tmp_path.iterdir()) == sorted([questions, Path(panel)])
