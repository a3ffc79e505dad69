"""A dialect that nobody has, with the model and the stream flag in its path: its registration is all that it takes."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import httpx
import pytest
from helpers.gateways import free_port, gateway, running
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.responses import Response as Reply
from starlette.routing import Route

from suffice.live.dialects import DIALECTS, ClientRequest, Dialect, FieldError, register_dialect
from suffice.live.dialects.base import event
from suffice.live.dialects.sse import Delta, Ended, EventDecoder, Piece, data_of
from suffice.response import Response


class Parley(Dialect):
    """`POST /parley/MODEL:speak` and `:murmur`, which streams."""

    name = "parley"
    routes = ("/parley/{model}:{verb}",)

    def path(self, fields: Mapping[str, Any], streamed: bool) -> str:
        return f"/parley/{fields['model']}:{'murmur' if streamed else 'speak'}"

    def fields(self, messages: Sequence[Mapping[str, Any]], response_format: Any = None) -> dict[str, Any]:
        return {"lines": [message["content"] for message in messages]}

    def messages(self, fields: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
        return [{"role": "user", "content": line} for line in fields.get("lines", ())]

    def request(self, fields: Mapping[str, Any], draws: int, streamed: bool) -> dict[str, Any]:
        return {name: value for name, value in fields.items() if name != "model"}

    def responses(self, reply: dict[str, Any], draws: int) -> list[Response]:
        return [Response(reply["said"], "stop", tokens=reply["words"], prompt_tokens=1, reply=reply)]

    def deltas(self, event: dict[str, Any]) -> list[Delta]:
        return [Ended()] if event.get("over") else [Piece("text", event["piece"])]

    def join(self, reply: dict[str, Any], event: dict[str, Any]) -> None:
        reply |= {"said": reply.get("said", "") + event.get("piece", ""), "words": 1}

    def client_request(self, body: Mapping[str, Any], path: Mapping[str, str]) -> ClientRequest:
        fields = {**{name: value for name, value in body.items() if name != "suffice"}, "model": path["model"]}
        mistake = None if body.get("lines") else FieldError("lines", "must be there")
        return ClientRequest(path["model"], path["verb"] == "murmur", fields, mistake=mistake)

    def reply(self, chosen: Response, usage: dict[str, Any], prompt: int, completion: int) -> dict[str, Any]:
        return {**chosen.reply, "words": completion}

    def rewritten(self, response: Response, value: Any) -> Response:
        return replace(response, reply={**response.reply, "said": json.dumps(value)})

    def events(self, reply: dict[str, Any], usage_wanted: bool, told: int = 0) -> list[bytes]:
        return [event({"piece": word}) for word in reply["said"].split(" ")] + [event({"over": True})]


@pytest.fixture
def parley() -> Iterator[None]:
    """Registered, and that is all."""
    register_dialect(Parley())
    yield
    del DIALECTS["parley"]


class Upstream:
    """A server that speaks it; every third time it is wrong."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.app = Starlette(routes=[Route("/v1/{path:path}", self._speak, methods=["POST"])])

    async def _speak(self, request: Request) -> Reply:
        self.asked.append(request.path_params["path"])
        said = r"So it is \boxed{41}" if len(self.asked) % 3 == 0 else r"So it is \boxed{42}"
        if request.path_params["path"].endswith("murmur"):
            return Reply(b"".join(Parley().events({"said": said}, False)), media_type="text/event-stream")
        return JSONResponse({"said": said, "words": 4})


QUESTION = {"lines": ["What is 6 * 7? Put it into a box."]}


@pytest.mark.usefixtures("parley")
def test_it_is_routed_voted_on_and_streamed() -> None:
    upstream = Upstream()
    with running(upstream.app, free_port()) as base, gateway(f"{base}/v1", vote="auto") as url:
        whole = httpx.post(f"{url}/v1/parley/ship+vote:speak", json=QUESTION)
        assert whole.json()["said"] == r"So it is \boxed{42}" and whole.json()["suffice"]["votes"]["42"] >= 3
        assert whole.json()["words"] == 4 * whole.json()["suffice"]["samples"]
        assert set(upstream.asked) == {"parley/ship:speak"}
        streamed = httpx.post(f"{url}/v1/parley/ship:murmur", json={**QUESTION, "suffice": {"budget": 8}})
        data = [found for one in EventDecoder().feed(streamed.content) if (found := data_of(one))]
        pieces = [json.loads(one)["piece"] for one in data[:-1]]
        assert " ".join(pieces) == r"So it is \boxed{42}" and streamed.headers["content-type"].startswith("text/event")
        once = httpx.post(f"{url}/v1/parley/ship+once:speak", json=QUESTION)
        assert once.headers["x-suffice-no-vote"] == "once" and upstream.asked[-1] == "parley/ship:speak"
        refused = httpx.post(f"{url}/v1/parley/ship+vote:speak", json={})
        assert refused.status_code == 400 and refused.json()["error"]["param"] == "lines"
