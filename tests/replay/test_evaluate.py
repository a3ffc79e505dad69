from pathlib import Path

import numpy as np
import pytest
from helpers.pools import make_pool
from scipy import stats

from suffice import (
    Controller,
    ControllerError,
    Penalties,
    Pool,
    Question,
    Tally,
    difference,
    evaluate,
    get_controller,
    load_pool,
)
from suffice.pools import draw_episodes
from suffice.replay.run import run


def test_figures_of_a_settled_question_under_the_controller_s_name_as_it_was_asked_for() -> None:
    penalties = Penalties(draw=0.01, round=0.001)
    (asc,) = evaluate(make_pool("a" * 32), ["asc:threshold=0.950"], repeats=3, penalties=penalties)
    assert asc.controller == "asc:threshold=0.950"
    assert (asc.accuracy, asc.agreement, asc.samples, asc.rounds) == (100, 100, 4, 4)
    assert (asc.total_tokens, asc.sequential_tokens) == (40, 40)
    assert asc.reward == pytest.approx(1 - 4 * 0.01 - 4 * 0.001)


def test_share_and_confidence_of_outcomes() -> None:
    (half,) = evaluate(make_pool(["a", None] * 16), ["sc"], repeats=2)
    assert (half.share, half.confidence) == (50, 100)
    (large,) = evaluate(make_pool("a" * 513), ["sc"], budget=513, repeats=2)
    assert (large.share, large.confidence, large.reliability) == (100, None, None)
    (without,) = evaluate(make_pool("a" * 32), ["asc"], repeats=2, confidence=False)
    assert without.confidence is None


def test_agreement_with_an_independent_vote_is_with_one_of_other_draws() -> None:
    """Half of the responses say a: two votes of four of eight then never draw the same response."""
    (settled,) = evaluate(make_pool("a" * 8), ["sc"], budget=4, repeats=2)
    assert settled.agreement_independent == 100
    (split,) = evaluate(make_pool("aaaabbbb"), ["sc"], budget=4, repeats=2000)
    # A vote has 0 to 4 of the four a, its other half the rest: only from two of each may both elect the same.
    ties = stats.hypergeom(8, 4, 4).pmf(2)
    assert split.agreement == 100 and split.agreement_independent == pytest.approx(100 * ties / 2, abs=4)
    (few,) = evaluate(make_pool("a" * 7), ["sc"], budget=4, repeats=2)
    assert few.agreement_independent is None, "a second vote needs as many responses again"


def test_none_agrees_with_none_and_is_never_accurate() -> None:
    (none,) = evaluate(make_pool([None] * 8), ["asc"], budget=4, repeats=2)
    assert (none.agreement, none.agreement_independent, none.accuracy, none.samples) == (100, 100, 0, 4)


def test_a_second_vote_leaves_the_first_s_draws_as_they_are() -> None:
    (episodes,) = draw_episodes(make_pool([f"{number}" for number in range(20)]), 8, 50, 3)
    _, second = episodes.second
    drawn = np.hstack([episodes.answers, second])
    assert all(len(set(row)) == 16 for row in drawn.tolist())


def test_accuracy_is_over_the_questions_with_gold() -> None:
    questions = (*make_pool("a" * 32).questions, Question("other", None, ("b",) * 32, None))
    (sc,) = evaluate(Pool("toy", questions), ["sc"], repeats=2)
    assert (sc.accuracy, sc.questions) == (100, 2)
    assert evaluate(make_pool("a" * 32, gold=None), ["sc"], repeats=2)[0].accuracy is None


def test_token_figures_are_over_the_questions_whose_tokens_are_known() -> None:
    untold = Question("other", "a", ("a",) * 32, (99,) * 31 + (None,))
    (sc,) = evaluate(Pool("toy", (*make_pool("a" * 32).questions, untold)), ["sc"], repeats=2)
    assert (sc.total_tokens, sc.sequential_tokens) == (320, 10)
    (sc,) = evaluate(make_pool("a" * 32, tokens=None), ["sc"], repeats=2)
    assert (sc.total_tokens, sc.sequential_tokens) == (None, None)


def test_a_seed_makes_results_repeatable_whatever_else_is_evaluated() -> None:
    pool = load_pool("qwen2.5-coder-1.5b__gsm8k")
    alone = evaluate(pool, ["esc"], repeats=5, seed=3)[0]
    beside = evaluate(pool, ["sc", "asc", "esc"], repeats=5, seed=3)[2]
    other = evaluate(pool, ["esc"], repeats=5, seed=4)[0]
    assert alone.samples == beside.samples != other.samples


class Twice(Controller):
    """Stops when some answer was given twice; sees the answers themselves."""

    def decide(self, tally: Tally) -> int:
        return 0 if tally.top(1)[0] == 2 else 1


def test_a_controller_without_arrays_is_replayed_and_one_that_decides_nonsense_refused_before_the_work() -> None:
    (result,) = evaluate(make_pool("a" * 32, "abab" * 8), [Twice()], repeats=20)
    assert 2 < result.samples < 3

    class Broken(Controller):
        def decide(self, tally: Tally) -> int:
            return -1

    with pytest.raises(ControllerError, match="asked for -1"):
        evaluate(make_pool("a" * 32), ["sc", Broken()])


def test_progress_is_told_of_every_question() -> None:
    told: list[int] = []
    evaluate(make_pool("a" * 32, "b" * 32), ["sc", "asc"], repeats=2, progress=told.append)
    assert sum(told) == 4


def test_differences_are_paired_and_their_intervals_hold_them() -> None:
    pools = [load_pool(f"qwen2.5-coder-1.5b__{name}") for name in ("gsm8k", "math500")]
    pairs = [evaluate(pool, ["asc", "sc"], repeats=10) for pool in pools]
    asc, sc = ([pair[which] for pair in pairs] for which in (0, 1))
    gap = difference(asc, sc, "samples")
    assert gap is not None
    assert gap.mean == pytest.approx(np.mean([ours.samples - theirs.samples for ours, theirs in pairs]))
    assert gap.low is not None and gap.high is not None and gap.low < gap.mean < gap.high < 0
    # The interval is that of the mean of the questions' differences, not of the questions themselves.
    spread = [np.std(ours.by_question["samples"] - theirs.by_question["samples"]) / 10 for ours, theirs in pairs]
    assert gap.high - gap.low == pytest.approx(3.92 * np.sqrt(np.square(spread).sum()) / 2, rel=0.1)
    assert difference(sc, sc, "samples") == difference(asc, asc, "samples")


def test_a_difference_of_what_is_not_known_is_none() -> None:
    (result,) = evaluate(make_pool("a" * 32, gold=None), ["sc"], repeats=2)
    assert difference([result], [result], "accuracy") is None


# pool: accuracy of SC, samples of ASC, rounds and samples of ESC, by an independent implementation.
PUBLISHED = {
    "qwen3-0.6b__aime24": (20.6, 27.2, 6.63, 30.4),
    "qwen3-0.6b__aime25": (28.5, 24.8, 6.28, 28.9),
    "qwen3-0.6b__hmmt25": (16.8, 24.0, 6.54, 30.1),
    "qwen3-1.7b__aime24": (69.5, 17.6, 5.14, 23.8),
    "qwen3-1.7b__aime25": (43.9, 18.5, 5.01, 23.2),
    "qwen3-1.7b__hmmt25": (24.2, 19.0, 5.30, 24.5),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_rules_give_the_figures_of_an_independent_implementation(shared_pools: Path, name: str) -> None:
    sc, asc, esc = evaluate(load_pool(shared_pools / f"{name}.jsonl"), ["sc", "asc", "esc"])
    accuracy, asc_samples, esc_rounds, esc_samples = PUBLISHED[name]
    # Within what 100 random repeats of 30 questions leave open.
    assert sc.accuracy == pytest.approx(accuracy, abs=1.2)
    assert asc.samples == pytest.approx(asc_samples, abs=0.35)
    assert esc.rounds == pytest.approx(esc_rounds, abs=0.08)
    assert esc.samples == pytest.approx(esc_samples, abs=0.4)


@pytest.mark.parametrize("name", ["qwen2.5-coder-1.5b__math500", "smollm2-135m__arithmetic"])
def test_figures_are_the_means_of_what_a_loop_finds_draw_by_draw(name: str) -> None:
    pool, specs = load_pool(name), ["sc", "asc", "esc"]
    for spec, result in zip(specs, evaluate(pool, specs, repeats=2, seed=5), strict=True):
        ends = []
        for episodes in draw_episodes(pool, 32, 2, seed=5):
            for row, codes in enumerate(episodes.answers):
                question = episodes.questions[row // 2]
                answers = [None if code < 0 else question.labels[code] for code in codes]
                tally, full = (run(get_controller(one), answers) for one in (spec, "sc"))
                if spec == "esc":
                    windows = [answers[start : start + 5] for start in range(0, 30, 5)]
                    settled = (place for place, one in enumerate(windows, 1) if len({*one}) == 1 and None not in one)
                    rounds = next(settled, 7)
                    assert (tally.rounds, tally.draws) == (rounds, min(5 * rounds, 32))
                right, agrees = tally.leader == question.gold, tally.leader == full.leader
                ends.append((tally.draws, tally.rounds, 100 * right, 100 * agrees))
        expected = np.mean(ends, axis=0)
        assert (result.samples, result.rounds, result.accuracy, result.agreement) == pytest.approx(tuple(expected))
