"""Votes on structure, as the gateway's clients meet them."""

import json
from collections.abc import Callable, Sequence
from itertools import cycle
from typing import Any

import pytest
from helpers.gateways import ASK, MESSAGES, answered, gateway, official, post

from suffice.testing import FakeServer, Reply, completion

pytestmark = pytest.mark.usefixtures("quick")

SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "zip": {"type": "integer"}},
    "required": ["city", "zip"],
    "additionalProperties": False,
}
ANY = {"type": "json_object"}
FITTING = {"type": "json_schema", "json_schema": {"name": "place", "schema": SCHEMA}}


def say(*values: Any) -> Callable[[dict[str, Any], int], list[str]]:
    """A script that says these over and over: texts as they are, anything else as JSON."""
    texts = cycle([one if isinstance(one, str) else json.dumps(one) for one in values])
    return lambda request, number: [next(texts) for _ in range(request.get("n", 1))]


def place(city: Any, zip_code: Any = 3011, **more: Any) -> dict[str, Any]:
    return {"city": city, "zip": zip_code, **more}


def voted(values: Sequence[Any], body: dict[str, Any], **settings: Any) -> dict[str, Any]:
    """The reply to a request, with what its message says read as JSON."""
    reply, upstream = answered(say(*values), ASK | body, **{"vote": "auto", **settings})
    assert reply.status_code == 200, reply.text
    told: dict[str, Any] = reply.json()
    content = told["choices"][0]["message"].get("content")
    return {"value": json.loads(content) if content else None, "asked": upstream.requests, **told}


@pytest.mark.parametrize("form", [ANY, FITTING], ids=["json_object", "json_schema"])
def test_a_response_format_is_voted_on_and_the_reply_is_a_normal_completion(form: dict[str, Any]) -> None:
    values = [place("Bern"), place("Thun"), place("Bern"), place("Bern", 3011.0)]
    with official(say(*values), vote="auto", controller="sc:draws=4") as (upstream, client):
        reply: Any = client.chat.completions.create(model="fake", messages=MESSAGES, response_format=form)  # type: ignore[call-overload]
    assert json.loads(reply.choices[0].message.content) == place("Bern")
    assert upstream.requests[0]["response_format"] == form
    told = reply.model_dump()["suffice"]
    assert told["composed"] is False and told["samples"] == 4 and reply.usage.completion_tokens == 40
    city, code = told["fields"]["/city"], told["fields"]["/zip"]
    assert (city["value"], city["votes"], city["share"]) == ("Bern", 3, 0.75)
    assert (code["value"], code["votes"], code["share"]) == (3011, 4, 1.0)
    assert (
        0 < city["same_as_full_vote"] < code["same_as_full_vote"] <= 1
        and 0 < city["certainty"] < code["certainty"] <= 1
    )
    assert told["same_as_full_vote"] == city["same_as_full_vote"], "it is as sure as its least sure field"


def test_what_comes_back_was_said() -> None:
    values = [place("Bern", 1), place("Thun", 3011), place("Bern", 2), place("Chur", 3011), place("Bern", 4)]
    told = voted(values, {"response_format": FITTING}, controller="sc:draws=5")
    assert told["value"] in values
    assert told["suffice"]["composed"] is False and told["suffice"]["certainty"] is None
    assert told["choices"][0]["finish_reason"] == "stop"


@pytest.mark.parametrize("asked_by", ["the request", "the operator"])
def test_an_object_that_nobody_said_comes_back_only_where_it_is_asked_for(asked_by: str) -> None:
    values = [place("Bern", 3011, floor=1), place("Bern", 1, floor=2), place("Thun", 3011, floor=2)]
    body = {"response_format": ANY, "suffice": {"compose": True} if asked_by == "the request" else {}}
    told = voted(values, body, controller="sc:draws=6", compose=asked_by == "the operator")
    assert told["value"] == place("Bern", 3011, floor=2) and told["suffice"]["composed"] is True


def test_one_of_the_responses_comes_as_it_came() -> None:
    spelled = '{ "zip": 3011,\n  "city": "Bern" }'
    reply = answered(say(spelled), ASK | {"response_format": ANY}, vote="auto").reply.json()
    assert reply["choices"][0]["message"]["content"] == spelled
    assert reply["suffice"]["composed"] is False
    assert reply["suffice"]["stop_reason"] == "controller", "that JSON repeats to the letter is no sign of a copy"


@pytest.mark.parametrize("streamed", [False, True])
def test_a_scout_that_is_an_object_is_voted_on(streamed: bool) -> None:
    body = ASK | {
        "messages": [{"role": "user", "content": "Extract it: 3011 Bern, Rathausgasse 1."}],
        "response_format": ANY,
    }
    values = [place("Bern", note=1), place("Bern", note=2)]
    reply, _ = answered(
        say(*values),
        body | {"response_format": ANY, "stream": streamed, "suffice": {"ignore": ["/note"]}},
        streams=True,
        vote="auto",
        controller="sc:draws=5",
    )
    told = reply.json() if not streamed else last_told(reply.text)
    assert told["suffice"]["samples"] == 5
    assert {"/city", "/zip"} <= set(told["suffice"]["fields"])
    assert told["suffice"]["fields"]["/note"]["same_as_full_vote"] is None, "what the client ignores, is"


def last_told(stream: str) -> dict[str, Any]:
    """The chunk of a stream that has the `suffice` object."""
    chunks = [json.loads(line[6:]) for line in stream.splitlines() if line.startswith("data: {")]
    (told,) = [chunk for chunk in chunks if "suffice" in chunk]
    return told  # type: ignore[no-any-return]


def test_the_operator_s_path_is_honoured_for_a_response_format() -> None:
    values = [{"age": 41, "name": "A"}, {"age": 41, "name": "B"}, {"age": 14, "name": "C"}]
    told = voted(values, {"response_format": ANY}, answer="json:age", controller="sc:draws=3")
    assert told["suffice"]["answer"] == "41" and told["suffice"]["votes"] == {"41": 2, "14": 1}
    assert "fields" not in told["suffice"] and told["value"]["age"] == 41


def test_fields_are_compared_as_the_client_says() -> None:
    values = [
        place("St. Gallen", note="x"),
        place("Wil", note="y"),
        place("st gallen", note="z"),
        place("Wil", 9, note=""),
    ]
    wish = {"compare": {"/city": "loose"}, "ignore": ["/note"]}
    told = voted(
        [*values, place("ST. GALLEN")],
        {"response_format": ANY, "suffice": wish},
        controller="sc:draws=5",
        vote="always",
    )
    assert told["suffice"]["fields"]["/city"]["votes"] == 3 and told["value"]["city"].casefold().startswith("st")
    told = voted([*values, place("ST. GALLEN")], {"response_format": ANY}, controller="sc:draws=5", vote="always")
    assert told["value"]["city"] == "Wil"


@pytest.mark.parametrize(
    "wish", [{"compare": {"/city": "strict"}}, {"compare": {"city": "loose"}}, {"compare": []}, {"ignore": "/note"}]
)
def test_a_comparison_that_means_nothing_is_refused(wish: dict[str, Any]) -> None:
    reply, upstream = answered(say("{}"), ASK | {"suffice": wish}, vote="auto")
    assert reply.status_code == 400 and reply.json()["error"]["param"] == f"suffice.{next(iter(wish))}"
    assert upstream.served == 0


def test_free_text_does_not_hold_up_the_vote() -> None:
    def script(request: dict[str, Any], number: int) -> list[str]:
        return [
            json.dumps(
                place("Bern", why=f"It says so on page {number} of {draw}, and again in the letter of the mayor.")
            )
            for draw in range(request.get("n", 1))
        ]

    told = answered(script, ASK | {"response_format": ANY}).reply.json()["suffice"]
    assert told["stop_reason"] == "controller" and told["samples"] < 10
    assert told["fields"]["/why"]["same_as_full_vote"] is None and told["fields"]["/city"]["same_as_full_vote"] > 0.9
    assert told["same_as_full_vote"] > 0.9


def test_never_an_object_that_breaks_its_schema() -> None:
    tied = {
        "type": "object",
        "properties": {"country": {"enum": ["CH", "FR"]}, "city": {"type": "string"}},
        "oneOf": [
            {"properties": {"country": {"const": "CH"}, "city": {"enum": ["Bern", "Genf"]}}},
            {"properties": {"country": {"const": "FR"}, "city": {"enum": ["Paris", "Lyon", "Nancy"]}}},
        ],
        "required": ["country", "city"],
    }
    given = ["CH Bern", "FR Paris", "CH Genf", "FR Paris", "CH Bern", "FR Paris", "CH Genf"]
    values: list[Any] = [dict(zip(("country", "city"), one.split(), strict=True)) for one in given]
    broken = [{"country": "CH", "city": "Paris"}] * 9
    form = {"type": "json_schema", "json_schema": {"name": "place", "schema": tied}}
    for answer in ({}, {"suffice": {"answer": "json"}}):
        told = voted([*values, *broken], {"response_format": form, **answer}, controller="sc:draws=16")
        assert told["value"] in values, "by field it would be CH and Paris"
        assert told["suffice"]["composed"] is False
        assert sum(told["suffice"]["votes"].values()) == 7, "what is not allowed is a draw without an answer"


def test_a_schema_that_is_none_is_the_upstream_s_to_judge() -> None:
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "nonsense"}}}
    assert voted([place("Bern")], {"response_format": form})["value"] == place("Bern")


TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "look_up",
            "parameters": {
                "type": "object",
                "properties": {"city": {"$ref": "#/$defs/city"}, "days": {"type": "integer"}},
                "$defs": {"city": {"type": "string"}},
            },
        },
    }
]


def calling(*arguments: Any) -> Callable[[dict[str, Any], int], Reply]:
    given = cycle(arguments)

    def script(request: dict[str, Any], number: int) -> Reply:
        body = completion([None] * request.get("n", 1), finish_reason="tool_calls")
        for choice in body["choices"]:
            function = {"name": "look_up", "arguments": json.dumps(next(given))}
            choice["message"]["tool_calls"] = [{"id": f"c{number}", "type": "function", "function": function}]
        return Reply(body)

    return script


@pytest.mark.parametrize("streamed", [False, True])
def test_tool_calls_are_elected_field_by_field(streamed: bool) -> None:
    given = [("Bern", 1), ("Thun", 7), ("Bern", 2), ("Chur", 7), ("Bern", "7"), ("Bern", "7"), ("Wil", 7)]
    script = calling(*({"city": city, "days": days} for city, days in given))
    body = ASK | {"tools": TOOLS, "stream": streamed, "suffice": {"answer": "tool:fields"}}
    reply, _ = answered(script, body, controller="sc:draws=7")
    told = last_told(reply.text) if streamed else reply.json()
    if streamed:
        chunks = [json.loads(line[6:]) for line in reply.text.splitlines() if line.startswith("data: {")]
        (calls,) = [found for chunk in chunks if (found := chunk["choices"][0]["delta"].get("tool_calls"))]
        assert calls[0]["index"] == 0
    else:
        calls = told["choices"][0]["message"]["tool_calls"]
    (call,) = calls
    arguments = json.loads(call["function"]["arguments"])
    assert call["function"]["name"] == "look_up" and (arguments["city"], arguments["days"]) in given
    assert call["id"] and call["type"] == "function" and told["choices"][0]["finish_reason"] == "tool_calls"
    assert told["suffice"]["composed"] is False
    assert told["suffice"]["fields"]["/0/arguments/days"]["votes"] in (1, 3), (
        "a call that its tool does not take has no vote"
    )


HOSTILE = {
    "duplicate keys": '{"city": "Bern", "city": "Thun", "zip": 1}',
    "NaN": '{"city": "Bern", "zip": NaN}',
    "1e999": '{"city": "Bern", "zip": 1e999}',
    "10 MB": '{"city": "' + "B" * 10_000_000 + '", "zip": 1}',
    "10 MB of brackets": "[" * 10_000_000,
    "depth 10,000": '{"city": ' * 10_000 + "1" + "}" * 10_000,
    "half a surrogate pair": '{"city": "\\ud800", "zip": 1}',
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_json_has_no_vote_and_alone_it_is_no_answer(text: str) -> None:
    good = json.dumps(place("Bern"))
    told = voted([text, good], {"response_format": FITTING}, controller="sc:draws=4", vote="always")
    assert told["value"] == place("Bern")
    assert sum(told["suffice"]["votes"].values()) == 2 and told["suffice"]["samples"] == 4
    reply, upstream = answered(say(text), ASK | {"response_format": ANY}, vote="auto")
    assert "suffice" not in reply.json() and len(upstream.requests) == 1
    assert reply.json()["choices"][0]["message"]["content"] == text, "the first response is the reply"


def test_made_up_data_goes_back_as_it_came() -> None:
    people = [
        {"name": name, "age": age, "city": city} for name, age, city in zip("ABCDE", range(5), "VWXYZ", strict=True)
    ]
    reply, upstream = answered(say(*people), ASK | {"response_format": ANY}, vote="auto")
    assert "suffice" not in reply.json() and json.loads(reply.json()["choices"][0]["message"]["content"]) == people[0]
    assert len(upstream.requests) == 1


@pytest.mark.parametrize("depth", [500, 100_000])
def test_a_hostile_schema_does_no_harm(depth: int) -> None:
    form = '{"type": "json_schema", "json_schema": {"name": "x", "schema": %s}}'
    body = json.dumps(ASK)[:-1] + ', "response_format": ' + form % ('{"not": ' * depth + "{}" + "}" * depth) + "}"
    with FakeServer(say(place("Bern"))) as upstream, gateway(upstream, vote="auto") as url:
        assert post(url, body.encode()).status_code in (200, 400)
        assert post(url, ASK | {"response_format": ANY}).status_code == 200


def test_a_stream_tells_how_the_fields_stand() -> None:
    values = [place("Bern"), place("Thun"), *[place("Bern")] * 30]
    text = answered(
        say(*values), ASK | {"response_format": FITTING, "stream": True}, vote="auto", controller="sc:draws=4"
    ).reply.text
    moments = [json.loads(line[10:]) for line in text.splitlines() if line.startswith(": suffice ")]
    assert moments[-1]["fields"] == {"/city": {'"Bern"': 3, '"Thun"': 1}, "/zip": {"3011": 4}}
    assert moments[-1]["same_as_full_vote"] == pytest.approx(last_told(text)["suffice"]["same_as_full_vote"])
