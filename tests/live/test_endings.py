"""How votes end where there is nothing to vote on, or nothing new; and which response stands for the answer."""

from typing import Any

import pytest
from helpers.live import Ask, boxed

from suffice.testing import FakeServer, Reply, completion

NONE = "Could you say more?"


def cut_off(text: str | None, draws: int) -> Reply:
    return Reply(completion([text] * draws, finish_reason="length"))


@pytest.mark.parametrize("controller", ["plan", "asc", "esc:window=4"])
def test_four_complete_responses_without_an_answer_end_a_vote(ask: Ask, controller: str) -> None:
    outcome = ask(lambda request, number: NONE, controller=controller)
    assert (outcome.answer, outcome.samples, outcome.stop_reason) == (None, 4, "no answer")
    assert (outcome.votes, outcome.share) == ({}, 0)
    assert outcome.response is not None and outcome.response.text == NONE
    assert (outcome.confidence, outcome.certainty) == (0.0, None)
    assert (outcome.samples_saved, outcome.to_json()["tokens_saved"]) == (0, 0), "it was given up"


def test_a_response_that_was_cut_off_says_little_about_whether_there_is_an_answer(ask: Ask) -> None:
    outcome = ask(lambda request, number: cut_off("so", request.get("n", 1)), controller="asc")
    assert (outcome.samples, outcome.stop_reason) == (12, "no answer")

    def first_cut_off(request: dict[str, Any], number: int) -> Any:
        return cut_off("so", 1) if number < 11 else boxed(42)

    assert ask(first_cut_off, controller="asc").answer == "42"


def test_what_stands_for_a_vote_without_an_answer_is_complete(ask: Ask) -> None:
    def script(request: dict[str, Any], number: int) -> Any:
        return {0: cut_off("so", 1), 1: cut_off(None, 1), 2: ""}.get(number, NONE)

    outcome = ask(script, controller="asc")
    assert outcome.stop_reason == "no answer"
    assert outcome.response is not None and outcome.response.text == NONE


def test_copies_of_a_long_text_are_no_evidence(ask: Ask) -> None:
    outcome = ask(lambda request, number: "First, 6 times 7 is 42. " * 5 + boxed(42), controller="asc:threshold=0.999")
    assert (outcome.answer, outcome.samples, outcome.stop_reason) == ("42", 2, "repeats")
    assert outcome.samples_saved == outcome.tokens_saved == 0
    assert outcome.certainty is not None and outcome.certainty < 0.9, "one vote is all there is"


@pytest.mark.filterwarnings("ignore:temperature 0")
def test_at_temperature_0_copies_of_a_short_text_are_none_either(ask: Ask) -> None:
    with FakeServer(lambda request, number: boxed(42)) as server:
        assert ask(server, controller="asc:threshold=0.999", temperature=0).stop_reason == "repeats"
        drawn = ask(server, controller="asc:threshold=0.999")
    assert (drawn.stop_reason, drawn.samples > 5) == ("controller", True), "short answers agree by themselves"
    assert drawn.samples_saved == 32 - drawn.samples and drawn.tokens_saved == 10 * drawn.samples_saved


def test_a_typical_response_stands_for_the_answer(ask: Ask) -> None:
    texts = [boxed(42), "long " * 50 + boxed(42), "so " * 5 + boxed(42), boxed(7)]
    outcome = ask(lambda request, number: texts, controller="sc:draws=4")
    assert outcome.response is not None and outcome.response.text == texts[2]


def test_certainty_tells_a_split_from_a_settled_vote_where_confidence_does_not(ask: Ask) -> None:
    split = ask(lambda request, number: [boxed(draw) for draw in range(8)], controller="sc", budget=8)
    settled = ask(lambda request, number: [boxed(42)] * 8, controller="sc", budget=8)
    assert split.confidence == settled.confidence == 1.0
    assert split.certainty is not None and settled.certainty is not None
    assert split.certainty < 0.2 < 0.95 < settled.certainty
    assert settled.to_json()["certainty"] == settled.certainty
