"""Whether there is something to vote on: the request shows it, or the first round agrees; else the scout goes back."""

import json
import random
from typing import Any

import httpx
import pytest
from helpers.gateways import gateway

from suffice.testing import FakeServer, Reply, completion

RUNS = 6


def voted(content: str, texts: list[str], system: str = "", **fields: Any) -> list[tuple[dict[str, Any], int, bool]]:
    """What comes of a request some times: the reply, the samples it took, and whether it is the first one's bytes."""
    chance, said = random.Random(3), list[bytes]()

    def script(request: dict[str, Any], number: int) -> Reply:
        finish = "length" if request.get("max_tokens") == 1 else "stop"
        drawn = completion([chance.choice(texts) for _ in range(request.get("n", 1))], finish_reason=finish)
        said.append(json.dumps(drawn).encode())
        return Reply(said[-1])

    told = [{"role": "system", "content": system}] if system else []
    body = {"model": "fake", "messages": [*told, {"role": "user", "content": content}], **fields}
    came = []
    with FakeServer(script, remember=False) as server, gateway(server, vote="auto") as url:
        for _ in range(RUNS):
            said.clear()
            reply = httpx.post(f"{url}/v1/chat/completions", json=body, timeout=60)
            samples = sum(len(json.loads(one)["choices"]) for one in said)
            came.append((reply.json(), samples, reply.content == said[0]))
    return came


def test_a_hard_sum_is_voted_on_to_its_end() -> None:
    wrong = [f"He has {number} sheep." for number in range(20, 34)]
    texts = ["He has 14 sheep.", "6 + 8 = 14", "14"] * 2 + wrong
    came = voted("A farmer has 6 + 8 sheep. How many sheep does he have?", texts)
    assert all("suffice" in reply for reply, _, _ in came), "none is given up"
    assert sum(reply["suffice"]["answer"] == "14" for reply, _, _ in came) >= RUNS - 1


NOTHING = {
    "search queries": (
        'Suggest search queries as JSON: {"queries": ["..."]}',
        [json.dumps({"queries": [f"query number {n}", f"other words {n}"]}) for n in range(8)],
    ),
    "Ada Lovelace": (
        "Who was Ada Lovelace and why does she matter?",
        [f"Ada Lovelace was a mathematician of note {n}. She wrote the first program." for n in range(8)],
    ),
    "a remark": ("Nice weather today, isn't it?", [f"Oh yes, day {n} of sun!" for n in range(8)]),
}


@pytest.mark.parametrize("name", NOTHING)
def test_what_has_no_answer_costs_a_small_round_at_most_and_comes_back_as_it_was(name: str) -> None:
    for _, samples, exact in voted(*NOTHING[name]):
        assert samples <= 4 and exact


def test_the_tag_of_a_fence_is_no_answer() -> None:
    texts = [f"```sql\nSELECT name FROM customers LIMIT {n}\n```" for n in range(1, 9)]
    for _, samples, exact in voted("Top customers?", texts, "Return only SQL, no explanation."):
        assert samples == 1 and exact


def test_a_judge_is_read_in_its_slot() -> None:
    texts = ["Fine work. [[8]]", "It is clear. [[8]]", "[[8]]", "Too short. [[3]]"]
    system = 'Rate the answer by strictly following this format: "[[rating]]".'
    for reply, _, _ in voted("An answer.", texts, system):
        assert reply["suffice"]["answer"] == "8" and set(reply["suffice"]["votes"]) <= {"8", "3"}


def test_a_guard_that_cuts_its_responses_itself_is_voted_on() -> None:
    came = voted("How do I bake bread?", ["safe", "safe", "safe", "unsafe"], "Answer safe or unsafe.", max_tokens=1)
    assert all(reply["suffice"]["answer"] == "safe" for reply, _, _ in came)


def test_an_answer_with_its_source_is_one_that_was_said() -> None:
    said = [{"answer": "Bern", "sources": [1]}, {"answer": "Bern", "sources": [2]}, {"answer": "Thun", "sources": [2]}]
    form = {"type": "json_object"}
    for reply, _, _ in voted("Which city?", [json.dumps(one) for one in said], response_format=form):
        assert json.loads(reply["choices"][0]["message"]["content"]) in said


def test_a_choice_in_json_is_voted_on_whatever_is_said_beside_it() -> None:
    asked = 'Which is red?\nA. blood\nB. grass\n\nAnswer in JSON: {"why": "...", "choice": "A|B"}'
    texts = [json.dumps({"why": f"for reason {n}", "choice": "B" if n == 3 else "A"}) for n in range(6)]
    for reply, _, _ in voted(asked, texts):
        assert json.loads(reply["choices"][0]["message"]["content"])["choice"] == "A"
        assert reply["suffice"]["evidence"] == "schema"


def test_an_answer_is_spelled_as_most_spell_it() -> None:
    texts = [r"\boxed{6\cdot7}"] + [r"\boxed{42}"] * 9
    for reply, _, _ in voted(r"What is 6 times 7? Put it in \boxed{}.", texts):
        assert reply["suffice"]["answer"] == "42" and r"42" in reply["choices"][0]["message"]["content"]
