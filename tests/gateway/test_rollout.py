"""The steps of docs/rollout.md, as they stand there, on the embedded model."""

import json
import re
import shlex
from pathlib import Path

import httpx
import pytest
from helpers.pages import ROOT, blocks, commands
from helpers.serving import serving

pytestmark = pytest.mark.slow

PAGE = ROOT / "docs/rollout.md"
STEPS = [command.words[1:] for command in commands(PAGE) if command.words[0] == "serve"]
ASKED = json.loads(next(word for word in shlex.split(blocks(PAGE, "sh")[0]) if word.startswith('{"messages"')))
SAID = {
    "--vote shadow": ("shadow", r"auto would vote on 100 % of requests"),
    "--vote asked --audit 0.05": ("not asked", r"there was no vote"),
    "--config suffice.toml": (None, r"\+\d+\.\d samples a request on 100 % of the traffic"),
    "--vote auto --over-one 0.5": (None, r"over one response in the last hour, of 50 % at most"),
}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("step", STEPS, ids=" ".join)
def test_every_step_does_what_it_says(step: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("suffice.toml").write_text(blocks(PAGE, "toml")[0])
    no_vote, said = SAID[" ".join(step)]
    body = ASKED | {"model": "SmolLM2-135M-Instruct", "max_tokens": 16}
    with serving(*step) as (url, _):
        reply = httpx.post(f"{url}/v1/chat/completions", json=body, timeout=300)
        told = httpx.get(f"{url}/v1/suffice/recent").json()["costs"]
    assert reply.headers.get("x-suffice-no-vote") == no_vote
    assert any(re.search(said, sentence) for sentence in told.values() if isinstance(sentence, str)), told
