"""A panel behind the gateway: asked for by its name as a model, with voters at two upstreams."""

import time
from itertools import cycle, repeat
from pathlib import Path
from typing import Any

import httpx
import pytest
from helpers.gateways import gateway, logged, post
from helpers.panels import down, panel_file, saying, wavering

from suffice.testing import FakeServer, Reply, completion

pytestmark = pytest.mark.usefixtures("quick")

sure = saying(repeat(42))


def asked(model: str = "both", content: str = "What is 6 * 7?", **more: Any) -> dict[str, Any]:
    return {"model": model, "messages": [{"role": "user", "content": content}], **more}


def test_clients_ask_for_the_panel_by_its_name(tmp_path: Path, capfd: Any) -> None:
    with FakeServer(saying(cycle([7, 8]))) as small, FakeServer(sure) as large, FakeServer(sure) as other:
        path = panel_file(tmp_path, small=small.base_url, large=large.base_url)
        with gateway(other, panel=str(path), vote="auto") as url:
            reply = post(url, asked()).json()
            models = {one["id"] for one in httpx.get(f"{url}/v1/models", trust_env=False).json()["data"]}
            streamed = post(url, asked(stream=True)).text
            alone = post(url, asked("fake", suffice={"controller": "sc:draws=2"})).json()
    assert reply["suffice"]["answer"] == "42"
    assert reply["suffice"]["by_voter"] == {"small": {"7": 1, "8": 1}, "large": {"42": 2}}
    assert "42" in reply["choices"][0]["message"]["content"]
    assert {"both", "fake"} <= models and '"by_voter"' in streamed
    assert "by_voter" not in alone["suffice"] and {one["model"] for one in other.requests} == {"fake"}
    assert {one["model"] for one in large.requests} == {"large-model"}
    voted, _, single = logged(capfd, kind="vote")
    assert voted["upstream"] in ("upstream-2", "upstream-3") and single["upstream"] == "upstream-1"


def test_a_voter_that_is_down_is_left_out(tmp_path: Path) -> None:
    with FakeServer(down) as small, FakeServer(sure) as large:
        path = panel_file(tmp_path, small=small.base_url, large=large.base_url)
        with gateway([], panel=str(path)) as url:
            told = post(url, asked()).json()["suffice"]
    assert told["answer"] == "42" and set(told["by_voter"]) == {"large"} and told["failures"] > 0


def test_whoever_was_dead_a_moment_ago_is_not_asked_by_the_next_vote(tmp_path: Path) -> None:
    with FakeServer(wavering) as small, FakeServer(down, models=()) as large:
        path = panel_file(tmp_path, small=small.base_url, large=large.base_url)
        with gateway([], panel=str(path), patience=5.0) as url:
            told = [post(url, asked()).json()["suffice"] for _ in range(3)]
    assert len(large.requests) == 1
    assert all(one["failures"] == 1 and one["stop_reason"] == "controller" for one in told)


def test_what_is_no_question_to_vote_on_is_asked_once(tmp_path: Path) -> None:
    with FakeServer(lambda request, number: "Roses are red.") as small, FakeServer(sure) as large:
        path = panel_file(tmp_path, small=small.base_url, large=large.base_url)
        with gateway([], panel=str(path), vote="auto") as url:
            reply = post(url, asked(content="Write a poem about the sea.")).json()
    assert reply["choices"][0]["message"]["content"] == "Roses are red."
    assert len(small.requests) == 1 and not large.requests


POEM = " ".join(["Roses are red and violets are blue, and so on."] * 12)


def test_what_nobody_votes_on_streams_from_the_first_voter(tmp_path: Path) -> None:
    slow = Reply(completion([POEM]), delay=2.0)
    with FakeServer(lambda request, number: slow, streams=True) as small, FakeServer(sure) as large:
        path = panel_file(tmp_path, small=small.base_url, large=large.base_url)
        path.write_text(path.read_text().replace("price = 1", 'price = 1\nsystem = "Be brief."'))
        with gateway([], panel=str(path), vote="auto") as url:
            begun = time.monotonic()
            stream = {
                "json": asked(content="Write a poem about the sea.", stream=True),
                "trust_env": False,
                "timeout": 30,
            }
            with httpx.stream("POST", f"{url}/v1/chat/completions", **stream) as reply:  # type: ignore[arg-type]
                pieces = reply.iter_text()
                first = next(piece for piece in pieces if "Roses" in piece)
                waited = time.monotonic() - begun
                whole = first + "".join(pieces)
    assert waited < 1.5 and reply.headers["x-suffice-no-vote"] == "no answer"
    assert whole.count('"content"') > 100 and len(small.requests) == 1 and not large.requests
    assert small.requests[0]["model"] == "small-model" and small.requests[0]["stream"]
    assert small.requests[0]["messages"][0] == {"role": "system", "content": "Be brief."}


def test_the_vote_goes_on_from_the_first_voters_draw(tmp_path: Path) -> None:
    with FakeServer(saying(cycle([7, 8]))) as small, FakeServer(sure) as large:
        path = panel_file(tmp_path, small=small.base_url, large=large.base_url)
        with gateway([], panel=str(path), vote="auto") as url:
            told = post(url, asked()).json()["suffice"]
    assert told["by_voter"] == {"small": {"7": 1, "8": 1}, "large": {"42": 2}} and told["draws"] == [1, 1, 1, 1]
    assert len(small.requests) == 2


def test_what_nobody_votes_on_goes_to_the_next_where_the_first_is_dead(tmp_path: Path) -> None:
    with FakeServer(lambda request, number: "Roses are red.") as large:
        path = panel_file(tmp_path, small="http://127.0.0.1:9/v1", large=large.base_url)
        with gateway([], panel=str(path), vote="auto") as url:
            replies = [post(url, asked(content=text)).json() for text in ("Write a poem.", "Tell me of Rome.")]
    assert [one["choices"][0]["message"]["content"] for one in replies] == ["Roses are red."] * 2
    assert len(large.requests) == 2 and {one["model"] for one in large.requests} == {"large-model"}


def test_what_a_panel_does_not_do_it_says_in_a_sentence(tmp_path: Path) -> None:
    tool = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
    with FakeServer(sure) as small, FakeServer(sure) as large:
        path = panel_file(tmp_path, small=small.base_url, large=large.base_url)
        with gateway([], panel=str(path)) as url:
            for more in ({"tools": [tool]}, {"response_format": {"type": "json_object"}}):
                refused = post(url, asked(**more))
                assert refused.status_code == 400 and "a panel votes on answers alone" in refused.text
            for name, value in {"controller": "asc", "elect": "majority", "flow": True, "learn": True}.items():
                refused = post(url, asked(suffice={name: value}))
                assert refused.status_code == 400 and f"leave {name} out" in refused.text
            once = post(url, asked(suffice={"controller": "off"})).json()
            assert len(small.requests) == 1 and not large.requests and "42" in once["choices"][0]["message"]["content"]
