"""A controller that lets another serve a question: the same one in every replay and live, in whatever company."""

from dataclasses import dataclass

import numpy as np
import pytest
from helpers.pools import make_pool

from suffice import ArrayController, Controller, Flow, Pool, Tallies, Tally, evaluate, get_controller, load_pool
from suffice.controllers import question_random
from suffice.planning.controller import Mixture, Plan
from suffice.pools import draw_episodes
from suffice.replay.run import replay, run
from suffice.tally import IntArray

POOL = "qwen2.5-coder-1.5b__gsm8k"


@dataclass(frozen=True)
class Fixed(ArrayController):
    """So many draws, one after the other."""

    draws: int

    def decide_many(self, tallies: Tallies) -> IntArray:
        return np.where(tallies.draws < self.draws, 1, 0)


class Slow(Controller):
    """The same without arrays."""

    def decide(self, tally: Tally) -> int:
        return 1 if tally.draws < 5 else 0


class Chooser(Controller):
    """Serves each question by one of three, of which one has no arrays; itself it would take all."""

    def for_question(self, random: np.random.Generator) -> Controller:
        return [Fixed(2), Fixed(9), Slow()][random.integers(3)]

    def decide(self, tally: Tally) -> int:
        return tally.left


MIXTURE = Mixture((Plan(0.05), Plan(0.001)), (0.3, 0.7))


@pytest.mark.parametrize("controller", [Chooser(), MIXTURE], ids=["chooser", "mixture"])
def test_every_replay_and_the_live_loop_are_served_by_the_same(controller: Controller) -> None:
    pool = make_pool(*["abcab" * 4] * 4)
    (episodes,) = draw_episodes(pool, budget=20, repeats=5, seed=3)
    plain = replay(episodes, controller).samples.reshape(4, 5)
    live = [
        [
            run(
                controller.for_question(question_random(3, question.id, repeat)), episodes.row(5 * place + repeat)
            ).draws
            for repeat in range(5)
        ]
        for place, question in enumerate(pool.questions)
    ]
    assert plain.tolist() == live
    assert len(set(plain.ravel().tolist())) > 1, "else nothing was chosen"
    settings = {"budget": 20, "repeats": 5, "seed": 3}
    for other in ({}, {"slots": 2}, {"flow": Flow()}):
        (result,) = evaluate(pool, controller, **settings, **other)  # type: ignore[arg-type]
        assert result.by_question["samples"].tolist() == plain.mean(axis=1).tolist(), other


@pytest.mark.parametrize("controller", [Chooser(), MIXTURE], ids=["chooser", "mixture"])
@pytest.mark.parametrize("options", [{}, {"slots": 4}], ids=["arrays", "clock"])
def test_an_added_question_changes_no_other_s_result(controller: Controller, options: dict[str, int]) -> None:
    pool = load_pool(POOL)
    whole, part = (
        evaluate(Pool("some", questions), controller, repeats=4, **options)[0].by_question["samples"]  # type: ignore[arg-type]
        for questions in (pool.questions[:30], pool.questions[10:20][::-1])
    )
    assert whole[10:20][::-1].tolist() == part.tolist()


def test_the_seed_and_the_repeat_decide_who_serves() -> None:
    def served(seed: int, repeat: int) -> list[str]:
        return [str(MIXTURE.for_question(question_random(seed, f"q{number}", repeat))) for number in range(30)]

    assert served(0, 0) == served(0, 0)
    assert served(0, 0) != served(1, 0)
    assert served(0, 0) != served(0, 1)


def test_the_chance_of_serving_is_not_that_of_the_draws() -> None:
    """A generator's seed may end in zeros that mean nothing: the two would then be one and the same."""
    (episodes,) = draw_episodes(make_pool("abcdefgh"), budget=1, repeats=200, seed=0)
    chances = question_random(0, "q0", 0).random((1, 200))
    assert episodes.answers[:, 0].tolist() != (chances[0] * 8).astype(int).tolist()


def test_a_controller_that_serves_itself_is_not_asked_for_every_episode() -> None:
    asked = []

    class Counting(Fixed):
        def next_rounds(self, tallies: Tallies) -> IntArray:
            asked.append(len(tallies))
            return super().next_rounds(tallies)

    evaluate(make_pool("ab" * 16, "aa" * 16), Counting(3), repeats=10, confidence=False)
    assert asked == [20] * 4
    assert get_controller("asc").for_question(question_random(0, "q")) == get_controller("asc")
