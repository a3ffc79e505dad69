"""Panels in replay: what voters said together, rules and fitted controllers, and what each voter does alone."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers.commands import fails, works
from helpers.panels import made_voter, small_and_large, written

from suffice import ControllerError, OptionError, Plan, PoolError, Tally, evaluate
from suffice.panel import PanelController, PoolVoter, evaluate_panel, fit_panel, save_panel
from suffice.panel.controllers import Cascade, PanelTallies
from suffice.panel.episodes import draw_panel, run_panel
from suffice.panel.evaluate import panel_controller
from suffice.panel.fitted import load_panel
from suffice.panel.voters import aligned, joined, learn_weights
from suffice.pools import Pool


@pytest.fixture(autouse=True, scope="module")
def few_episodes() -> Iterator[None]:
    """Toys need no more."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("suffice.panel.fitted.EPISODES", 600)
        yield


@pytest.fixture(scope="module")
def fitted() -> PanelController:
    return fit_panel(small_and_large(), value=0.05, budget=6)


def one_by_one(controller: PanelController, answers: dict[str, list[str | None]]) -> tuple[Tally, list[list[str]]]:
    """Ask as if it were live."""
    tally, rounds = Tally(budget=16), []
    while voters := controller.choose(tally):
        assert controller.decide(tally) == len(voters)
        rounds.append(voters)
        for voter in voters:
            tally.add(answers[voter][tally.voters.count(voter)], voter)
        tally.end_round()
    return tally, rounds


def test_of_those_who_are_left_the_first_is_asked_as_plan_asks_one_model(fitted: PanelController) -> None:
    tally = Tally()
    tally.absent.add("large")
    while voters := fitted.choose(tally):
        assert set(voters) == {"small"} and len(voters) == Plan().next_round(tally)
        for _ in voters:
            tally.add("7", "small")
    assert 1 < tally.draws < 8


def test_a_cascade_goes_on_with_those_who_are_left() -> None:
    cascade, tally = Cascade(("small", "middle", "large"), first=2, then=2), Tally()
    tally.absent.add("middle")
    asked = []
    while voters := cascade.choose(tally):
        asked += voters
        for voter in voters:
            tally.add(str(tally.draws), voter)
    assert asked == ["small"] * 2 + ["large"] * 4


def test_live_and_replay_decide_alike(fitted: PanelController) -> None:
    (episodes,) = draw_panel(aligned(small_and_large()), 6, 2, 0)
    cascade = Cascade(("large", "small"), first=2, then=4, budget=6)
    for controller in (fitted, cascade):
        ended = run_panel(episodes, controller)
        for row in range(0, len(episodes), 7):
            said = {name: one.row(row) for name, one in zip(episodes.voters, episodes.alone, strict=True)}
            tally, rounds = one_by_one(controller, said)
            assert len(rounds) == ended.rounds[row]
            assert [tally.voters.count(name) for name in episodes.voters] == ended.draws[row].tolist()


def test_the_fitted_controller_spends_where_voters_differ_and_beats_each_alone(
    fitted: PanelController,
) -> None:
    compared = evaluate_panel(small_and_large(), [fitted, "cascade"], budget=6, repeats=5)
    panel = next(one for one in compared.results if one.controller == str(fitted))
    base, alone = compared.baseline, compared.best_alone(panel.cost)
    assert base.voter == "large" and base.accuracy is not None and panel.accuracy is not None
    assert panel.accuracy > base.accuracy - 2 and panel.cost < 0.3 * base.cost
    assert alone is not None and alone.accuracy is not None and panel.accuracy > alone.accuracy
    gap = panel.difference(base)
    assert gap is not None and gap.low is not None and gap.high is not None and gap.low <= gap.mean <= gap.high
    hard, easy = np.split(panel.by_question["cost"], [24])
    assert hard.mean() > 1.5 * easy.mean(), "it spends where voters differ"


def test_more_worth_buys_more(fitted: PanelController) -> None:
    cheap = fit_panel(small_and_large(), value=0.002, budget=6)
    compared = evaluate_panel(small_and_large(), [cheap, fitted], budget=6, repeats=3, alone=["sc"])
    stingy, generous = compared.results[-2:]
    assert stingy.cost < generous.cost and stingy.agreement < generous.agreement


def test_without_labels_the_full_vote_is_the_target() -> None:
    unlabelled = fit_panel(small_and_large(gold=False), value=0.05, budget=6)
    ignoring = fit_panel(small_and_large(), value=0.05, budget=6, labels=False)
    assert np.array_equal(unlabelled.gains, ignoring.gains)
    compared = evaluate_panel(small_and_large(gold=False), [unlabelled], budget=6, repeats=3, alone=["sc"])
    assert compared.results[-1].accuracy is None and compared.results[-1].agreement > 90
    assert compared.results[-1].difference(compared.baseline) is None


def test_the_better_voter_weighs_more() -> None:
    weak, good, third = made_voter("weak", 1, 0.3), made_voter("good", 1, 0.9), made_voter("third", 1, 0.8)
    assert learn_weights([good, weak])[0] == 1 > learn_weights([good, weak])[1] > 0
    without_labels = learn_weights([good, weak, third], labels=False)
    assert min(without_labels) == without_labels[1] < max(without_labels) == 1
    assert learn_weights([good, weak], labels=False) == (1, 1)


def test_a_panel_of_one_is_a_vote_of_one() -> None:
    alone = made_voter("alone", 1, 0.6)
    single = fit_panel([alone], value=0.05, budget=6)
    compared = evaluate_panel([alone], [single], budget=6, repeats=3)
    assert compared.weights == (1.0,) and compared.results[-1].samples["alone"] < 6
    specs = ["once", "sc", "plan:penalty_draw=0.01"]
    for one, result in zip(
        evaluate_panel([alone], [], budget=6, repeats=3, alone=specs).results,
        evaluate(alone.pool, specs, budget=6, repeats=3),
        strict=True,
    ):
        assert (one.accuracy, one.agreement) == pytest.approx((result.accuracy, result.agreement))
        assert (one.samples["alone"], one.rounds) == pytest.approx((result.samples, result.rounds))


def test_three_voters_vote() -> None:
    three = [*small_and_large(), made_voter("third", 5, 0.6)]
    controller = fit_panel(three, value=0.05, budget=3)
    compared = evaluate_panel(three, [controller, "cascade"], budget=3, repeats=2, alone=["once", "sc"])
    assert len(compared.results) == 8 and compared.results[-2].agreement > 85


def test_a_file_gives_the_same_decisions_in_any_order(fitted: PanelController, tmp_path: Path) -> None:
    save_panel(fitted, tmp_path / "panel.safetensors")  # type: ignore[arg-type]
    loaded = load_panel(tmp_path / "panel.safetensors")
    turned = evaluate_panel(small_and_large()[::-1], [loaded], budget=6, repeats=2, alone=["sc"])
    straight = evaluate_panel(small_and_large(), [fitted], budget=6, repeats=2, alone=["sc"])
    assert turned.results[-1].samples == straight.results[-1].samples
    assert turned.results[-1].cost == straight.results[-1].cost
    with pytest.raises(ControllerError, match="is for the voters small, large"):
        panel_controller(f"file:{tmp_path / 'panel.safetensors'}", ["small", "other"], 8)


def test_the_cascade_stops_when_more_votes_could_not_change_the_answer() -> None:
    cascade = Cascade(("small", "large"), first=2, then=5, weight=3)
    tally, rounds = one_by_one(cascade, {"small": ["a", "b"], "large": ["b"] * 5})
    assert rounds[0] == ["small", "small"] and tally.voters.count("large") == 3
    tally, rounds = one_by_one(cascade, {"small": ["a", "a"], "large": []})
    assert len(rounds) == 1


def test_an_answer_that_came_first_leads_among_equals() -> None:
    tally = Tally()
    for answer, voter in [("b", "x"), ("a", "y"), (None, "x")]:
        tally.add(answer, voter)
    assert PanelTallies.of(tally, ["x", "y"], 4).leader((1, 1)).tolist() == [0]


def test_questions_are_aligned_by_id() -> None:
    small, large = small_and_large()
    fewer = replace(large, pool=Pool("large", large.pool.questions[40:10:-1]))
    first, second = aligned([small, fewer])
    assert [one.id for one in first.pool] == [one.id for one in second.pool] and len(first.pool) == 30
    with pytest.raises(PoolError, match="in two of its pools"):
        joined("small", [small.pool, small.pool])
    with pytest.raises(PoolError, match="no question in common"):
        aligned([small, replace(large, pool=Pool("large", (replace(large.pool.questions[0], id="other"),)))])
    with pytest.raises(PoolError, match="count of tokens"):
        aligned([replace(small, pool=Pool("small", (replace(small.pool.questions[0], tokens=None),)))])
    with pytest.raises(OptionError, match="only once"):
        aligned([small, small])


@pytest.mark.parametrize(
    "text", ["small", "small=pool.jsonl", "=pool.jsonl,price=1", "small=smollm2-135m__arithmetic,price=free"]
)
def test_a_voter_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(OptionError):
        PoolVoter.of(text)


def test_an_unknown_controller_is_refused() -> None:
    for spec in ("plan", "cascade:second=3", "cascade:first=0", "file:none.safetensors"):
        with pytest.raises(ControllerError):
            panel_controller(spec, ["a", "b"], 8)


def test_the_commands(tmp_path: Path) -> None:
    voters = [part for voter in small_and_large() for part in ("--voter", written(voter, tmp_path))]
    out, page = tmp_path / "panel.safetensors", tmp_path / "report.html"
    shown = works("panel", "fit", *voters, "--value-of-an-answer", "0.05", "--budget", "4", "--out", out)
    assert f"file:{out}" in shown
    usual = ("--budget", "4", "--repeats", "2")
    told = works("panel", "evaluate", *voters, "--controller", "cascade", f"file:{out}", *usual, "--report", page)
    assert "small alone" in told and "of its cost" in told
    assert "The frontier" in page.read_text() and "suffice panel evaluate --voter" in page.read_text()
    found = json.loads(works("panel", "evaluate", *voters, "--controller", f"file:{out}", *usual, "--json"))
    assert found["voters"] == ["small", "large"] and found["baseline"] == "large: sc"
    row = found["results"][-1]
    assert row["voter"] is None and set(row["samples"]) == {"small", "large"}
    assert {"accuracy", "agreement", "cost", "rounds", "cost_of_baseline", "accuracy_difference"} <= set(row)
    assert "is for a panel" in fails("evaluate", "smollm2-135m__arithmetic", "--controller", f"file:{out}")
    assert "must be NAME=POOL" in fails("panel", "evaluate", "--voter", "small")
