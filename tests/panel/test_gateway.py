"""A panel behind the gateway: asked for by its name as a model, with voters at two upstreams."""

from pathlib import Path
from typing import Any

import httpx
import pytest
from helpers.gateways import gateway, post
from helpers.live import be_quick, boxed
from helpers.panels import panel_file

from suffice.testing import FakeServer, Reply

DOWN = Reply({"error": {"message": "out of order"}}, 401)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    be_quick(monkeypatch)


def wavering(request: dict[str, Any], number: int) -> list[str]:
    return [boxed(7 + place % 2) for place in range(request.get("n", 1))]


def sure(request: dict[str, Any], number: int) -> list[str]:
    return [boxed(42)] * request.get("n", 1)


def asked(model: str = "both", content: str = "What is 6 * 7?", **more: Any) -> dict[str, Any]:
    return {"model": model, "messages": [{"role": "user", "content": content}], **more}


def test_clients_ask_for_the_panel_by_its_name(tmp_path: Path) -> None:
    with FakeServer(wavering) as small, FakeServer(sure) as large, FakeServer(sure) as other:
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


def test_a_voter_that_is_down_is_left_out(tmp_path: Path) -> None:
    with FakeServer(lambda request, number: DOWN) as small, FakeServer(sure) as large:
        path = panel_file(tmp_path, small=small.base_url, large=large.base_url)
        with gateway([], panel=str(path)) as url:
            told = post(url, asked()).json()["suffice"]
    assert told["answer"] == "42" and set(told["by_voter"]) == {"large"} and told["failures"] > 0


def test_whoever_was_dead_a_moment_ago_is_not_asked_by_the_next_vote(tmp_path: Path) -> None:
    with FakeServer(wavering) as small, FakeServer(lambda request, number: DOWN, models=()) as large:
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
