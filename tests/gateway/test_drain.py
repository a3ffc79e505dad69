"""The end of the gateway: it says so first, then nobody can connect, and every request has its reply and its line."""

import json
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from subprocess import Popen
from typing import Any

import httpx
import pytest
from helpers.gateways import ASK, post, refuses
from helpers.live import until
from helpers.serving import serving

from suffice.testing import FakeServer, Reply, completion


def some_for_ever(request: dict[str, Any], number: int) -> Reply:
    said = json.dumps(request)
    delay = 60 if "for ever" in said else 1.5 if "slowly" in said else 0
    return Reply(completion(["42"] * request.get("n", 1)), delay=delay)


FOR_EVER = [{"role": "user", "content": "What is 6 * 7, for ever?"}]
SLOWLY = [{"role": "user", "content": "What is 6 * 7, slowly?"}]


@contextmanager
def draining(
    upstream: FakeServer, folder: Path, *options: str, unready: float, log: list[str] | None = None
) -> Iterator[tuple[str, Popen[str]]]:
    """A gateway as a process that votes always, and is not ready for so many seconds at its end."""
    config = folder / "suffice.toml"
    config.write_text(f"unready_seconds = {unready}\nheartbeat_seconds = 0.1\n")
    chosen = ("--upstream", upstream.base_url, "--vote", "always", "--config", str(config), *options)
    with serving(*chosen, log=log) as (url, process):
        yield url, process


@pytest.mark.parametrize("workers", [1, 2])
def test_sigterm_under_load_loses_no_request(workers: int, tmp_path: Path) -> None:
    whole, lost = list[int](), list[Exception]()

    def ask(url: str) -> None:
        with httpx.Client(trust_env=False, timeout=60) as client:
            while True:
                try:
                    whole.append(client.post(f"{url}/v1/chat/completions", json=ASK).status_code)
                except httpx.ConnectError:
                    return
                except httpx.HTTPError as error:
                    lost.append(error)

    with (
        ThreadPoolExecutor(9) as clients,
        FakeServer(some_for_ever, remember=False) as upstream,
        draining(upstream, tmp_path, "--workers", str(workers), unready=1) as (url, process),
    ):
        slow = clients.submit(post, url, {**ASK, "messages": SLOWLY})
        asking = [clients.submit(ask, url) for _ in range(8)]
        assert until(lambda: upstream.in_flight > 0 and len(whole) > 40, 60)
        process.send_signal(signal.SIGTERM)
        wait(asking)
        assert slow.result().status_code == 200
        assert process.wait(60) == 0
    assert set(whole) == {200} and not lost


def test_a_client_that_goes_on_after_its_stream_is_answered_at_the_end(tmp_path: Path) -> None:
    with (
        FakeServer(some_for_ever, streams=True) as upstream,
        draining(upstream, tmp_path, unready=0) as (url, process),
        httpx.Client(trust_env=False, timeout=60) as kept,
    ):
        streamed = {**ASK, "messages": SLOWLY, "stream": True}
        with kept.stream("POST", f"{url}/v1/chat/completions", json=streamed) as reply:
            process.send_signal(signal.SIGTERM)
            assert until(lambda: refuses(url)) and "connection" not in reply.headers
            assert "[DONE]" in reply.read().decode()
        again = kept.post(f"{url}/v1/chat/completions", json=ASK)
        assert (again.status_code, again.headers["connection"]) == (200, "close")


def test_it_says_that_it_is_not_ready_while_it_answers_and_then_lets_nobody_in(tmp_path: Path) -> None:
    with (
        FakeServer(some_for_ever) as upstream,
        draining(upstream, tmp_path, unready=3) as (url, process),
        httpx.Client(trust_env=False, timeout=30) as kept,
    ):
        assert kept.get(f"{url}/readyz").status_code == 200
        process.send_signal(signal.SIGTERM)
        assert until(lambda: kept.get(f"{url}/readyz").status_code == 503)
        reply = kept.get(f"{url}/healthz")
        assert (reply.status_code, reply.headers["connection"]) == (200, "close")
        assert until(lambda: refuses(url), 60)


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
def test_what_can_not_end_in_time_has_an_error_in_its_shape_and_a_line_in_the_log(
    sent: signal.Signals, tmp_path: Path
) -> None:
    log = list[str]()
    with (
        ThreadPoolExecutor(4) as clients,
        FakeServer(some_for_ever) as upstream,
        draining(upstream, tmp_path, "--drain-seconds", "0.5", unready=0, log=log) as (url, process),
    ):
        asked: dict[str, dict[str, Any]] = {
            "chat/completions": {**ASK, "messages": FOR_EVER},
            "messages": {**ASK, "max_tokens": 9, "messages": FOR_EVER},
            "completions": {"model": "m", "prompt": "for ever"},
        }
        replies = [clients.submit(post, url, body, path) for path, body in asked.items()]
        streamed = clients.submit(post, url, {**ASK, "messages": FOR_EVER, "stream": True})
        assert until(lambda: upstream.in_flight >= 10)
        process.send_signal(sent)
        whole, messages, relayed = (reply.result() for reply in replies)
        stream = streamed.result()
        assert whole.status_code == messages.status_code == relayed.status_code == 503
        assert whole.json()["error"]["code"] == relayed.json()["error"]["code"] == "shutting_down"
        assert messages.json()["type"] == "error"
        assert stream.status_code == 200 and '"shutting_down"' in stream.text
        assert process.wait(60) == (0 if sent == signal.SIGTERM else 130)
        assert until(lambda: upstream.connections == 0)
    lines = [line for line in map(json.loads, filter(lambda one: one.startswith("{"), log)) if line["method"] == "POST"]
    paths = ["/v1/chat/completions", "/v1/chat/completions", "/v1/completions", "/v1/messages"]
    assert sorted(line["path"] for line in lines) == paths
    assert sorted(line["status"] for line in lines) == [200, 503, 503, 503]
    assert {(line["kind"], line["error"]) for line in lines} == {("error", "shutting_down")}


def test_a_second_ctrl_c_waits_for_nothing(tmp_path: Path) -> None:
    with (
        ThreadPoolExecutor(1) as clients,
        FakeServer(some_for_ever) as upstream,
        draining(upstream, tmp_path, unready=0) as (url, process),
    ):
        asking = clients.submit(post, url, {**ASK, "messages": FOR_EVER})
        assert until(lambda: upstream.in_flight > 0)
        process.send_signal(signal.SIGINT)
        assert until(lambda: refuses(url))
        process.send_signal(signal.SIGINT)
        assert asking.result().json()["error"]["code"] == "shutting_down"
        assert process.wait(60) == 130
