"""The three routes: by the operator's word, by the client's, and by what the request shows of its answer."""

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import httpx
import pytest
from helpers.gateways import behind, gateway, logged, official
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


def asking(text: str, system: str = "", **fields: Any) -> dict[str, Any]:
    told = [{"role": "system", "content": system}] if system else []
    return {"messages": [*told, {"role": "user", "content": text}], **fields}


def schema(**fields: Any) -> dict[str, Any]:
    form = {"name": "x", "schema": {"type": "object", "properties": fields}}
    return {"response_format": {"type": "json_schema", "json_schema": form}}


LABEL = {"enum": ["spam", "ham"]}

NAMED: dict[str, dict[str, Any]] = {
    "a box": asking(r"What is 6 * 7? Put the answer in \boxed{}."),
    "a slot": asking('Is it so? End with "Answer: <letter>".'),
    "tags": asking("Grade this essay. Put it in <grade>…</grade>."),
    "a judge": asking("An essay.", 'Rate it by strictly following this format: "[[rating]]".'),
    "a slot in Hindi": asking("क्या फिल्म अच्छी थी?", 'भावना बताइए। उत्तर इस रूप में दें: "भावना: X"'),
    "yes or no": asking("Is 91 prime? Answer yes or no."),
    "letters": asking("Which is red?\nA) blood\nB) grass"),
    "labels in German": asking(
        "Mein Paket fehlt.", "Kategorien: Rechnung, Technik, Versand. Antworte nur mit der Kategorie."
    ),
    "a range": asking("How good is this text? Answer only with a number from 1 to 5.\n\nIt rained."),
    "a range in brackets": asking("Great!", "Predict the star rating (1-5), number only."),
    "an example of JSON": asking('Is it spam? Answer as JSON: {"spam": true, "score": 0.5}'),
    "a schema": asking("Autumn?", **schema(label=LABEL, score={"type": "integer"})),
    "choices": asking("Autumn?", guided_choice=["yes", "no"]),
    "structured choices": asking("Autumn?", structured_outputs={"choice": ["yes", "no"]}),
    "a few tokens": asking("Autumn?", max_tokens=5),
    "the client": asking("Autumn?", suffice={"answer": "boxed"}),
}
LOOKED_AT: dict[str, dict[str, Any]] = {
    "an expression": asking("What is 6 * 7?"),
    "a question over numbers": asking("Anna has 12 apples and eats 5. How many are left?"),
    "one in Chinese": asking("小明有50元，花了8元，还剩多少元？"),
    "one in Arabic": asking("لدى أحمد 12 كتابا وأعطى 5 منها. كم كتابا بقي لديه؟"),
    "a schema with texts": asking("Autumn?", **schema(label=LABEL, why={"type": "string"})),
    "an object": asking("Autumn?", response_format={"type": "json_object"}),
    "a word alone": asking("Ons het gister gaan stap.", "Identify the language. Reply with the ISO code only."),
    "a scale by the way": asking("How good is it, from 1 to 5? It rained."),
    "an order with a label": asking('Rate my poem. End with "Score: <n>".'),
}
FORMS: dict[str, dict[str, Any]] = {
    "a step of an agent": asking(
        "Who is the mayor?",
        "Use this format:\nThought: your reasoning\nAction: the tool to use\nObservation: …",
    ),
    "an answer with sources": asking("Who?", "Reply in this format:\nAnswer: <answer>\nSources: <numbers>"),
    "tools in tags": asking("Find it.", "Use <thinking>...</thinking> and then <tool_call>...</tool_call>."),
    "a diff": asking("Rename f as a diff.\n\n```diff\n--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-f = 1\n+g = 1\n```"),
    "an edit": asking("Fix it.", "Answer with blocks:\n<<<<<<< SEARCH\nold\n=======\nnew\n>>>>>>> REPLACE"),
}
UNNAMED: dict[str, dict[str, Any]] = {
    "a poem": {"messages": STORY},
    "a word": {"messages": OPEN},
    "a sum to be made up": asking("Make up a word problem with 3 apples and 4 pears."),
    "code": asking("Write a function add(2, 3) that adds."),
    "SQL": asking("the top 5 customers", "Return only SQL, no explanation."),
}


class Asked(NamedTuple):
    reply: httpx.Response
    draws: list[int]
    """Those that each request to the upstream asks for."""
    log: dict[str, Any]


@pytest.fixture(scope="module")
def ask() -> Iterator[Callable[..., Asked]]:
    """Asks a gateway with its defaults, before a server that is sure of all."""
    with behind(lambda request, number: [boxed(42)] * request.get("n", 1), vote="auto") as (upstream, url):

        def ask(fields: dict[str, Any]) -> Asked:
            before = len(upstream.requests)
            reply = post(url, **fields)
            log = httpx.get(f"{url}/v1/suffice/recent").json()["recent"][0]
            return Asked(reply, [one.get("n", 1) for one in upstream.requests[before:]], log)

        yield ask


@pytest.mark.parametrize("name", NAMED)
def test_a_request_that_names_its_answer_is_voted_on_from_the_first_round(name: str, ask: Callable[..., Asked]) -> None:
    reply, draws, log = ask(NAMED[name])
    assert log["route"] == "vote"
    assert draws == reply.json()["suffice"]["draws"] and draws[0] == 4, "there is no scout"


@pytest.mark.parametrize("name", LOOKED_AT)
def test_what_looks_like_a_sum_is_looked_at_once_before_a_vote(name: str, ask: Callable[..., Asked]) -> None:
    _, draws, log = ask(LOOKED_AT[name])
    assert (log["route"], draws[0]) == ("look", 1)


@pytest.mark.parametrize("why", ["form", "no answer"])
def test_everything_else_is_passed_on_as_one_request(why: str, ask: Callable[..., Asked]) -> None:
    for fields in (FORMS if why == "form" else UNNAMED).values():
        reply, draws, log = ask(fields)
        assert (log["route"], log["no_vote"], draws) == ("relay", why, [1]), fields
        assert reply.json() == completion([boxed(42)]) and reply.headers["x-suffice-no-vote"] == why


SHIFT = asking("Ann, Ben or Cleo: who is on call on Monday?")


def test_a_whole_reply_that_is_a_piece_of_the_request_starts_a_vote() -> None:
    with behind(lambda request, number: "Cleo.", vote="auto") as (upstream, url):
        assert samples(post(url, **SHIFT)) >= 4 and "n" not in upstream.requests[0]
        assert httpx.get(f"{url}/v1/suffice/recent").json()["recent"][0]["route"] == "look"


def test_a_stream_is_passed_on_whatever_it_says() -> None:
    with FakeServer(lambda request, number: "Cleo.", streams=True) as upstream, gateway(upstream, vote="auto") as url:
        assert "suffice" not in post(url, **SHIFT, stream=True).text and upstream.served == 1


@pytest.mark.parametrize("stream", [False, True])
def test_what_no_two_draws_agree_on_was_made_up_and_the_first_response_comes_back(stream: bool) -> None:
    names = iter(("Florocut", "Rapsol", "Greenflow", "Cutwell", *map(str, range(99))))
    order = asking("One name for a cutting fluid, the label only.")

    def script(request: dict[str, Any], number: int) -> Reply:
        return Reply(completion([next(names) for _ in range(request.get("n", 1))]))

    with FakeServer(script) as upstream, gateway(upstream, vote="auto") as url:
        reply = post(url, **order, stream=stream)
        log = httpx.get(f"{url}/v1/suffice/recent").json()["recent"][0]
    assert "Florocut" in reply.text and '"suffice"' not in reply.text
    assert (log["route"], log["no_vote"], log["samples"]) == ("look", "no answer", 4)
    if not stream:
        told = {name: reply.headers[f"x-suffice-{name}"] for name in ("no-vote", "samples", "over-one")}
        assert told == {"no-vote": "no answer", "samples": "4", "over-one": "3"}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("messages", [OPEN, FORMS["a step of an agent"]["messages"], QUESTION], ids=["", "form", "sum"])
def test_without_an_answer_bytes_go_in_and_bytes_come_out(messages: Any, stream: bool) -> None:
    """Of a sum, where its only draw comes to no value."""
    body = json.dumps({"model": "fake", "messages": messages, "stream": stream, "odd": [1.0]}, indent=3).encode()
    with FakeServer(lambda request, number: POEM, streams=True) as upstream:
        direct = httpx.post(f"{upstream.base_url}/chat/completions", content=body)
        with gateway(upstream, vote="auto") as url:
            reply = httpx.post(f"{url}/v1/chat/completions", content=body)
            recent = httpx.get(f"{url}/v1/suffice/recent").json()["recent"][0]
    assert reply.content == direct.content and upstream.bodies == [body, body]
    assert reply.headers["content-type"] == direct.headers["content-type"]
    assert (recent["samples"], reply.headers["x-suffice-samples"]) == (1, "1")


def test_a_hard_question_is_voted_on_to_its_end_and_the_plurality_comes_back() -> None:
    answers = iter([*range(100, 111), 42, *range(111, 122), 42, 42, *range(122, 140)])
    script = lambda request, number: [boxed(next(answers)) for _ in range(request.get("n", 1))]  # noqa: E731
    with FakeServer(script) as upstream, gateway(upstream, vote="auto") as url:
        reply = post(url, **NAMED["a box"]).json()
    told = reply["suffice"]
    assert told["samples"] > 24 and (told["answer"], told["votes"]["42"]) == ("42", 3)
    assert reply["choices"][0]["message"]["content"] == boxed(42) and told["certainty"] < 0.5


def test_a_sum_is_voted_on_whatever_the_draws_after_its_first_one_come_to() -> None:
    script = lambda request, number: ["6 * 7 = 42" if number == 0 else POEM] * request.get("n", 1)  # noqa: E731
    with FakeServer(script) as upstream, gateway(upstream, vote="auto") as url:
        reply = post(url).json()
    assert reply["choices"][0]["message"]["content"] == "6 * 7 = 42" and reply["suffice"]["votes"] == {"42": 1}
    assert reply["suffice"]["certainty"] < 0.5


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


def test_what_is_passed_on_is_not_held() -> None:
    words = "autumn leaves are falling down upon the quiet town and nobody is there to see them " * 30
    script = lambda request, number: Reply(completion([words]), delay=20)  # noqa: E731
    with (
        FakeServer(script, streams=True) as upstream,
        gateway(upstream, vote="auto") as url,
        httpx.stream(
            "POST", f"{url}/v1/chat/completions", json={"model": "fake", "messages": OPEN, "stream": True}, timeout=60
        ) as reply,
    ):
        pieces = reply.iter_bytes()
        while b"autumn" not in next(pieces):
            pass
        assert upstream.generated < 200, "the rest is still to come"
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
