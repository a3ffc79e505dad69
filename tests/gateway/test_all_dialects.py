"""What holds for requests of every dialect: curl is answered, scouts are sent, what is no vote is passed on."""

import json
import shutil
import subprocess
from typing import Any

import pytest
from helpers.gateways import BODIES, always, answered, behind, post
from helpers.live import boxed

pytestmark = pytest.mark.usefixtures("quick")

ENDS = {
    "chat/completions": "data: [DONE]",
    "responses": 'event: response.completed\ndata: {"type": "response.completed"',
    "messages": "event: message_stop",
}


@pytest.mark.skipif(not shutil.which("curl"), reason="there is no curl here")
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("path", BODIES)
def test_curl(path: str, streamed: bool) -> None:
    with behind(always) as (_, url):
        command = ["curl", "-sSN", f"{url}/v1/{path}", "-d", json.dumps(BODIES[path] | {"stream": streamed})]
        said = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    assert json.dumps(boxed(42)) in said
    if streamed:
        assert ENDS[path] in said.strip().split("\n\n")[-1]
    else:
        assert json.loads(said)["suffice"]["answer"] == "42"


SEARCH: dict[str, str] = {"type": "web_search_20250305", "name": "web_search"}
NO_VOTE: list[tuple[str, str, dict[str, Any]]] = [
    ("responses", "previous_response_id", {"previous_response_id": "resp_1"}),
    ("responses", "conversation", {"conversation": "conv_1"}),
    ("responses", "prompt", {"prompt": {"id": "pmpt_1"}}),
    ("responses", "background", {"background": True}),
    ("responses", "store", {"store": True}),
    ("responses", "server tools", {"tools": [{"type": "web_search"}]}),
    ("responses", "tools", {"tools": [{"type": "function", "name": "book", "parameters": {}}]}),
    ("responses", "logprobs", {"include": ["message.output_text.logprobs"]}),
    ("responses", "text.format", {"text": {"format": {"type": "grammar"}}}),
    ("responses", "off", {"suffice": {"controller": "off"}}),
    ("messages", "server tools", {"tools": [SEARCH]}),
    ("messages", "server tools", {"mcp_servers": [{"type": "url", "url": "https://x.example"}]}),
    ("messages", "container", {"container": "c_1"}),
    ("messages", "tools", {"tools": [{"name": "book", "input_schema": {"type": "object"}}]}),
    ("messages", "output_config.format", {"output_config": {"format": {"type": "grammar"}}}),
    ("messages", "off", {"suffice": {"controller": "off"}}),
]


@pytest.mark.parametrize(("path", "why", "more"), NO_VOTE)
def test_what_is_no_vote_is_passed_on_and_says_why(path: str, why: str, more: dict[str, Any]) -> None:
    asked = BODIES[path] | more
    reply, upstream = answered(always, asked, path)
    assert reply.headers["x-suffice-no-vote"] == why and "suffice" not in reply.json()
    assert upstream.requests == [{name: value for name, value in asked.items() if name != "suffice"}]


STORY = "Once upon a time there was a fox who lived in a wood and slept. " * 12


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("path", ["responses", "messages"])
def test_a_look_shows_whether_there_is_anything_to_vote_on(path: str, streamed: bool) -> None:
    name, kind = ("input", "input_text") if path == "responses" else ("messages", "text")

    def asking(words: str) -> dict[str, Any]:
        return BODIES[path] | {name: [{"role": "user", "content": [{"type": kind, "text": words}]}], "stream": streamed}

    with behind(always, streams=True, vote="auto") as (upstream, url):
        assert '"samples": 4' in post(url, asking("What is 6 * 7?"), path).text and len(upstream.requests) == 4
    with behind(lambda request, number: STORY, streams=True, vote="auto") as (upstream, url):
        reply = post(url, asking("What is 6 * 7?"), path)
        assert reply.headers["x-suffice-no-vote"] == "no answer" and len(upstream.requests) == 1
        assert reply.headers["content-type"].startswith("text/event-stream" if streamed else "application/json")
        assert "suffice" not in reply.text
        if path == "responses" or not streamed:
            assert STORY.strip() in reply.text
        assert post(url, asking("Write a poem on foxes."), path).headers["x-suffice-no-vote"] == "no answer"
