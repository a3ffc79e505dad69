"""The gateway with signals: it asks upstream for log probabilities, shows none, and lets votes weigh by them."""

import json
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from helpers.gateways import ASK, MESSAGES, answered, gateway, post
from helpers.live import WEIGHTED, boxed, seven_then_42, surely_42

from suffice import OptionError
from suffice.elections import LearnedWeights, save_weights
from suffice.gateway import Settings, with_file
from suffice.testing import FakeServer, Reply

pytestmark = pytest.mark.usefixtures("quick")

FIVE: Any = {"controller": "sc:draws=5", "fan_out": 1}
NOTHING = "I cannot tell which one you mean, since there are many of them here."
CHAT = {"model": "fake", "messages": [{"role": "user", "content": "What is 6 * 7?"}]}
"""A request that a scout is sent for."""


def test_log_probabilities_are_asked_for_and_taken_out_again() -> None:
    with FakeServer(seven_then_42(), logprob=surely_42) as upstream, gateway(upstream, signals=True, **FIVE) as url:
        whole = post(url, ASK).json()
        streamed = post(url, ASK | {"stream": True}).text
    assert all((request["logprobs"], request["top_logprobs"]) == (True, 20) for request in upstream.requests)
    assert whole["choices"][0]["logprobs"] is None and whole["suffice"]["answer"] == "7"
    assert "majority" not in whole["suffice"], "which is the election unless told otherwise"
    assert boxed(7) in json.loads(streamed.split("data: ")[2])["choices"][0]["delta"]["content"]
    assert "top_logprobs" not in streamed and "top_logprobs" not in json.dumps(whole)


def test_a_client_that_asks_for_them_has_them_as_it_asked() -> None:
    asked = ASK | {"logprobs": True, "top_logprobs": 2}
    with FakeServer(lambda request, number: boxed(42)) as upstream, gateway(upstream, signals=True) as url:
        reply = post(url, asked).json()
        with openai.OpenAI(base_url=f"{url}/v1", api_key="none") as client:
            typed = client.chat.completions.create(model="fake", messages=MESSAGES, logprobs=True)
    assert [upstream.requests[0], upstream.requests[1].get("top_logprobs")] == [asked, None]
    assert {len(token["top_logprobs"]) for token in reply["choices"][0]["logprobs"]["content"]} == {2}
    assert typed.choices[0].logprobs is not None and typed.choices[0].logprobs.content


@pytest.mark.parametrize("text", [NOTHING, f"It is {boxed(42)}"], ids=["no answer", "answer"])
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("path", ["chat/completions", "responses"])
def test_a_scout_asks_for_them_too_and_the_client_sees_none(text: str, streamed: bool, path: str) -> None:
    said = CHAT if path != "responses" else {"model": "fake", "input": "What is 6 * 7?", "store": False}
    body = said | {"stream": streamed} | ({"logprobs": False} if path != "responses" else {})

    def told(**settings: Any) -> str:
        with (
            FakeServer(lambda request, number: text, streams=True, logprob=surely_42) as upstream,
            gateway(upstream, controller="sc:draws=3", vote="auto", **settings) as url,
        ):
            reply = httpx.post(f"{url}/v1/{path}", json=body, trust_env=False)
            asked.append(
                all("logprobs" in json.dumps(one).replace('"logprobs": false', "") for one in upstream.requests)
            )
            assert reply.status_code == 200 and int(reply.headers.get("content-length", 0)) in (0, len(reply.content))
            return reply.text

    asked: list[bool] = []
    with_signals, without = told(signals=True), told()
    assert asked == [True, False]
    assert ("suffice" in without) is (text != NOTHING), "a scout went before"
    assert "top_logprobs" not in with_signals and '"token"' not in with_signals
    assert _words(with_signals) == _words(without)


def _words(reply: str) -> str:
    """What is said, however it is told."""
    lines = [line.removeprefix("data: ") for line in reply.splitlines() if line.startswith(("data: {", "{"))]
    said = []
    for event in map(json.loads, lines):
        for choice in event.get("choices", ()):
            said.append((choice.get("delta") or choice.get("message") or {}).get("content") or "")
        said.append(event.get("delta") or "")
        said += [part["text"] for item in event.get("output", ()) for part in item["content"]]
    return "".join(said)


def test_votes_weigh_and_the_reply_carries_the_elected_answer(tmp_path: Path) -> None:
    path = tmp_path / "mine.safetensors"
    save_weights(LearnedWeights(("logprob",), (0.4,)), path)
    for elect in (WEIGHTED, f"file:{path}"):
        with FakeServer(seven_then_42(), logprob=surely_42) as upstream, gateway(upstream, elect=elect, **FIVE) as url:
            reply = post(url, ASK).json()
        assert reply["choices"][0]["message"]["content"] == boxed(42)
        assert reply["choices"][0]["logprobs"] is None
        told = reply["suffice"]
        assert (told["answer"], told["majority"], told["votes"]) == ("42", "7", {"7": 3, "42": 2})


def test_a_request_may_wish_for_an_election() -> None:
    with FakeServer(seven_then_42(), logprob=surely_42) as upstream, gateway(upstream, **FIVE) as url:
        plain = post(url, ASK).json()
        weighed = post(url, ASK | {"suffice": {"elect": WEIGHTED}}).json()
        by_header = post(url, ASK, headers={"x-suffice-elect": WEIGHTED}).json()
        refused = [post(url, ASK | {"suffice": {"elect": elect}}) for elect in ("file:/etc/passwd", "wieghted")]
        form = {"response_format": {"type": "json_object"}}
        refused.append(post(url, ASK | form | {"suffice": {"elect": WEIGHTED}}))
    assert "majority" not in plain["suffice"] and not any("logprobs" in one for one in upstream.requests[:5])
    assert weighed["suffice"]["answer"] == by_header["suffice"]["answer"] == "42"
    assert [reply.status_code for reply in refused] == [400] * 3
    assert [reply.json()["error"]["param"] for reply in refused] == ["suffice.elect"] * 3
    assert "only the operator may name a file" in refused[0].text and "elect must be majority" in refused[2].text


def test_messages_have_no_log_probabilities_and_weigh_the_same() -> None:
    body = {"model": "fake", "max_tokens": 99, "messages": MESSAGES}
    options = FIVE | {"elect": WEIGHTED}
    with FakeServer(seven_then_42(), logprob=surely_42) as upstream, gateway(upstream, **options) as url:
        told = httpx.post(f"{url}/v1/messages", json=body, trust_env=False).json()
    assert (told["suffice"]["answer"], told["suffice"]["majority"]) == ("7", "7")
    assert told["content"][0]["text"] == boxed(told["suffice"]["answer"]) and "logprobs" not in json.dumps(told)
    assert not any("logprobs" in request for request in upstream.requests)


def test_objects_are_elected_field_by_field_whatever_the_operator_weighs() -> None:
    told = answered(
        lambda request, number: '{"year": 1815}',
        ASK | {"response_format": {"type": "json_object"}},
        elect=WEIGHTED,
        **FIVE,
    ).reply.json()["suffice"]
    assert told["fields"]["/year"]["value"] == 1815 and "majority" not in told


@pytest.mark.filterwarnings("ignore:signals")
def test_an_upstream_that_refuses_is_asked_without() -> None:
    def script(request: dict[str, Any], number: int) -> Reply | str:
        refused = Reply({"error": {"message": "logprobs is not supported"}}, 400)
        return refused if request.get("logprobs") else boxed(42)

    with FakeServer(script) as upstream, gateway(upstream, signals=True, controller="sc:draws=2") as url:
        replies = [post(url, body).json() for body in (ASK, ASK, CHAT)]
    assert [reply["suffice"]["answer"] for reply in replies] == ["42"] * 3
    assert [request.get("top_logprobs") for request in upstream.requests[:3]] == [20, 5, None]
    assert not any("logprobs" in request for request in upstream.requests[3:]), "which is remembered"


def test_settings_come_from_a_file_and_are_checked(tmp_path: Path) -> None:
    config = tmp_path / "suffice.toml"
    config.write_text(f'upstream = "http://127.0.0.1:9/v1"\nsignals = true\nelect = "{WEIGHTED}"\n')
    settings = with_file({}, config)
    assert settings.signals and settings.elect == WEIGHTED
    with pytest.raises(OptionError, match="elect must be majority"):
        Settings(upstream="http://127.0.0.1:9/v1", answer="json", elect=WEIGHTED)
