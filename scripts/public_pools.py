"""Makes our pools of clones of the repositories that published the answers (docs/pools.md#public-pools).

    python scripts/public_pools.py OUT [--autotts CLONE] [--boinf CLONE]

Each file is told with its SHA-256, and whether it is that of the pool that published figures were measured on: where it
is not, equal answers may have been merged otherwise.
"""

import argparse
import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from suffice.answers import Keys

AUTOTTS = Path("efficient_reasoning_controller") / "test_environment"
BOINF = Path("boinf") / "jsonl"

MEASURED = {
    "qwen3-0.6b__aime24": "a8d00ca3ddc838cf583dab74558cfbcbec42812723d35057a4d19afd8aba7cb1",
    "qwen3-0.6b__aime25": "eb93b5bbe2f63de3256577e2821d5194b00bf1370515078a4938d4b601340622",
    "qwen3-0.6b__hmmt25": "85c1bca9b2318017daa0ba1c8a17c25284ebfbeefb944299cb922ea08e780f5e",
    "qwen3-1.7b__aime24": "f7570fd1ee3b7c1584708c9fd322a51172465fb9e2f0b9b3e7e6e524a498a3c4",
    "qwen3-1.7b__aime25": "dac63b93abf07fe70ff666dc55e75867af06e4523ffbc89d8509ff22ba09891a",
    "qwen3-1.7b__hmmt25": "d0705558fd4c5c9ef75ac013c498edbc8ed55da0a0179faa418f7e7b8936d708",
    "qwen3-4b__aime24": "81958d742c5023d23e19ca8bbb0a139ab49d7de9c7e2c4b173e60334ac848f76",
    "qwen3-4b__aime25": "a2e36e7ff945ea1af8cc4843b0cc338fd829bc5fae053eef360ab8d677bcea9e",
    "qwen3-4b__hmmt25": "4464c5afbd907fff48d9ceda406108e58ee4f0dfd48c8ec6587379f78a481d81",
    "datarus-r1-14b-preview__aime24": "6fee0da2a3994cfba633aea168722313d0c8d57c5954e6e37eba7ba6a9fb17b1",
    "datarus-r1-14b-preview__aime25": "3aab79bb3bc4c7797ebe8a86b2598cc90f037bfe21e35bce6fa119fbb6a1dba1",
    "nvidia-nemotron-nano-9b-v2__aime24": "740c57d217bb1205473c08f27c0fda864f6ea7b96be47ed5a4bc1ec77c7e43dd",
    "nvidia-nemotron-nano-9b-v2__aime25": "13c4101f3be0c2d44f02009171583fac41c41fa07833a2a1c59d6a49062c28be",
    "exaone-deep-32b__gpqa-diamond": "9e6af751311f33fd63f35405e50b76fcf4af64746fb8852d3e3ac56f58cde110",
    "phi-4-reasoning__math500": "2a19ae77ac64e12ad65255f49e85dc0be9b55092649db48f340774f633e7d48d",
}

BOINF_NAMES = {"aime2024": "aime24", "aime2025": "aime25", "gpqa_diamond": "gpqa-diamond", "math500": "math500"}
BOINF_AIME24 = (
    *(18, 26, 3, 2, 7, 11, 10, 25, 1, 20, 6, 17, 0, 21, 5),
    *(12, 14, 29, 24, 23, 28, 19, 8, 16, 15, 9, 22, 13, 4, 27),
)
"""Its order of the questions of AIME24, by their places in AutoTTS's: equal ids are equal questions."""

NO_ANSWER = ("", "ERR", None)

Line = dict[str, Any]


def line(name: str, gold: str, answers: Sequence[str | None], tokens: Sequence[int]) -> Line:
    """A question of a pool: answers that are equal get one form, gold's where it is among them."""
    keys = Keys()
    right = keys.key(gold)
    told = [None if answer in NO_ANSWER else keys.key(str(answer)) for answer in answers]
    return {"id": name, "gold": right, "answers": told, "tokens": list(tokens)}


def autotts(clone: Path) -> Iterator[tuple[str, list[Line]]]:
    """The pools of Qwen3."""
    for path in sorted((clone / AUTOTTS).glob("*/*.json")):
        questions = json.loads(path.read_text())
        yield (
            f"{path.parent.name.lower()}__{path.stem}",
            [
                line(
                    f"{path.stem}/{number}",
                    str(one["gold_answer"]),
                    one["final_answers_trace"],
                    [branch[1] for branch in one["each_branch"]],
                )
                for number, one in enumerate(questions)
            ],
        )


def boinf(clone: Path) -> Iterator[tuple[str, list[Line]]]:
    """The pools of larger models."""
    for path in sorted((clone / BOINF).glob("analysis_*.jsonl")):
        benchmark = next((one for one in BOINF_NAMES if path.stem.startswith(f"analysis_{one}_")), None)
        if benchmark is None:
            continue
        model, name = path.stem.removeprefix(f"analysis_{benchmark}_").lower(), BOINF_NAMES[benchmark]
        lines = []
        for one in map(json.loads, path.read_text().splitlines()):
            place = BOINF_AIME24[one["problem_num"]] if name == "aime24" else one["problem_num"]
            answers, tokens = zip(*one["all_answers"], strict=True)
            lines.append(line(f"{name}/{place}", str(one["gold_answer"]), answers, tokens))
        yield f"{model}__{name}", lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--autotts", type=Path)
    parser.add_argument("--boinf", type=Path)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    for clone, pools in ((given.autotts, autotts), (given.boinf, boinf)):
        for name, lines in pools(clone) if clone else ():
            text = "".join(json.dumps(one, separators=(",", ":")) + "\n" for one in lines)
            (given.out / f"{name}.jsonl").write_text(text)
            found = hashlib.sha256(text.encode()).hexdigest()
            measured = {None: "", found: ", as measured"}.get(MEASURED.get(name), ", not the file that was measured")
            print(f"{name}.jsonl: {len(lines)} questions, {found}{measured}")


if __name__ == "__main__":
    main()
