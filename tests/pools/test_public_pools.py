"""The script that makes pools of clones of public repositories, on clones of one question."""

import json
import sys
from pathlib import Path

import public_pools
import pytest

from suffice import load_pool


def test_clones_become_pools(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    autotts, boinf = tmp_path / "autotts", tmp_path / "boinf"
    theirs = autotts / public_pools.AUTOTTS / "Qwen3-4B" / "aime24.json"
    branches = [[["1", "204"], 3403, "204"], [["ERR"], 99, "ERR"], [["5"], 7, "5"]]
    question = {"gold_answer": "204", "final_answers_trace": ["204", "ERR", "204.0"], "each_branch": branches}
    others = boinf / public_pools.BOINF / "analysis_aime2024_Some-Model.jsonl"
    line = {"problem_num": 0, "gold_answer": "33", "all_answers": [["33", 3983], ["", 2245]]}
    for path, text in ((theirs, json.dumps([question])), (others, json.dumps(line) + "\n")):
        path.parent.mkdir(parents=True)
        path.write_text(text)
    (others.parent / "analysis_other_Model.jsonl").write_text("not read\n")
    clones = ["--autotts", str(autotts), "--boinf", str(boinf)]
    monkeypatch.setattr(sys, "argv", ["public_pools.py", str(tmp_path / "out"), *clones])
    public_pools.main()
    told = capsys.readouterr().out
    assert "qwen3-4b__aime24.jsonl: 1 questions" in told and "not the file that was measured" in told
    (qwen,) = load_pool(tmp_path / "out" / "qwen3-4b__aime24.jsonl").questions
    assert (qwen.id, qwen.gold, qwen.answers, qwen.tokens) == ("aime24/0", "204", ("204", None, "204"), (3403, 99, 7))
    (other,) = load_pool(tmp_path / "out" / "some-model__aime24.jsonl").questions
    assert (other.id, other.answers) == ("aime24/18", ("33", None)), "the same ids for the same questions"
