"""Things in a notebook: one line each, small HTML that obeys nobody, data frames; and the notebook of the docs runs."""

import ast
import inspect
import json
import os
import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

import suffice
from suffice import Pool, Question, Tally
from suffice.live import Outcome

POOL = "smollm2-135m__arithmetic"
CONTROLLERS = ("sc", "asc", "esc", "boinf", "consol", "rl", "plan")
NOTEBOOK = Path(__file__).parents[1] / "docs" / "start.ipynb"
EVIL = "<script>alert(1)</script>"

if TYPE_CHECKING:  # the type checker must find these wrong; it complains of a mark that marks nothing
    suffice.sample(None, [], model="m", sampling=suffice.Sampling(retries="long"))  # type: ignore[arg-type]
    suffice.sample(None, [], model="m", sampling="asc")  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def comparison() -> suffice.Comparison:
    (found,) = suffice.compare(POOL, ["asc", "sc"], repeats=2)
    return found


def outcome(**votes: int) -> Outcome:
    drawn = sum(votes.values())
    answer = max(votes, key=lambda name: votes[name], default=None)
    return Outcome(answer, None, votes, 1.0, 0.99, 0.9, (drawn,), 1, 2, 0.1, "controller", (), (), 32)


def test_all_are_one_short_line(comparison: suffice.Comparison) -> None:
    pool = suffice.load_pool(POOL)
    assert repr(pool) == "Pool('smollm2-135m__arithmetic', 40 questions × 64 responses)"
    tally = Tally(8)
    tally.add_round(["7", "9", None, "9"])
    assert repr(tally) == "Tally({'9': 2, '7': 1}, 4 of 8 draws in 1 round)"
    assert repr(outcome(a=3, b=1)) == "Outcome('a', 4 samples in 1 round, 99.0% sure, stopped by: controller)"
    assert repr(comparison) == f"Comparison('{POOL}': asc, sc; against sc)"
    asc, _ = comparison.results
    assert repr(asc).startswith(f"Result('asc' on '{POOL}': {asc.samples:.1f} samples in ")
    long = Question("q" * 500, "g" * 500, ("x" * 500,) * 3, None)
    controllers = list(map(suffice.get_controller, CONTROLLERS))
    for one in (pool, pool.questions[0], long, tally, outcome(**{"x" * 500: 4}), comparison, asc, *controllers):
        assert "\n" not in repr(one) and len(repr(one)) < 200


def test_html_is_small_has_no_colours_and_obeys_nobody(comparison: suffice.Comparison) -> None:
    question = Question(EVIL, EVIL, (EVIL,) * 3, None)
    tally = Tally(8)
    tally.add_round([EVIL])
    shown: list[Any] = [Pool(EVIL, (question,)), question, tally, outcome(**{EVIL: 4})]
    shown += [comparison, comparison.baseline, *map(suffice.get_controller, CONTROLLERS)]
    for one in shown:
        page = one._repr_html_()
        assert "<table>" in page and "<script" not in page and len(page) < 5000
        assert "color:" not in page and "rgb" not in page
    assert "&lt;script&gt;" in tally._repr_html_()
    assert "and 24 more" in suffice.load_pool(POOL)._repr_html_()


def test_pools_have_a_length_an_order_and_parts() -> None:
    pool = suffice.load_pool(POOL)
    assert len(pool) == 40 and [one.id for one in pool] == [one.id for one in pool.questions]
    part = pool.filter(lambda question: question.id != pool.questions[0].id)
    assert part.questions == pool.questions[1:] and part.name == pool.name
    (result,) = suffice.evaluate(part, "asc", repeats=1)
    assert result.questions == 39
    with pytest.raises(suffice.PoolError, match="there are no questions"):
        pool.filter(lambda question: False)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_have_a_column_each(
    library: str, comparison: suffice.Comparison, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, SimpleNamespace(DataFrame=lambda columns: columns))
    pool = suffice.load_pool(POOL)
    frames = [getattr(one, f"to_{library}")() for one in (pool, comparison.baseline, comparison)]
    for frame, rows in zip(frames, (40 * 64, 40, 2), strict=True):
        assert {len(column) for column in frame.values()} == {rows}
    responses, questions, controllers = frames
    assert list(responses)[:5] == ["question", "draw", "answer", "tokens", "gold"]
    assert responses["answer"][:64] == list(pool.questions[0].answers)
    assert set(questions["samples"]) == {32} and controllers["controller"] == ["sc", "asc"]
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(suffice.OptionError, match=f"^this needs {library}: pip install {library}$"):
        pool.to_pandas() if library == "pandas" else pool.to_polars()


@pytest.mark.slow
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_the_libraries_take_the_columns(library: str, comparison: suffice.Comparison) -> None:
    """The real ones: polars wants one type in a column."""

    def frame(one: Pool | suffice.Result | suffice.Comparison) -> Any:
        made = one.to_pandas() if library == "pandas" else one.to_polars()
        assert type(made).__module__.startswith(library)
        return made

    known = Question("a", "7", ("7", None), (3, None), signals={"tail": (0, -1.5)})
    responses = frame(Pool("mine", (Question("b", None, (None, None), None), known)))
    assert responses.shape == (4, 6) and responses["tail"].to_list()[2:] == [0, -1.5]
    assert frame(suffice.load_pool(POOL)).shape == (2560, 5)
    assert frame(comparison.baseline)["samples"].to_list() == [32] * 40
    assert frame(comparison)["controller"].to_list() == ["sc", "asc"]


def test_sample_and_asample_take_the_same() -> None:
    ours, theirs = (inspect.signature(one).parameters for one in (suffice.sample, suffice.asample))
    assert list(ours.values()) == list(theirs.values())


def outputs(source: str, names: dict[str, Any]) -> list[dict[str, Any]]:
    """Run a cell; what it prints, and what its last line is as HTML, in the form that notebooks keep."""
    *body, last = ast.parse(source).body
    printed = StringIO()
    with redirect_stdout(printed):
        if isinstance(last, ast.Expr):
            exec(compile(ast.Module(body, []), "start.ipynb", "exec"), names)
            value = eval(compile(ast.Expression(last.value), "start.ipynb", "eval"), names)
        else:
            exec(source, names)
            value = None
    kept: list[dict[str, Any]] = []
    if printed.getvalue():
        kept.append({"name": "stdout", "output_type": "stream", "text": printed.getvalue().splitlines(True)})
    if hasattr(value, "_repr_html_") or isinstance(value, tuple):
        shown = value._repr_html_() if hasattr(value, "_repr_html_") else None  # a figure has none to show
        data = {**({"text/html": [shown]} if shown else {}), "text/plain": [repr(value)]}
        kept.append({"data": data, "execution_count": None, "metadata": {}, "output_type": "execute_result"})
    return kept


def test_the_notebook_runs_and_shows_what_it_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = json.loads(NOTEBOOK.read_text())
    names: dict[str, Any] = {"__name__": "start"}
    for cell in page["cells"]:
        if cell["cell_type"] == "code":
            found = outputs("".join(cell["source"]), names)
            if os.environ.get("SUFFICE_UPDATE_DOCS"):
                cell["outputs"] = found
            assert cell["outputs"] == found
    if os.environ.get("SUFFICE_UPDATE_DOCS"):
        NOTEBOOK.write_text(json.dumps(page, indent=1, ensure_ascii=False) + "\n")
    assert names["outcome"].answer == "42" and names["saved"] > 0.4
    assert NOTEBOOK.stat().st_size < 30_000
