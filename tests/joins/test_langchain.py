"""The runnable for LangChain: any chat model or chain, asked just enough times."""

import asyncio
from typing import Any

import pytest
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda

import suffice
from suffice.langchain import just_enough

pytestmark = pytest.mark.slow


def test_the_elected_message_carries_the_outcome() -> None:
    replies = iter([r"\boxed{7}", r"\boxed{0.5}", r"\boxed{\frac12}", r"\boxed{1/2}"])
    usage = {"input_tokens": 3, "output_tokens": 10, "total_tokens": 13}
    model: RunnableLambda[Any, AIMessage] = RunnableLambda(lambda _: AIMessage(next(replies), usage_metadata=usage))
    message = just_enough(model, controller="sc", budget=4, concurrency=1).invoke([HumanMessage("A half of 1?")])
    outcome = message.response_metadata["suffice"]
    assert outcome["answer"] == "0.5" and outcome["votes"] == {"0.5": 3, "7": 1}
    assert outcome["samples"] == 4 and outcome["tokens"] == 40 and outcome["prompt_tokens"] == 12
    assert message.content != r"\boxed{7}"


def test_in_a_chain_and_awaited() -> None:
    model = FakeListChatModel(responses=[r"So it is \boxed{42}."])
    chain: Any = ChatPromptTemplate.from_messages([("user", "{question}")]) | just_enough(model, budget=16)
    message = asyncio.run(chain.ainvoke({"question": "What is 6 * 7?"}))
    assert message.response_metadata["suffice"]["samples"] == 4
    text = just_enough(model | StrOutputParser(), budget=16).invoke("What is 6 * 7?")
    assert text == r"So it is \boxed{42}."


def test_a_message_that_was_cut_off_does_not_vote() -> None:
    cut = AIMessage(r"\boxed{1}", response_metadata={"finish_reason": "length"})
    replies = iter([cut, cut, AIMessage(r"\boxed{2}")])
    message = just_enough(RunnableLambda(lambda _: next(replies)), controller="sc", budget=3).invoke("Which?")
    assert message.response_metadata["suffice"]["votes"] == {"2": 1}


def test_failures_are_drawn_again_and_a_round_of_them_is_an_error() -> None:
    def fail(_: Any) -> AIMessage:
        raise RuntimeError("overloaded")

    with pytest.raises(suffice.SampleError, match="overloaded"):
        just_enough(RunnableLambda(fail), budget=4).invoke("Which?")


def test_what_is_wrong_is_said_at_once() -> None:
    with pytest.raises(suffice.OptionError, match="budget"):
        just_enough(FakeListChatModel(responses=["x"]), budget=0)
    with pytest.raises(suffice.ControllerError):
        just_enough(FakeListChatModel(responses=["x"]), controller="no-such")
