"""Learning weights: what is found, what it gains out of sample, and that nothing unsafe is written."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers.commands import fails, suffice, works

from suffice import Pool, PoolError, Question, load_pool
from suffice.elections import LearnedWeights, get_election, load_weights
from suffice.elections.learned import common_signals, fit_strengths
from suffice.replay import weigh

POOL = "qwen2.5-coder-0.5b__gsm8k"


def made_up(strength: float, questions: int = 60, name: str = "made", gold: bool = True, signal: str = "sure") -> Pool:
    """Right by chance, at odds that rise by exp(strength) with each unit of the signal; each question has a level."""
    random = np.random.default_rng(7)
    made = []
    for number in range(questions):
        values = random.normal(size=40)
        right = random.random(40) < 1 / (1 + np.exp(-(random.normal() - 0.5 + strength * values)))
        answers = tuple("right" if yes else f"wrong {random.integers(2)}" for yes in right)
        # As a signal may come: on another scale, and at another level for each question.
        signals = {signal: tuple((5 * number + 3 * values).tolist())}
        made.append(Question(f"q{number}", "right" if gold else None, answers, None, signals=signals))
    return Pool(name, tuple(made))


@pytest.mark.parametrize("strength", [-0.8, 0.0, 0.8])
def test_the_strength_that_made_the_answers_is_found(strength: float) -> None:
    pool = made_up(strength, questions=200)
    (found,) = fit_strengths(pool.questions, ["right"] * 200, ["sure"])
    assert found == pytest.approx(strength, abs=0.1)


def test_weights_that_help_are_safe_and_those_that_do_nothing_are_not() -> None:
    helpful, useless = (weigh(made_up(strength), repeats=10) for strength in (1.0, 0.0))
    assert helpful.is_safe and helpful.gain.low is not None and helpful.gain.low > 0
    assert not useless.is_safe and useless.gain.low is not None and useless.gain.low < 0
    assert helpful.weights.strengths[0] == pytest.approx(1.0, abs=0.2)


def test_without_gold_it_learns_from_the_majority() -> None:
    pool = made_up(1.0)
    unlabelled = weigh(pool, no_gold=True, repeats=10)
    assert unlabelled.weights.strengths[0] > 0.2 and unlabelled.gain.mean > 0
    assert (unlabelled.weights.card["learned_from"], unlabelled.weights.card["gain_of"]) == ("majority", "accuracy")
    nothing_known = weigh(made_up(1.0, gold=False), no_gold=True, repeats=10)
    assert nothing_known.weights.strengths == unlabelled.weights.strengths
    assert nothing_known.weights.card["gain_of"] == "agreement with the majority of all responses"
    with pytest.raises(PoolError, match=r"nothing to learn from.*or learn from the majority"):
        weigh(made_up(1.0, gold=False))


def test_a_question_teaches_nothing_that_it_is_elected_by() -> None:
    """Each question has a signal of its own, which tells its right responses, and no other's."""
    names = [f"signal {number}" for number in range(12)]
    answers, telling, silent = ("right",) * 15 + ("wrong",) * 25, (1.0,) * 15 + (0.0,) * 25, (0.0,) * 40
    questions = tuple(
        Question(own, "right", answers, None, signals={name: telling if name == own else silent for name in names})
        for own in names
    )
    found = weigh(Pool("own", questions), repeats=5)
    assert min(found.weights.strengths) > 0.5, "there is something to learn"
    assert (found.gain.low, found.gain.mean) == (None, 0), "and nothing of it helps another question"
    assert not found.is_safe, "12 questions have no interval"


def test_a_pool_is_elected_by_what_the_others_teach() -> None:
    """A signal that misleads in one pool gains nothing there, nor from it."""
    right, wrong = made_up(1.5, name="right"), made_up(-1.5, name="wrong")
    apart = [weigh(pool, repeats=10).gain.mean for pool in (right, wrong)]
    together = weigh([right, wrong], repeats=10)
    assert min(apart) > 0 > max(one.gain.mean for one in together.tried)
    assert [one.pool for one in together.tried] == ["right", "wrong"]


def test_the_card_says_what_they_were_learned_from() -> None:
    found = weigh(POOL, signals=["tail", "length"], repeats=4)
    card = found.weights.card
    assert card["pools"] == [{"name": POOL, "sha256": load_pool(POOL).sha256}]
    assert set(card["strengths"]) == set(card["means"]) == set(card["deviations"]) == {"tail", "length"}
    assert (card["gain"]["mean"], card["budget"], card["repeats"]) == (found.gain.mean, 32, 4)


def test_what_can_not_be_learned_from_is_one_sentence() -> None:
    toy = made_up(1.0, questions=3)
    assert common_signals([toy, load_pool(POOL)]) == []
    assert common_signals([load_pool(POOL)]) == ["confidence", "logprob", "lowest", "tail", "length"]
    with pytest.raises(PoolError, match=f"made, {POOL}: there is no signal, nor length, that all have"):
        weigh([toy, POOL])
    with pytest.raises(PoolError, match='made has no signal "tail"'):
        weigh(toy, signals=["tail"])
    alike = replace(toy, questions=tuple(replace(one, answers=("right",) * 40) for one in toy.questions))
    with pytest.raises(PoolError, match="nothing to learn from"):
        weigh(alike)


def test_a_strength_stays_finite_where_a_signal_tells_all() -> None:
    sure = tuple(float(number) for number in range(40))
    question = Question("q", "right", ("wrong",) * 20 + ("right",) * 20, None, signals={"sure": sure})
    (strength,) = fit_strengths([question], ["right"], ["sure"])
    assert 1 < strength < 100


def test_weigh_writes_what_evaluate_elects_by(tmp_path: Path) -> None:
    out, page = tmp_path / "mine.safetensors", tmp_path / "w.json"
    pool = "qwen2.5-coder-0.5b__train"
    command: list[str | Path] = ["weigh", pool, "--signal", "tail", "--repeats", "10", "--out", out]
    said = works(*command, "--json", page)
    assert "tail: strength +0." in said and f"--elect file:{out}" in said
    written = json.loads(page.read_text())
    assert (written["safe"], written["written"], written["signals"]) == (True, True, ["tail"])
    weights = load_weights(out)
    assert isinstance(get_election(f"file:{out}"), LearnedWeights)
    assert weights.strengths == (written["strengths"]["tail"],)
    elected = works("evaluate", POOL, "--controller", "sc", "--repeats", "2", "--elect", f"file:{out}")
    assert "elected by file:" in " ".join(elected.split())


def test_weigh_refuses_to_write_what_may_harm(tmp_path: Path) -> None:
    out = tmp_path / "mine.safetensors"
    command: list[str | Path] = ["weigh", POOL, "--signal", "length", "--repeats", "4", "--out", out]
    done = suffice(*command)
    assert (done.returncode, out.exists(), done.stderr.count("\n")) == (1, False, 1)
    assert "not written, since their gain may be below zero" in done.stderr
    told = json.loads(works(*command, "--force", "--json"))
    assert (told["safe"], told["written"], out.exists()) == (False, True, True)
    assert 'has no signal "x"' in fails("weigh", POOL, "--signal", "x", "--out", out)
