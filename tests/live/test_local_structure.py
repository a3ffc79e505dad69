"""Structure from the embedded model, which llama.cpp holds to a JSON schema."""

import json
from typing import Literal

import openai
import pytest
from helpers.gateways import gateway, post
from pydantic import BaseModel

import suffice

pytestmark = pytest.mark.slow


class Place(BaseModel):
    city: Literal["Bern", "Paris", "Rome"]
    year: int


DOCUMENTS = {
    "The conference took place in Paris in 1998.": Place(city="Paris", year=1998),
    "They were married in Rome, in the spring of 2004.": Place(city="Rome", year=2004),
    "The tower in Bern was built in 1405.": Place(city="Bern", year=1405),
}


def messages(document: str) -> list[dict[str, str]]:
    asked = "Which city and which year does this text name? Reply in JSON.\n\n"
    example = "The old library in Rome burned down in 1877."
    return [
        {"role": "user", "content": asked + example},
        {"role": "assistant", "content": '{"city": "Rome", "year": 1877}'},
        {"role": "user", "content": asked + document},
    ]


@pytest.mark.parametrize(("document", "place"), DOCUMENTS.items(), ids=[one.city for one in DOCUMENTS.values()])
def test_a_document_is_parsed(local: suffice.LocalServer, document: str, place: Place) -> None:
    with openai.OpenAI(base_url=local.base_url, api_key="none") as client:
        outcome = suffice.parse(
            client, messages(document), model=local.model, response_format=Place, max_tokens=60, seed=1, budget=16
        )
    assert outcome.parsed == place
    assert set(outcome.fields) == {"/city", "/year"} and 0 < outcome.samples <= 16
    assert all(field.confidence is not None and field.votes <= outcome.samples for field in outcome.fields.values())


def test_the_gateway_gives_the_same(local: suffice.LocalServer) -> None:
    (document, place), *_ = DOCUMENTS.items()
    form = {"type": "json_schema", "json_schema": {"name": "place", "schema": Place.model_json_schema()}}
    body = {"model": local.model, "messages": messages(document), "response_format": form, "max_tokens": 60, "seed": 1}
    with gateway(local.base_url, vote="auto", budget=16) as url:
        told = post(url, body | {"suffice": {}}).json()  # a seed alone is one draw
    assert Place.model_validate_json(told["choices"][0]["message"]["content"]) == place
    assert told["suffice"]["fields"]["/year"]["value"] == place.year and told["suffice"]["composed"] in (True, False)
    assert json.loads(told["suffice"]["answer"]) == place.model_dump()
