"""The pages that users read: their blocks of code, the commands in them, and the files that their reader has."""

import gzip
import json
import re
import shlex
import sys
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, chdir
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from helpers.commands import suffice
from suffice import imports
from suffice.testing import FakeServer

ROOT = Path(__file__).parents[2]
GENERATED = ("api.md", "cli.md")
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted(path for path in (ROOT / "docs").glob("*.md") if path.name not in GENERATED),
]


def blocks(page: Path, language: str) -> list[str]:
    """The blocks of code in a language, from first to last."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Command:
    """A command of ours in a block for a shell."""

    words: tuple[str, ...]
    """What follows `suffice`."""
    variables: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        return shlex.join(["suffice", *self.words])

    @property
    def out(self) -> str:
        """The file that it writes, if any."""
        return self.words[self.words.index("--out") + 1] if "--out" in self.words else ""


def commands(page: Path) -> list[Command]:
    """All that a page's blocks for a shell have."""
    return [command for block in blocks(page, "sh") for command in commands_of(block)]


def commands_of(block: str) -> Iterator[Command]:
    """The commands of a block, without what reads their output."""
    for line in block.replace("\\\n", " ").splitlines():
        if found := re.match(r"((?:\w+=\S+ )*)suffice ", line):
            lexer = shlex.shlex(line.replace("…", "x"), posix=True, punctuation_chars="|")
            lexer.whitespace_split = True
            words = list(lexer)
            words = words[: words.index("|")] if "|" in words else words
            before = words[: found[1].count(" ")]
            variables = tuple((name, value) for name, _, value in (word.partition("=") for word in before))
            yield Command(tuple(words[len(before) + 1 :]), variables)


def _questions(**more: str) -> bytes:
    lines = [{"id": f"{number}", "question": f"What is 25 + {number}?", **more} for number in range(3)]
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


def _pool(first: int, step: int = 5) -> bytes:
    """A fifth of the smallest bundled pool, or all of it; pools that begin at others share no question."""
    whole = ROOT / "src/suffice/pools/bundled/smollm2-135m__arithmetic.jsonl.gz"
    return b"".join(gzip.decompress(whole.read_bytes()).splitlines(keepends=True)[first::step])


def _inspect_log() -> bytes:
    output = {"choices": [{"message": {"content": "ANSWER: 7"}, "stop_reason": "stop"}], "completion": "ANSWER: 7"}
    sample = {"id": "q", "epoch": 1, "target": "7", "output": output, "scores": {"match": {"answer": "7"}}}
    packed = BytesIO()
    with zipfile.ZipFile(packed, "w") as log:
        log.writestr("header.json", "{}")
        log.writestr("samples/q_epoch_1.json", json.dumps(sample))
    return packed.getvalue()


def _batch_output() -> bytes:
    body = {"choices": [{"message": {"content": r"\boxed{7}"}, "finish_reason": "stop"}]}
    return json.dumps({"custom_id": "0-1", "response": {"status_code": 200, "body": body}}).encode()


PLACE = {"type": "object", "properties": {"city": {"type": "string"}, "year": {"type": "integer"}}}
FILES = {
    **dict.fromkeys(["questions.jsonl", "letters.jsonl"], _questions()),
    **dict.fromkeys(["my-pool.jsonl", "test-pool.jsonl", "mine.jsonl", "other.jsonl"], _pool(0)),
    "labelled-pool.jsonl": _pool(0, 1),
    "another.jsonl": _pool(1),
    "qwen3-0.6b__aime24.jsonl": _pool(2),
    "qwen3-0.6b__aime25.jsonl": _pool(3),
    "panel.toml": b'[[voter]]\nname = "small"\nmodel = "a"\n[[voter]]\nname = "large"\nmodel = "b"\nprice = 3\n',
    "place.json": json.dumps(PLACE | {"required": ["city", "year"]}).encode(),
    "mine.safetensors": (ROOT / "src/suffice/controllers/shipped/rl.safetensors").read_bytes(),
    "logs/2026-03-01_gsm8k.eval": _inspect_log(),
    "samples_gsm8k.jsonl": b'{"doc_id": 1, "target": "7", "resps": [["It is 7."]]}\n',
    "batch_output.jsonl": _batch_output(),
    "answers.csv": b"id,prediction\nq,7\nq,8\n",
}
"""What the reader of a page has, by the names that pages give it."""

WITH_GOLD = _questions(gold="25")
"""The questions of a reader who knows answers to them."""


def reply(request: dict[str, Any], number: int) -> str:
    """Objects where they are asked for; one response in seven says something else."""
    if "response_format" in request:
        return json.dumps({"city": "Bern", "year": 1191 + (number % 7 == 0)})
    return rf"\boxed{{{number % 7 > 0}}}"


def run(given: list[Command], folder: Path, *more: str) -> list[str]:
    """What each command prints, with more options, in a folder and with a fake server for those that it names."""
    printed = []
    with ExitStack() as stack:
        server = stack.enter_context(FakeServer(reply))
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        stack.enter_context(chdir(folder))
        patch.setenv("OPENAI_BASE_URL", server.base_url)
        patch.delenv("OPENAI_API_KEY", raising=False)
        patch.setattr(sys, "path", [*sys.path])  # what a command imports is forgotten again
        patch.setattr(imports, "IMPORTED", [])
        stack.callback(sys.modules.pop, "my_rules", None)
        for command in given:
            with pytest.MonkeyPatch.context() as own:
                for name, value in command.variables:
                    own.setenv(name, value)
                words = [word.replace("http://localhost:8000/v1", server.base_url) for word in command.words]
                done = suffice(*words, *more)
            assert done.returncode == 0, f"{command}: {done.stderr}"
            printed.append(done.stdout)
    return printed
