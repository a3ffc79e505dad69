"""Topics: what the traffic has taught is voted on, and goes on to be while draws agree."""

from itertools import count
from pathlib import Path
from typing import Any

import httpx
import pytest
from helpers.gateways import ASK, BODIES, answered, behind, figures, gateway, logged, post
from helpers.keys import Desk
from helpers.live import boxed, until

from suffice.gateway.operations import state
from suffice.gateway.votes.topics import MIN_LOOKS
from suffice.testing import FakeServer, Reply, completion, message, response

pytestmark = pytest.mark.usefixtures("quick")

NAMES = ("rose", "fox", "oak", "trout", "wren", "moss", "hare", "newt")
_spelling = count()


def asking(text: str, **fields: Any) -> dict[str, Any]:
    """A short question that nothing names the answer of."""
    system = {"role": "system", "content": "You sort living things, each into its family."}
    return {"model": "fake", "messages": [system, {"role": "user", "content": text}], **fields}


class Model:
    """Says the same of one thing each time, or never the same, as it is told."""

    def __init__(self, agrees: bool = True) -> None:
        self.agrees = agrees

    def __call__(self, request: dict[str, Any], number: int) -> Reply:
        thing = str(request["messages"][-1]["content"]).split()[-1]
        said = (
            f"family of {thing}" if self.agrees else f"family {next(_spelling)}" for _ in range(request.get("n", 1))
        )
        return Reply(completion(list(said)))


def topics(url: str, **headers: Any) -> list[dict[str, Any]]:
    told: list[dict[str, Any]] = httpx.get(f"{url}/v1/suffice/topics", trust_env=False, **headers).json()["topics"]
    return told


def looked(url: str, looks: int, topic: str | None = None) -> dict[str, Any]:
    """The topic that was asked last, or of this name, after as many looks."""

    def found() -> dict[str, Any] | None:
        (first, *_) = (one for one in topics(url) if topic in (None, one["topic"]))
        return first if first["looks"] >= looks else None

    told = until(found)
    assert told, topics(url)
    return told


def teach(url: str, looks: int = MIN_LOOKS, **fields: Any) -> dict[str, Any]:
    """Ask until the topic was looked at so often; the looks come after the replies."""
    told: dict[str, Any] = {}
    for number in range(looks):
        reply = post(url, asking(NAMES[number % len(NAMES)], **fields))
        assert reply.headers["x-suffice-no-vote"] == "no answer" and "suffice" not in reply.json()
        told = looked(url, number + 1)
    return told


def test_a_topic_whose_draws_agree_is_voted_on_from_then_on(capfd: Any) -> None:
    with behind(Model(), vote="auto", learn_share=1.0) as (upstream, url):
        before = figures(url)
        told = teach(url)
        draws = [request.get("n", 1) for request in upstream.requests]
        voted = post(url, asking("wren")).json()["suffice"]
        (after,) = topics(url)
        grown = figures(url)
    assert draws == [1, 3] * MIN_LOOKS, "each reply is one of the draws of its look"
    assert (told["route"], told["passed_on"], told["agreement"]) == ("voted on", MIN_LOOKS, 1.0)
    assert told["why"] == f"draws agreed in 100% of pairs, over {MIN_LOOKS} requests" and told["since"] > 0
    assert (voted["answer"], voted["evidence"], voted["draws"][0]) == ("family of wren", "short", 4), (
        "there is no scout"
    )
    assert (after["voted_on"], after["look_tokens"]) == (1, 30 * MIN_LOOKS)
    assert grown['suffice_looks_total{agreed="yes"}'] - before.get('suffice_looks_total{agreed="yes"}', 0) == MIN_LOOKS
    assert grown["suffice_look_tokens_total"] - before["suffice_look_tokens_total"] == 30 * MIN_LOOKS
    *_, last = logged(capfd, method="POST")
    assert (last["route"], last["topic"]) == ("vote", after["topic"])


def test_a_topic_whose_draws_differ_is_never_voted_on() -> None:
    with behind(Model(agrees=False), vote="auto", learn_share=1.0) as (_, url):
        told = teach(url, 2 * MIN_LOOKS)
    assert (told["route"], told["agreement"], told["why"]) == ("passed on", 0.0, "no answer named, and none was taught")


def test_a_topic_whose_draws_agree_on_some_requests_is_looked_at_first() -> None:
    model = Model()
    with behind(model, vote="auto", learn_share=1.0) as (upstream, url):
        for number, agrees in enumerate((True, False, True)):
            model.agrees = agrees
            post(url, asking(NAMES[number]))
            told = looked(url, number + 1)
        before = len(upstream.requests)
        post(url, asking("wren"))
        assert upstream.requests[before].get("n", 1) == 1
    assert told["route"] == "looked at" and told["agreement"] < 0.9


def test_what_was_taught_ends_where_draws_no_longer_agree() -> None:
    model = Model()
    with behind(model, vote="auto", learn_share=1.0) as (_, url):
        assert teach(url)["route"] == "voted on"
        model.agrees = False
        routes: list[str] = []
        while "passed on" not in routes:
            post(url, asking(f"{NAMES[len(routes) % 8]} {len(routes)}"))
            routes.append(topics(url)[0]["route"])
            assert len(routes) < 40
        assert post(url, asking("wren")).headers["x-suffice-no-vote"] == "no answer"
    assert len(routes) >= MIN_LOOKS


def test_what_was_taught_ends_where_first_responses_have_no_answer() -> None:
    """Also of a topic that is looked at first, whose draws go no further then."""
    model = Model()

    def script(request: dict[str, Any], number: int) -> Reply:
        return model(request, number) if model.agrees else Reply(completion(["A long text on it. " * 9]))

    with behind(script, vote="auto", learn_share=1.0) as (_, url):
        for number, agrees in enumerate((True, True, False, True)):
            model.agrees = agrees
            post(url, asking(NAMES[number]))
            told = looked(url, number + 1)
        assert told["route"] == "looked at"
        model.agrees = False
        for number in range(6):
            post(url, asking(f"{NAMES[number]} again"))
        assert topics(url)[0]["route"] == "passed on"


def test_a_topic_whose_draws_go_on_to_agree_goes_on_to_be_voted_on() -> None:
    """Also where a vote takes fewer draws than a look."""
    with behind(Model(), vote="auto", learn_share=1.0, controller="sc:draws=2") as (_, url):
        teach(url)
        told = [post(url, asking(f"the {number} wren")).json() for number in range(24)]
    assert all("suffice" in one for one in told)


def test_a_look_comes_after_the_reply_has_gone() -> None:
    """The draws of a look are held up for ever, and the reply is not."""

    def script(request: dict[str, Any], number: int) -> Reply:
        return Reply(completion(["a rose"] * request.get("n", 1)), delay=300.0 if request.get("n", 1) > 1 else 0.0)

    with behind(script, vote="auto", learn_share=1.0) as (upstream, url):
        reply = post(url, asking("rose"))
        assert reply.json() == completion(["a rose"])
        assert until(lambda: len(upstream.requests) == 2)
        assert topics(url)[0]["looks"] == 0


@pytest.mark.parametrize("path", BODIES)
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_replies_of_every_dialect_teach_whole_and_streamed(path: str, streamed: bool) -> None:
    told = {"chat/completions": completion(["a kin"]), "responses": response("a kin"), "messages": message("a kin")}

    def body(name: str) -> dict[str, Any]:
        asked = [{"role": "user", "content": f"Which family is that of a {name}"}]
        return BODIES[path] | {"stream": streamed, "input" if path == "responses" else "messages": asked}

    with behind(lambda request, number: Reply(told[path]), streams=True, vote="auto", learn_share=1.0) as (_, url):
        for number in range(MIN_LOOKS):
            post(url, body(NAMES[number]), path)
            looked(url, number + 1)
        assert topics(url)[0]["route"] == "voted on"
        assert '"suffice"' in post(url, body("wren"), path).text


def test_the_same_request_again_and_again_teaches_nothing() -> None:
    with behind(Model(), vote="auto", learn_share=1.0) as (_, url):
        for number in range(2 * MIN_LOOKS):
            post(url, asking("rose"))
            assert looked(url, number + 1)["route"] == "passed on"


def test_a_share_of_what_is_passed_on_is_looked_at() -> None:
    with behind(Model(), vote="auto", learn_share=0.5) as (upstream, url):
        for number in range(4):
            post(url, asking(NAMES[number]))
            looked(url, (number + 1) // 2)
        assert [request.get("n", 1) for request in upstream.requests].count(3) == 2
    with behind(Model(), vote="auto", learn_share=0.0) as (upstream, url):
        for number in range(4):
            post(url, asking(NAMES[number]))
        assert len(upstream.requests) == 4


def test_a_reply_that_is_no_short_answer_is_not_drawn_again_and_teaches_that_there_is_none() -> None:
    poem = "Leaves of amber, leaves of gold, that whisper of what the summer told to whoever was there to hear it."
    with behind(lambda request, number: poem, vote="auto", learn_share=1.0) as (upstream, url):
        told = teach(url)
        assert len(upstream.requests) == MIN_LOOKS
    assert (told["route"], told["looks"], told["look_tokens"]) == ("passed on", MIN_LOOKS, 0)


UNTAUGHT: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "temperature 0": ({"temperature": 0}, {}),
    "the client says no": ({"suffice": {"learn": False}}, {}),
    "the operator says no": ({}, {"learn": False}),
    "not by itself": ({}, {"vote": "asked"}),
    "with the client's own key": ({}, {"forward_auth": True}),
    "several choices": ({"n": 2}, {}),
    "tools": ({"tools": [{"type": "function", "function": {"name": "f"}}]}, {}),
}


@pytest.mark.parametrize("why", UNTAUGHT)
def test_some_requests_teach_nothing(why: str) -> None:
    fields, settings = UNTAUGHT[why]
    with behind(Model(), **{"vote": "auto", "learn_share": 1.0, **settings}) as (upstream, url):
        for name in NAMES:
            assert post(url, asking(name, **fields)).status_code == 200
        assert topics(url)[0]["looks"] == 0 and len(upstream.requests) == len(NAMES)


def test_looks_count_for_the_cap_and_end_where_it_is_exhausted() -> None:
    with behind(Model(), vote="auto", learn_share=1.0, over_one=0.01) as (upstream, url):
        post(url, asking("rose"))
        assert looked(url, 1)["look_tokens"] == 30
        for name in NAMES:
            post(url, asking(name))
        told = httpx.get(f"{url}/v1/suffice/recent").json()["costs"]["cap"]
        assert topics(url)[0]["looks"] == 1 and len(upstream.requests) == 2 + len(NAMES)
    assert " % over one response in the last hour, of 1 % at most: " in told


def test_the_client_s_topic_or_else_the_template_says_which_requests_are_alike() -> None:
    with behind(Model(), vote="auto", learn_share=1.0) as (_, url):
        teach(url, suffice={"topic": "families"})
        other = post(url, asking("wren"))
        other_model = post(url, {**asking("wren", suffice={"topic": "families"}), "model": "another"})
        assert "no answer" == other.headers["x-suffice-no-vote"] == other_model.headers["x-suffice-no-vote"]
        assert "suffice" in post(url, asking("wren", suffice={"topic": "families"})).json()
        rows = [(one["model"], one["topic"]) for one in topics(url)]
    assert [model for model, _ in rows] == ["fake", "another", "fake"] and rows[0][1] == rows[1][1] == "families"


def test_without_a_system_prompt_the_words_that_requests_share_are_their_template() -> None:
    def ask(thing: str) -> dict[str, Any]:
        return {
            "model": "fake",
            "messages": [{"role": "user", "content": f"Into which family do you sort this? {thing}"}],
        }

    with behind(Model(), vote="auto", learn_share=1.0) as (_, url):
        for number, name in enumerate(NAMES[:5]):
            post(url, ask(name))
            assert until(lambda wanted=number + 1: sum(one["looks"] for one in topics(url)) == wanted)  # type: ignore[misc]
        assert "suffice" in post(url, ask("wren")).json()


@pytest.mark.parametrize(
    ("policy", "voted"),
    [
        ({"topic": "sums", "vote": "off"}, False),
        ({"topic": "sums", "vote": "always"}, True),
        ({"topic": "sums", "answer": "line"}, True),
        ({"topic": "other", "vote": "off"}, None),
    ],
)
def test_a_policy_fixes_a_topic(policy: dict[str, Any], voted: bool | None) -> None:
    with behind(lambda request, number: boxed(42), vote="auto", policy=[policy]) as (_, url):
        of_topic, open_one = (
            "suffice" in post(url, {**body, "suffice": {"topic": "sums"}}).json() for body in (ASK, asking("rose"))
        )
    assert (of_topic, open_one) == {False: (False, False), True: (True, True), None: (True, False)}[voted]


def test_a_policy_of_a_topic_counts_more_than_one_of_its_key_or_model() -> None:
    policies = [{"model": "fake", "vote": "off"}, {"topic": "sums*", "vote": "always", "controller": "sc", "budget": 3}]
    with behind(lambda request, number: boxed(42), vote="auto", policy=policies) as (_, url):
        told = post(url, {**ASK, "suffice": {"topic": "sums of mine"}}).json()["suffice"]
        assert post(url, ASK).headers["x-suffice-no-vote"] == "off"
    assert (told["samples"], told["budget"]) == (3, 3)


def test_with_keys_everybody_sees_their_own_topic_alone(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    ann, bob = desk.add("ann"), desk.add("bob")
    with FakeServer(Model()) as upstream, desk.gateway(upstream, vote="auto", learn_share=1.0) as url:
        for key in (ann, ann, bob):
            post(url, asking("rose"), headers=key)
        seen = [[(one["topic"], one["passed_on"]) for one in topics(url, headers=key)] for key in (ann, bob)]
        assert httpx.get(f"{url}/v1/suffice/topics", trust_env=False).status_code == 401
    assert seen == [[("ann", 2)], [("bob", 1)]]


def test_gateways_with_one_state_folder_share_their_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "SYNC_SECONDS", 0.01)
    shared: dict[str, Any] = {"vote": "auto", "learn_share": 1.0, "state": str(tmp_path)}
    with FakeServer(Model()) as upstream:
        with gateway(upstream, **shared) as one, gateway(upstream, **shared) as other:
            post(other, asking("rose"))
            looked(other, 1)
            for number in range(1, MIN_LOOKS):
                post(one, asking(NAMES[number]))
                looked(one, number + 1)
            assert looked(other, MIN_LOOKS)["route"] == "voted on"
            assert "suffice" in post(other, asking("wren")).json()
        with gateway(upstream, **shared) as later:
            assert "suffice" in post(later, asking("wren")).json(), "a restart keeps what was taught"
    assert "rose" not in (tmp_path / "looks.jsonl").read_text(), "no text is kept"


def certainty(url: str, body: dict[str, Any]) -> float:
    told: float = post(url, body).json()["suffice"]["certainty"]
    return told


@pytest.mark.parametrize("body", [ASK, {**ASK, "stream": True}], ids=["whole", "streamed"])
def test_the_first_votes_of_a_topic_are_less_certain_than_those_after_them(body: dict[str, Any]) -> None:
    asked = {**ASK, "suffice": {"controller": "sc:draws=4", "topic": "sums"}}
    with behind(lambda request, number: [boxed(42)] * request.get("n", 1), learn=False) as (_, url):
        told = [certainty(url, asked) for _ in range(18)]
        other = certainty(url, asked | {"suffice": {"controller": "sc:draws=4", "topic": "else"}})
    assert max(told[:16]) < 0.9, "four of four in traffic that was never seen"
    assert min(told[16:]) >= 0.98 and other == told[0]


def test_a_request_that_was_asked_for_by_a_taught_topic_only_is_read_as_it_was_taught() -> None:
    with behind(Model(), vote="auto", learn_share=1.0) as (_, url):
        teach(url)
        assert post(url, asking("wren", suffice={"answer": "boxed"})).json()["suffice"]["answer"] is None
    reply, _ = answered(Model(), asking("wren"), vote="auto")
    assert "suffice" not in reply.json()


def test_the_shadow_foretells_what_looks_would_take(capfd: Any) -> None:
    with behind(Model(), vote="shadow", learn_share=0.1) as (upstream, url):
        assert post(url, asking("wren")).headers["x-suffice-no-vote"] == "shadow"
        assert len(upstream.requests) == 1, "it looks at none"
    (line,) = logged(capfd, method="POST")
    assert (line["would_vote"], line["expected_samples"]) == (False, 1.3)


def test_the_shadow_foretells_what_was_taught(capfd: Any, tmp_path: Path) -> None:
    with behind(Model(), vote="auto", learn_share=1.0, state=str(tmp_path)) as (_, url):
        teach(url)
        assert until(lambda: topics(url)[0]["route"] == "voted on")
    capfd.readouterr()
    with behind(Model(), vote="shadow", state=str(tmp_path)) as (_, url):
        assert post(url, asking("wren")).headers["x-suffice-no-vote"] == "shadow"
        assert topics(url)[0]["route"] == "voted on"
    (line,) = logged(capfd, method="POST")
    assert line["would_vote"] and line["expected_samples"] >= 2
