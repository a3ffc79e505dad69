"""Another equality of answers: an extractor's own keys, which may take their time to compare."""

from collections.abc import Generator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from helpers.live import ask_async, ask_sync

from suffice.answers import Extractor, Keys
from suffice.response import Response
from suffice.testing import FakeServer

SPELLINGS = ("Bern", "Berne", "Zürich", "Bern")


@dataclass(frozen=True)
class SameBeginning:
    """As an endpoint would have it: asked for in another thread, and waited for no longer than that."""

    threads: ThreadPoolExecutor
    a: str
    b: str
    patience: float = 60.0

    def begin(self) -> "Future[bool]":
        return self.threads.submit(lambda: self.a[:3] == self.b[:3])


class ByBeginning(Keys):
    def __init__(self, threads: ThreadPoolExecutor) -> None:
        super().__init__()
        self._threads = threads
        self._seen: list[str] = []

    def finding(self, answer: str | None) -> Generator[Any, bool | None, str | None]:
        for seen in self._seen if answer else ():
            if (yield SameBeginning(self._threads, seen, answer or "")):
                return seen
        self._seen += [answer] if answer else []
        return answer


class City(Extractor):
    quick = exact = True

    def __init__(self, threads: ThreadPoolExecutor) -> None:
        self._threads = threads

    def extract(self, response: Response) -> str | None:
        return response.text

    def keys(self) -> Keys:
        return ByBeginning(self._threads)


def test_answers_join_by_an_equality_of_one_s_own() -> None:
    def cities(request: dict[str, Any], number: int) -> list[str]:
        return [SPELLINGS[place % 4] for place in range(request.get("n", 1))]

    with ThreadPoolExecutor(1) as threads, FakeServer(cities) as server:
        for ask in (ask_sync, ask_async):
            outcome = ask(server, answer=City(threads), controller="sc:draws=4")
            assert outcome.votes == {"Bern": 3, "Zürich": 1}
            assert [one.answer for one in outcome.responses] == ["Bern", "Bern", "Zürich", "Bern"]


def test_gold_is_compared_by_the_same_equality_and_joins_nothing() -> None:
    with ThreadPoolExecutor(1) as threads:
        keys = ByBeginning(threads)
        assert keys.key("Berne") == "Berne"
        assert keys.find("Bern") == "Berne"
        assert keys.find("Basel") == "Basel" and keys.find("Bastia") == "Bastia", "what is looked for is not added"
