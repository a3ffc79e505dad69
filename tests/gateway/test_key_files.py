"""The file of keys: how it is written and kept as its owner wrote it, and how a running gateway takes it in."""

import re
import threading
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from helpers.commands import fails, works
from helpers.gateways import ASK, always, gateway, post
from helpers.keys import Desk
from helpers.live import until
from hypothesis import given, settings
from hypothesis import strategies as st

from suffice import OptionError
from suffice.gateway import Settings
from suffice.gateway.accounts import usage
from suffice.gateway.accounts.keys import Limits, add_key, digest_of, read_keys, remove_key
from suffice.gateway.accounts.store import Store
from suffice.testing import FakeServer

pytestmark = pytest.mark.usefixtures("quick")


def test_keys_are_added_listed_and_removed(tmp_path: Path) -> None:
    file = tmp_path / "keys.toml"
    limits = ["--requests-per-minute", "60", "--tokens-per-day", "100000", "--max-samples", "16"]
    key = works("keys", "add", "ann", "--file", file, *limits, "--money-per-month", "2.5").strip()
    assert re.fullmatch(r"sk-suffice-[\w-]{43}", key)
    works("keys", "add", "boss@example.com", "--operator", "--file", file)
    ann, boss = read_keys(file)
    assert (ann.name, ann.sha256, ann.operator) == ("ann", digest_of(key), False)
    assert ann.limits == Limits(60, 100_000, 16, 2.5) and boss.operator
    assert file.stat().st_mode & 0o777 == 0o600 and key not in file.read_text()
    listed = works("keys", "list", "--file", file)
    assert "boss@example.com" in listed and "100000" in listed and ann.sha256[:8] not in listed
    assert works("keys", "remove", "ann", "--file", file) == ""
    assert [one.name for one in read_keys(file)] == ["boss@example.com"]
    assert list(tmp_path.iterdir()) == [file], "nothing is left lying about"


def test_bad_calls_get_one_sentence(tmp_path: Path) -> None:
    file = tmp_path / "keys.toml"
    works("keys", "add", "ann", "--file", file)
    assert 'there is a key "ann" already' in fails("keys", "add", "ann", "--file", file)
    assert 'there is no key "bob"' in fails("keys", "remove", "bob", "--file", file)
    assert "can't be changed" in fails("keys", "remove", "ann", "--file", tmp_path / "none.toml")
    assert "can't be read" in fails("keys", "list", "--file", tmp_path / "none.toml")
    assert "a key's name is of letters" in fails("keys", "add", "a b", "--file", file)
    assert "--tokens-per-day must be a whole number" in fails(
        "keys", "add", "eve", "--tokens-per-day", "0", "--file", file
    )
    assert "--money-per-month must be a number above 0" in fails(
        "keys", "add", "eve", "--money-per-month", "inf", "--file", file
    )
    upstream = ["--upstream", "http://127.0.0.1:9/v1"]
    assert "can't be read" in fails("serve", *upstream, "--keys", tmp_path / "none.toml")
    assert "--forward-auth" in fails("serve", *upstream, "--keys", file, "--forward-auth")
    works("keys", "add", "rich", "--money-per-month", "5", "--file", file)
    assert "keys.rich has money_per_month, and there are no prices" in fails("serve", *upstream, "--keys", file)
    config = tmp_path / "gateway.toml"
    config.write_text('[prices."gpt-4o*"]\ninput = 0.15\n')
    assert "prices of gpt-4o* must be an input and an output" in fails("serve", *upstream, "--config", config)
    config.write_text('[prices.m]\ninput = "x"\noutput = 1\n')
    assert "prices of m: input must be a number" in fails("serve", *upstream, "--config", config)
    unwritable = tmp_path / "file"
    unwritable.write_text("")
    config.write_text('[prices."*"]\ninput = 1\noutput = 2\n')
    prices: list[str | Path] = ["--config", config, "--state", unwritable / "state"]
    assert "can be kept there" in fails("serve", *upstream, "--keys", file, *prices)


WRITTEN = """\
# Our keys. Ask Kim before you change anything.

[keys.ann]  # since May
sha256 = "{0}1"
tokens_per_day = 1_000_000   # a million

# Bob's is for the night jobs.
[keys."b.b"]
sha256 = "{0}2"
"""


def test_what_the_user_wrote_stays(tmp_path: Path) -> None:
    file = tmp_path / "keys.toml"
    written = WRITTEN.format("0" * 63)
    file.write_text(written)
    add_key(file, "eve", Limits(max_samples=3))
    assert file.read_text().startswith(written)
    remove_key(file, "eve")
    assert file.read_text().rstrip() == written.rstrip()
    remove_key(file, "ann")
    first, _, rest = written.partition("[keys.ann]")
    assert file.read_text().rstrip() == (first + rest[rest.index("# Bob's") :]).rstrip()
    remove_key(file, "b.b")
    assert read_keys(file) == () and "Ask Kim" in file.read_text()
    file.write_text(f'keys = {{ ann = {{ sha256 = "{"0" * 64}" }} }}\n')
    with pytest.raises(OptionError, match="take it out by hand"):
        remove_key(file, "ann")


@pytest.mark.parametrize("end", ["", "\n", "\n\n"])
def test_a_key_is_added_a_line_below_however_the_file_ends(end: str, tmp_path: Path) -> None:
    file = tmp_path / "keys.toml"
    written = WRITTEN.format("0" * 63).rstrip()
    file.write_text(written + end)
    add_key(file, "eve", Limits())
    assert file.read_text().startswith(f"{written}\n\n[keys.eve]\n")
    assert [key.name for key in read_keys(file)] == ["ann", "b.b", "eve"]


def test_a_new_file_begins_with_its_first_key(tmp_path: Path) -> None:
    add_key(tmp_path / "keys.toml", "ann", Limits())
    assert (tmp_path / "keys.toml").read_text().startswith("[keys.ann]\n")


@settings(max_examples=8)
@given(
    names=st.lists(st.from_regex(r"[a-z0-9][a-z0-9._@-]{0,8}", fullmatch=True), unique=True, min_size=1, max_size=6),
    gone=st.integers(0, 5),
)
def test_of_many_keys_one_is_removed(tmp_path_factory: pytest.TempPathFactory, names: list[str], gone: int) -> None:
    file = tmp_path_factory.mktemp("keys") / "keys.toml"
    for name in names:
        add_key(file, name, Limits(requests_per_minute=5))
    before = {key.name: key for key in read_keys(file)}
    assert list(before) == names
    name = names[gone % len(names)]
    remove_key(file, name)
    before.pop(name)
    assert {key.name: key for key in read_keys(file)} == before


BROKEN = {
    "not TOML": "[keys.ann",
    "there is no .speed.": '[keys.ann]\nsha256 = "{0}"\nspeed = 3',
    "sha256 must be 64": '[keys.ann]\nsha256 = "sk-plain"',
    "the same sha256": '[keys.ann]\nsha256 = "{0}"\n[keys.bob]\nsha256 = "{0}"',
    "requests_per_minute must be": '[keys.ann]\nsha256 = "{0}"\nrequests_per_minute = "many"',
    "max_samples must be": '[keys.ann]\nsha256 = "{0}"\nmax_samples = true',
    "operator must be": '[keys.ann]\nsha256 = "{0}"\noperator = 1',
    "each key is a table": 'keys = ["ann"]',
    "there is no .budget. in a file of keys": "budget = 3",
    "a key's name is of letters": '[keys."a b"]\nsha256 = "{0}"',
}


@pytest.mark.parametrize("sentence", BROKEN)
def test_a_broken_file_is_refused_in_one_sentence(sentence: str, tmp_path: Path) -> None:
    file = tmp_path / "keys.toml"
    file.write_text(BROKEN[sentence].format("0" * 64))
    with pytest.raises(OptionError, match=sentence) as refused:
        Settings(upstream="http://127.0.0.1:9/v1", keys=str(file), state=str(tmp_path)).check_safe()
    assert str(refused.value).startswith(str(file))


def is_answered(url: str, headers: dict[str, str], status: int) -> bool:
    return post(url, ASK, headers=headers).status_code == status


def awaited(capfd: Any, sentence: str) -> str:
    """What is said on the standard error until that sentence."""
    said: list[str] = []

    def is_said() -> bool:
        said.append(capfd.readouterr().err)
        return sentence in "".join(said)

    assert until(is_said)
    return "".join(said)


def test_new_keys_are_taken_in_while_requests_run_and_none_is_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    monkeypatch.setattr(usage, "LAG_SECONDS", 0.01)
    desk = Desk(tmp_path)
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
        for number in range(2):
            sound = desk.path.read_text()
            desk.path.write_text("[keys.ann")
            complaint = awaited(capfd, "stay in force\n")
            assert complaint.startswith(f"suffice: {desk.path}: not TOML") and complaint.count("\n") == 1
            desk.path.write_text(sound)
            new = desk.add(f"new-{number}")
            assert until(partial(is_answered, url, new, 200))
            remove_key(desk.path, f"new-{number}")
            assert until(partial(is_answered, url, new, 401))
        ending.set()
        for thread in asking:
            thread.join()
        told = desk.usage(url)
    assert len(statuses) > 4 and set(statuses) == {200}
    assert told["ann"]["requests"] == len(statuses)
    assert told["new-0"]["removed"] and told["new-0"]["requests"] >= 1


def test_without_a_state_folder_usage_is_kept_in_one_that_belongs_to_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    places = [Settings(upstream="http://127.0.0.1:9/v1", keys=str(tmp_path / name)).usage_file for name in "ab"]
    assert len(set(places)) == 2 and all(place.is_relative_to(tmp_path / "home" / "suffice") for place in places)
    desk = Desk(tmp_path)
    with FakeServer(always) as upstream, gateway(upstream, keys=str(desk.path)) as url:
        assert post(url, ASK, headers=desk.operator).status_code == 200
    assert len(list((tmp_path / "home").rglob("usage.db"))) == 1


def test_a_disk_that_can_t_be_written_stops_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> None:
    monkeypatch.setattr(usage, "LAG_SECONDS", 0.01)
    desk = Desk(tmp_path)
    ann = desk.add("ann", tokens_per_day=50)
    with FakeServer(always) as upstream, desk.gateway(upstream) as url:

        def full(self: Any, *arguments: Any) -> None:
            raise OSError("no space left")

        with monkeypatch.context() as patch:
            patch.setattr(Store, "exchange", full)
            assert [post(url, ASK, headers=ann).status_code for _ in range(3)] == [200, 200, 429]
            assert "counted in memory: no space left" in awaited(capfd, "\n")
        assert until(lambda: desk.usage(url)["ann"]["tokens"] == 90)


def test_an_empty_file_is_one_that_somebody_is_writing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usage, "LAG_SECONDS", 0.01)
    desk = Desk(tmp_path)
    team = desk.add("team")
    with FakeServer(always) as upstream, desk.gateway(upstream) as url:
        written = desk.path.read_text()
        desk.path.write_text("")
        assert {post(url, ASK, headers=team).status_code for _ in range(40)} == {200}
        desk.path.write_text(written)
        works("keys", "remove", "team", "--file", desk.path)
        works("keys", "remove", "boss", "--file", desk.path)
        assert until(lambda: post(url, ASK, headers=team).status_code == 401)
