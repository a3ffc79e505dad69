import json
from pathlib import Path

import numpy as np
import pytest
from helpers.commands import fails, works
from helpers.pools import make_pool

from suffice import OptionError, Penalties, Plan, get_controller, load_pool
from suffice.planning import UNIVERSAL, confidences
from suffice.planning.learning import Learner
from suffice.pools import draw_episodes
from suffice.replay import learn_prior, replay_learning
from suffice.replay.learning import LearningReplay, TrafficRun, serve
from suffice.replay.reliability import Reliability, decile_sums

BUDGET = 8


def easy(questions: int) -> np.ndarray:
    """Nearly all answers agree."""
    return (np.random.default_rng(0).random((questions, BUDGET)) < 0.01).astype(int)


def test_learning_asks_less_of_easy_traffic_and_agrees_as_often() -> None:
    answers = easy(600)
    staying, learning = serve(answers, Plan()), serve(answers, Plan(), Learner())
    assert learning.samples[-300:].mean() < staying.samples[-300:].mean() - 0.5
    assert learning.agrees.mean() >= staying.agrees.mean() - 0.005
    assert learning.samples.min() >= 2
    assert learning.plans[0] == 16
    assert not learning.changes


def test_a_question_is_served_by_what_was_learned_before_it() -> None:
    answers = easy(300)
    whole, beginning = serve(answers, Plan(), Learner()), serve(answers[:200], Plan(), Learner())
    assert (whole.samples[:200] == beginning.samples).all()
    assert (whole.samples[:16] == serve(answers[:16], Plan()).samples).all()


def test_traffic_that_turns_hard_is_noticed_and_costs_few_answers() -> None:
    hard = (np.random.default_rng(1).random((300, BUDGET)) * 3).astype(int)
    answers = np.concatenate([easy(600), hard])
    staying, learning = serve(answers, Plan()), serve(answers, Plan(), Learner())
    (noticed,) = learning.changes
    assert 600 < noticed <= 620
    assert staying.agrees[600:].sum() - learning.agrees[600:].sum() <= 6


def test_a_lesson_has_every_question_once_in_each_order_and_is_the_same_again() -> None:
    pool = make_pool(*[["a"] * 6 + ["b"] * 2] * 30)
    lesson = replay_learning(pool, budget=BUDGET, orders=2, seed=3)
    again = replay_learning(pool, budget=BUDGET, orders=2, seed=3)
    assert lesson.questions == 30
    for one, other in zip(lesson.learning, again.learning, strict=True):
        assert (one.samples == other.samples).all()


def test_the_bends_of_a_curve_rise_to_the_number_of_questions() -> None:
    for questions in (1, 20, 40, 100, 1318):
        runs = (TrafficRun(*np.ones((3, questions))),)
        curve = LearningReplay("toy", runs, runs).curve(Penalties())
        ends = [means["to"] for means in curve]
        assert ends == sorted(set(ends)) and ends[-1] == questions
        assert [means["from"] for means in curve] == [0, *ends[:-1]]


def test_confidence_under_a_learned_prior_is_as_true_as_before() -> None:
    pool = load_pool("qwen2.5-coder-1.5b__gsm8k")
    prior = learn_prior(pool, budget=16)
    (episodes,) = draw_episodes(pool, 16, 5, 0)
    standings, rows = episodes.standings, np.arange(len(episodes.answers))
    for draws in (4, 8):
        tallies, agrees = standings.at(rows, rows * 0 + draws), standings.leader[draws] == standings.reference
        before, after = (Reliability(decile_sums(confidences(tallies, one), agrees)) for one in (UNIVERSAL, prior))
        assert after.calibration_error < before.calibration_error + 1


def test_only_a_plan_learns_and_only_from_plain_answers() -> None:
    with pytest.raises(OptionError, match="must be a plan to learn, not asc"):
        replay_learning("smollm2-135m__arithmetic", "asc")
    assert "--controller must be a plan" in fails(
        "evaluate", "smollm2-135m__arithmetic", "--learn", "--controller", "esc"
    )
    assert "--learn is for rounds" in fails("evaluate", "smollm2-135m__arithmetic", "--learn", "--flow")


def test_the_command_line_shows_the_curve_and_draws_it(tmp_path: Path) -> None:
    files: list[str | Path] = ["--json", tmp_path / "curve.json", "--figure", tmp_path / "curve.png"]
    shown = works("evaluate", "smollm2-135m__arithmetic", "--learn", "--budget", "8", "--repeats", "1", *files)
    assert "1 to 25" in shown and "26 to 40" in shown
    (pool,) = json.loads((tmp_path / "curve.json").read_text())["pools"]
    assert pool["questions"] == 40
    assert [means["to"] for means in pool["curve"]] == [25, 40]
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")


def test_fit_writes_a_controller_that_is_used_as_any(tmp_path: Path) -> None:
    out = tmp_path / "mine.safetensors"
    shown = works("fit", "smollm2-135m__arithmetic", "--budget", "8", "--out", out)
    assert "smollm2-135m__arithmetic: samples" in shown
    fitted = get_controller(f"file:{out}")
    assert isinstance(fitted, Plan)
    assert fitted.fewest == 2
    assert fitted.prior != Plan().prior
    assert fitted.card["prior"] == "fitted"
