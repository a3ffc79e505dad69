"""A checker for controllers: what holds for all of them, tried on tallies that they meet."""

import tempfile
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from suffice.controllers import (
    ArrayController,
    Controller,
    SavedController,
    get_controller,
    load_controller,
    question_random,
    save_controller,
)
from suffice.errors import ControllerError, SufficeError, whole_number
from suffice.pools import Pool, Question, draw_episodes
from suffice.replay.run import replay, run
from suffice.tally import DEFAULT_BUDGET, Tallies, Tally

QUESTIONS = 24
SEED = 0


def check_controller(controller: str | Controller, budget: int = DEFAULT_BUDGET) -> None:
    """Refuse a controller that breaks a rule, by an error that says which, and on what tally.

    It must decide on whole numbers, 0 or more; the same on the same tally, whatever the answers are called; leave the
    tally alone; serve a question the same under the same chance; decide by arrays, and after saving and loading, as it
    does one by one; and do in a replay what it would do live.

    Args:
        controller: A controller, or the string that describes one.
        budget: The most draws of the questions that it is tried on.

    Raises:
        ControllerError: Where a rule is broken.

    >>> check_controller("asc")
    """
    whole_number("budget", budget)
    chosen = get_controller(controller)
    pool = _pool(budget)
    for question in pool.questions:
        serving = chosen.for_question(question_random(SEED, question.id))
        again = chosen.for_question(question_random(SEED, question.id))
        for tally in _met(serving, question.answers):
            _check_decision(serving, tally)
            if _asked(again, tally) != _asked(serving, tally):
                raise _fault(chosen, "must serve a question the same under the same chance, and did not", tally)
    _check_replay(chosen, pool)
    if isinstance(chosen, SavedController):
        _check_saved(chosen, pool)


def _pool(budget: int) -> Pool:
    """Questions of all kinds: settled, open, hopeless, and without any answer; none among the answers of most."""
    random = np.random.default_rng(SEED)
    questions = []
    for number in range(QUESTIONS):
        kinds = random.integers(0, budget + 1) if number % 2 else random.integers(0, 4)
        shares = random.dirichlet(np.full(kinds + 1, 0.7))
        shares = shares if number % 3 else np.append(shares[:-1], 0) / max(shares[:-1].sum(), 1e-9)
        codes = random.choice(kinds + 1, size=budget, p=shares) if shares.sum() else np.full(budget, kinds)
        answers = [None if code == kinds else f"answer {code}" for code in codes]
        tokens = random.integers(1, 100, size=budget).tolist()
        questions.append(Question(f"question {number}", None, tuple(answers), tuple(tokens)))
    return Pool("checked", tuple(questions))


def _met(controller: Controller, answers: Sequence[str | None]) -> Iterator[Tally]:
    """The tallies that a controller meets: after each round, and after each draw where it needs no rounds."""
    tally, flowing = Tally(len(answers)), Tally(len(answers))
    yield tally
    while asked := _asked(controller, tally):
        for answer in answers[tally.draws : tally.draws + asked]:
            flowing.add(answer)
            if not controller.needs_rounds:
                yield flowing
        tally.add_round(answers[tally.draws : tally.draws + asked])
        yield tally


def _asked(controller: Controller, tally: Tally) -> int:
    """The decision, cut to what is left; what it raises comes with the tally."""
    try:
        return controller.next_round(tally)
    except SufficeError as error:
        raise ControllerError(f"{error}: {_described(tally)}") from error
    except Exception as error:
        raise _fault(controller, f"must decide, and raised {type(error).__name__} ({error})", tally) from error


def _check_decision(controller: Controller, tally: Tally) -> None:
    def refuse(holds: bool, rule: str) -> None:
        if holds:
            raise _fault(controller, rule, tally)

    before = _seen(tally)
    asked = _asked(controller, tally)
    refuse(_seen(tally) != before, "must leave the tally as it is, and changed it")
    again = _asked(controller, tally)
    refuse(again != asked, f"must decide the same again, and asked for {asked} and then {again}")
    other = _asked(controller, _renamed(tally))
    rule = "must not depend on what answers are called: with other names it asked for"
    refuse(other != asked, f"{rule} {other} instead of {asked}")
    if isinstance(controller, ArrayController):
        (arrays,) = controller.next_rounds(Tallies.of(tally)).tolist()
        refuse(arrays != asked, f"must decide alike by arrays, which asked for {arrays}, and alone: {asked}")


def _check_replay(controller: Controller, pool: Pool) -> None:
    """What a replay does at once, a loop does draw by draw."""
    for episodes in draw_episodes(pool, len(pool.questions[0].answers), repeats=2, seed=SEED):
        outcomes = replay(episodes, controller)
        for row in range(len(episodes.answers)):
            question = episodes.question(row)
            serving = controller.for_question(question_random(SEED, question.id, row % episodes.repeats))
            tally = run(serving, episodes.row(row))
            expected = (question.code(tally.leader), tally.rounds, tally.draws)
            found = (int(outcomes.answer[row]), int(outcomes.rounds[row]), int(outcomes.samples[row]))
            if found != expected:
                took = f"{found[2]} draws in {found[1]} rounds, and live {expected[2]} in {expected[1]}"
                raise _fault(controller, f"must do the same in a replay as live: it took {took}", tally)


def _check_saved(controller: SavedController, pool: Pool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "controller.safetensors"
        save_controller(controller, path)
        loaded = load_controller(path)
    for question in pool.questions:
        before, after = (
            run(one.for_question(question_random(SEED, question.id)), question.answers) for one in (controller, loaded)
        )
        if before.round_ends != after.round_ends:
            rule = f"must decide the same once saved and loaded, and its file drew {after.draws}"
            raise _fault(controller, rule, before)


def _seen(tally: Tally) -> Any:
    return list(tally.answers), list(tally.round_ends), tally.votes, tally.leader, tally.top(tally.budget), tally.budget


def _renamed(tally: Tally) -> Tally:
    """The same tally with other names, which sort the other way round."""
    kinds = list(dict.fromkeys(answer for answer in tally.answers if answer is not None))
    names: dict[str | None, str] = {kind: f"other {len(kinds) - place:04}" for place, kind in enumerate(kinds)}
    renamed = Tally(tally.budget)
    for draws, answer in enumerate(tally.answers, 1):
        renamed.add(names.get(answer))
        if draws in tally.round_ends:
            renamed.end_round()
    return renamed


def _fault(controller: Controller, rule: str, tally: Tally) -> ControllerError:
    return ControllerError(f"{controller} {rule}: {_described(tally)}")


def _described(tally: Tally) -> str:
    runs = [(answer, len(list(same))) for answer, same in groupby(tally.answers)]
    answers = ", ".join(f"{count} × {'none' if answer is None else answer}" for answer, count in runs) or "no draws yet"
    return f"on a tally of {answers} (budget {tally.budget})"
