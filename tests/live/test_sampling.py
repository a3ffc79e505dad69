"""How a question is asked, as one value: what it checks, and who takes it."""

import inspect
from collections.abc import Callable
from typing import Any

import openai
import pytest
from helpers.live import QUESTION

import suffice
from suffice.langchain import just_enough
from suffice.ray import ask
from suffice.testing import FakeServer

pytestmark = pytest.mark.usefixtures("quick")


@pytest.mark.parametrize(
    "settings, sentence",
    [
        ({"budget": 2.5}, "budget must be a whole number"),
        ({"concurrency": 0}, "concurrency must be a whole number, at least 1"),
        ({"retries": -1}, "retries must be a whole number, at least 0"),
        ({"timeout_seconds": 0}, "timeout_seconds must be a number above 0"),
        ({"deadline_seconds": -1}, "deadline_seconds must be a number above 0"),
        ({"answer": "nonsense"}, "unknown extractor"),
        ({"elect": "nonsense"}, "unknown election"),
        ({"flow": "order=size"}, "flow can't be .* order must be launch, arrival or auto"),
        ({"flow": "extra=-1"}, "extra must be a whole number, at least 0"),
        ({"flow": True, "controller": "sc"}, "means whole rounds"),
        ({"flow": True, "controller": "esc"}, "means whole rounds"),
        ({"flow": True, "controller": "doubling"}, "means whole rounds"),
        ({"patience": -1}, "patience must be a number, at least 0"),
        ({"ignore": ["/note"]}, "ignore is for fields of JSON"),
        ({"compare": {"/note": "loose"}}, "compare is for fields of JSON"),
        ({"answer": "json", "ignore": ["note"]}, "ignore needs a JSON pointer"),
        ({"answer": "json", "elect": "weighted:signal=logprob,strength=0.4"}, "elect must be majority"),
    ],
)
def test_what_is_wrong_is_said_when_it_is_made(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(suffice.SufficeError, match=sentence):
        suffice.Sampling(**settings)


def test_settings_by_name_count_more_than_the_value_that_is_given() -> None:
    usual = suffice.Sampling(controller="sc", budget=3, retries=0)
    with (
        FakeServer(lambda request, number: r"\boxed{42}") as server,
        openai.OpenAI(base_url=server.base_url, api_key="none") as client,
    ):
        assert suffice.sample(client, QUESTION, model="fake", sampling=usual).samples == 3
        outcome = suffice.sample(client, QUESTION, model="fake", sampling=usual, budget=2, temperature=0.5)
    assert outcome.samples == 2 and usual.budget == 3
    assert server.requests[-1]["temperature"] == 0.5 and "budget" not in server.requests[-1]


@pytest.mark.parametrize("function", [suffice.sample, suffice.asample, suffice.parse, suffice.aparse, just_enough, ask])
def test_help_shows_the_settings_of_all_who_take_them(function: Callable[..., Any]) -> None:
    shown = inspect.signature(function).parameters
    assert {name: field.default for name, field in suffice.Sampling.model_fields.items()}.items() <= {
        name: one.default for name, one in shown.items()
    }.items()


@pytest.mark.parametrize(
    "given, flow",
    [
        (None, None),
        (False, None),
        ("false", None),
        (True, suffice.Flow()),
        ("true", suffice.Flow()),
        ("auto", suffice.Flow("auto", suffice.Flow("auto").extra)),
        ("extra=2", suffice.Flow(extra=2)),
        (suffice.Flow("arrival"), suffice.Flow("arrival")),
    ],
)
def test_flow_is_a_switch_a_text_or_a_value(given: Any, flow: suffice.Flow | None) -> None:
    assert suffice.Sampling(flow=given).voting.flow == flow
    assert flow is None or suffice.Sampling(flow=str(flow)).voting.flow == flow
