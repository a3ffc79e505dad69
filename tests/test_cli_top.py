"""`suffice top`: a gateway's figures in a terminal, whatever becomes of the gateway."""

import json
import re
from contextlib import closing
from io import StringIO
from pathlib import Path
from typing import Any

import httpx
import pytest
from helpers.commands import fails, works
from helpers.gateways import ASK, always, free_port, gateway, post
from helpers.keys import Desk
from rich.console import Console

from suffice.cli.commands import top
from suffice.testing import FakeServer


def test_a_look_is_no_error_in_the_log_of_a_gateway_without_keys(capfd: pytest.CaptureFixture[str]) -> None:
    with FakeServer(always) as upstream, gateway(upstream) as url, closing(top.GatewayClient(url, None)) as watched:
        watched.figures()
    lines = [json.loads(line) for line in capfd.readouterr().out.splitlines() if '"path": "/v1/suffice/' in line]
    assert lines and all(line["status"] == 200 for line in lines)


def test_it_shows_what_the_page_shows() -> None:
    with FakeServer(always) as upstream, gateway(upstream) as url:
        post(url, ASK | {"suffice": {}})
        httpx.get(f"{url}/v1/models", trust_env=False)  # asks no model, and so is no request that counts
        shown = works("top", url)
        told = json.loads(works("top", f"{url}/v1/", "--json").splitlines()[-1])  # the gateway's log is before it
    for words in (
        f"suffice at {url}",
        "28 of 32 samples saved (88 %)",
        "over one",
        "upstream-1",
        "answers",
        "vote, plan",
        "Recent requests",
    ):
        assert words in shown
    totals = told["totals"]
    assert totals["requests"] == 1 and str(totals["samples"]) in shown
    assert told["costs"]["said"].startswith("+3.0 samples a request on 100 % of the traffic") and "+3.0" in shown
    assert "usage" not in told and "Keys" not in shown and "\x1b" not in shown


@pytest.mark.parametrize("prices", [{}, {"*": {"input": 1, "output": 2}}], ids=["nobody pays", "prices"])
def test_samples_and_tokens_are_those_of_all_requests(prices: dict[str, dict[str, int]]) -> None:
    open_question = {"model": "fake", "messages": [{"role": "user", "content": "Autumn?"}]}

    def script(request: dict[str, Any], number: int) -> str:
        return (
            always(request, number) if "6 * 7" in str(request) else "Leaves of amber, and none of them for sale. " * 10
        )

    with FakeServer(script) as upstream, gateway(upstream, vote="auto", prices=prices) as url:
        for body in (ASK, open_question, ASK | {"n": 2}):
            post(url, body)
        with closing(top.GatewayClient(url, None)) as watched:
            totals = watched.figures()["totals"]
    told = {
        name: totals[name] for name in ("requests", "votes", "samples", "tokens", "over_one_samples", "once_tokens")
    }
    assert told == {
        "requests": 3, "votes": 1, "samples": 7, "tokens": 70, "over_one_samples": 3, "once_tokens": 40
    }  # fmt: skip


def test_the_usage_of_keys_is_shown_to_the_operator(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    team = desk.add("team")
    with FakeServer(always) as upstream, desk.gateway(upstream, prices={"fake": {"input": 1, "output": 2}}) as url:
        post(url, ASK, headers=team)
        for headers, seen in [(desk.operator, True), (team, False)]:
            with closing(top.GatewayClient(url, headers["authorization"].removeprefix("Bearer "))) as watched:
                told = watched.figures()
            assert ("usage" in told) == seen and ("Keys" in rendered(told)) == seen
            if seen:
                (usage,) = [key for key in told["usage"]["keys"] if key["name"] == "team"]
                taken = (usage[name] for name in ("samples", "tokens", "over_one_tokens"))
                expected = rf"team +1 +{' +'.join(map(str, taken))} +{usage['cost']:.4f}"
                assert re.search(expected, rendered(told)) and usage["cost"] > 0


def test_what_clients_write_is_not_obeyed_by_the_terminal() -> None:
    entry = {"kind": "relay", "path": "/v1/\x1b[2Jboo", "status": 404, "seconds": 0.1, "time": 0}
    shown = rendered({"totals": {}, "recent": [entry]})
    assert "\x1b[2J" not in shown and "/v1/·[2Jboo" in shown


def test_in_80_columns_the_cost_is_said_first_and_no_number_is_cut() -> None:
    over_one = {"votes": 12_345, "over_one_samples": 98_765, "over_one_tokens": 9_876_543, "cost_over_one": 1234.5}
    group = over_one | {"model": "a-model-with-quite-a-long-name", "key": "a-team-of-many", "evidence": "conclusion"}
    said = "+3.1 samples a request on 22 % of the traffic, 1.68 times the tokens; 14 % of these answers changed"
    audits = {"all": {"audits": 9, "said": "agreement 99.6 %; one response 86.1 %"}}
    told = {"totals": over_one, "costs": {"said": said, "groups": [group | {"changed": 1_728}]}, "audits": audits}
    _, first, second, third, *rest = rendered(told, width=80).splitlines()
    assert f"{first.strip()} {second.strip()}" == said and third.startswith("agreement")
    (row,) = [line.split() for line in rest if "conclusion" in line]
    assert row[-5:] == ["12,345", "98,765", "9,876,543", "1,234.5000", "1,728"] and row[0].endswith("…")


def rendered(told: dict[str, Any], width: int = 120) -> str:
    console = Console(file=StringIO(), width=width)
    console.print(top.screen("http://here", told))
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def test_a_gateway_that_goes_and_comes_back_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """The looks are driven by what stands for the waiting between them."""
    console = Console(file=StringIO(), force_terminal=True, width=120, height=40)
    port = free_port()
    monkeypatch.setattr("helpers.gateways.free_port", lambda: port)
    with FakeServer(always) as upstream:
        running = gateway(upstream)
        url = running.__enter__()
        watched = top.GatewayClient(url, None)
        shown: list[str] = []
        again = gateway(upstream)

        def steps() -> Any:
            yield running.__exit__(None, None, None)
            yield again.__enter__()
            yield None
            raise KeyboardInterrupt

        script = steps()

        def wait() -> None:
            assert isinstance(console.file, StringIO)
            shown.append(console.file.getvalue())
            console.file.truncate(console.file.seek(0))
            next(script)

        with closing(watched):
            top.follow(watched, watched.figures(), console, wait)
        again.__exit__(None, None, None)
    there, gone, back, still = shown
    assert "up for" in there and "nobody answers" in gone and "these are the last figures" in gone
    assert "up for" in back and "up for" in still and "nobody" not in back + still


def test_mistakes_are_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "nobody answers" in fails("top", f"http://127.0.0.1:{free_port()}")
    assert "must be like http://localhost:8000\n" in fails("top", "nonsense")
    assert "the variable is not set" in fails("top", "http://127.0.0.1:1", "--key-env", "NO_SUCH_KEY")
    monkeypatch.setenv("GATEWAY_KEY", "sk-right")
    with FakeServer(always) as upstream:
        assert "not as a gateway of suffice" in fails("top", upstream.base_url)
        with gateway(upstream, api_key_env=("GATEWAY_KEY",)) as url:
            for key in (None, "sk-wrong"):
                with (
                    closing(top.GatewayClient(url, key)) as watched,
                    pytest.raises(top.GoneError, match="asks for a key"),
                ):
                    watched.figures()
            assert "requests" in works("top", url, "--key-env", "GATEWAY_KEY")
