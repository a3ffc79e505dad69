"""The tokens of scouts and relayed requests, by what the upstream says, or else estimated."""

import gzip
import json
from itertools import pairwise
from typing import Any

import httpx
import pytest
from helpers.gateways import BODIES, gateway, logged, post
from hypothesis import given
from hypothesis import strategies as st

from suffice.gateway.operations.replies import ReplyReader
from suffice.live.dialects import CHAT, DIALECTS
from suffice.testing import FakeServer, Reply, completion

pytestmark = pytest.mark.usefixtures("quick")

POEM: dict[str, Any] = {"model": "fake", "messages": [{"role": "user", "content": "Explain how rain comes about."}]}
PROSE = "Water rises, cools and falls, as it has for a long while."


@pytest.mark.parametrize("path", BODIES)
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("vote", ["auto", "off"], ids=["scout", "relay"])
def test_scouts_and_relays_are_counted_and_pass_byte_for_byte(path: str, streamed: bool, vote: str, capfd: Any) -> None:
    body = BODIES[path] | ({"stream": True} if streamed else {})
    with FakeServer(lambda request, number: PROSE, streams=True) as upstream:
        plain = httpx.post(f"{upstream.base_url}/{path}", json=body).content
        with gateway(upstream, vote=vote) as url:
            assert httpx.post(f"{url}/v1/{path}", json=body).content == plain
    line = logged(capfd)[0]
    assert (line["samples"], line["prompt_tokens"], line["tokens"]) == (1, 5, 10)
    assert "usage_estimated" not in line and "over_one_samples" not in line


def test_what_nobody_counts_is_estimated_and_said_so(capfd: Any) -> None:
    chunk = b'data: {"choices": [{"delta": {"content": "so "}}]}\n\n'
    silent = Reply(chunk * 20 + b"data: [DONE]\n\n", headers={"content-type": "text/event-stream"})
    with FakeServer(lambda request, number: silent) as upstream, gateway(upstream) as url:
        assert post(url, POEM | {"n": 2, "stream": True}).content == silent.body
        assert httpx.post(f"{url}/v1/moderations", json={"input": "a" * 400}).status_code == 200
        assert httpx.get(f"{url}/v1/models").status_code == 200
    relayed, *others = logged(capfd)
    assert relayed["tokens"] == 20 and relayed["usage_estimated"] is True
    assert [line["tokens"] for line in others] == [0, 0], "what generates nothing is not guessed at"


def test_a_reply_that_is_packed_all_the_same_is_passed_back_as_it_is(capfd: Any) -> None:
    packed = gzip.compress(json.dumps(completion([PROSE])).encode())
    script = lambda request, number: Reply(packed, headers={"content-encoding": "gzip"})  # noqa: E731
    with FakeServer(script) as upstream, gateway(upstream, vote="off") as url:
        assert post(url, POEM).json()["choices"][0]["message"]["content"] == PROSE
        assert upstream.headers[0]["accept-encoding"] == "identity"
    assert logged(capfd)[0]["usage_estimated"] is True


MESSAGE_BEGUN = (
    'data: {"type": "message_start", "message": {"usage": {"input_tokens": 7, "output_tokens": 1}}}\n\n'
    'data: {"type": "content_block_start"}\n\n'
)
MESSAGE_DELTA = 'data: {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "so "}}\n\n'


def test_a_message_that_is_left_counts_a_token_an_event(capfd: Any) -> None:
    begun = Reply((MESSAGE_BEGUN + MESSAGE_DELTA * 60).encode(), headers={"content-type": "text/event-stream"})
    with FakeServer(lambda request, number: begun) as upstream, gateway(upstream, vote="off") as url:
        httpx.post(f"{url}/v1/messages", json=POEM | {"stream": True})
    line = logged(capfd)[0]
    assert (line["prompt_tokens"], line["tokens"], line["usage_estimated"]) == (7, 61, True)


USAGE = {"prompt_tokens": 7, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 2}}
REPLIES = {
    "whole": (json.dumps({"usage_of": 1, "text": 'a "usage": {"prompt_tokens": 999}', "usage": USAGE}), (7, 5)),
    "tight": (json.dumps({"choices": [], "usage": USAGE}, separators=(",", ":")), (7, 5)),
    "none": (json.dumps({"choices": [{"text": '"usage"'}], "usage": None}), None),
    "growing": ("".join(f'{{"usage": {{"prompt_tokens": 7, "completion_tokens": {n}}}}}\n' for n in range(9)), (7, 8)),
    "anthropic": (
        'data: {"type": "message_start", "message": {"usage": '
        '{"input_tokens": 3, "cache_read_input_tokens": 4, "output_tokens": 1}}}\n\n'
        'data: {"type": "message_delta", "usage": {"output_tokens": 6}}\n\n',
        (7, 6),
    ),
    "left": (MESSAGE_BEGUN + MESSAGE_DELTA * 10, (7, 11)),
    "odd": ('{"usage": {"prompt_tokens": "7", "completion_tokens": -5, "input_tokens": true}}', None),
    "cut off": ('{"usage": {"prompt_tokens": 7, "completion', None),
    "no object": ('{"usage" : "much", "usage":[1]}' + " " * 100, None),
}  # fmt: skip


@pytest.mark.parametrize("case", REPLIES)
@given(cuts=st.lists(st.integers(0, 400), max_size=12))
def test_usage_is_found_however_the_bytes_are_cut(case: str, cuts: list[int]) -> None:
    text, tokens = REPLIES[case]
    raw, reader = text.encode(), ReplyReader(DIALECTS["messages"] if text.startswith("data:") else None)
    ends = [0, *sorted(cuts), len(raw)]
    for start, end in pairwise(ends):
        reader.feed(raw[start:end] if start < end else b"")
    assert reader.usage(estimate=False)[0] == (tokens or (0, 0))


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_no_bytes_disturb_the_reading(before: bytes, after: bytes) -> None:
    for dialect, end in (
        (None, b'{"usage": {"prompt_tokens": 1}}'),
        (CHAT, b'\n\ndata: {"usage": {"prompt_tokens": 1}}\n\n'),
    ):
        reader = ReplyReader(dialect)
        for piece in (before, b'"usage": ', after, end):
            reader.feed(piece)
        assert reader.usage(estimate=False)[0].prompt == 1
