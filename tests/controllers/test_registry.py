from dataclasses import dataclass
from typing import Annotated, Optional

import pytest

from suffice import Controller, ControllerError, Tally, get_controller, register


@register("patient")
@dataclass(frozen=True)
class Patient(Controller):
    votes: int
    steps: tuple[int, ...] = (1, 2)
    label: str = "x"

    def decide(self, tally: Tally) -> int:
        return 0 if tally.top(1)[0] >= self.votes else self.steps[0]


def test_parameters_are_read_by_their_types() -> None:
    assert get_controller("patient:votes=3,steps=1+2+4,label=y z") == Patient(3, (1, 2, 4), "y z")


@register("odd")
class Odd(Controller):
    def __init__(self, flag: bool = False, most: Annotated[Optional["int"], 0] = None, other: object = None) -> None:
        if most == 0:
            raise ValueError("most can't be 0")
        self.flag = flag
        self.most = most

    def decide(self, tally: Tally) -> int:
        return 0


def test_flags_and_optional_numbers_are_read_as_such() -> None:
    controller = get_controller("odd:flag=false,most=5")
    assert isinstance(controller, Odd)
    assert (controller.flag, controller.most) == (False, 5)


def test_a_controller_passes_through() -> None:
    controller = Patient(1)
    assert get_controller(controller) is controller


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("", ["unknown controller", "asc, boinf", "sc"]),
        ("acs", ["unknown controller", "did you mean", "asc"]),
        ("asc:thresh=0.9", ["no parameter", "thresh", "threshold (0.95)"]),
        ("asc:threshold", ["key=value", "threshold"]),
        ("asc:threshold=0.9,threshold=0.8", ["once"]),
        ("asc:threshold=high", ["threshold must be a number", "high"]),
        ("sc:draws=0", ["draws must be at least 1"]),
        ("sc:draws=2.5", ["draws must be a whole number"]),
        ("esc:window=0", ["window must be at least 1"]),
        ("asc:threshold=0", ["threshold must be above 0 and at most 1, not 0"]),
        ("doubling:threshold=1.5", ["threshold must be above 0 and at most 1, not 1.5"]),
        ("boinf:factor=inf", ["factor must be above 0"]),
        ("boinf:unknown=-1", ["unknown must be at least 0"]),
        ("patient", ["votes must be given"]),
        ("odd:flag=no", ["flag must be true or false"]),
        ("odd:other=1", ["other can't be given"]),
        ("odd:most=0", ["most can't be 0"]),
        ("patient:votes=1,steps=1,2", ["no parameter", "2"]),
    ],
)
def test_a_bad_string_gets_an_error_that_lists_what_there_is(spec: str, words: list[str]) -> None:
    with pytest.raises(ControllerError) as caught:
        get_controller(spec)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("spec", "draws"),
    [
        ("sc:draws=1", 1),
        ("esc:window=1", 1),
        ("asc:threshold=1", 1),
        ("doubling:threshold=1", 2),
        ("sc:draws=99999999999999999999999", 32),
        ("esc:window=9223372036854775807", 32),
    ],
)
def test_the_last_value_in_range_is_taken_and_huge_ones_are_cut_to_the_budget(spec: str, draws: int) -> None:
    assert get_controller(spec).decide(Tally(32)) == draws


@pytest.mark.parametrize(("name", "words"), [("asc", "already a controller"), ("my:rule", "can't name")])
def test_a_name_is_given_once_and_fits_the_grammar(name: str, words: str) -> None:
    with pytest.raises(ControllerError, match=words):

        @register(name)
        class Other(Controller):
            def decide(self, tally: Tally) -> int:
                return 0


def test_only_controllers_are_registered() -> None:
    with pytest.raises(ControllerError, match="must be a class of Controller"):
        register("function")(lambda tally: 1)  # type: ignore[type-var]
    with pytest.raises(ControllerError, match="with a decide method"):

        @register("half")
        class Half(Controller):
            pass


@pytest.mark.parametrize("asked", [-1, 1.5, None])
def test_a_decision_that_is_none_is_refused(asked: object) -> None:
    class Broken(Controller):
        def decide(self, tally: Tally) -> int:
            return asked  # type: ignore[return-value]

    with pytest.raises(ControllerError, match="asked for"):
        Broken().next_round(Tally(32))
