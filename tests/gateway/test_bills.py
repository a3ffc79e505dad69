"""What requests take and cost: votes, scouts and what is relayed, by what the upstream says, or else estimated."""

import gzip
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import pytest
from helpers.gateways import ASK, always, gateway, post, under_way
from helpers.keys import Desk
from helpers.live import until
from hypothesis import given
from hypothesis import strategies as st

from suffice.gateway.accounts.prices import Prices
from suffice.gateway.operations.replies import UsageReader
from suffice.testing import FakeServer, Reply, completion

pytestmark = pytest.mark.usefixtures("quick")

ASKED = ASK | {"suffice": {}}
PRICES = {"fake*": {"input": 10.0, "output": 100.0}}
POEM: dict[str, Any] = {"model": "fake", "messages": [{"role": "user", "content": "Explain how rain comes about."}]}
PROSE = "Water rises, cools and falls, as it has for a long while."

BODIES: dict[str, dict[str, Any]] = {
    "chat/completions": ASK,
    "responses": {"model": "fake", "input": "What is 6 * 7?"},
    "messages": {**ASK, "max_tokens": 99},
}


def lines_of(capfd: Any) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capfd.readouterr().out.splitlines() if line.startswith("{")]


def test_a_vote_costs_what_its_requests_bill_and_says_what_the_full_budget_would(capfd: Any) -> None:
    with FakeServer(always) as upstream, gateway(upstream, prices=PRICES, controller="esc", budget=10) as url:
        before = httpx.get(f"{url}/metrics").text
        reply = post(url, ASKED)
        after = httpx.get(f"{url}/metrics").text
        streamed = post(url, ASKED | {"stream": True}).text
        unasked = post(url, ASK).json()["suffice"]
    # One request for 5 draws bills its prompt once, and so would one for all 10.
    cost, full = (5 * 10 + 50 * 100) / 1e6, (5 * 10 + 100 * 100) / 1e6
    assert reply.headers["x-suffice-cost"] == f"{cost:.8f}" and reply.headers["x-suffice-cost-full"] == f"{full:.8f}"
    told = reply.json()["suffice"]
    over_one = 40 * 100 / 1e6
    assert (told["cost"], told["cost_over_one"], told["cost_full"]) == (cost, over_one, full)
    assert f'"cost": {cost}, "cost_over_one": {over_one}, "cost_full": {full}' in streamed
    assert unasked["cost"] == unasked["cost_full"], "nothing is saved of what nobody asked for"
    line = lines_of(capfd)[1]
    assert (line["cost"], line["cost_full"], line["prompt_tokens"], line["tokens"]) == (cost, full, 5, 50)

    def value(text: str, name: str) -> float:
        return float(text.split(f"\n{name} ")[1].split()[0])

    spending = {"suffice_cost_total": cost, "suffice_cost_full_total": full}
    for name, spent in spending.items():
        assert value(after, name) - value(before, name) == pytest.approx(spent)


def test_where_each_draw_bills_its_prompt_the_full_budget_does_too() -> None:
    one = lambda request, number: Reply(completion(["So it is \\boxed{42}."]))  # noqa: E731
    with FakeServer(one) as upstream, gateway(upstream, prices=PRICES, controller="sc:draws=4", budget=8) as url:
        told = post(url, ASKED).json()["suffice"]
    assert told["cost_over_one"] == pytest.approx((3 * 5 * 10 + 30 * 100) / 1e6)
    assert told["cost"] == pytest.approx((4 * 5 * 10 + 40 * 100) / 1e6)
    assert told["cost_full"] == pytest.approx((8 * 5 * 10 + 80 * 100) / 1e6)


@pytest.mark.parametrize("path", BODIES)
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("vote", ["auto", "off"], ids=["scout", "relay"])
def test_scouts_and_relays_are_counted_and_pass_byte_for_byte(
    path: str, streamed: bool, vote: str, tmp_path: Path, capfd: Any
) -> None:
    desk = Desk(tmp_path)
    ann = desk.add("ann")
    body = BODIES[path] | ({"stream": True} if streamed else {})
    with FakeServer(lambda request, number: PROSE, streams=True) as upstream:
        plain = httpx.post(f"{upstream.base_url}/{path}", json=body).content
        with desk.gateway(upstream, vote=vote, prices=PRICES) as url:
            reply = httpx.post(f"{url}/v1/{path}", json=body, headers=ann)
            assert reply.content == plain
            told = desk.usage(url)["ann"]
    spent = told["requests"], told["samples"], told["prompt_tokens"], told["completion_tokens"], told["votes"]
    assert spent == (1, 1, 5, 10, 0) and told["estimated_tokens"] == 0
    assert told["cost"] == told["cost_full"] == pytest.approx((5 * 10 + 10 * 100) / 1e6)
    line = lines_of(capfd)[0]
    assert (line["key"], line["prompt_tokens"], line["tokens"], line["cost"]) == ("ann", 5, 10, told["cost"])
    if vote == "auto" and not streamed:
        assert reply.headers["x-suffice-cost"] == f"{told['cost']:.8f}"


def test_what_nobody_counts_is_estimated_and_said_so(tmp_path: Path, capfd: Any) -> None:
    desk = Desk(tmp_path)
    ann = desk.add("ann")
    chunk = b'data: {"choices": [{"delta": {"content": "so "}}]}\n\n'
    silent = Reply(chunk * 23, headers={"content-type": "text/event-stream"})
    with FakeServer(lambda request, number: silent) as upstream, desk.gateway(upstream) as url:
        assert post(url, POEM | {"n": 2, "stream": True}, headers=ann).content == silent.body
        told = desk.usage(url)["ann"]
        assert (told["prompt_tokens"], told["completion_tokens"], told["estimated_tokens"]) == (8, 20, 28)
        assert httpx.post(f"{url}/v1/moderations", json={"input": "a" * 400}, headers=ann).status_code == 200
        assert httpx.get(f"{url}/v1/models", headers=ann).status_code == 200
        assert desk.usage(url)["ann"]["tokens"] == 28, "what generates nothing is not guessed at"
    assert lines_of(capfd)[0]["usage_estimated"] is True


def test_who_hangs_up_pays_for_what_was_sent(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    ann = desk.add("ann")
    slow = lambda request, number: Reply(completion([PROSE]), delay=200)  # noqa: E731
    with FakeServer(slow) as upstream, desk.gateway(upstream, vote="off") as url:
        with under_way(url, POEM, upstream, headers=ann):
            pass
        assert until(lambda: desk.usage(url)["ann"]["requests"] == 1)
        told = desk.usage(url)["ann"]
        assert (told["prompt_tokens"], told["completion_tokens"], told["estimated_tokens"]) == (8, 0, 8)


def test_a_reply_that_is_packed_all_the_same_is_passed_back_as_it_is(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    ann = desk.add("ann")
    packed = gzip.compress(json.dumps(completion([PROSE])).encode())
    script = lambda request, number: Reply(packed, headers={"content-encoding": "gzip"})  # noqa: E731
    with FakeServer(script) as upstream, desk.gateway(upstream, vote="off") as url:
        reply = post(url, POEM, headers=ann)
        assert reply.json()["choices"][0]["message"]["content"] == PROSE
        assert upstream.headers[0]["accept-encoding"] == "identity"
        assert desk.usage(url)["ann"]["estimated_tokens"] > 0


MESSAGE_BEGUN = (
    'data: {"type": "message_start", "message": {"usage": {"input_tokens": 7, "output_tokens": 1}}}\n\n'
    'data: {"type": "content_block_start"}\n\n'
)
MESSAGE_DELTA = 'data: {"type": "content_block_delta", "delta": {"text": "so data: "}}\n\n'


def test_a_message_that_is_left_costs_a_token_an_event(tmp_path: Path, capfd: Any) -> None:
    desk = Desk(tmp_path)
    ann = desk.add("ann")
    begun = Reply((MESSAGE_BEGUN + MESSAGE_DELTA * 60).encode(), headers={"content-type": "text/event-stream"})
    with FakeServer(lambda request, number: begun) as upstream, desk.gateway(upstream, vote="off") as url:
        httpx.post(f"{url}/v1/messages", json=POEM | {"stream": True}, headers=ann)
        told = desk.usage(url)["ann"]
        assert (told["prompt_tokens"], told["completion_tokens"], told["estimated_tokens"]) == (7, 60, 67)
    assert lines_of(capfd)[0]["usage_estimated"] is True


USAGE = {"prompt_tokens": 7, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 2}}
REPLIES = {
    "whole": (json.dumps({"usage_of": 1, "text": 'a "usage": {"prompt_tokens": 999}', "usage": USAGE}), (7, 5)),
    "tight": (json.dumps({"choices": [], "usage": USAGE}, separators=(",", ":")), (7, 5)),
    "none": (json.dumps({"choices": [{"text": '"usage"'}], "usage": None}), None),
    "growing": ("".join(f'{{"usage": {{"prompt_tokens": 7, "completion_tokens": {n}}}}}\n' for n in range(9)), (7, 8)),
    "anthropic": (
        'data: {"message": {"usage": {"input_tokens": 3, "cache_read_input_tokens": 4, "output_tokens": 1}}}\n\n'
        'data: {"type": "message_delta", "usage": {"output_tokens": 6}}\n\n',
        (7, 6),
    ),
    "left": (MESSAGE_BEGUN + MESSAGE_DELTA * 10, (7, 10)),
    "odd": ('{"usage": {"prompt_tokens": "7", "completion_tokens": -5, "input_tokens": true}}', None),
    "cut off": ('{"usage": {"prompt_tokens": 7, "completion', None),
    "no object": ('{"usage" : "much", "usage":[1]}' + " " * 100, None),
}  # fmt: skip


@pytest.mark.parametrize("case", REPLIES)
@given(cuts=st.lists(st.integers(0, 400), max_size=12))
def test_usage_is_found_however_the_bytes_are_cut(case: str, cuts: list[int]) -> None:
    text, tokens = REPLIES[case]
    raw, reader = text.encode(), UsageReader()
    ends = [0, *sorted(cuts), len(raw)]
    for start, end in pairwise(ends):
        reader.feed(raw[start:end] if start < end else b"")
    reader.feed(b"")
    assert reader.tokens == tokens


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_no_bytes_disturb_the_reading(before: bytes, after: bytes) -> None:
    reader = UsageReader()
    much = b" " * (1 << 14)  # so long it waits for the end of what looks like a usage
    for piece in (before, b'"usage": ', after, b'{"usage": {"prompt_tokens": 1}}', much):
        reader.feed(piece)
    assert reader.tokens == (1, 0)


def test_prices_go_by_name_then_by_the_longest_pattern() -> None:
    table = {"*": (1, 1), "gpt-4o*": (2, 2), "gpt-4o-mini*": (3, 3), "gpt-4o-mini-x": (4, 4), "odd[1]": (5, 5)}
    prices = Prices({name: {"input": one, "output": other} for name, (one, other) in table.items()})
    models = ["llama", None, "gpt-4o", "gpt-4o-mini-y", "gpt-4o-mini-x", "odd[1]"]
    found = [prices.of(model) for model in models]
    assert [price.input if price else None for price in found] == [1, 1, 2, 3, 4, 5]
    assert Prices({}).of("m") is None
