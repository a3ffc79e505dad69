"""A live panel: voters at scripted servers, their prompts, one that dies, files of questions, what is refused."""

import json
from collections.abc import Callable
from itertools import count, cycle
from pathlib import Path
from typing import Any

import pytest
from helpers.commands import fails, suffice, works
from helpers.labels import easy_and_hard
from helpers.live import QUESTION, boxed
from helpers.panels import down, panel_file, saying, wavering

from suffice import LocalServer, OptionError, Outcome, SampleError, Sampling, calibrate
from suffice.panel.live import Panel, Voter, ask_panel
from suffice.testing import FakeServer, Reply, completion

pytestmark = pytest.mark.usefixtures("quick")

CASCADE = "cascade:first=2,then=3"


def always(answer: int, delay: float = 0.0) -> Callable[[dict[str, Any], int], Reply]:
    return lambda request, number: Reply(completion([boxed(answer)] * request.get("n", 1)), delay=delay)


def ask(folder: Path, spec: str = CASCADE, sampling: Sampling | None = None, **servers: FakeServer | str) -> Outcome:
    """Ask a panel of voters at these servers, the first the cheapest."""
    urls = {name: one if isinstance(one, str) else one.base_url for name, one in servers.items()}
    panel = Panel.read(panel_file(folder, spec, **urls))
    return ask_panel(panel, [], QUESTION, sampling=sampling or Sampling(), model="both")


def test_the_dear_voter_is_asked_where_the_cheap_one_wavers(tmp_path: Path) -> None:
    with FakeServer(wavering) as small, FakeServer(always(42, delay=0.02)) as large:
        outcome = ask(tmp_path, small=small, large=large)
    assert outcome.answer == "42" and outcome.by_voter == {"small": {"7": 1, "8": 1}, "large": {"42": 2}}
    assert outcome.votes == {"42": 2, "7": 1, "8": 1} and outcome.stop_reason == "controller"
    assert outcome.confidence is None and outcome.certainty is None, "those are of what one voter would say"
    assert {one["model"] for one in small.requests} == {"small-model"}
    assert {one["model"] for one in large.requests} == {"large-model"}
    assert outcome.to_json()["by_voter"] == outcome.by_voter


def test_votes_weigh_by_voter(tmp_path: Path) -> None:
    with FakeServer(saying([7, 7, 8])) as small, FakeServer(always(42)) as large:
        outcome = ask(tmp_path, "cascade:first=3,then=1,weight=5", small=small, large=large)
    assert outcome.answer == "42" and outcome.majority == "7" and outcome.weighed


def test_a_voter_that_dies_between_rounds_is_left_out(tmp_path: Path) -> None:
    with (
        FakeServer(wavering) as small,
        FakeServer(lambda request, number: (down if number else always(9))(request, number)) as large,
    ):
        outcome = ask(tmp_path, "cascade:first=2,then=5,weight=1", small=small, large=large)
    assert outcome.by_voter["large"] == {"9": 1} and sum(outcome.by_voter["small"].values()) > 2
    assert any("large is left out" in failure for failure in outcome.failures)


def test_who_stands_in_for_the_dead_is_asked_as_often_as_the_vote_allows(tmp_path: Path) -> None:
    with FakeServer(down) as small, FakeServer(saying(count())) as large:
        spec = "cascade:first=4,then=60,weight=1"
        outcome = ask(tmp_path, spec, Sampling(budget=40), small=small, large=large)
    assert outcome.samples == 40 and sum(outcome.by_voter["large"].values()) == 40


def test_who_stands_in_for_the_dead_is_asked_no_more_than_could_change_the_answer(tmp_path: Path) -> None:
    with FakeServer(saying(cycle([7, 7, 8, 7]))) as small, FakeServer(down) as large:
        outcome = ask(tmp_path, "cascade:first=4,then=5", small=small, large=large)
    assert outcome.by_round == (4, 1, 1) and outcome.stop_reason == "controller"
    assert len(outcome.failures) == 1 and outcome.failures[0].startswith("large is left out: ")
    assert outcome.over_one.samples == 5


def test_where_nobody_listens_nobody_waits_as_long_as_there_is_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[int] = []

    def no_back_off(failed: int) -> float:
        waited.append(failed)
        return 0.0

    monkeypatch.setattr("suffice.live.servers.retry.backoff", no_back_off)
    with FakeServer(wavering) as small:
        outcome = ask(tmp_path, small=small, large="http://127.0.0.1:9/v1")
        assert set(outcome.by_voter) == {"small"} and outcome.samples <= 5 and not waited
        with pytest.raises(SampleError, match="large is left out"):
            ask(tmp_path, large="http://127.0.0.1:9/v1")
    assert len(waited) >= Sampling().retries  # as with one model


def test_a_panel_with_nobody_left_fails(tmp_path: Path) -> None:
    with FakeServer(down) as server, pytest.raises(SampleError, match="is left out"):
        ask(tmp_path, small=server, large=server)


def test_two_prompts_of_one_model_are_two_voters(tmp_path: Path) -> None:
    with FakeServer(saying(count())) as server:
        plain = Voter(name="plain", model="one", base_url=server.base_url)
        other = plain.replaced(name="other", suffix="Think twice.", system="You are careful.")
        both = Panel(voters=(plain, other), controller="cascade:first=1,agree=1,then=0")
        outcome = ask_panel(both, [], QUESTION, sampling=Sampling(), model="x")
        assert outcome.by_voter == {"plain": {"0": 1}}
        ask_panel(Panel(voters=(other,), controller="cascade:first=1"), [], QUESTION, sampling=Sampling(), model="x")
    asked = [request["messages"] for request in server.requests]
    assert asked[0] == QUESTION
    assert asked[1] == [
        {"role": "system", "content": "You are careful."},
        {"role": "user", "content": "What is 6 * 7?\n\nThink twice."},
    ]


def test_ask_and_run_take_a_panel(tmp_path: Path) -> None:
    questions, out = tmp_path / "questions.jsonl", tmp_path / "answers.jsonl"
    questions.write_text(
        "".join(json.dumps({"id": f"q{n}", "question": "6 * 7?", "gold": "42"}) + "\n" for n in range(3))
    )
    with FakeServer(wavering) as small, FakeServer(always(42)) as large:
        path = panel_file(tmp_path, small=small.base_url, large=large.base_url)
        told = json.loads(works("ask", "What is 6 * 7?", "--panel", path, "--json"))
        assert told["answer"] == "42" and told["by_voter"]["large"] == {"42": 2}
        assert "large said: 42 ×2." in works("ask", "What is 6 * 7?", "--panel", path)
        works("run", questions, "--out", out, "--panel", path, "--budget", "600")  # more than a plan takes
        lines = [json.loads(line) for line in out.read_text().splitlines()]
        asked = len(small.requests) + len(large.requests)
        works("run", questions, "--out", out, "--panel", path, "--budget", "600")  # all of it is in the journal
        assert len(small.requests) + len(large.requests) == asked
    assert [line["right"] for line in lines] == [True] * 3
    assert all(line["by_voter"] == {"small": {"7": 1, "8": 1}, "large": {"42": 2}} for line in lines)


def test_a_bill_goes_by_the_voters_prices(tmp_path: Path) -> None:
    questions = tmp_path / "questions.jsonl"
    questions.write_text("".join(json.dumps({"id": f"q{n}", "question": "6 * 7?"}) + "\n" for n in range(3)))
    with FakeServer(always(42)) as server:
        path = panel_file(tmp_path, dear=server.base_url)
        path.write_text(path.read_text().replace("price = 1", "price = 50"))
        a_question = 50 * 2 * 10 / 1e6  # for two responses of ten tokens
        limit = ("--max-cost", f"{1.5 * a_question}", "--concurrency", "1")
        told = suffice("run", questions, "--out", tmp_path / "out.jsonl", "--panel", path, *limit)
    assert "1 questions are left" in told.stderr


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "must have voters"),
        ('[[voter]]\nname = "a"\ncolour = "red"\n', 'no setting "colour"'),
        ('[[voter]]\nmodel = "a"\n', "a name of its own"),
        ('[[voter]]\nname = "a"\nprice = -1\n', "price must be a number above 0, not -1"),
        ('[[voter]]\nname = "a"\nbase_url = "http://a/v1"\n', "no model"),
        ('controller = "plan"\n[[voter]]\nname = "a"\n', "cascade"),
        ('[[voter]]\nname = "a"\n[[voter]]\nname = "a"\n', "a name of its own"),
        ("voter = 3\n", "voter"),
        ('[[voter]]\nname = ""\n', "a name of its own"),
        ('[[voter]]\nname = "a"\nmodel = "m"\nbase_url = 3\n', "base_url must be text, not 3"),
        ('name = 3\n[[voter]]\nname = "a"\n', "name must be text, not 3"),
        ("not toml", "Expected"),
    ],
)
def test_a_file_that_is_no_panel_is_refused_in_a_sentence(text: str, complaint: str, tmp_path: Path) -> None:
    path = tmp_path / "panel.toml"
    path.write_text(text)
    said = fails("ask", "What is 6 * 7?", "--panel", path)
    assert complaint in said and (str(path) in said or "controller" in text)


def test_what_a_panel_does_not_do_it_says(tmp_path: Path) -> None:
    panel = Panel(voters=(Voter(name="a", model="m", base_url="http://127.0.0.1:9/v1"),))
    for sampling in (
        Sampling(answer="json"),
        Sampling(elect="weighted:signal=length"),
        Sampling(flow=True, controller="asc"),
    ):
        with pytest.raises(OptionError):
            panel.voting(sampling.voting, {})
    path = panel_file(tmp_path, a="http://127.0.0.1:9/v1")
    for more in (("--controller", "asc"), ("--price-per-million-tokens", "2"), ("--value-of-an-answer", "1")):
        assert "those are in the panel's file" in fails("ask", "6 * 7?", "--panel", path, *more)
    assert "there is no flow with it" in fails("ask", "6 * 7?", "--panel", path, "--flow", "auto")
    assert "leave --base-url, --model and --gguf out" in fails("ask", "6 * 7?", "--panel", path, "--model", "other")
    questions = tmp_path / "questions.jsonl"
    questions.write_text('{"id": "q", "question": "6 * 7?"}\n')
    assert "does not learn" in fails("run", questions, "--out", tmp_path / "out.jsonl", "--panel", path, "--learn")
    assert suffice("ask", "6 * 7?", "--panel", tmp_path / "none.toml").returncode == 2


def test_a_calibration_of_other_votes_than_a_panel_s_is_doubted(tmp_path: Path) -> None:
    right, questions = tmp_path / "right.json", tmp_path / "questions.jsonl"
    calibrate(easy_and_hard()).save(right)
    questions.write_text('{"id": "q", "question": "6 * 7?"}\n')
    with FakeServer(always(42)) as server:
        panel = panel_file(tmp_path, controller="cascade", small=server.base_url, large=server.base_url)
        usual: list[str | Path] = ["--panel", panel, "--right", right]
        taken = server.base_url.rpartition(":")[2].removesuffix("/v1")
        commands: list[tuple[int, list[str | Path]]] = [
            (0, ["ask", "6 * 7?"]),
            (0, ["run", questions, "--out", tmp_path / "out.jsonl"]),
            (2, ["serve", "--upstream", server.base_url, "--port", taken]),  # it is told before the port is tried
        ]
        for code, command in commands:
            done = suffice(*command, *usual)
            assert "is of votes by plan with a budget of 32, and these are by cascade" in done.stderr
            assert (done.returncode, done.stderr.count("may not hold")) == (code, 1)


@pytest.mark.slow
def test_two_prompts_of_the_embedded_model_are_a_panel(tmp_path: Path, local: LocalServer) -> None:
    path = tmp_path / "panel.toml"
    path.write_text(
        'controller = "cascade:first=3,agree=1,then=3"\n[[voter]]\nname = "plain"\n'
        '[[voter]]\nname = "careful"\nprice = 2\nsuffix = "Check the sum twice."\n'
    )
    usual = ("--panel", path, "--base-url", local.base_url, "--model", local.model, "--max-tokens", "64", "--seed", "1")
    told = json.loads(works("ask", "What is 19 + 28?", *usual, "--temperature", "1.2", "--json"))
    assert sum(told["by_voter"]["plain"].values()) <= 3 and told["failures"] == []
    assert told["samples"] == sum(told["draws"]) > 3 and {"plain", "careful"} == set(told["by_voter"])
