"""What shadow foretells of traffic, and what auto then spends on the same traffic.

python benchmarks/shadow.py [CORPUS.jsonl…]    the corpora of tests/corpus by default; a line is as in traffic.py

Each kind of request comes a few times, in random order, first to a gateway in the shadow and then to one that votes.
Responses are drawn from the corpus, and have a token for every four characters.
"""

import json
import random
import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import httpx

from suffice.testing import FakeServer, Reply, completion

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))
RUNS = 4


class Upstream:
    """Says something of the corpus to whoever asks, at random."""

    def __init__(self, kinds: list[dict[str, Any]]) -> None:
        self._kinds = {json.dumps(kind["messages"]): kind for kind in kinds}
        self._chance = random.Random(7)
        self.samples = self.tokens = 0
        self.said: list[bytes] = []

    def __call__(self, request: dict[str, Any], number: int) -> Reply:
        kind = self._kinds[json.dumps(request["messages"])]
        texts = [self._chance.choice(kind["responses"])["text"] for _ in range(request.get("n") or 1)]
        cut = "length" if (request.get("max_tokens") or request.get("max_completion_tokens") or 99) <= 8 else "stop"
        tokens = sum(1 + len(text) // 4 for text in texts)
        reply = completion(texts, finish_reason=cut)
        reply["usage"] = {"prompt_tokens": 5, "completion_tokens": tokens, "total_tokens": 5 + tokens}
        self.samples, self.tokens = self.samples + len(texts), self.tokens + tokens
        self.said.append(json.dumps(reply).encode())
        return Reply(self.said[-1])


def serve(kinds: list[dict[str, Any]], vote: str) -> tuple[Upstream, dict[str, Any], int]:
    """The traffic through a gateway: what the upstream saw, what the gateway tells, how many came back otherwise."""
    from helpers.gateways import AT_FIRST_SIGHT, gateway

    traffic = kinds * RUNS
    random.Random(1).shuffle(traffic)
    upstream, others = Upstream(kinds), 0
    with (
        redirect_stdout(StringIO()),
        FakeServer(upstream, remember=False) as server,
        gateway(server, **AT_FIRST_SIGHT | {"vote": vote}) as url,
    ):
        for kind in traffic:
            body = {"model": "fake", "messages": kind["messages"], **(kind.get("extra") or {})}
            upstream.said.clear()
            reply = httpx.post(f"{url}/v1/chat/completions", json=body, timeout=60)
            others += [reply.content] != upstream.said
        return upstream, httpx.get(f"{url}/v1/suffice/recent").json(), others


def main() -> None:
    """Tell of each corpus what was foretold and what was spent."""
    named = [Path(name) for name in sys.argv[1:]]
    for path in named or [ROOT / "tests" / "corpus" / f"{name}.jsonl" for name in ("heldout", "others")]:
        kinds = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        once, told, others = serve(kinds, "shadow")
        totals = told["totals"]
        print(f"{path.stem}: {told['costs']['shadow']}")
        print(f"  shadow: {once.samples} samples for {totals['requests']} requests, {others} not byte for byte")
        auto, _, _ = serve(kinds, "auto")
        for what, foretold, spent, single in (
            ("samples", totals["expected_samples"], auto.samples, once.samples),
            ("tokens", totals["expected_tokens"], auto.tokens, once.tokens),
        ):
            print(f"  {what}: foretold {foretold:,.0f}, spent {spent:,} ({foretold / spent - 1:+.0%}), once {single:,}")


if __name__ == "__main__":
    main()
