"""Elections by weight: what they weigh, and that equal weights are the plain vote."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice import OptionError, Plan, Tally, save_controller
from suffice.controllers.files import write_tensors
from suffice.elections import (
    Election,
    LearnedWeights,
    get_election,
    load_weights,
    register_election,
    save_weights,
)
from suffice.tally import FloatArray

UNKNOWN = math.nan
SPECS = [
    "majority",
    "weighted",
    "weighted:signal=length,strength=-1.5",
    "deepconf",
    "deepconf:signal=confidence,keep=90",
    "deepconf:signal=lowest,keep=100",
    "cisc",
    "cisc:signal=tail,temperature=2",
]
codes_of = st.lists(st.integers(-1, 3), min_size=1, max_size=12)
numbers = st.one_of(st.just(UNKNOWN), st.floats(-30, 30).map(lambda value: round(value, 3)))


def signals_of(values: Sequence[float]) -> tuple[dict[str, FloatArray], FloatArray]:
    """The same values for every signal, as signals and as tokens."""
    array = np.array(values)
    return {"logprob": -np.abs(array), "confidence": array, "tail": array, "lowest": array}, np.abs(array)


def plain(codes: Sequence[int]) -> int:
    tally = Tally(budget=len(codes))
    tally.add_round(None if code < 0 else str(code) for code in codes)
    return -1 if tally.leader is None else int(tally.leader)


def elected(spec: str | Election, codes: Sequence[int], values: Sequence[float]) -> int:
    return int(get_election(spec).elect(np.array(codes), *signals_of(values)))


@given(st.sampled_from(SPECS), codes_of, numbers)
def test_equal_weights_are_the_plain_vote(spec: str, codes: list[int], value: float) -> None:
    assert elected(spec, codes, [value] * len(codes)) == plain(codes)


@given(codes_of, st.data())
def test_majority_is_the_plain_vote_whatever_the_signals(codes: list[int], data: st.DataObject) -> None:
    values = data.draw(st.lists(numbers, min_size=len(codes), max_size=len(codes)))
    assert elected("majority", codes, values) == elected("weighted:strength=0", codes, values) == plain(codes)


@given(st.sampled_from(SPECS), st.data())
def test_many_at_once_are_as_one_by_one(spec: str, data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 8))
    rows = st.lists(st.tuples(st.integers(-1, 3), numbers), min_size=size, max_size=size)
    votes = data.draw(st.lists(rows, min_size=1, max_size=6))
    codes, values = np.array([[code for code, _ in row] for row in votes]), [[one for _, one in row] for row in votes]
    election = get_election(spec)
    signals, tokens = signals_of(np.array(values))  # type: ignore[arg-type]
    together = election.elect(codes, signals, tokens)
    assert together.tolist() == [elected(election, row, one) for row, one in zip(codes, values, strict=True)]
    weights = election.weights(signals, tokens)
    assert weights.shape == codes.shape and np.isfinite(weights).all() and (weights >= 0).all()


@given(st.sampled_from(SPECS), codes_of, st.data())
def test_a_response_without_an_answer_changes_nothing(spec: str, codes: list[int], data: st.DataObject) -> None:
    values = data.draw(st.lists(numbers, min_size=len(codes), max_size=len(codes)))
    with_none = elected(spec, [-1, *codes, -1], [29.0, *values, -29.0])
    assert with_none == elected(spec, codes, values)
    assert with_none in {*codes, -1} and (with_none >= 0) == any(code >= 0 for code in codes)


@given(
    st.lists(st.floats(1, 20).map(lambda value: round(value, 2)), min_size=1, max_size=20), st.sampled_from([10, 90])
)
def test_deepconf_is_as_its_authors_have_it(sure: list[float], keep: int) -> None:
    """The surest by `np.percentile`, each weighing its confidence."""
    threshold = np.percentile(sure, 100 - keep)
    weights = get_election(f"deepconf:keep={keep}").weights({"tail": np.array(sure)}, np.array(sure))
    assert weights == pytest.approx([one if one >= threshold - 1e-12 else 0 for one in sure])


def test_cisc_is_a_softmax_of_probabilities() -> None:
    probabilities = np.array([0.9, 0.5, 0.7])
    weights = get_election("cisc:temperature=0.2").weights({"logprob": np.log(probabilities)}, probabilities)
    assert weights / weights.sum() == pytest.approx(np.exp(probabilities / 0.2) / np.exp(probabilities / 0.2).sum())


def test_the_weight_is_the_exponential_of_the_standardised_signal() -> None:
    values = np.array([-0.1, -0.2, UNKNOWN, -0.6])
    known = values[~np.isnan(values)]
    z = (values - known.mean()) / known.std()
    weights = get_election("weighted:strength=0.4").weights({"logprob": values}, values)
    assert weights == pytest.approx(np.where(np.isnan(z), 1, np.exp(0.4 * z)))


def test_the_first_to_reach_its_sum_wins_among_equals() -> None:
    class Given(Election):
        signals = ("given",)

        def weights(self, signals: Mapping[str, FloatArray], tokens: FloatArray) -> FloatArray:
            return signals["given"]

    def wins(codes: Sequence[int], weights: Sequence[float]) -> int:
        return int(Given().elect(np.array(codes), {"given": np.array(weights)}, np.zeros(len(codes))))

    assert 0.1 + 0.2 + 0.3 != 0.6, "they are equal but for rounding"
    assert wins([0, 1, 0, 0], [0.1, 0.6, 0.2, 0.3]) == 1
    assert wins([0, 1, 0, 1], [3, 3, 1, 1]) == 0
    assert wins([0, 1, 0], [3, 3, 0]) == 0, "a vote that weighs nothing is no later arrival"
    assert wins([1, 0, 0], [0, 0, 0]) == 0, "where nothing weighs anything, all weigh the same"
    assert wins([0, 0, 1], [1, 1, 2.5]) == 1


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("wighted", 'unknown election "wighted".*did you mean "weighted"'),
        ("weighted:power=2", 'no parameter "power".*signal .logprob., strength .0.4.'),
        ("weighted:strength=inf", "strength must be a finite number, not inf"),
        ("deepconf:keep=0", "keep must be above 0 and at most 100, not 0"),
        ("deepconf:signal=logprob", 'signal must be confidence, tail or lowest, not "logprob"'),
        ("cisc:temperature=0", "temperature must be above 0, not 0"),
        ("file", "PATH must be given, as in file:PATH"),
    ],
)
def test_a_spec_that_is_no_election_is_one_sentence(spec: str, words: str) -> None:
    with pytest.raises(OptionError, match=words):
        get_election(spec)


def test_weights_are_kept_in_a_file_with_their_card(tmp_path: Path) -> None:
    path = tmp_path / "mine.safetensors"
    weights = LearnedWeights(("logprob", "length"), (0.5, -0.25), {"gain": 0.7})
    save_weights(weights, path)
    read = load_weights(path)
    assert (read, read.card["gain"], read.card["signals"]) == (weights, 0.7, ["logprob", "length"])
    alone = get_election("weighted:strength=0.5").weights({"logprob": np.array([-1.0, -2, -4])}, np.ones(3))
    assert get_election(f"file:{path}").weights({"logprob": np.array([-1.0, -2, -4])}, np.ones(3)) == pytest.approx(
        alone
    )


def test_a_file_that_holds_no_weights_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "mine.safetensors"
    with pytest.raises(OptionError, match=r"mine\.safetensors: there is no such file of weights"):
        load_weights(path)
    save_controller(Plan(penalty_draw=0.01, actions=(1, 4)), path)
    with pytest.raises(OptionError, match="holds a controller, not weights"):
        get_election(f"file:{path}")
    write_tensors(path, {"strengths": np.ones(2)}, {"kind": "weights", "format": 9, "signals": ["tail"]})
    with pytest.raises(OptionError, match="has format 9, newer than this suffice knows"):
        get_election(f"file:{path}")
    for strengths in (np.ones(2), np.array([np.nan])):
        write_tensors(path, {"strengths": strengths}, {"kind": "weights", "format": 1, "signals": ["tail"]})
        with pytest.raises(OptionError, match="not a whole file of weights"):
            get_election(f"file:{path}")
    path.write_text("no such thing")
    with pytest.raises(OptionError, match="not a whole file of weights"):
        get_election(f"file:{path}")


def test_an_election_of_ones_own_has_a_name() -> None:
    @register_election("example-shortest")
    class Shortest(Election):
        signals = ("length",)

        def weights(self, signals: Mapping[str, FloatArray], tokens: FloatArray) -> FloatArray:
            return 1 / np.maximum(tokens, 1)

    assert int(get_election("example-shortest").elect(np.array([0, 0, 1]), {}, np.array([90.0, 80.0, 20.0]))) == 1
    with pytest.raises(OptionError, match="must be a class of Election with a weights method"):
        register_election("example-none")(int)
