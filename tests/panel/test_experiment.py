"""The experiment that compares a panel's controllers."""

import csv
from dataclasses import replace
from pathlib import Path

import pytest
from helpers.commands import fails, works
from helpers.panels import made_voter, small_and_large, written

from suffice.experiments import Bench
from suffice.experiments.panel import panels
from suffice.pools import Pool
from suffice.training.setting import Setting


@pytest.fixture(autouse=True)
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("suffice.panel.fitted.EPISODES", 600)


def test_reproduce_compares_the_rule_with_what_is_fitted(tmp_path: Path) -> None:
    pools = []
    for name, price, right in (("small-1b", 1, 0.3), ("large-20b", 20, 0.85)):
        made = made_voter(name, price, right, questions=30)
        for benchmark in ("one", "two"):
            renamed = tuple(replace(one, id=f"{benchmark}/{one.id}") for one in made.pool)
            pool = replace(made, name=f"{name}__{benchmark}", pool=Pool(name, renamed))
            pools.append(written(pool, tmp_path).partition("=")[2].rpartition(",")[0])
    usual = ("--leave-one-out", "--test", *pools, "--budget", "6", "--repeats", "2")
    out = tmp_path / "out"
    shown = works("reproduce", "panel", *usual, "--value-of-an-answer", "0.01", "--out", out)
    assert "fitted:value=0.01" in shown and (out / "panel_one.png").exists()
    with (out / "panel.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["pool"] == "two" and row["method"] == "panel"]
    assert [row["parameter"] for row in rows] == ["cascade", "fitted:value=0.01"]
    assert "--price must be MODEL=P" in fails("reproduce", "panel", *usual, "--price", "small", "--out", out)


def test_models_without_a_price_or_a_question_in_common_make_no_panel(tmp_path: Path) -> None:
    small, large = (replace(one.pool, name=f"{one.name}__one") for one in small_and_large())
    others = tuple(
        Pool(pool.name.replace("one", "two"), tuple(replace(one, id=f"other {one.id}") for one in pool.questions))
        for pool in (small, large)
    )
    bench = Bench(others, (small, large), tmp_path, repeats=1, setting=Setting(budget=6))
    priced = replace(bench, prices={"small": 1, "large": 20})
    assert panels(bench) == {} == panels(replace(priced, train=others[:1]))
    assert panels(replace(priced, test=(small, replace(others[1], name="large__one")))) == {}
    (compared,) = panels(priced).values()
    assert compared.voters == ("small", "large")
