"""When there is a vote: by the operator's word, by the client's, by the request, or by a scout."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from helpers.gateways import gateway, logged, official
from helpers.live import boxed, until

from suffice.testing import FakeServer, Reply, completion

POEM = "Leaves of amber, leaves of gold,\nwhisper what the summer told."
QUESTION: Any = [{"role": "user", "content": "What is 6 * 7?"}]
STORY = [{"role": "user", "content": "Write me a poem about autumn."}]
OPEN = [{"role": "user", "content": "Autumn?"}]


def post(url: str, messages: Any = QUESTION, **fields: Any) -> httpx.Response:
    headers = fields.pop("headers", {})
    body = {"model": "fake", "messages": messages, **fields}
    return httpx.post(f"{url}/v1/chat/completions", json=body, headers=headers, timeout=60)


def samples(reply: httpx.Response) -> int:
    return int(reply.json().get("suffice", {}).get("samples", 1))


@pytest.mark.parametrize(
    ("vote", "fields", "voted"),
    [
        ("auto", {}, True),
        ("always", {}, True),
        ("asked", {}, False),
        ("asked", {"suffice": {}}, True),
        ("asked", {"headers": {"x-suffice-budget": "8"}}, True),
        ("asked", {"model": "fake+vote"}, True),
        ("asked", {"model": "fake+once", "suffice": {}}, False),
        ("auto", {"model": "fake+once"}, False),
        ("auto", {"messages": STORY}, False),
        ("auto", {"messages": STORY, "model": "fake+vote"}, True),
        ("auto", {"messages": STORY, "suffice": {"answer": "boxed"}}, True),
        ("always", {"model": "fake+once"}, True),
        ("off", {}, False),
        ("off", {"suffice": {"budget": 4}}, False),
        ("off", {"model": "fake+vote"}, False),
    ],
)
def test_who_says_whether_there_is_a_vote(vote: str, fields: dict[str, Any], voted: bool) -> None:
    fields = {"messages": QUESTION, **fields}
    with FakeServer(lambda request, number: boxed(42)) as upstream, gateway(upstream, vote=vote) as url:
        assert (samples(post(url, **fields)) > 1) == voted
    assert {request["model"] for request in upstream.requests} == {"fake"}, "the suffix is ours"
    assert all("suffice" not in request for request in upstream.requests)


@pytest.mark.parametrize(
    "fields",
    [
        {"messages": [{"role": "user", "content": "What is 6 * 7? Put the answer in \\boxed{}."}]},
        {"messages": [{"role": "user", "content": "Is 91 prime? Answer yes or no."}]},
        {"messages": OPEN, "guided_choice": ["yes", "no"]},
        {"messages": OPEN, "structured_outputs": {"choice": ["yes", "no"]}},
    ],
)
def test_a_request_that_says_there_is_one_answer_needs_no_scout(fields: dict[str, Any]) -> None:
    with FakeServer(lambda request, number: "yes") as upstream, gateway(upstream, vote="auto") as url:
        told = post(url, **fields).json()["suffice"]
    assert told["draws"][0] == 4 and upstream.requests[0]["n"] == 4


@pytest.mark.parametrize("stream", [False, True])
def test_a_scout_without_an_answer_is_the_reply_to_the_letter(stream: bool) -> None:
    with FakeServer(lambda request, number: POEM, streams=True) as upstream:
        direct = httpx.post(
            f"{upstream.base_url}/chat/completions", json={"model": "fake", "messages": OPEN, "stream": stream}
        )
        with gateway(upstream, vote="auto") as url:
            reply = post(url, OPEN, stream=stream)
            recent = httpx.get(f"{url}/v1/suffice/recent").json()["recent"][0]
    assert reply.content == direct.content
    assert reply.headers["content-type"] == direct.headers["content-type"]
    assert (recent["samples"], recent["no_vote"], len(upstream.requests)) == (1, "no answer", 2)
    assert reply.headers["x-suffice-samples"] == "1"


@pytest.mark.parametrize(("fields", "samples"), [({"messages": STORY}, "1"), ({"stream": True}, "1"), ({"n": 3}, "3")])
def test_what_is_passed_on_says_how_many_samples_it_took(fields: dict[str, Any], samples: str) -> None:
    with FakeServer(lambda request, number: POEM, streams=True) as upstream, gateway(upstream, vote="auto") as url:
        assert post(url, **{"messages": OPEN, **fields}).headers["x-suffice-samples"] == samples
    with FakeServer(lambda request, number: Reply({}, 400)) as upstream, gateway(upstream, vote="auto") as url:
        assert "x-suffice-samples" not in post(url, **{"messages": OPEN, **fields}).headers


@pytest.mark.parametrize("stream", [False, True])
def test_a_scout_with_an_answer_is_the_first_draw_of_the_vote(stream: bool) -> None:
    with official(lambda request, number: boxed(42), streams=True, vote="auto") as (upstream, client):
        if stream:
            chunks: list[Any] = list(client.chat.completions.create(model="fake", messages=QUESTION, stream=True))
            told = next(chunk.suffice for chunk in chunks if getattr(chunk, "suffice", None))
        else:
            told = client.chat.completions.create(model="fake", messages=QUESTION).suffice  # type: ignore[attr-defined]
    assert told["draws"] == [1, 3], "the controller's first round, less the scout"
    assert told["samples"] == sum(request.get("n", 1) for request in upstream.requests)


def test_a_scout_whose_fellows_have_no_answer_is_the_reply_after_all() -> None:
    script = lambda request, number: "42" if number == 0 else POEM  # noqa: E731
    with FakeServer(script) as upstream, gateway(upstream, vote="auto") as url:
        reply = post(url, [{"role": "user", "content": "And the number of leaves?"}])
    assert reply.json() == completion(["42"])
    assert reply.headers["x-suffice-samples"] == "4"


def test_a_stream_is_passed_on_as_soon_as_no_answer_can_come() -> None:
    words = "autumn leaves are falling down upon the quiet town and nobody is there to see them " * 30
    script = lambda request, number: Reply(completion([words]), delay=20)  # noqa: E731
    with (
        FakeServer(script, streams=True) as upstream,
        gateway(upstream, vote="auto") as url,
        httpx.stream(
            "POST", f"{url}/v1/chat/completions", json={"model": "fake", "messages": OPEN, "stream": True}, timeout=60
        ) as reply,
    ):
        first = next(reply.iter_bytes())
        assert b"autumn" in first
        assert upstream.generated < len(words.split()), "the rest is still to come"
    assert until(lambda: upstream.hung_up == 1)


def test_on_questions_auto_takes_hardly_more_than_always() -> None:
    spent: dict[str, list[int]] = {}
    for vote in ("auto", "always"):
        texts = (boxed(42 if place % 4 else place) for place in range(1000))

        def script(request: dict[str, Any], number: int, left: Iterator[str] = texts) -> list[str | None]:
            return [next(left) for _ in range(request.get("n", 1))]

        with FakeServer(script) as upstream, gateway(upstream, vote=vote) as url:
            told = [post(url).json()["suffice"] for _ in range(12)]
        spent[vote] = [sum(one["samples"] for one in told), sum(one["rounds"] for one in told)]
    assert spent["auto"][0] <= spent["always"][0] + 0.5 * 12
    assert spent["auto"][1] <= spent["always"][1] + 12


def test_the_access_log_and_headers_tell_the_certainty(capsys: pytest.CaptureFixture[str]) -> None:
    with FakeServer(lambda request, number: boxed(42)) as upstream, gateway(upstream, vote="auto") as url:
        reply = post(url)
        metrics = httpx.get(f"{url}/metrics").text
    certainty = reply.json()["suffice"]["certainty"]
    assert reply.headers["x-suffice-certainty"] == f"{certainty:.4f}"
    assert logged(capsys, kind="vote")[0]["certainty"] == certainty
    assert "suffice_certainty_count" in metrics and 'suffice_scouts_total{vote="yes"}' in metrics
