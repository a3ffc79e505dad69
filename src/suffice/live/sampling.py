"""`Sampling`: how a question is asked, as one value that is made once and passed on whole."""

import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from pydantic import model_validator

from suffice.answers import Extractor, Read, get_extractor
from suffice.controllers import Controller, get_controller
from suffice.elections import LENGTH, Election, Majority, get_election
from suffice.errors import OptionError
from suffice.flow import ABOUT, METAVAR, Flow, get_flow, paying_extra
from suffice.live.dialects import CHAT, Dialect
from suffice.live.servers.clients import host_of, poster, several
from suffice.live.servers.gate import Limiter
from suffice.live.servers.hosts import Fleet
from suffice.live.servers.retry import RETRIES, RetryPolicy
from suffice.live.servers.server import TIMEOUT, Server
from suffice.live.signals import NAMES
from suffice.live.vote import Voting
from suffice.options import Options, Whole, option
from suffice.penalties import Costs, Penalties
from suffice.planning import Plan
from suffice.tally import DEFAULT_BUDGET

if TYPE_CHECKING:
    from suffice.planning.right import Calibration

F = TypeVar("F", bound=Callable[..., Any])


class Sampling(Options):
    """How a question is asked just enough times: its fields are the keyword arguments of `sample` and its kin.

    What is wrong raises an OptionError here, or a ControllerError, and not by the first question.

    >>> usual = Sampling(controller="asc", budget=16)
    >>> usual.voting.controller, usual.timeout_seconds
    (AdaptiveSelfConsistency(threshold=0.95), 600.0)
    >>> Sampling(budget=0)
    Traceback (most recent call last):
    ...
    suffice.errors.OptionError: budget must be a whole number, at least 1, not 0
    """

    controller: str | Controller = option("plan", "A controller, as NAME or NAME:key=value,….", "C")
    budget: Whole = option(DEFAULT_BUDGET, "The most draws for a question.", ge=1)
    answer: str | Extractor | Read = option(
        "auto", "How to find the answer: auto, boxed, number, choice, line, json:PATH or regex:PATTERN.", "X"
    )
    ignore: Sequence[str] = option((), "Leave a field of the JSON out of the vote: /note.", "POINTER")
    compare: Mapping[str, str] | None = option(None, 'How fields of the JSON are compared: {"/city": "loose"}.')
    compose: bool = option(False, "Where no JSON that was drawn has all the elected fields, put one together.")
    elect: str | Election = option(
        "majority", "How the answer is elected: majority, weighted:signal=logprob,strength=0.4, …", "E"
    )
    flow: Flow | str | bool | None = option(None, ABOUT, METAVAR)
    signals: bool = option(False, "Ask for log probabilities, and keep what they tell of each response.")
    right: Any = option(
        None, "A calibration, by suffice calibrate: tell how probable it is that the answer is right.", "FILE"
    )
    risk: float | None = option(
        None, "Mark what is not sure enough for so small a share of wrong answers; needs --right.", "SHARE"
    )
    deadline_seconds: float | None = option(None, "Stop after so many seconds with what there is.", gt=0)
    patience: float = option(0.0, "After the first response, take at most so many times what it took; 0: no end.", ge=0)
    concurrency: Whole = option(64, "The most draws in flight at once.", ge=1)
    retries: Whole = option(RETRIES, "How often a request that failed is tried again.", ge=0)
    timeout_seconds: float = option(TIMEOUT, "Give a request so many seconds before it is tried again.", gt=0)

    @model_validator(mode="after")
    def _check(self) -> Self:
        _ = self.threshold
        for doubt in self.calibration.doubts(str(self.controller), self.budget, self.risk) if self.calibration else ():
            warnings.warn(doubt, stacklevel=4)
        if self.voting.flow:
            self.voting.flow.check(self.voting.controller)
        return self

    @cached_property
    def extractor(self) -> Extractor:
        """What finds the answer in a response."""
        found = get_extractor(self.answer)
        if not (self.ignore or self.compare or self.compose):
            return found
        if found.structure is None:
            which = "ignore" if self.ignore else "compare" if self.compare else "compose"
            raise OptionError("is for fields of JSON: give a schema, or the answer json", which)
        compare = dict(self.compare or {})
        return replace(found.structure, ignore=tuple(self.ignore), compare=compare, compose=self.compose)

    @cached_property
    def calibration(self) -> "Calibration | None":
        """What says how probable it is that an answer is right."""
        return None if self.right is None else get_calibration(self.right)

    @cached_property
    def threshold(self) -> float | None:
        """From what probability on an answer is sure enough; None where no risk is named."""
        return None if self.risk is None else threshold_of(self.calibration, self.risk)

    @cached_property
    def voting(self) -> Voting:
        """How votes are held by these settings."""
        return Voting(
            get_controller(self.controller),
            self.extractor,
            self.budget,
            get_flow(self.flow) if self.flow else None,
            signals=self.signals,
            election=election_of(self.elect, self.extractor),
            calibration=self.calibration,
            threshold=self.threshold,
            patience=self.patience,
        )

    def server(
        self, clients: Any, dialect: Dialect = CHAT, weights: Sequence[float] = (), limiter: Limiter | None = None
    ) -> Server:
        """What asks these clients' servers, with the retries, the timeout and the concurrency that are set.

        Args:
            clients: A client of the `openai` or `anthropic` package, or several.
            dialect: What is spoken with them.
            weights: The share of each in the questions; the same for all by default.
            limiter: What the draws of several such servers share; one of its own by default.
        """
        clients, limiter = several(clients), limiter or Limiter(self.concurrency)
        posts = {
            host_of(client, weight): poster(client, self.timeout_seconds, limiter.limit, dialect)
            for client, weight in zip(clients, weights or [1.0] * len(clients), strict=True)
        }
        retry = RetryPolicy(self.retries).for_patience(self.patience)
        return Server(Fleet(list(posts)), posts.__getitem__, limiter, dialect, retry, self.timeout_seconds)


NEVER = 2.0  # a threshold that nothing reaches: where none keeps the risk, nothing is sure enough


def get_calibration(right: "str | Path | Calibration") -> "Calibration":
    from suffice.planning.right import load_calibration  # where none is used, nothing of it is loaded

    return load_calibration(right) if isinstance(right, str | Path) else right


def threshold_of(calibration: "Calibration | None", risk: float) -> float:
    """Return the probability to be right from which on an answer is sure enough."""
    if calibration is None:
        raise OptionError("needs a calibration: make one with suffice calibrate, and give it too (right)", "risk")
    known = calibration.threshold(risk)
    return NEVER if known is None else known


def election_of(elect: str | Election, extractor: Extractor) -> Election | None:
    """Return an election that can weigh live responses; None for the plain majority."""
    election = get_election(elect)
    if isinstance(election, Majority):
        return None
    if extractor.structure:
        raise OptionError("must be majority: by that the fields of an object are elected, each for itself", "elect")
    for name in election.signals:
        if name not in (*NAMES, LENGTH):
            known = ", ".join(NAMES)
            raise OptionError(f'weighs by "{name}", and live responses have {known} and {LENGTH}', "elect")
    return election


def priced(settings: Mapping[str, Any], costs: Costs) -> dict[str, Any]:
    """Let the plan of a sampling, and the extra draws of its flow, follow from prices.

    Raises:
        OptionError: where a price lacks what it is multiplied by, or the controller is no plan.

    >>> priced({"flow": "auto"}, Costs(seconds_per_round=2, value_of_a_second=0.01, value_of_an_answer=1))["flow"]
    'order=auto,extra=4'
    """
    plan = get_controller(settings.get("controller", USUAL.controller))
    if not isinstance(plan, Plan):
        raise OptionError(f"needs the controller plan, which weighs prices, not {plan}", "value_of_a_second")
    if costs.value_of_a_second and not costs.seconds_per_round:
        raise OptionError("must be given, to know what waiting for a round costs", "seconds_per_round")
    if costs.price_per_million_tokens and not costs.tokens_per_sample:
        raise OptionError("must be given, to know what a draw costs", "tokens_per_sample")
    # What has no price keeps the penalty that it has in the plan.
    draw = costs.penalties.draw if costs.price_per_million_tokens else plan.penalty_draw
    round_ = costs.penalties.round if costs.value_of_a_second else plan.penalty_round
    flow = get_flow(settings.get("flow"))
    found = dict(settings)
    if flow and flow.is_auto:
        found["flow"] = str(Flow("auto", paying_extra(Penalties(draw, round_))))
    return found | {"controller": str(replace(plan, penalty_draw=draw, penalty_round=round_))}


USUAL = Sampling()


def split_settings(sampling: Sampling | None, settings: Mapping[str, Any]) -> tuple[Sampling, dict[str, Any]]:
    """Split keyword arguments into a sampling, with others as its defaults, and fields of the request.

    Raises:
        OptionError: where a setting is wrong, or a field of the request is not the caller's to set.
    """
    own = {name: value for name, value in settings.items() if name in Sampling.model_fields}
    request = {name: value for name, value in settings.items() if name not in own}
    if "n" in request:
        raise OptionError("can't be set here: the controller chooses it", "n")
    if "stream" in request:
        raise OptionError("can't be set here: whole responses are voted on", "stream")
    sampling = sampling or USUAL
    return sampling.replaced(**own) if own else sampling, request


def takes_sampling(function: F) -> F:
    """Let a signature show the fields of `Sampling`, which its last parameter takes."""
    signature = inspect.signature(function)
    *own, rest = signature.parameters.values()
    kind = inspect.Parameter.KEYWORD_ONLY
    named = [
        inspect.Parameter(name, kind, default=one.default, annotation=one.annotation)
        for name, one in Sampling.model_fields.items()
    ]
    function.__signature__ = signature.replace(parameters=[*own, *named, rest])  # type: ignore[attr-defined]
    return function
