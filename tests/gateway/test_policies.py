"""Policies by key, model and topic: the most specific wins, and they are taken in force while the gateway runs."""

import os
from pathlib import Path
from typing import Any

import pytest
from helpers.gateways import ASK, always, free_port, gateway, post, running
from helpers.keys import Desk

from suffice import OptionError, paths
from suffice.gateway import Gateway, Settings, with_file
from suffice.gateway.settings import ClientPolicy
from suffice.testing import FakeServer

pytestmark = pytest.mark.usefixtures("quick")


@pytest.fixture(autouse=True)
def always_looking(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "LOOK_SECONDS", 0.0)


def told(url: str, model: str = "fake", **options: Any) -> str:
    """How many samples a request took within what budget, or why it was no vote."""
    reply = post(url, ASK | {"model": model}, **options)
    found = reply.json().get("suffice")
    return f"{found['samples']} of {found['budget']}" if found else str(reply.headers["x-suffice-no-vote"])


def test_a_model_has_its_own_vote_budget_and_controller() -> None:
    tables = [
        {"model": "big*", "vote": "shadow"},
        {"model": "big-math", "vote": "always", "controller": "sc", "budget": 6},
        {"model": "small", "max_samples": 3, "controller": "sc"},
    ]
    with FakeServer(always) as upstream, gateway(upstream, vote="off", policy=tables) as url:
        found = [told(url, model) for model in ("fake", "big", "big-math", "small")]
        assert found == ["off", "shadow", "6 of 6", "off"]
    with FakeServer(always) as upstream, gateway(upstream, vote="always", policy=tables) as url:
        assert told(url, "small") == "3 of 3"
        assert post(url, ASK | {"model": "small", "n": 4}).status_code == 400


def test_the_key_comes_before_the_model_and_both_before_either(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    ann, bob, eve = desk.add("ann"), desk.add("bob"), desk.add("eve")
    tables = [
        {"model": "fake", "budget": 7, "vote": "off"},
        {"key": "ann", "budget": 4, "patience": 2, "vote": "always"},
        {"key": "bob*", "budget": 6, "vote": "always", "max_samples": 5},
        {"key": "ann", "model": "other", "budget": 3},
    ]
    with FakeServer(always) as upstream, desk.gateway(upstream, controller="sc", policy=tables) as url:
        assert told(url, headers=ann) == "4 of 4" and told(url, "other", headers=ann) == "3 of 3"
        assert told(url, headers=bob) == "5 of 5", "a limit stays one"
        assert told(url, headers=eve) == "off"


def test_the_file_s_policies_are_read_again(tmp_path: Path, capfd: Any) -> None:
    config, port = tmp_path / "suffice.toml", free_port()

    def write(policy: str) -> None:
        fresh = tmp_path / "fresh.toml"
        fresh.write_text(f'vote = "always"\ncontroller = "sc"\nbudget = 4\n{policy}')
        os.utime(fresh, ns=(len(policy), len(policy)))
        fresh.replace(config)

    write("")
    with FakeServer(always) as upstream:
        settings = with_file({"upstream": upstream.base_url, "port": port}, config)
        write('[[policy]]\nmodel = "fake"\nbudget = 2\n')  # as before the start of a later worker
        with running(Gateway(settings).app, port) as url:
            assert told(url) == "2 of 2"
            write('[[policy]]\nmodel = "fake"\nvote = "perhaps"\n')
            assert told(url) == "2 of 2"
            write("[[policy")
            assert told(url) == "2 of 2"
            write("# none any more")
            assert told(url) == "4 of 4"
    said = capfd.readouterr().err
    assert said.count("the old policies stay in force") == 2 and "vote must be one of" in said


@pytest.mark.parametrize(
    ("policy", "why"),
    [
        ("fake", "must be tables"),
        ([{"vote": "off"}], "must name a key, a model or a topic"),
        ([{"model": "m", "patients": 1}], 'there is no setting "patients"; there are key, model, topic, vote'),
        ([{"model": "m", "vote": "perhaps"}], 'of model "m": vote must be one of'),
        ([{"key": "k", "budget": 0}], "budget must be a whole number"),
        ([{"key": "k", "controller": "nonsense"}], "nonsense"),
        ([{"key": "k", "max_samples": "many"}], "max_samples must be a whole number"),
        ([{"key": "k", "patience": "much"}], 'patience must be a number, at least 0, not "much"'),
        ([{"key": "k", "patience": -1}], "patience must be a number, at least 0"),
    ],
)
def test_what_can_not_be_is_refused(policy: Any, why: str) -> None:
    with pytest.raises(OptionError, match=why):
        Settings(upstream="http://127.0.0.1:9/v1", policy=policy)


def test_specificity() -> None:
    rising = [
        ClientPolicy(model="q*"),
        ClientPolicy(model="qwen*"),
        ClientPolicy(model="q"),
        ClientPolicy(key="a*"),
        ClientPolicy(key="a"),
        ClientPolicy(key="a*", model="*"),
        ClientPolicy(key="a", model="*"),
        ClientPolicy(key="a", model="q"),
    ]
    shuffled = rising[4:] + rising[:4]
    assert sorted(shuffled, key=lambda one: one.specificity) == rising
