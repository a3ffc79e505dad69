"""Pools whose questions are right and wrong as they should be, and calibrations of them."""

from dataclasses import replace

import numpy as np

from suffice import Calibration, Pool, Question

RIGHT, WRONG = "42", "17"


def easy_and_hard(questions: int = 120, easy: float = 0.6, seed: int = 0, responses: int = 40) -> Pool:
    """Easy questions, nearly all of whose responses are right, and hard ones, of which a few are."""
    random = np.random.default_rng(seed)
    made = []
    for number in range(questions):
        chance = random.beta(18, 1) if random.random() < easy else random.beta(2, 4)
        answers = tuple(RIGHT if yes else f"{random.integers(4)}" for yes in random.random(responses) < chance)
        made.append(Question(f"q{number}", RIGHT, answers, None))
    return Pool("easy and hard", tuple(made))


def wrongly_sure(pool: Pool, share: float, seed: int = 0) -> Pool:
    """The same answers, of which some are all for what is not right."""
    wrong = np.random.default_rng(seed).random(len(pool)) < share
    questions = (replace(one, gold=WRONG) if yes else one for one, yes in zip(pool.questions, wrong, strict=True))
    return Pool(pool.name, tuple(questions))


def calibration(scores: "np.ndarray | list[float]", truths: "np.ndarray | list[int]") -> Calibration:
    """One with these labels, in which a score is what it says."""
    return Calibration(0.0, 1.0, np.array(scores, float), np.array(truths, int))
