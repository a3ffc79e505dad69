"""Patience: after the first response a vote takes at most so many times what that took."""

from typing import Any

import pytest
from helpers.live import ask_async, said, until

import suffice
from suffice.testing import FakeServer, Reply, completion

pytestmark = pytest.mark.usefixtures("quick")


def test_the_leader_goes_back_when_patience_ends() -> None:
    def script(request: dict[str, Any], number: int) -> Reply:
        if number == 0:
            return Reply(completion([rf"{place} \boxed{{{answer}}}" for place, answer in enumerate("7712")]))
        return said(7, request.get("n", 1), delay=300.0)

    with FakeServer(script) as server:
        outcome = ask_async(server, patience=3)
        assert until(lambda: server.connections == 0)
    assert (outcome.answer, outcome.stop_reason, outcome.samples) == ("7", "patience", 4)
    assert outcome.confidence is not None and 0 < outcome.confidence < 1
    assert outcome.samples_saved == 0


def test_the_last_round_is_larger_and_what_arrives_in_time_counts() -> None:
    def script(request: dict[str, Any], number: int) -> Reply:
        if number == 0:
            texts = [rf"{place} \boxed{{{answer}}}" for place, answer in enumerate("7712")]
            return Reply(completion(texts), delay=1.0)
        return said(7, delay=0.0 if number % 2 else 300.0)

    with FakeServer(script) as server:
        outcome = ask_async(server, patience=2.0)  # time for one more round: twice as many, each for itself
        assert until(lambda: server.connections == 0)
    tally = suffice.Tally()
    tally.add_round(["7", "7", "1", "2"])
    asked = suffice.get_controller("plan").next_round(tally)
    assert len(server.requests) == 1 + 2 * asked and all("n" not in one for one in server.requests[1:])
    assert outcome.stop_reason == "patience" and outcome.samples == 4 + asked and outcome.runs_on
    prompt = outcome.responses[0].prompt_tokens
    assert prompt and outcome.prompt_tokens == prompt * len(server.requests), "what was too late was sent all the same"
    assert outcome.over_one.samples == 3 + 2 * asked and outcome.over_one.prompt_tokens == prompt * 2 * asked


def test_a_deadline_that_comes_first_is_one() -> None:
    script = lambda request, number: said(number, request.get("n", 1), delay=0.0 if number == 0 else 300.0)  # noqa: E731
    outcome = ask_async(script, controller="asc", patience=1000, deadline_seconds=1.5)
    assert (outcome.stop_reason, outcome.samples) == ("deadline", 1)


def test_a_server_that_refuses_is_not_waited_for_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("suffice.live.servers.retry.MAX_WAIT_SECONDS", 0.5)
    refused = Reply({"error": {"message": "busy"}}, 429, {"retry-after": "2"})
    with FakeServer(lambda request, number: refused) as server, pytest.raises(suffice.SampleError, match=r"busy|pause"):
        ask_async(server, patience=3)


def test_what_a_response_took_does_not_count_that_the_server_refused_it_before() -> None:
    """Else patience would grow with every refusal."""

    def script(request: dict[str, Any], number: int) -> Reply:
        if number == 0:
            return Reply({"error": {"message": "busy"}}, 429, {"retry-after": "0.5"})
        return said(7, request.get("n", 1))

    outcome = ask_async(script, patience=3)
    assert outcome.answer == "7" and outcome.seconds - outcome.responses[0].seconds >= 0.5


@pytest.mark.parametrize("word", ["refused", "broken", "dropped"])
def test_draws_that_wait_to_be_tried_again_when_time_ends_cost_nothing(
    word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("suffice.live.servers.retry.backoff", lambda failures: 5.0)
    words = {
        "refused": Reply({"error": {"message": "busy"}}, 429, {"retry-after": "5"}),
        "broken": Reply({"error": {"message": "broken"}}, 500),
        "dropped": Reply(b"", dropped=True),
    }
    script = lambda request, number: said(7, request.get("n", 1)) if number == 0 else words[word]  # noqa: E731
    outcome = ask_async(script, controller="asc", patience=3)
    assert (outcome.samples, outcome.stop_reason) == (1, "patience")
    assert outcome.over_one == (0, 0, 0) and outcome.prompt_tokens == outcome.responses[0].prompt_tokens


def test_draws_that_a_server_had_when_time_ended_are_paid_for() -> None:
    script = lambda request, number: said(7, delay=300.0 if number else 0.0)  # noqa: E731
    outcome = ask_async(script, controller="asc", patience=3)
    assert (outcome.samples, outcome.launched) == (1, 2)
    assert outcome.over_one.samples == 1 and outcome.over_one.prompt_tokens == outcome.responses[0].prompt_tokens
