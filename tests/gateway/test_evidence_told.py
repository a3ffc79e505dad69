"""What was taken for an answer is told; and the model may be asked for its answer."""

from typing import Any

import openai
import pytest
from helpers.gateways import ASK, always, behind, figures, gateway, logged, post

import suffice
from suffice.testing import FakeServer

pytestmark = pytest.mark.usefixtures("quick")

PROSE = "It depends on many things, and each of them would have to be looked at in turn before one could say."


def test_evidence_is_in_the_object_the_log_and_the_metrics(capfd: Any) -> None:
    votes = 'suffice_votes_total{evidence="boxed"}'
    with behind(always) as (_, url):
        before = figures(url).get(votes, 0)
        assert post(url, ASK).json()["suffice"]["evidence"] == "boxed"
        assert figures(url)[votes] == before + 1
    assert [line["evidence"] for line in logged(capfd, kind="vote")] == ["boxed"]


def reads(request: dict[str, Any], number: int) -> list[str]:
    """A model whose answers nobody could read, unless it is asked for them alone."""
    if "final answer" in request["messages"][-1]["content"]:
        assert (request["max_tokens"], request["temperature"]) == (32, 0)
        return ["Quarante-deux" if "42" in request["messages"][-2]["content"] else "Sept"]
    return ["Tout bien pesé, et 42 raisons plus tard, je penche pour ce nombre-là."] * (request.get("n") or 1)


def test_the_model_reads_where_that_is_asked_for() -> None:
    with FakeServer(reads) as server, openai.OpenAI(base_url=server.base_url, api_key="none") as client:
        messages: Any = [{"role": "user", "content": "Combien font six fois sept ?"}]
        outcome = suffice.sample(client, messages, model="fake", answer="ask", controller="sc:draws=4")
    assert (outcome.answer, outcome.evidence, outcome.samples) == ("quarante-deux", "asked", 4)
    assert outcome.completion_tokens == sum(response.tokens or 0 for response in outcome.responses) == 2 * 4 * 10
    assert all(response.final == "Quarante-deux" for response in outcome.responses)
    # One plain response has 10 tokens and a prompt of 5; that its answer is asked for is over that.
    assert outcome.over_one == (3, outcome.completion_tokens - 10, outcome.prompt_tokens - 5)


def test_the_gateway_lets_the_model_read_and_counts_what_that_takes() -> None:
    body = {**ASK, "messages": [{"role": "user", "content": "Combien font 6 fois 7 ?"}]}
    with FakeServer(reads) as upstream, gateway(upstream, vote="auto", answer="ask", controller="sc:draws=4") as url:
        reply = post(url, body).json()
        once = post(url, {**ASK, "messages": [{"role": "user", "content": "Write a poem on the sea."}]})
    assert reply["suffice"]["answer"] == "quarante-deux" and reply["suffice"]["evidence"] == "asked"
    assert (
        reply["choices"][0]["message"]["content"].startswith("Tout bien") and reply["usage"]["completion_tokens"] == 80
    )
    assert once.headers["x-suffice-no-vote"] == "no answer"
