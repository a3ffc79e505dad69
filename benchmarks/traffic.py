"""Chat traffic that no rule was written for, through the gateway with its defaults: what it costs, what it elects.

python benchmarks/traffic.py [CORPUS.jsonl]    samples are counted at the upstream, also those that no reply tells of
"""

import json
import random
import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import httpx

from suffice.answers import Keys
from suffice.answers.requests import read_request
from suffice.answers.spelling import spelled
from suffice.testing import FakeServer, Reply, completion

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))
RUNS = 12


def main() -> None:
    from helpers.gateways import gateway

    path = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "tests" / "corpus" / "heldout.jsonl"
    kinds = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    by_messages = {json.dumps(kind["messages"]): kind for kind in kinds}
    chance = random.Random(7)
    said: list[tuple[bytes, list[str]]] = []

    def script(request: dict[str, Any], number: int) -> Reply:
        kind = by_messages[json.dumps(request["messages"])]
        texts = [chance.choice(kind["responses"])["text"] for _ in range(request.get("n", 1))]
        said.append((json.dumps(completion(texts)).encode(), texts))
        return Reply(said[-1][0])

    costs, exact, voted, right, clear = [], [], [], [], []
    with redirect_stdout(StringIO()), FakeServer(script, remember=False) as server, gateway(server, vote="auto") as url:
        for kind in kinds * RUNS:
            said.clear()
            body = {"model": "fake", "messages": kind["messages"]}
            reply = httpx.post(f"{url}/v1/chat/completions", json=body, timeout=60)
            drawn = [text for _, texts in said for text in texts]
            if not kind["vote"]:
                costs.append(len(drawn))
                exact.append(reply.content == said[0][0])
                continue
            keys = Keys()
            elected = keys.key(reply.json().get("suffice", {}).get("answer"))
            wanted = (kind["answer"], spelled(kind["answer"], read_request(kind["messages"])))
            voted.append(elected is not None)
            right.append(elected is not None and elected in map(keys.key, wanted))
            good = {one["text"] for one in kind["responses"] if one["answer"] == kind["answer"]}
            clear.append(2 * sum(text in good for text in drawn) > len(drawn))
    print(f"without an answer: {sum(costs) / len(costs):.2f} samples, {sum(exact) / len(exact):.1%} byte for byte")
    both = sum(a and b for a, b in zip(right, clear, strict=True)) / sum(clear)
    print(f"with one: {sum(voted) / len(voted):.1%} voted on, {sum(right) / len(right):.1%} right")
    print(f"where most samples are right: {both:.1%} right")


if __name__ == "__main__":
    main()
