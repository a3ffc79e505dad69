"""For LangChain: any chat model or chain, asked just enough times (extra: langchain)."""

from typing import TYPE_CHECKING, Any

from suffice.live.outcome import Outcome
from suffice.live.sample import run_in_thread, vote_on
from suffice.live.sampling import Sampling, takes_sampling
from suffice.response import Response

if TYPE_CHECKING:
    from langchain_core.runnables import Runnable

__all__ = ["just_enough"]


@takes_sampling
def just_enough(model: Any, *, sampling: Sampling | None = None, **settings: Any) -> "Runnable[Any, Any]":
    r"""A runnable that asks another just enough times.

    Args:
        model: A chat model or a chain.
        sampling: How to ask; retries, timeouts and log probabilities are the model's own matter.
        settings: Its fields by name, as `controller`, `budget`, `answer` and `concurrency`.

    Returns:
        A runnable whose result is the message that was elected, with the outcome in `response_metadata["suffice"]`.
        Where the other returns text, so does it.

    Raises:
        OptionError: where a setting is wrong; ControllerError, where the controller is.

    >>> from langchain_core.language_models import FakeListChatModel
    >>> message = just_enough(FakeListChatModel(responses=[r"\boxed{42}"])).invoke("What is 6 * 7?")
    >>> message.content, message.response_metadata["suffice"]["votes"]
    ('\\boxed{42}', {'42': 4})
    """
    from langchain_core.runnables import RunnableLambda

    chosen = (sampling or Sampling()).replaced(**settings)

    async def asked(given: Any, config: Any) -> Any:
        messages: dict[int, Any] = {}

        async def ask(number: int) -> Response:
            messages[number] = reply = await model.ainvoke(given, config)
            return _response(reply)

        return _elected(await vote_on(ask, _question(given), chosen), messages)

    def called(given: Any, config: Any) -> Any:
        return run_in_thread(lambda: asked(given, config))

    return RunnableLambda(called, asked, name="just_enough")


def _response(reply: Any) -> Response:
    if isinstance(reply, str):
        return Response(reply)
    about = getattr(reply, "response_metadata", None) or {}
    usage = getattr(reply, "usage_metadata", None) or {}
    reason = about.get("finish_reason") or {"max_tokens": "length"}.get(about.get("stop_reason", ""))
    text = reply.text if isinstance(reply.text, str) else str(reply.content)
    return Response(text, reason, usage.get("output_tokens"), prompt_tokens=usage.get("input_tokens", 0))


def _question(given: Any) -> str:
    """What is asked, as far as it can be told from what goes in."""
    if isinstance(given, str):
        return given
    messages = given.to_messages() if hasattr(given, "to_messages") else given
    last = messages[-1] if isinstance(messages, list) and messages else None
    content = last[1] if isinstance(last, tuple) else getattr(last, "content", None)
    return content if isinstance(content, str) else ""


def _elected(outcome: Outcome, messages: dict[int, Any]) -> Any:
    chosen = messages[outcome.response.draw] if outcome.response else None
    if chosen is None or isinstance(chosen, str):
        return chosen
    about = {name: value for name, value in outcome.to_json().items() if name != "response"}
    return chosen.model_copy(update={"response_metadata": {**chosen.response_metadata, "suffice": about}})
