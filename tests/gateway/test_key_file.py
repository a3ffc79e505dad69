"""The file of keys, how a running gateway reads it again, and what a key is a label of."""

import json
import re
import threading
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from helpers.commands import fails, works
from helpers.gateways import ASK, always, figures, post
from helpers.keys import Desk, bearer
from helpers.live import until

from suffice import OptionError, paths
from suffice.gateway import Settings
from suffice.gateway.door import KeyRing
from suffice.gateway.keys import add_key, digest_of, read_keys
from suffice.testing import FakeServer

pytestmark = pytest.mark.usefixtures("quick")


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    monkeypatch.setattr(paths, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(paths, "WRITING_SECONDS", 60.0)
    return Desk(tmp_path)


def test_a_key_is_added_and_its_secret_shown_once(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    secret = works("keys", "add", "ann", "--keys", file).strip()
    assert re.fullmatch(r"sk-suffice-[\w-]{43}", secret)
    works("keys", "add", "bob@example.com", "--keys", file)
    assert [key.name for key in read_keys(file)] == ["ann", "bob@example.com"]
    assert read_keys(file)[0].sha256 == digest_of(secret) and secret not in file.read_text()
    assert list(tmp_path.iterdir()) == [file], "nothing is left lying about"


@pytest.mark.parametrize("end", ["", "\n", "\n\n"])
def test_what_the_user_wrote_stays_however_the_file_ends(end: str, tmp_path: Path) -> None:
    file = tmp_path / "keys"
    written = f"# Ask Kim before you change anything.\n\nann {'0' * 64}{end}"
    file.write_text(written)
    add_key(file, "eve")
    assert file.read_text().startswith(written.rstrip() + (end or "\n") + "eve ")


def test_bad_calls_get_one_sentence(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    works("keys", "add", "ann", "--keys", file)
    assert "a name has letters" in fails("keys", "add", "a b", "--keys", file)
    assert "can't be changed" in fails("keys", "add", "ann", "--keys", tmp_path / "none" / "keys")
    upstream = ["--upstream", "http://127.0.0.1:9/v1"]
    assert "can't be read" in fails("serve", *upstream, "--keys", tmp_path / "none")
    assert "--forward-auth" in fails("serve", *upstream, "--keys", file, "--forward-auth")
    (tmp_path / "file").write_text("")
    assert "can be kept there" in fails("serve", *upstream, "--keys", file, "--state", tmp_path / "file" / "state")


BROKEN = {
    "it has no keys": "# none yet",
    ", line 2: must be a name": "# ours\nann",
    ", line 1: must be a name": "ann sk-plain",
    ", line 3: must be a name": f"ann {'1' * 64}\n\nb/b {'2' * 64}",
    ", line 2: bob has the secret of ann": f"ann {'1' * 64}\nbob {'1' * 64}",
}


@pytest.mark.parametrize("sentence", BROKEN)
def test_a_bad_line_is_refused_with_its_file_and_number(sentence: str, tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text(BROKEN[sentence])
    with pytest.raises(OptionError, match=f"{file}.*{sentence}"):
        Settings(upstream="http://127.0.0.1:9/v1", keys=str(file)).check_safe()
    assert KeyRing(file).name_of({"x-api-key": "sk"}) is None, "a later worker starts, and lets nobody in"


def is_answered(url: str, headers: dict[str, str], status: int) -> bool:
    return post(url, ASK, headers=headers).status_code == status


def test_the_file_is_read_again_while_requests_run_and_none_is_dropped(desk: Desk, capfd: Any) -> None:
    ann = desk.add("ann")
    statuses: list[int] = []
    ending = threading.Event()

    def ask(url: str) -> None:
        with httpx.Client(headers=ann, trust_env=False) as client:
            while not ending.is_set():
                statuses.append(client.post(f"{url}/v1/chat/completions", json=ASK).status_code)

    with FakeServer(always, remember=False) as upstream, desk.gateway(upstream) as url:
        asking = [threading.Thread(target=ask, args=(url,)) for _ in range(3)]
        for thread in asking:
            thread.start()
        sound = desk.path.read_text()
        for broken in ("", "nonsense"):
            desk.path.write_text(broken)
            assert until(lambda: len(statuses) > 9)
            statuses.clear()
        new = desk.add("new") if desk.path.write_text(sound) else {}
        assert until(partial(is_answered, url, new, 200))
        desk.path.write_text(sound)
        assert until(partial(is_answered, url, new, 401))
        ending.set()
        for thread in asking:
            thread.join()
    assert set(statuses) == {200}
    said = capfd.readouterr().err
    assert said.startswith(f"suffice: keys {desk.path}, line 1: must be a name") and said.count("\n") == 1


def test_without_the_last_key_nobody_is_let_in(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "WRITING_SECONDS", 0.0)
    ann = desk.add("ann")
    with FakeServer(always) as upstream, desk.gateway(upstream) as url:
        assert is_answered(url, ann, 200)
        desk.path.write_text("")
        assert until(partial(is_answered, url, ann, 401))


def test_a_key_names_log_lines_metrics_and_topics_and_sees_its_own(desk: Desk, capfd: Any) -> None:
    ann, bob = desk.add("ann"), desk.add("bob")
    with FakeServer(always) as upstream, desk.gateway(upstream) as url:
        assert httpx.get(f"{url}/healthz").headers["x-suffice-key"] == "required"
        assert post(url, ASK).status_code == post(url, ASK, headers=bearer("sk-wrong")).status_code == 401
        before = figures(url)
        assert post(url, ASK, headers=ann).status_code == 200
        assert post(url, ASK, headers={"x-api-key": ann["authorization"].split()[1]}).status_code == 200
        assert post(url, ASK | {"n": 2}, headers=bob).status_code == 200
        after = figures(url)
        shown = [httpx.get(f"{url}/v1/suffice/recent", headers=key).json() for key in (ann, bob)]
        kinds = [httpx.get(f"{url}/v1/suffice/audits", headers=key).json()["kinds"] for key in (ann, bob)]
    assert [[line["key"] for line in one["recent"]] for one in shown] == [["ann", "ann"], ["bob"]]
    assert [{group["key"] for group in one["costs"]["groups"]} for one in shown] == [{"ann"}, {"bob"}]
    assert [one["totals"]["requests"] for one in shown] == [5, 5], "sums are over all"
    assert [[kind["topic"] for kind in one] for one in kinds] == [["ann"], []]
    series = {
        'requests_total{key="ann"': 2,
        'samples_total{key="ann"': 8,
        'tokens_total{key="ann",kind="prompt"': 10,
        'tokens_total{key="ann",kind="completion"': 80,
        'over_one_tokens_total{key="ann"': 60,
        'requests_total{key="bob"': 1,
        'tokens_total{key="bob",kind="completion"': 20,
    }
    for name, more in series.items():
        assert after[f"suffice_key_{name}}}"] - before.get(f"suffice_key_{name}}}", 0) == more, name
    out = capfd.readouterr().out
    lines = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    assert [line.get("key") for line in lines if line["kind"] == "vote"] == ["ann", "ann"]
    assert "sk-" not in out


def test_max_samples_of_a_key_s_policy_bounds_votes_and_n(desk: Desk) -> None:
    ann, bob = desk.add("ann"), desk.add("bob")
    settings: Any = {"controller": "sc", "budget": 8, "policy": [{"key": "ann", "max_samples": 3}]}
    with FakeServer(always) as upstream, desk.gateway(upstream, **settings) as url:
        told = post(url, ASK, headers=ann).json()["suffice"]
        assert (told["samples"], told["budget"]) == (3, 3)
        told = post(url, ASK | {"suffice": {"budget": 8}}, headers=ann).json()["suffice"]
        assert (told["samples"], told["budget"]) == (3, 3), "cut, as by max_budget, and said"
        assert post(url, ASK, headers=bob).json()["suffice"]["samples"] == 8
        refused = post(url, ASK | {"n": 4}, headers=ann)
        assert refused.status_code == 400 and "3 at most here" in refused.json()["error"]["message"]
        assert post(url, ASK | {"n": 3}, headers=ann).status_code == 200
