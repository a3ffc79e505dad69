"""`parse` and `aparse`: objects, elected field by field, as instances of models."""

import datetime
import json
from collections.abc import Callable, Mapping
from functools import partial
from itertools import cycle
from typing import Any, Literal

import pytest
from helpers.live import Ask, ask_async, ask_sync
from pydantic import BaseModel, ConfigDict, field_validator

import suffice
from suffice.testing import FakeServer, Reply, completion

pytestmark = pytest.mark.usefixtures("quick")


class Line(BaseModel):
    sku: str
    quantity: int


class Invoice(BaseModel):
    number: str
    date: datetime.date
    vendor: dict[str, str]
    lines: list[Line]
    paid: bool | None = None


def invoice(**changed: Any) -> dict[str, Any]:
    lines = [{"sku": "A-1", "quantity": 2}, {"sku": "B-7", "quantity": 5}]
    plain = {"number": "INV-1", "date": "2025-03-01", "vendor": {"city": "Bern"}, "lines": lines}
    return {**plain, **changed}


parse_sync = partial(ask_sync, call=suffice.parse)
parse_async = partial(ask_async, call=suffice.aparse)
both = pytest.mark.parametrize("parse", [parse_sync, parse_async])


def say(*values: Any) -> Callable[[dict[str, Any], int], list[str]]:
    """A script that says these over and over: texts as they are, anything else as JSON."""
    texts = cycle([one if isinstance(one, str) else json.dumps(one) for one in values])
    return lambda request, number: [next(texts) for _ in range(request.get("n", 1))]


@both
def test_a_model_s_instance_is_elected(parse: Ask) -> None:
    swapped = invoice()["lines"][::-1]
    wrong = [{"sku": "A-1", "quantity": 3}, {"sku": "B-7", "quantity": 5}]
    values = [
        invoice(),
        invoice(lines=wrong),
        invoice(lines=swapped),
        invoice(paid=True),
        invoice(vendor={"city": "Thun"}),
    ]
    with FakeServer(say(*values)) as server:
        outcome = parse(server, response_format=Invoice, controller="sc:draws=5", temperature=0.5)
    assert outcome.parsed == Invoice.model_validate(invoice())
    assert outcome.parsed.date == datetime.date(2025, 3, 1)
    assert outcome.fields["/lines/0/quantity"].votes == 4 and outcome.fields["/vendor/city"].share == 0.8
    assert outcome.composed is False and outcome.samples == 5 and outcome.stop_reason == "controller"
    (sent, *_) = server.requests
    assert sent["response_format"]["json_schema"] == {"name": "Invoice", "schema": Invoice.model_json_schema()}
    assert sent["temperature"] == 0.5


@both
def test_a_schema_does_as_well(parse: Ask) -> None:
    schema = {"title": "My age?", "type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]}
    with FakeServer(say({"age": 41}, {"age": 14}, {"age": 41}, {"age": "41"})) as server:
        outcome = parse(server, response_format=schema, controller="sc:draws=4")
    assert outcome.parsed == outcome.value == {"age": 41} and json.loads(outcome.answer or "") == {"age": 41}
    assert outcome.fields["/age"].to_json() | {"confidence": 1, "certainty": 1} == {
        "value": 41, "votes": 2, "share": 2 / 3, "confidence": 1, "certainty": 1,
    }  # fmt: skip
    assert server.requests[0]["response_format"]["json_schema"]["name"] == "My_age_", "servers take no other names"
    told = outcome.to_json()
    assert told["fields"]["/age"]["votes"] == 2 and told["value"] == {"age": 41} and told["composed"] is False


def test_an_object_is_put_together_only_where_that_is_asked_for() -> None:
    values = [invoice(number="X"), invoice(date="2024-01-01"), invoice(vendor={"city": "Thun"}), invoice(number="Y"),
              invoice(date="2023-01-01"), invoice(vendor={"city": "Wil"})]  # fmt: skip
    outcome = parse_sync(say(*values), response_format=Invoice, controller="sc:draws=6", compose=True)
    assert outcome.composed is True and outcome.parsed == Invoice.model_validate(invoice())
    said = parse_sync(say(*values), response_format=Invoice, controller="sc:draws=6")
    assert said.composed is False and said.value in values
    assert said.share == 1 / 6, "the votes of what comes back"
    assert (said.confidence, said.certainty) == (None, None), "a field of it is not the elected one"


class Tied(BaseModel):
    """What the model forbids, no schema tells."""

    low: int
    high: int

    @field_validator("high")
    @classmethod
    def _above(cls, high: int, info: Any) -> int:
        if "low" in info.data and high <= info.data["low"]:
            raise ValueError("high is not high")
        return high


def test_an_object_that_the_model_forbids_is_never_given() -> None:
    values = [{"low": 5, "high": 9}, {"low": 1, "high": 4}, {"low": 5, "high": 7}, {"low": 2, "high": 4}]
    outcome = parse_sync(say(*values), response_format=Tied, controller="sc:draws=4")
    assert outcome.composed is False and outcome.value in values, "by field it would be 5 and 4"
    assert outcome.parsed == Tied(**outcome.value)


@pytest.mark.parametrize("bad", ["no JSON", '{"low": 5, "high": 1}', '{"low": "x", "high": 9}', "[]", ""])
def test_an_invalid_response_is_a_draw_without_an_answer(bad: str) -> None:
    outcome = parse_sync(say(bad, {"low": 1, "high": 2}), response_format=Tied, controller="sc:draws=4")
    assert outcome.parsed == Tied(low=1, high=2)
    assert [response.answer is None for response in outcome.responses] == [True, False, True, False]
    assert sum(outcome.votes.values()) == 2 and outcome.samples == 4


def test_no_valid_response_is_no_answer() -> None:
    outcome = parse_sync(say("no"), response_format=Tied)
    assert (outcome.answer, outcome.parsed, outcome.composed, outcome.fields) == (None, None, None, {})
    assert outcome.stop_reason == "no answer" and outcome.response is not None and outcome.response.text == "no"


def test_a_response_that_was_cut_off_has_no_vote() -> None:
    def script(request: dict[str, Any], number: int) -> Reply:
        return Reply(completion(['{"low": 1, "high": 2}'] * request.get("n", 1), finish_reason="length"))

    assert parse_sync(script, response_format=Tied).parsed is None


def test_a_strict_model_reads_json_as_json() -> None:
    class Strict(BaseModel):
        model_config = ConfigDict(strict=True)
        day: datetime.date
        kind: Literal["a", "b"]
        pair: tuple[int, int]

    outcome = parse_sync(say({"day": "2025-03-01", "kind": "a", "pair": [1, 2]}), response_format=Strict)
    assert outcome.parsed == Strict(day=datetime.date(2025, 3, 1), kind="a", pair=(1, 2))


def test_a_list_of_models_may_be_asked_for() -> None:
    with FakeServer(say([{"sku": "A", "quantity": 1}])) as server:
        assert parse_sync(server, response_format=list[Line]).parsed == [Line(sku="A", quantity=1)]


def test_fields_are_left_out_or_compared_loosely() -> None:
    values = [{"city": "St. Gallen", "note": 1}, {"city": "Wil", "note": 2}, {"city": "st gallen", "note": 3}]
    schema: Mapping[str, Any] = {"type": "object"}
    with FakeServer(say(*values)) as server:
        loose = parse_sync(
            server, response_format=schema, controller="sc:draws=3", ignore=["/note"], compare={"/city": "loose"}
        )
    assert loose.fields["/city"].votes == 2 and loose.fields["/note"].confidence is None
    assert loose.value in (values[0], values[2]), "what is ignored comes from a response that agrees with the rest"


def test_free_text_does_not_hold_up_the_vote() -> None:
    def script(request: dict[str, Any], number: int) -> list[str]:
        why = "It says so on page {} of {}, and again in the letter of the mayor."
        return [json.dumps({"age": 41, "why": why.format(number, draw)}) for draw in range(request.get("n", 1))]

    outcome = parse_sync(script, response_format={"type": "object"})
    assert outcome.stop_reason == "controller" and outcome.samples < 10
    assert outcome.fields["/why"].confidence is None and (outcome.confidence or 0) > 0.9


def test_in_flow_too() -> None:
    with FakeServer(say(invoice()), streams=True) as server:
        outcome = parse_sync(server, response_format=Invoice, flow=suffice.Flow(extra=2))
    assert outcome.parsed == Invoice.model_validate(invoice()) and outcome.stop_reason == "controller"


def test_moments_tell_how_the_fields_stand() -> None:
    moments: list[Any] = []
    with FakeServer(say({"age": 41}, {"age": 14}, {"age": 41})) as server:
        parse_sync(server, response_format={"type": "object"}, controller="sc:draws=3", watch=moments.append)
    assert [one.fields["/age"].votes for one in moments if one.decision == 0] == [{"41": 2, "14": 1}]
    assert moments[-1].confidence == pytest.approx(suffice.confidence(moments[-1].fields["/age"]))


def test_what_can_t_be_a_format_is_refused() -> None:
    with FakeServer(say("{}")) as server:
        for wrong in (5, "Invoice", len, {"type": "nonsense"}, {"$ref": "http://example.com/schema"}):
            with pytest.raises(suffice.OptionError, match=r"^(response_format|schema) "):
                parse_sync(server, response_format=wrong)
        with pytest.raises(suffice.OptionError, match="answer can't be given here"):
            parse_sync(server, response_format=Invoice, answer="json")
        with pytest.raises(suffice.OptionError, match="ignore needs a JSON pointer"):
            parse_sync(server, response_format=Invoice, ignore=["lines"])
        assert server.served == 0
