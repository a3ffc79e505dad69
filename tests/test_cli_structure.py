"""`ask`, `run` and `collect` with a schema, on a scripted server."""

import json
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from helpers.batches import read_lines, url, write_lines
from helpers.commands import fails, works
from rich.console import Console

import suffice
from suffice.live import Moment
from suffice.report.votes import vote_display
from suffice.tally import Tally
from suffice.testing import FakeServer

pytestmark = pytest.mark.usefixtures("quick")

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}, "zip": {"type": "integer"}}, "required": ["zip"]}


def place(city: str, zip_code: Any = 3011, **more: Any) -> str:
    return json.dumps({"city": city, "zip": zip_code, **more})


def server(*texts: str) -> FakeServer:
    given = cycle(texts)
    return FakeServer(lambda request, number: [next(given) for _ in range(request.get("n", 1))])


@pytest.fixture
def schema(tmp_path: Path) -> Path:
    path = tmp_path / "place.json"
    path.write_text(json.dumps(SCHEMA))
    return path


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    gold = {"zip": 3011.0, "city": "Bern"}
    lines = ({"id": one, "question": f"Where is {one}?", "gold": gold} for one in "ab")
    return write_lines(tmp_path / "questions.jsonl", lines)


def test_an_object_is_put_together_only_where_that_is_asked_for() -> None:
    said = [{"city": "Bern", "zip": 1, "floor": 1}, {"city": "Bern", "zip": 2, "floor": 2}]
    said.append({"city": "Thun", "zip": 1, "floor": 2})
    with server(*map(json.dumps, said)) as upstream:
        options = [*url(upstream), "--answer", "json", "--controller", "sc:draws=6", "--json"]
        came = [json.loads(works("ask", "Where?", *options, *more)) for more in ([], ["--compose"])]
    assert came[0]["value"] in said and came[1]["value"] == {"city": "Bern", "zip": 1, "floor": 2}
    assert [one["composed"] for one in came] == [False, True]


def test_ask_shows_the_fields(schema: Path) -> None:
    with server(place("Bern"), place("Bern"), place("Thun"), place("Bern", "?")) as upstream:
        options = [*url(upstream), "--schema", str(schema), "--controller", "sc:draws=4"]
        shown = works("ask", "Where is it?", *options)
        outcome = json.loads(works("ask", "Where is it?", *options, "--json"))
    first, answer, city, code, *_ = shown.splitlines()
    assert first.startswith('round 1, 4 drawn: /city "Bern" ×2, /zip 3011 ×3; ') and first.endswith("enough")
    assert answer == 'Answer: {"city": "Bern", "zip": 3011}'
    assert city.startswith('  /city: "Bern" (67% of the votes, ')
    assert code.startswith("  /zip: 3011 (100% of the votes, ")
    assert outcome["fields"]["/zip"]["votes"] == 3 and outcome["composed"] is False
    sent = upstream.requests[0]
    assert sent["response_format"] == {"type": "json_schema", "json_schema": {"name": "place", "schema": SCHEMA}}
    assert sent["messages"] == [{"role": "user", "content": "Where is it?"}], "nothing about boxes"


def test_a_terminal_shows_a_bar_a_field() -> None:
    console = Console(force_terminal=True, width=100, record=True)
    fields = {f"/f{number}": Tally(8) for number in range(30)}
    for number, tally in enumerate(fields.values()):
        tally.add_round(["right"] * 3 + ["right" if number else "wrong"])
    with vote_display(console) as watch:
        watch(Moment(next(iter(fields.values())), 0, 4, 0.9, 0.9, fields))
    shown = console.export_text()
    assert "/f0" in shown and "3 of 4" in shown and "4 of 4" in shown and "10 more, more settled" in shown


def test_run_answers_with_fields_and_grades_them(schema: Path, questions: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    with server(place("Bern", note="x"), place("Thun", note="y"), place("Bern", note="z")) as upstream:
        command = ["run", str(questions), "--out", str(out), *url(upstream), "--controller", "sc:draws=3"]
        command += ["--schema", str(schema), "--ignore", "/note"]
        shown = works(*command)
        schema.write_text(json.dumps(SCHEMA | {"title": "another"}))
        assert "was begun with other settings: response_format" in fails(*command)
    for line in read_lines(out):
        assert (line["right"], line["fields_right"], line["composed"]) == (True, 1.0, False)
        assert line["fields"]["/city"]["votes"] == 2 and line["fields"]["/note"]["confidence"] is None
        assert line["gold"] == {"city": "Bern", "zip": 3011.0}
    assert "accuracy 100.0% (2 of 2 with gold), 100.0% of fields right" in shown


def test_collect_writes_structured_answers_into_the_pool(schema: Path, questions: Path, tmp_path: Path) -> None:
    out = tmp_path / "pool.jsonl"
    with server(place("Bern", note="x"), place("Thun", note="y"), "no JSON", place("Bern", note="z")) as upstream:
        options = ["--out", str(out), "--samples", "8", "--concurrency", "1", *url(upstream)]
        works("collect", questions, *options, "--schema", schema, "--ignore", "/note")
    written = read_lines(out)[0]
    assert written["answers"].count(None) == 2 and {"city": "Bern", "zip": 3011, "note": "x"} in written["answers"]
    assert written["gold"] == {"city": "Bern", "zip": 3011.0} and written["ignore"] == ["/note"]
    (result,) = suffice.evaluate(suffice.load_pool(out), "sc", budget=8, repeats=4)
    assert (result.accuracy, result.field_accuracy, result.agreement) == (100, 100, 100)


def test_what_makes_no_sense_is_refused(schema: Path, tmp_path: Path) -> None:
    none, broken, listed = tmp_path / "none.json", tmp_path / "broken.json", tmp_path / "list.json"
    broken.write_text("{")
    listed.write_text("[]")
    assert "--schema" in fails("ask", "x", "--schema", none)
    assert "it can't be read" in fails("ask", "x", "--schema", broken)
    assert "it must be an object" in fails("ask", "x", "--schema", listed)
    assert "--answer can't be given with a schema" in fails("ask", "x", "--schema", schema, "--answer", "number")
    assert "--ignore is for fields of JSON" in fails("ask", "x", "--ignore", "/note")
    assert "--ignore needs a JSON pointer" in fails("ask", "x", "--schema", schema, "--ignore", "note")
    schema.write_text('{"type": "nonsense"}')
    assert "--schema is no JSON schema" in fails("ask", "x", "--schema", schema)
