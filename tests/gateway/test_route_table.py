"""The table of requests in docs/gateway.md: each has the route and the reason that the page says."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from helpers.gateways import AT_FIRST_SIGHT, behind, post
from helpers.pages import ROOT

HEADING = "## The route of a request"
NO_ANSWER = "Leaves of amber, leaves of gold, that whisper of what the summer told."


def rows() -> list[tuple[str, str, str]]:
    """The request, the route and the reason of each row."""
    section = (ROOT / "docs/gateway.md").read_text().partition(f"{HEADING}\n")[2].partition("\n## ")[0]
    table = [line for line in section.splitlines() if line.startswith("| `")]
    return [tuple(re.split(r"(?<!\\) \| ", line.strip("| "))) for line in table]  # type: ignore[misc]


ROWS = rows()


def body_of(cell: str) -> dict[str, Any]:
    """The body of a request: its lines, those of the system prompt, and further fields."""
    lines = [line.strip("`").replace(r"\|", "|") for line in cell.split("<br>")]
    fields = [json.loads(line) for line in lines if line.startswith('{"')]
    system = [line.removeprefix("system: ") for line in lines if line.startswith("system: ")]
    asked = [line for line in lines if not line.startswith(('{"', "system: "))]
    messages = [{"role": "system", "content": "\n".join(system)}] if system else []
    messages.append({"role": "user", "content": "\n".join(asked)})
    return {"model": "fake", "messages": messages} | {name: one[name] for one in fields for name in one}


@pytest.fixture(scope="module")
def ask() -> Iterator[Callable[[dict[str, Any]], tuple[str, str | None]]]:
    """Asks a gateway with its defaults, which has seen no traffic, for the route of a request and its reason."""
    with behind(lambda request, number: [NO_ANSWER] * request.get("n", 1), **AT_FIRST_SIGHT) as (_, url):

        def ask(body: dict[str, Any]) -> tuple[str, str | None]:
            reply = post(url, body)
            assert reply.status_code == 200, reply.text
            recent = httpx.get(f"{url}/v1/suffice/recent", trust_env=False).json()["recent"]
            return recent[0]["route"], reply.headers.get("x-suffice-no-vote")

        yield ask


def test_the_table_has_rows_of_every_route() -> None:
    assert len(ROWS) >= 25
    assert {route for _, route, _ in ROWS} == {"`vote`", "`look`", "`relay`"}


@pytest.mark.parametrize(("request_cell", "route", "why"), ROWS, ids=[cell[:40] for cell, _, _ in ROWS])
def test_a_request_of_the_page_has_its_route(
    request_cell: str, route: str, why: str, ask: Callable[[dict[str, Any]], tuple[str, str | None]]
) -> None:
    found, no_vote = ask(body_of(request_cell))
    assert found == route.strip("`")
    if found == "relay":
        assert why.startswith(f"`{no_vote}`: ")
