"""The usage of keys, whatever becomes of who keeps it: nothing is lost, and nothing is booked twice."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from helpers.gateways import ASK, always, post
from helpers.keys import Desk
from helpers.live import until

from suffice.gateway import Settings
from suffice.gateway.accounts import usage
from suffice.gateway.accounts.store import Counts, Known, Minute, Store, Totals, UsageBatch, UsageStore
from suffice.gateway.accounts.usage import Usage
from suffice.gateway.errors import GatewayError
from suffice.ray.counters import Counters, SharedStore
from suffice.testing import FakeServer

NOW = 1_768_478_400.0


class Troubled:
    """A store that can be told to fail once: before it books, or after it has, as one whose reply is late."""

    def __init__(self, store: UsageStore) -> None:
        self._store = store
        self.before: list[Exception] = []
        self.after: list[Exception] = []
        self.reading: list[Exception] = []

    def exchange(self, batch: UsageBatch | None, minute: Minute, now: float) -> Known:
        _fail(self.before)
        known = self._store.exchange(batch, minute, now)
        _fail(self.after)
        return known

    def minute(self) -> Minute:
        return self._store.minute()

    def totals(self) -> Totals:
        _fail(self.reading)
        return self._store.totals()

    def close(self) -> None:
        self._store.close()


def _fail(with_: list[Exception]) -> None:
    if with_:
        raise with_.pop()


@pytest.fixture(params=["a file", "an owner on Ray"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Troubled]:
    path = tmp_path / "state" / "usage.db"
    if request.param == "a file":
        with closing(Store(path)) as file:
            yield Troubled(file)
        return

    def ask(method: str, *arguments: Any) -> Any:
        with closing(Counters(path)) as owner:  # one that dies after every word
            return getattr(owner, method)(*arguments)

    yield Troubled(SharedStore("node", ask))


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    desk = Desk(tmp_path)
    desk.add("ann", tokens_per_day=150)
    return Settings(upstream="http://127.0.0.1:1/v1", keys=str(desk.path), state=str(tmp_path / "state"))


def booked(counted: Usage) -> tuple[int, int]:
    """The tokens of ann as they are kept, and as her limit goes by."""
    ann = counted.summary()["keys"][1]
    return ann["tokens"], ann["used"]["tokens_per_day"]


LATE = [TimeoutError(), OSError("who counts does not answer"), sqlite3.OperationalError("disk I/O error")]


@pytest.mark.parametrize("error", LATE, ids=lambda error: type(error).__name__)
def test_what_was_booked_and_not_heard_of_is_booked_once(
    store: Troubled, settings: Settings, error: Exception, capfd: Any
) -> None:
    counted = Usage(settings, store=store)
    counted.add("ann", Counts(requests=1, prompt_tokens=100))
    store.after.append(error)
    counted.flush()
    assert f"is counted in memory: {str(error) or 'TimeoutError'}" in capfd.readouterr().err
    assert store.totals().counts["ann"].tokens == 100, "it was booked"
    key = next(one for one in counted.summary()["keys"] if one["name"] == "ann")
    assert (key["tokens"], key["used"]["tokens_per_day"]) == (100, 100)
    counted.add("ann", Counts(requests=1, prompt_tokens=10))
    assert booked(counted) == (110, 110)


def test_what_is_counted_in_the_meantime_is_written_with_the_next(store: Troubled, settings: Settings) -> None:
    counted = Usage(settings, store=store)
    counted.add("ann", Counts(prompt_tokens=100))
    store.after += [TimeoutError(), TimeoutError()]
    counted.flush()
    counted.add("ann", Counts(prompt_tokens=10))
    counted.flush()
    counted.add("ann", Counts(prompt_tokens=1))
    assert store.totals().counts["ann"].tokens == 100
    counted.flush()
    assert store.totals().counts["ann"].tokens == 111


def test_a_dead_owner_is_told_later_and_limits_hold_meanwhile(store: Troubled, settings: Settings, capfd: Any) -> None:
    counted = Usage(settings, store=store)
    for tokens in (100, 60):
        counted.add("ann", Counts(prompt_tokens=tokens))
        store.before.append(OSError("it is dead"))
        counted.flush()
    assert "ann" not in store.totals().counts
    assert capfd.readouterr().err.count("it is dead") == 1, "once while it lasts"
    assert counted.spent("ann", time.time()).tokens == 160
    assert booked(counted) == (160, 160)


def test_batches_of_several_writers_are_not_taken_for_each_other(store: Troubled) -> None:
    for writer, number in [("a", 1), ("b", 1), ("a", 1), ("a", 2), ("b", 1), ("a", 1)]:
        store.exchange(UsageBatch(writer, number, {"ann": {20_468: Counts(prompt_tokens=1)}}), {}, NOW)
    assert store.totals().counts["ann"].tokens == 3
    assert store.exchange(None, {}, NOW).spent["ann"] == (3, 0.0)


def test_while_the_usage_can_t_be_read_it_says_so(store: Troubled, settings: Settings) -> None:
    counted = Usage(settings, store=store)
    for error in (OSError("it restarts"), sqlite3.OperationalError("database is locked")):
        store.reading.append(error)
        with pytest.raises(GatewayError, match="can't be read now, and is counted in memory") as refused:
            counted.summary()
        assert refused.value.status == 503
    assert counted.summary()["keys"][0]["name"] == "boss"


def test_the_operator_gets_503_while_the_owner_restarts_and_the_usage_again_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(self: Store) -> Totals:
        raise OSError("who counts does not answer: ActorDiedError")

    desk = Desk(tmp_path)
    with FakeServer(always) as upstream, desk.gateway(upstream) as url:
        post(url, ASK, headers=desk.operator)
        with monkeypatch.context() as patch:
            patch.setattr(Store, "totals", away)
            reply = httpx.get(f"{url}/v1/suffice/usage", headers=desk.operator)
        assert reply.status_code == 503 and "ActorDiedError" in reply.json()["error"]["message"]
        assert desk.usage(url)["boss"]["requests"] == 1


@contextmanager
def running(counted: Usage) -> Iterator[None]:
    counted.start()
    try:
        yield
    finally:
        counted.stop()


def test_who_keeps_the_usage_lives_on_whatever_happens(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    monkeypatch.setattr(usage, "LAG_SECONDS", 0.001)
    failures = 0

    def fails(*arguments: Any) -> Any:
        nonlocal failures
        failures += 1
        raise RuntimeError("nobody thought of this")

    store = Store(settings.usage_file)
    counted = Usage(settings, store=store)
    with running(counted):
        with monkeypatch.context() as patch:
            patch.setattr(Settings, "named_keys", fails)
            counted.reload()
            assert until(lambda: failures == 1)
            patch.setattr(store, "exchange", fails)
            counted.add("ann", Counts(prompt_tokens=100))
            assert until(lambda: failures > 3)
        assert until(lambda: booked(counted) == (100, 100))
    said = capfd.readouterr().err
    assert said.count("\n") == said.count("nobody thought of this") == 2, "once for each kind of trouble"
