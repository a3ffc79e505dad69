"""Files of questions, what commands make of them, and a server that answers them."""

import json
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from suffice.testing import FakeServer, Reply, completion


def write_lines(path: Path, records: Iterable[object]) -> Path:
    """A file with a JSON line for each."""
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def sums(folder: Path, count: int) -> Path:
    """A file of so many questions, each with its gold answer."""
    lines = [{"id": f"q{number}", "question": f"What is {number} + 1?", "gold": number + 1} for number in range(count)]
    return write_lines(folder / "questions.jsonl", lines)


def mostly_right(request: dict[str, Any], number: int) -> Reply:
    """An answer to such a question that depends on it and the seed alone, after a moment."""
    question = request["messages"][-1]["content"].split("\n")[0]
    chance = random.Random(f"{question}{request.get('seed')}")
    right = int(question.split()[2]) + 1
    texts = [rf"\boxed{{{right if chance.random() < 0.65 else chance.randint(0, 3)}}}"] * request.get("n", 1)
    return Reply(completion(texts, tokens=chance.randint(5, 50), prompt_tokens=3), delay=chance.random() * 0.02)


def drawn(journal: Path) -> list[tuple[str, int]]:
    """The draws in a journal, each by its question and number."""
    entries = read_lines(journal)[1:]
    return [(entry["id"], entry["response"]["draw"]) for entry in entries if "response" in entry]


def url(*servers: FakeServer) -> list[str]:
    """The options that name servers."""
    return [word for server in servers for word in ("--base-url", server.base_url)]
