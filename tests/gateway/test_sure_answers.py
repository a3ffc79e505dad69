"""How probable it is that a reply is right: what the gateway tells, refuses, and learns from feedback."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from helpers.gateways import ASK, behind, figures, gateway, logged, post
from helpers.keys import key_file
from helpers.labels import easy_and_hard
from helpers.live import boxed
from helpers.serving import serving

from suffice import OptionError, calibrate
from suffice.gateway import Settings
from suffice.gateway.operations import feedback, state
from suffice.testing import FakeServer, Reply, completion, message, response


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("right") / "right.json"
    calibrate(easy_and_hard(easy=0.9)).save(path)
    return str(path)


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (state, feedback):
        monkeypatch.setattr(module, "SYNC_SECONDS", 0.05)


def divided(request: dict[str, Any], number: int) -> list[str]:
    return [boxed(number + place) for place in range(request.get("n", 1))]


def numbered(request: dict[str, Any], number: int) -> Reply:
    """As servers do: each reply has an id of its own."""
    return Reply({**completion([boxed(42)] * request.get("n", 1)), "id": f"chatcmpl-{number}"})


def say(url: str, reply: httpx.Response | str, headers: dict[str, str] | None = None, **told: Any) -> httpx.Response:
    name = reply if isinstance(reply, str) else reply.json()["id"]
    body = {"id": name, **told}
    return httpx.post(f"{url}/v1/suffice/feedback", json=body, headers=headers, timeout=60, trust_env=False)


def in_force(url: str) -> dict[str, Any]:
    (kind,) = httpx.get(f"{url}/v1/suffice/audits", trust_env=False).json()["kinds"]
    return dict(kind["right"])


@pytest.fixture
def upstream() -> Iterator[FakeServer]:
    with FakeServer(numbered) as server:
        yield server


def test_a_reply_tells_it_and_so_do_log_and_figures(
    file: str, upstream: FakeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    with gateway(upstream, right=file, risk=0.1) as url:
        before = figures(url)
        reply = post(url, ASK)
        after = figures(url)
    told = reply.json()["suffice"]
    assert 0.9 < told["right"] < 1 and told["sure"] is True
    assert reply.headers["x-suffice-sure"] == "yes" and float(reply.headers["x-suffice-right"]) > 0.9
    line = next(iter(logged(capsys, kind="vote")))
    assert (line["right"], line["sure"]) == (told["right"], True)
    for name in ("suffice_right_count", 'suffice_sure_total{sure="yes"}'):
        assert after[name] == before.get(name, 0) + 1


def test_what_is_not_sure_enough_is_marked_or_refused(file: str) -> None:
    asked = {**ASK, "suffice": {"controller": "sc:draws=6"}}
    with FakeServer(divided) as server:
        with gateway(server, right=file, risk=0.1) as url:
            marked = post(url, asked)
        with gateway(server, right=file, risk=0.1, unsure="error") as url:
            refused, streamed = post(url, asked), post(url, {**asked, "stream": True})
            (spent,) = httpx.get(f"{url}/v1/suffice/recent").json()["costs"]["groups"]
    assert marked.status_code == 200 and marked.headers["x-suffice-sure"] == "no"
    assert marked.json()["suffice"]["sure"] is False
    assert refused.status_code == 422 and refused.headers["x-suffice-sure"] == "no"
    assert refused.json()["error"]["code"] == "unsure" and refused.headers["x-suffice-reply"] == "chatcmpl-0"
    assert "not sure enough for a risk of 0.1" in streamed.text
    assert (spent["votes"], spent["over_one_samples"]) == (2, 10), "what is refused was drawn all the same"


@pytest.mark.parametrize("path", ["chat/completions", "responses", "messages"])
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_an_error_names_the_reply_that_it_keeps_back(path: str, streamed: bool, file: str) -> None:
    def script(request: dict[str, Any], number: int) -> Reply:
        texts = divided(request, number)
        told = {"chat/completions": completion(texts), "responses": response(texts[0]), "messages": message(texts[0])}
        return Reply({**told[path], "id": f"reply-{number}"}, delay=0.5 if number == 0 else 0.0)

    asked = {**ASK, "suffice": {"controller": "sc:draws=6"}, "stream": streamed}
    asked |= {"input": ASK["messages"]} if path == "responses" else {"max_tokens": 99}
    with behind(script, right=file, risk=0.1, unsure="error", heartbeat_seconds=0.1) as (_, url):
        reply = httpx.post(f"{url}/v1/{path}", json=asked, timeout=60)
        lines = [line[5:] for line in reply.text.splitlines() if line.startswith("data: {")]
        error = (json.loads(lines[-1]) if streamed else reply.json())["error"]
        taken = say(url, error["reply"], right=False)
    assert reply.status_code == (200 if streamed else 422)
    assert error["code"] == "unsure" and taken.json()["taken"]


def test_without_a_calibration_nothing_is_told_and_no_feedback_taken(upstream: FakeServer) -> None:
    with gateway(upstream) as url:
        reply = post(url, ASK)
        refused = say(url, reply, right=True)
    assert "right" not in reply.json()["suffice"] and "x-suffice-sure" not in reply.headers
    assert refused.status_code == 404 and "no calibration" in refused.json()["error"]["message"]


def test_calibrations_are_by_model_and_topic(file: str, upstream: FakeServer) -> None:
    rules = [{"file": file, "model": "fake", "topic": "sums"}]
    with gateway(upstream, right=rules) as url:
        told, topic, model = (
            post(url, {**ASK, "model": model, "suffice": {"topic": topic}}).json()["suffice"]
            for model, topic in (("fake", "sums"), ("fake", "else"), ("other", "sums"))
        )
    assert "right" in told and "sure" not in told
    assert "right" not in topic and "right" not in model


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"risk": 0.1}, "risk needs a calibration"),
        ({"unsure": "error"}, "name the risk"),
        ({"unsure": "never"}, "must be one of mark, error"),
        ({"right": [{"model": "fake"}]}, "must be a file, or tables"),
        ({"right": "none.json"}, "there is no such calibration"),
    ],
)
def test_settings_that_say_nothing_are_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        Settings(**wrong).calibrations  # noqa: B018


def test_feedback_is_learned_from_once_for_each_reply(file: str, upstream: FakeServer) -> None:
    with gateway(upstream, right=file, risk=0.1) as url:
        first, second, third = (post(url, ASK) for _ in range(3))
        start = in_force(url)["labels"]
        by_verdict, again = say(url, first, right=False).json(), say(url, first, right=False).json()
        by_gold, other = say(url, second, gold="$42$").json(), say(url, third, gold=43).json()
        end = in_force(url)
    assert (by_verdict["right"], by_verdict["taken"], again["taken"]) == (False, True, False)
    assert (by_gold["right"], other["right"]) == (True, False)
    assert (end["labels"], end["feedback"], end["sure_answers"], end["sure_wrong"]) == (start + 3, 3, 3, 2)
    assert end["evidence"] > 1 and end["broken"] == 0


def test_each_topic_learns_for_itself(file: str, upstream: FakeServer) -> None:
    with gateway(upstream, right=file, risk=0.1) as url:
        sums, other = ({**ASK, "suffice": {"topic": topic}} for topic in ("sums", "other"))
        before = post(url, other).json()["suffice"]["right"]
        for _ in range(5):
            say(url, post(url, sums), right=False)
        assert post(url, sums).json()["suffice"]["right"] < post(url, other).json()["suffice"]["right"] == before
        kinds = httpx.get(f"{url}/v1/suffice/audits", trust_env=False).json()["kinds"]
    assert {kind["topic"]: kind["right"]["feedback"] for kind in kinds} == {"sums": 5, "other": 0}


def test_feedback_that_is_none_is_refused(file: str, upstream: FakeServer) -> None:
    with gateway(upstream, right=file) as url:
        reply = post(url, ASK)
        for told in ({}, {"right": True, "gold": "42"}, {"right": "yes"}, {"gold": [42]}, {"gold": " "}):
            assert say(url, reply, **told).status_code == 400
        assert say(url, "chatcmpl-none", right=True).status_code == 404
        assert httpx.post(f"{url}/v1/suffice/feedback", content=b"no", trust_env=False).status_code == 400


def test_feedback_is_for_the_key_that_asked(file: str, upstream: FakeServer, tmp_path: Path) -> None:
    keys = key_file(tmp_path, one="key-one", other="key-other")
    one, other = ({"authorization": f"Bearer key-{name}"} for name in ("one", "other"))
    with gateway(upstream, right=file, keys=keys) as url:
        reply = post(url, ASK, headers=one)
        assert say(url, reply, right=True).status_code == 401
        assert say(url, reply, other, right=True).status_code == 404
        assert say(url, reply, one, right=True).json()["taken"] is True


@pytest.mark.parametrize("kept", [False, True], ids=["in memory", "in files"])
def test_replies_of_two_keys_may_have_the_same_id(kept: bool, file: str, tmp_path: Path) -> None:
    keys = key_file(tmp_path, one="key-one", other="key-other")
    one, other = ({"authorization": f"Bearer key-{name}"} for name in ("one", "other"))
    same = lambda request, number: Reply({**completion([boxed(42)] * request.get("n", 1)), "id": "same"})  # noqa: E731
    state = {"state": str(tmp_path)} if kept else {}
    with FakeServer(same) as server, gateway(server, right=file, keys=keys, **state) as url:
        for key in (one, other):
            post(url, ASK, headers=key)
        assert all(say(url, "same", key, right=True).json()["taken"] for key in (one, other))
        assert say(url, "same", one, right=True).json()["taken"] is False
        post(url, ASK, headers=one)
        assert say(url, "same", one, right=True).json()["taken"] is True, "of one key the last counts"


def test_a_restart_keeps_replies_and_what_was_said_of_them(file: str, upstream: FakeServer, tmp_path: Path) -> None:
    with gateway(upstream, right=file, risk=0.1, state=str(tmp_path)) as url:
        early, late = post(url, ASK), post(url, ASK)
        assert say(url, early, right=True).json()["taken"] is True
    with gateway(upstream, right=file, risk=0.1, state=str(tmp_path)) as url:
        assert say(url, early, right=True).json()["taken"] is False
        assert say(url, late, right=False).json()["taken"] is True
        assert (in_force(url)["feedback"], in_force(url)["sure_wrong"]) == (2, 1)
    assert "42" not in "".join(path.read_text() for path in (tmp_path / "replies").glob("*.json"))


def test_two_workers_share_replies_and_feedback(file: str, upstream: FakeServer, tmp_path: Path) -> None:
    shared = {"right": file, "risk": 0.1, "state": str(tmp_path)}
    with gateway(upstream, **shared) as one, gateway(upstream, **shared) as other:
        replies = [post(one, ASK) for _ in range(3)]
        post(other, ASK)
        assert all(say(other, reply, right=True).json()["taken"] for reply in replies)
        last = post(one, ASK)
        assert say(one, last, right=False).json()["taken"] is True
        assert (in_force(one)["feedback"], in_force(one)["sure_wrong"]) == (4, 1)


@pytest.mark.slow
def test_what_two_processes_were_told_outlasts_a_kill(file: str, upstream: FakeServer, tmp_path: Path) -> None:
    options = ["--right", file, "--risk", "0.1", "--vote", "always", "--state", str(tmp_path), "--workers", "2"]
    with serving("--upstream", upstream.base_url, *options) as (url, process):
        replies = [post(url, ASK) for _ in range(4)]
        assert all(say(url, reply, right=True).json()["taken"] for reply in replies)
        workers = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        for one in (process.pid, *map(int, workers)):
            os.kill(one, signal.SIGKILL)
    with gateway(upstream, right=file, risk=0.1, state=str(tmp_path)) as url:
        assert not any(say(url, reply, right=True).json()["taken"] for reply in replies)
        post(url, ASK)
        assert (in_force(url)["feedback"], in_force(url)["sure_answers"]) == (4, 4)


def test_a_model_that_becomes_wrong_breaks_the_promise_and_is_sure_of_nothing_until_it_is_right_again(
    upstream: FakeServer, tmp_path: Path
) -> None:
    calibrate(easy_and_hard(800, easy=0.97)).save(tmp_path / "many.json")
    settings = {"right": str(tmp_path / "many.json"), "risk": 0.1, "state": str(tmp_path / "state")}
    with gateway(upstream, **settings) as url:
        broken = figures(url).get("suffice_risk_broken_total", 0)
        for _ in range(10):
            say(url, post(url, ASK), right=True)
        assert in_force(url)["threshold"] is not None
        wrong = 0
        while (reply := post(url, ASK)).json()["suffice"]["sure"]:
            say(url, reply, right=False)
            wrong += 1
            assert wrong < 40
        told = in_force(url)
        assert (told["broken"], told["threshold"]) == (1, None)
        assert figures(url)["suffice_risk_broken_total"] == broken + 1
        assert reply.json()["suffice"]["right"] < 0.9
    with gateway(upstream, **settings) as url:
        assert post(url, ASK).json()["suffice"]["sure"] is False, "the first vote after a restart knows of it"
        assert figures(url)["suffice_risk_broken_total"] == broken + 1
        for _ in range(30):
            say(url, post(url, ASK), right=True)
        assert post(url, ASK).json()["suffice"]["sure"] is True


def test_files_of_replies_stay_short(
    file: str, upstream: FakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feedback, "BUCKETS", 1)
    monkeypatch.setattr(feedback, "EACH", 3)
    with gateway(upstream, right=file, state=str(tmp_path)) as url:
        replies = [post(url, ASK) for _ in range(5)]
        say(url, replies[-1], right=True)
        assert say(url, replies[0], right=True).status_code == 404
    (kept,) = (tmp_path / "replies").glob("*.json")
    assert len(json.loads(kept.read_text())) == 3
