"""One retry policy and one timeout for votes, scouts and what is passed on."""

from itertools import count
from typing import Any

import pytest
from helpers.gateways import ASK, always, gateway, post
from helpers.live import boxed
from prometheus_client import REGISTRY

from suffice.live.servers.retry import RetryPolicy
from suffice.testing import FakeServer, Reply, completion

KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "vote": ("always", ASK),
    "streamed vote": ("always", ASK | {"stream": True}),
    "scout": ("auto", ASK),
    "streamed scout": ("auto", ASK | {"stream": True}),
    "text": ("auto", ASK | {"messages": [{"role": "user", "content": "Write a poem."}]}),
    "relay": ("auto", ASK | {"n": 2}),
    "streamed relay": ("auto", ASK | {"n": 2, "stream": True}),
}
kinds = pytest.mark.parametrize("kind", KINDS)

ROUND = {"streamed vote": 2}
"""The requests of a first round: of a vote that streams, one draw streams too."""


def ask(kind: str, script: Any, **settings: Any) -> tuple[Any, FakeServer]:
    """The reply to a request of this kind, and the upstream that it went to."""
    vote, body = KINDS[kind]
    with FakeServer(script) as upstream, gateway(upstream, vote=vote, **settings) as url:
        return post(url, body), upstream


@kinds
def test_an_upstream_that_hangs_is_a_504_after_one_timeout(kind: str) -> None:
    reply, upstream = ask(kind, lambda request, number: Reply(completion([boxed(1)]), delay=300), timeout_seconds=0.3)
    assert (reply.status_code, reply.json()["error"]["code"]) == (504, "timeout")
    assert upstream.served == ROUND.get(kind, 1), "a second try would take as long again"


@kinds
def test_the_timeout_bounds_all_tries_together(kind: str) -> None:
    busy, slow = Reply(b"", 429, {"retry-after": "0.1"}), Reply(completion([boxed(1)]), delay=300)
    reply, upstream = ask(kind, lambda request, number: slow if number else busy, timeout_seconds=0.5)
    assert (reply.status_code, upstream.served) == (504, 1 + ROUND.get(kind, 1))
    reply, upstream = ask(kind, lambda request, number: Reply(b"", 429, {"retry-after": "60"}), timeout_seconds=0.5)
    assert (reply.status_code, reply.headers["retry-after"], upstream.served) == (429, "60", ROUND.get(kind, 1))


@kinds
def test_a_refusal_that_lasts_is_told_in_its_own_words(kind: str) -> None:
    fault = {"error": {"message": "we are full", "type": "odd", "param": None, "code": "c"}}
    busy = Reply(fault, 503, {"retry-after": "0.3"})
    reply, upstream = ask(kind, lambda request, number: busy, timeout_seconds=1.0, patience=3.0)
    assert (reply.status_code, reply.json()) == (503, fault) and upstream.served > 1


@kinds
@pytest.mark.parametrize("status", [400, 401, 403, 404, 422, 500, 502])
def test_an_error_is_told_at_once(kind: str, status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("suffice.live.servers.retry.BACKOFF_SECONDS", 300.0)
    fault = {"error": {"message": "as you say", "type": "odd", "param": None, "code": "c"}}
    reply, upstream = ask(kind, lambda request, number: Reply(fault, status), controller="sc:draws=1")
    assert (reply.status_code, reply.json(), upstream.served) == (status, fault, 1)


BUSY = [Reply(b"", status, {"retry-after": after}) for status, after in ((429, "0.1"), (503, "0.1"), (429, "1e400"))]


@kinds
@pytest.mark.parametrize("fault", [*BUSY, Reply(b"", dropped=True)], ids=["429", "503", "infinite", "dropped"])
@pytest.mark.usefixtures("quick")
def test_what_passes_is_noticed_by_nobody(kind: str, fault: Reply) -> None:
    before = REGISTRY.get_sample_value("suffice_retries_total") or 0
    reply, upstream = ask(kind, lambda request, number: always(request, number) if number else fault, budget=1)
    assert (reply.status_code, upstream.served) == (200, 2) and "42" in reply.text
    assert (REGISTRY.get_sample_value("suffice_retries_total") or 0) - before == 1


@kinds
def test_one_class_replaced_changes_all(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    failures = count()

    def wait(self: RetryPolicy, error: Exception, failed: int) -> float | None:
        next(failures)
        return 0.0 if failed < 2 else None

    monkeypatch.setattr(RetryPolicy, "wait", wait)
    reply, upstream = ask(kind, lambda request, number: Reply(b"", 500), controller="sc:draws=1")
    assert (reply.status_code, upstream.served, next(failures)) == (500, 3, 3)
