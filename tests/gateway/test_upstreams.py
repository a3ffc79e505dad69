"""Several upstreams behind one gateway: which of them is asked, and what becomes of those that fail."""

import asyncio
import socket
import threading
from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from helpers.commands import fails, works
from helpers.gateways import ASK, always, free_port, gateway, post
from helpers.live import boxed, until

from suffice.gateway.settings import with_file
from suffice.live.servers import hosts as fleet
from suffice.testing import FakeServer, Reply, completion

pytestmark = pytest.mark.usefixtures("quick")


def split(request: dict[str, Any], number: int) -> list[str | None]:
    """Answers that differ, so that a vote takes several rounds."""
    return [boxed(number * 100 + place) for place in range(request.get("n", 1))]


def question(number: int) -> dict[str, Any]:
    return ASK | {"messages": [{"role": "user", "content": f"question {number}"}]}


def asked(server: FakeServer) -> dict[str, int]:
    """How many draws each question had at a server."""
    draws: dict[str, int] = defaultdict(int)
    for request in server.requests:
        draws[request["messages"][-1]["content"]] += request.get("n", 1)
    return draws


def recent(url: str) -> list[dict[str, Any]]:
    told: list[dict[str, Any]] = httpx.get(f"{url}/v1/suffice/recent").json()["upstreams"]
    return told


def test_all_draws_of_a_question_go_to_one_server_and_questions_are_spread() -> None:
    with (
        FakeServer(split) as one,
        FakeServer(split) as other,
        gateway([one.base_url, other.base_url], controller="esc:window=2", budget=8) as url,
    ):
        for number in range(8):
            assert post(url, question(number)).json()["suffice"]["samples"] == 8
    first, second = asked(one), asked(other)
    assert len(first) == len(second) == 4 and not set(first) & set(second)
    assert set(first.values()) | set(second.values()) == {8}


def test_weights_keys_and_models_are_by_upstream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-usual")
    monkeypatch.setenv("OTHER_KEY", "sk-other")
    with FakeServer(always, models=["a", "b", "hidden"]) as one, FakeServer(always, models=["b", "c"]) as other:
        upstreams = [f"{one.base_url} weight=3 models=a,b", {"url": other.base_url, "key_env": "OTHER_KEY"}]
        with gateway(upstreams, controller="sc:draws=1") as url:
            models = httpx.get(f"{url}/v1/models").json()
            assert [model["id"] for model in models["data"]] == ["a", "b", "c"]
            for _ in range(8):
                assert post(url, ASK | {"model": "b"}).status_code == 200
            for model in ("a+vote", "c"):
                assert post(url, ASK | {"model": model}).status_code == 200
            assert post(url, ASK | {"model": "c", "n": 2}).status_code == 200
            assert httpx.post(f"{url}/v1/embeddings", json={"model": "c", "input": "x"}).status_code == 200
    models_asked = [[request["model"] for request in server.requests] for server in (one, other)]
    assert models_asked[0].count("b") == 6 and models_asked[1].count("b") == 2
    assert {"a+vote", "c"} & set(models_asked[0]) <= {"a+vote"} and models_asked[1].count("c") == 3
    assert {headers["authorization"] for headers in one.headers} == {"Bearer sk-usual"}
    assert {headers["authorization"] for headers in other.headers} == {"Bearer sk-other"}


@pytest.mark.parametrize("body", [ASK, ASK | {"stream": True}, ASK | {"n": 2}], ids=["vote", "streamed", "relay"])
@pytest.mark.parametrize("vote", ["always", "auto"])
def test_nobody_notices_an_upstream_that_is_down_or_refuses_us(body: dict[str, Any], vote: str) -> None:
    gone = f"http://127.0.0.1:{free_port()}/v1"
    refuses = lambda request, number: Reply({"error": {"message": "no such key"}}, 401)  # noqa: E731
    with (
        FakeServer(always, streams=True) as good,
        FakeServer(refuses, models=[]) as closed,
        gateway([gone, closed.base_url, good.base_url], retries=0, vote=vote) as url,
    ):
        for _ in range(6):
            reply = post(url, body)
            assert reply.status_code == 200 and "42" in reply.text, reply.text
        if body == ASK:
            assert [one["healthy"] for one in recent(url)] == [False, False, True]


def test_one_that_takes_no_connection_is_set_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("suffice.gateway.fleet.upstreams.CONNECT_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full, ExitStack() as waiting, FakeServer(always) as good:
        address = full.getsockname()
        for _ in range(4):
            one = waiting.enter_context(socket.socket())
            one.setblocking(False)
            one.connect_ex(address)
        with gateway([f"http://127.0.0.1:{address[1]}/v1", good.base_url]) as url:
            assert {post(url, question(number)).status_code for number in range(3)} == {200}
            assert [one["healthy"] for one in recent(url)] == [False, True]


def test_one_that_is_down_is_set_aside_and_returns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet, "ASIDE_SECONDS", 0.05)
    port = free_port()
    gone = f"http://127.0.0.1:{port}/v1"
    with FakeServer(always) as good, gateway([gone, good.base_url], controller="sc:draws=1") as url:
        for number in range(4):
            assert post(url, question(number)).status_code == 200
        assert [one["healthy"] for one in recent(url)] == [False, True]
        assert 'suffice_upstream_healthy{upstream="upstream-2"} 1.0' in httpx.get(f"{url}/metrics").text
        with FakeServer(always, port=port) as back:
            assert until(lambda: recent(url)[0]["healthy"])
            for number in range(6):
                assert post(url, question(number)).status_code == 200
            assert back.served and good.served


@pytest.mark.parametrize(("models", "ready"), [([[], []], 503), ([[], ["fake"]], 200)])
def test_ready_means_that_one_of_them_lets_us_in(models: list[list[str]], ready: int) -> None:
    with (
        FakeServer(always, models=models[0]) as one,
        FakeServer(always, models=models[1]) as other,
        gateway([one.base_url, other.base_url]) as url,
    ):
        assert httpx.get(f"{url}/readyz").status_code == ready
        assert httpx.get(f"{url}/v1/models").status_code == (200 if ready == 200 else 401)


def test_a_pause_that_outlasts_the_deadline_is_told_at_once() -> None:
    busy = Reply({"error": {"message": "busy"}}, 503, {"retry-after": "600"})
    with FakeServer(lambda request, number: busy) as upstream, gateway(upstream, deadline_seconds=300) as url:
        first, second = post(url, ASK), post(url, ASK)
        assert (first.status_code, second.status_code) == (503, 429)
        assert first.headers["retry-after"] == "600" and 300 < int(second.headers["retry-after"]) <= 602
        assert upstream.served == 1, "nobody asks before the pause is over"
    with (
        FakeServer(lambda request, number: busy) as upstream,
        FakeServer(always) as other,
        gateway([upstream.base_url, other.base_url], deadline_seconds=300) as url,
    ):
        assert [post(url, ASK).status_code for _ in range(4)] == [200] * 4
        assert upstream.served == 1


def llama(request: dict[str, Any], number: int) -> Reply:
    texts: list[str | None] = [boxed("4" * (1 + 30 * place)) for place in range(request.get("n", 1))]
    return Reply(completion(texts) | {"usage": {"prompt_tokens": 5, "completion_tokens": 10}, "timings": {}})


def test_usage_is_what_is_possible_or_exact() -> None:
    body = ASK | {"max_completion_tokens": 12}
    with FakeServer(llama) as upstream, gateway(upstream, controller="sc:draws=4") as url:
        reply = post(url, body).json()
        assert reply["suffice"]["usage_estimated"] is True and reply["usage"]["completion_tokens"] == 10 + 3 * 12
    with FakeServer(llama) as upstream, gateway(upstream, controller="sc:draws=4", exact_usage=True) as url:
        reply = post(url, body).json()
        assert reply["suffice"]["usage_estimated"] is False and reply["usage"]["completion_tokens"] == 40
        assert post(url, body).json()["usage"]["completion_tokens"] == 40 and upstream.served == 8
    with FakeServer(always) as upstream, gateway(upstream, controller="sc:draws=4", exact_usage=True) as url:
        for _ in range(2):
            assert post(url, ASK).json()["usage"]["completion_tokens"] == 40
        assert upstream.served == 5, "one that counts all of them is asked for all of them"


def test_a_server_that_comes_and_goes_is_noticed_by_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet, "ASIDE_SECONDS", 0.05)
    slow = lambda request, number: Reply(completion(split(request, number)), delay=0.02)  # noqa: E731
    port, ending = free_port(), threading.Event()
    lives: list[FakeServer] = []

    def flicker() -> None:
        while not ending.is_set():
            with FakeServer(slow, port=port) as alive:
                lives.append(alive)
                ending.wait(0.4)
            ending.wait(0.2)

    async def client(http: httpx.AsyncClient, url: str, name: int) -> list[Any]:
        replies = []
        for number in range(12):
            body = question(100 * name + number)
            replies.append((await http.post(f"{url}/v1/chat/completions", json=body)).json())
        return replies

    async def clients(url: str) -> list[list[Any]]:
        async with httpx.AsyncClient(timeout=60) as http:
            return await asyncio.gather(*(client(http, url, name) for name in range(10)))

    flickering = threading.Thread(target=flicker)
    flickering.start()
    try:
        with FakeServer(slow) as steady:
            upstreams = [f"http://127.0.0.1:{port}/v1", steady.base_url]
            with gateway(upstreams, controller="esc:window=2", budget=6) as url:
                replies = [reply for each in asyncio.run(clients(url)) for reply in each]
    finally:
        ending.set()
        flickering.join()
    assert len(replies) == 120 and all(reply["suffice"]["samples"] == 6 for reply in replies)
    assert all(reply["suffice"]["failures"] == 0 and sum(reply["suffice"]["draws"]) == 6 for reply in replies)
    mortal: dict[str, int] = defaultdict(int)
    for life in lives:
        for name, draws in asked(life).items():
            mortal[name] += draws
    alone = [name for name, draws in asked(steady).items() if name not in mortal]
    assert all(asked(steady)[name] == 6 for name in alone), "what no death concerned was drawn once, in one place"
    assert len(lives) > 1 and mortal and alone


def test_settings_of_upstreams(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "suffice.toml"
    config.write_text('upstream = ["http://a", {url = "http://b/v1", weight = 2, key_env = "B_KEY", models = ["m"]}]')
    one, other = with_file({}, config).targets
    assert (one.url, one.weight, one.models, one.key) == ("http://a/v1", 1.0, (), "none")
    assert (other.url, other.weight, other.models) == ("http://b/v1", 2.0, ["m"])
    assert "B_KEY" in fails("serve", "--config", config, "--port", str(free_port()))
    monkeypatch.setenv("B_KEY", "sk-b")
    assert other.key == "sk-b"
    for bad, complaint in {
        "http://a weight=0": "weight",
        "http://a colour=red": "colour",
        "ftp://user:secret@a": "--upstream a: it must be like",
    }.items():
        said = fails("serve", "--upstream", bad)
        assert complaint in said and "secret" not in said


def test_base_urls_of_the_command_line_are_shared_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTHER_KEY", "sk-other")
    questions = tmp_path / "questions.jsonl"
    questions.write_text("".join(f'{{"id": "{number}", "question": "question {number}"}}\n' for number in range(6)))
    gone = f"http://127.0.0.1:{free_port()}/v1"
    with FakeServer(always) as one, FakeServer(always) as other:
        where = ["--base-url", one.base_url, "--base-url", f"{other.base_url} key_env=OTHER_KEY"]
        works("run", questions, "--out", tmp_path / "out.jsonl", *where, "--controller", "sc:draws=4")
        works("collect", questions, "--out", tmp_path / "pool.jsonl", *where, "--samples", "4")
        assert "42" in works("ask", "What is 6 * 7?", *where, "--base-url", gone, "--controller", "sc:draws=4")
    assert one.served and other.served
    first, second = asked(one), asked(other)
    assert {"Bearer sk-other"} == {headers["authorization"] for headers in other.headers}
    assert sum(first.values()) + sum(second.values()) == 6 * 8 + 4
