"""What `sample` makes of a server's faults, and of what it does with `n`."""

import json
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import openai
import pytest
from helpers.commands import fails
from helpers.live import KEY, QUESTION, Ask, boxed

import suffice
from suffice.live.servers import clients
from suffice.live.servers.hosts import DrawRequest
from suffice.testing import FakeServer, Reply, completion

pytestmark = pytest.mark.usefixtures("quick")


def only_first(reply: Reply | list[str | None], times: int = 1) -> Callable[[dict[str, Any], int], Any]:
    """A script that fails at first, and then answers 42."""
    return lambda request, number: reply if number < times else boxed(42)


FAULTS = {
    "429 with Retry-After": Reply({"error": {"message": "slow down"}}, 429, {"retry-after": "0.2"}),
    "429 with a date": Reply({"error": {}}, 429, {"retry-after": "Sun, 06 Nov 1994 08:49:37 GMT"}),
    "408": Reply({"error": {"message": "took too long"}}, 408),
    "409": Reply({"error": {"message": "in conflict"}}, 409),
    "425": Reply({"error": {"message": "too early"}}, 425),
    "500": Reply({"error": {"message": "oops"}}, 500),
    "503 while loading": Reply(b"Loading model", 503, {"content-type": "text/plain"}),
    "dropped half-way": Reply(completion([boxed(1)] * 4), dropped=True),
    "malformed JSON": Reply(b'{"choices": [{"mess'),
    "wrong content type": Reply(b"<html>proxy</html>", 200, {"content-type": "text/html"}),
    "no choices": Reply({"choices": []}),
    "an error with status 200": Reply({"error": {"message": "overloaded"}}),
    "choices that are none": Reply({"choices": [{"text": "completions, not chat"}]}),
    "too slow": Reply(completion([boxed(1)] * 4), delay=30),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_that_passes_costs_nothing(ask: Ask, fault: str) -> None:
    begun = time.monotonic()
    with FakeServer(only_first(FAULTS[fault])) as server:
        outcome = ask(server, controller="sc:draws=4", timeout_seconds=1.5 if fault == "too slow" else 60)
    assert (outcome.answer, outcome.samples, outcome.votes, outcome.failures) == ("42", 4, {"42": 4}, ())
    assert len(server.requests) == 2
    if "Retry-After" in fault:
        assert time.monotonic() - begun > 0.2


@pytest.mark.parametrize("fault", [*FAULTS, "401", "endless"])
def test_a_fault_that_stays_fails_with_the_outcome_so_far(
    ask: Ask, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("suffice.live.dialects.base.MOST_BYTES", 1 << 20)
    faults = FAULTS | {
        "401": Reply({"error": {"message": f"Incorrect API key provided: {KEY}"}}, 401),
        "endless": Reply(b" " * 65536, endless=True),
    }
    lasting = fault in ("401", "endless")  # these are not tried again
    server = FakeServer(lambda request, number: boxed(42) if number == 0 else faults[fault])
    with server, pytest.raises(suffice.SampleError) as failed:
        ask(
            server,
            controller="esc:window=2",
            answer=lambda text: None,
            timeout_seconds=1 if fault == "too slow" else 60,
            retries=2,
        )
    outcome = failed.value.outcome
    assert (outcome.samples, outcome.by_round, outcome.stop_reason) == (2, (2,), "failed")
    assert len(outcome.failures) == 2
    assert len(server.requests) == (2 if lasting else 4)
    assert KEY not in str(failed.value) and KEY not in repr(outcome)


def test_one_failed_draw_does_not_stop_its_round(ask: Ask) -> None:
    def script(request: dict[str, Any], number: int) -> Any:
        if "n" in request:
            return Reply({"error": {"message": "n must be 1"}}, 400)
        return Reply(b"", 403) if request["seed"] == 102 else boxed(42)

    outcome = ask(script, controller="sc:draws=4", seed=100)
    assert (outcome.answer, outcome.samples, outcome.by_round, len(outcome.failures)) == ("42", 3, (3,), 1)


def limited(most: int, refuse: bool) -> Callable[[dict[str, Any], int], Any]:
    """A server that gives at most so many choices: it refuses more, or gives fewer."""

    def script(request: dict[str, Any], number: int) -> Any:
        asked = request.get("n", 1)
        if asked > most and refuse:
            return Reply({"error": {"message": "Field 'n' is too large"}}, 400)
        return [boxed(42)] * min(asked, most)

    return script


@pytest.mark.parametrize("refuse", [True, False], ids=["refused", "ignored"])
@pytest.mark.parametrize("most", [1, 3, 8])
def test_what_a_server_makes_of_n_is_learned_once(ask: Ask, most: int, refuse: bool) -> None:
    with FakeServer(limited(most, refuse)) as server:
        outcome = ask(server, controller="sc:draws=8")
        assert (outcome.samples, outcome.votes) == (8, {"42": 8})
        before = len(server.requests)
        assert ask(server, controller="sc:draws=8").samples == 8
        again = [request.get("n", 1) for request in server.requests[before:]]
    assert sum(again) == 8 and max(again) <= most, "nothing is asked for twice"


def test_a_server_that_gives_more_choices_than_asked_for_is_cut(ask: Ask) -> None:
    assert ask(lambda request, number: [boxed(42)] * 10, controller="sc:draws=4").samples == 4


def test_a_refusal_for_another_reason_is_not_taken_for_one_of_n(ask: Ask) -> None:
    server = FakeServer(lambda request, number: Reply({"error": {"message": "no such model"}}, 400))
    with server, pytest.raises(suffice.SampleError, match="no such model"):
        ask(server, controller="sc:draws=8")
    assert [request.get("n", 1) for request in server.requests] == [8, 4, 2, 1]
    assert clients.KNOWN[server.base_url + "/"].most_at_once(DrawRequest({"model": "fake"})) > 8


def test_a_seed_is_spread_over_the_draws(ask: Ask) -> None:
    with FakeServer(limited(1, refuse=False)) as server:
        ask(server, controller="esc:window=2", budget=4, seed=10, answer=lambda text: None)
    assert sorted(request["seed"] for request in server.requests) == [10, 11, 12, 13]


def test_a_client_with_an_http_client_of_its_own_is_used_as_it_is() -> None:
    seen: list[str] = []
    http_client = openai.DefaultHttpxClient(event_hooks={"request": [lambda request: seen.append(request.url.path)]})
    server = FakeServer(limited(2, refuse=False))
    with server, openai.OpenAI(base_url=server.base_url, api_key=KEY, http_client=http_client) as client:
        outcome = suffice.sample(client, QUESTION, model="fake", controller="sc:draws=4")
    assert outcome.votes == {"42": 4} and len(seen) == 2


def test_what_comes_after_the_timeout_of_a_try_is_no_part_of_the_next_one() -> None:
    again, over = threading.Event(), threading.Event()
    whole = json.dumps(completion([boxed(42)])).encode()

    def late() -> Iterator[bytes]:
        yield b" "
        again.wait(60)
        yield b"{"
        over.set()

    def second() -> Iterator[bytes]:
        yield whole[:1]
        again.set()
        over.wait(0.5)  # it is not fed any more
        yield whole[1:]

    bodies = iter([late(), second()])
    transport = httpx.MockTransport(lambda request: httpx.Response(200, content=next(bodies)))
    own: Any = httpx.Client(transport=transport)
    with openai.OpenAI(base_url="http://localhost/v1", api_key=KEY, http_client=own) as client:
        outcome = suffice.sample(client, QUESTION, model="fake", controller="once", timeout_seconds=2.0, retries=1)
    assert outcome.answer == "42"


def test_one_failure_while_n_is_tried_out_is_one_failure(ask: Ask) -> None:
    singles = iter(range(100))

    def script(request: dict[str, Any], number: int) -> Any:
        if "n" in request:
            return Reply({"error": {"message": "n must be 1"}}, 400)
        return Reply(b"", 403) if next(singles) == 1 else boxed(42)

    outcome = ask(script, controller="sc", budget=16)
    assert (outcome.samples, len(outcome.failures)) == (15, 1)


@pytest.mark.parametrize("key", ["sk-bad\n", "sk-secret"])
def test_a_key_is_masked_in_whatever_spelling(key: str) -> None:
    reply = Reply({"error": {"message": "bad key sk-secret"}}, 401)
    with (
        FakeServer(lambda request, number: reply) as server,
        openai.OpenAI(base_url=server.base_url, api_key=key) as client,
        pytest.raises(suffice.SampleError) as failed,
    ):
        suffice.sample(client, QUESTION, model="fake", retries=0)
    assert key.strip() not in str(failed.value) + repr(failed.value.outcome)


def test_no_key_is_ever_logged(ask: Ask, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    reply = Reply({"error": {"message": "no"}}, 500)
    with FakeServer(lambda request, number: reply) as server, suppress(suffice.SampleError):
        ask(server, controller="sc:draws=2", retries=1)
    assert caplog.records
    assert not any(KEY in record.getMessage() for record in caplog.records)
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"


def test_a_server_that_asks_for_an_hour_is_taken_to_refuse(ask: Ask) -> None:
    busy = Reply({"error": {"message": "come back later"}}, 429, {"retry-after": "3600"})
    with FakeServer(lambda request, number: busy) as server, pytest.raises(suffice.SampleError, match="come back"):
        ask(server, controller="sc:draws=1", deadline_seconds=20)
    assert len(server.requests) == 1


def test_a_429_holds_up_the_other_draws_too(ask: Ask) -> None:
    asked: list[float] = []

    def script(request: dict[str, Any], number: int) -> Any:
        asked.append(time.monotonic())
        return Reply(b"", 429, {"retry-after": "0.5"}) if number == 0 else boxed(42)

    assert ask(script, controller="sc:draws=3", concurrency=1).samples == 3
    assert len(asked) == 4 and asked[1] - asked[0] >= 0.5, "nobody asks before the pause is over"


def test_a_key_is_masked_where_a_server_does_not_tell_its_models(monkeypatch: pytest.MonkeyPatch) -> None:
    class Repeating(BaseHTTPRequestHandler):
        """Refuses, and repeats the key as some servers do."""

        def do_GET(self) -> None:
            body = json.dumps({"error": {"message": f"no models for {self.headers['authorization']}"}}).encode()
            self.send_response(401)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments: object) -> None:
            pass

    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with ThreadingHTTPServer(("127.0.0.1", 0), Repeating) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        said = fails("ask", "?", "--base-url", f"http://127.0.0.1:{server.server_port}/v1")
        server.shutdown()
    assert "no models for" in said and KEY not in said and "***" in said
