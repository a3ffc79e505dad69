"""A live panel: its file, and the draws of several voters as one source of responses."""

import asyncio
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain, cycle, islice
from pathlib import Path
from typing import Any

import numpy as np

from suffice.elections import Election
from suffice.errors import OptionError
from suffice.live import Outcome, Watch
from suffice.live.ballots import in_thread
from suffice.live.dialects import Dialect
from suffice.live.draws import Draws, Failure, ServerDraws, Unfinished
from suffice.live.sample import run_in_thread
from suffice.live.sampling import Sampling
from suffice.live.servers.gate import Limiter
from suffice.live.servers.hosts import DrawRequest
from suffice.live.servers.server import Server
from suffice.live.servers.targets import KEY_ENV, Target, whole_url
from suffice.live.vote import Voting
from suffice.options import Options, option
from suffice.panel.controllers import PanelController, vote_sizes
from suffice.panel.evaluate import panel_controller
from suffice.response import Response
from suffice.tally import DEFAULT_BUDGET, FloatArray, Tally

WEIGHT = "voter"
"""The signal of a response that says what its voter's vote weighs."""


class Voter(Options):
    """A model at a server with a prompt, and its price for a million tokens."""

    name: str = ""
    model: str = ""
    base_url: str = ""
    """Where it is; where that is not said, the command's own server."""
    key_env: str = KEY_ENV
    price: float = option(1.0, "The price of a million tokens.", gt=0)
    suffix: str = ""
    """Said after the question."""
    system: str = ""
    """Said before all else."""

    @property
    def target(self) -> Target | None:
        if not self.base_url:
            return None
        return Target(url=whole_url(self.base_url, "panel"), key_env=self.key_env, models=(self.model,))

    def request(self, asked: Mapping[str, Any], dialect: Dialect) -> dict[str, Any]:
        """The request with this voter's model, and its prompt around the client's."""
        asked = {**asked, "model": self.model or asked.get("model")}
        if not (self.suffix or self.system):
            return asked
        messages = [dict(one) for one in dialect.messages(asked)]
        if self.suffix and messages:
            said = messages[-1].get("content")
            more = [{"type": "text", "text": self.suffix}]
            messages[-1]["content"] = [*said, *more] if isinstance(said, list) else f"{said}\n\n{self.suffix}"
        first = [{"role": "system", "content": self.system}] if self.system else []
        return {**asked, **dialect.fields([*first, *messages])}


class Panel(Options):
    """Several voters under one name, which clients ask for as a model, and who decides whom to ask."""

    name: str = "panel"
    voters: tuple[Voter, ...] = ()
    controller: str = "cascade"

    def model_post_init(self, context: Any, /) -> None:
        names = [voter.name for voter in self.voters]
        if not all(names) or len({*names}) < max(len(names), 1):
            raise OptionError("must have voters, each with a name of its own: [[voter]]", "panel")
        for voter in self.voters:
            if voter.base_url and not voter.model:
                raise OptionError(f"has a voter, {voter.name}, with a base_url and no model", "panel")
        _ = self.decides

    @cached_property
    def decides(self) -> PanelController:
        """The controller; a cascade goes from the cheapest voter to the dearest."""
        by_price = [voter.name for voter in sorted(self.voters, key=lambda voter: voter.price)]
        return panel_controller(self.controller, by_price, DEFAULT_BUDGET)

    @property
    def in_turn(self) -> list[Voter]:
        """The voters, first of all whom the controller asks first."""
        first = self.decides.choose(Tally())[0]
        return sorted(self.voters, key=lambda voter: voter.name != first)

    def counted(self, response: Response, name: str, place: int = 0) -> Response:
        """The response with its voter's name and the weight of a vote at this place."""
        voter = self.decides.voters.index(name)
        weight = self.decides.weights[voter] * float(vote_sizes(np.array(place), np.array(voter)))
        return replace(response, voter=name, signals={**response.signals, WEIGHT: weight})

    @staticmethod
    def read(path: str | Path) -> "Panel":
        """The panel of a TOML file: name, controller, and a [[voter]] table for each voter."""
        try:
            table = tomllib.loads(Path(path).read_text(encoding="utf-8"))
            tables = table.pop("voter", [])
            if not (isinstance(tables, list) and all(isinstance(one, dict) for one in tables)):
                raise OptionError("must be a table: [[voter]]", "voter")
            return Panel(**table, voters=tuple(Voter(**one) for one in tables))
        except (OSError, UnicodeDecodeError) as error:
            raise OptionError(f"{path}: it can't be read: {error}", "panel") from None
        except (tomllib.TOMLDecodeError, TypeError, OptionError) as error:
            raise OptionError(f"{path}: {error}", "panel") from None

    def check(self, voting: Voting) -> None:
        if voting.extractor.structure:
            raise OptionError("votes on answers and not on fields of JSON: ask one model for those", "panel")
        if voting.election:
            raise OptionError("weighs its votes by voter: there is no other election with it", "panel")
        if voting.flow and not voting.flow.is_auto:
            raise OptionError("decides when a round is in: there is no flow with it", "panel")

    def voting(self, voting: Voting, servers: Mapping[str, Server]) -> Voting:
        """Return a voting as the panel's: with its controller, its weights and draws of its voters."""
        self.check(voting)
        source = partial(PanelDraws, self, servers)
        return replace(voting, controller=self.decides, flow=None, election=VoterElection(), source=source)


@dataclass(frozen=True)
class VoterElection(Election):
    """A vote weighs what its voter's votes do."""

    signals = (WEIGHT,)

    def weights(self, signals: Mapping[str, FloatArray], tokens: FloatArray) -> FloatArray:
        return signals[WEIGHT]


class PanelDraws(Draws):
    """Draws from several voters; one whose draw fails for good is left out, and others are asked in its place."""

    def __init__(
        self,
        panel: Panel,
        servers: Mapping[str, Server],
        server: Server,
        request: DrawRequest,
        numbers: Iterator[int],
        follow_up: str | None = None,
    ) -> None:
        super().__init__()
        self._panel = panel
        self._controller = panel.decides
        self._tally = Tally()
        self._places: Counter[str | None] = Counter()
        self._awaited = 0
        self._nothing_yet = True
        self._draws: dict[str, ServerDraws] = {}
        for voter in panel.voters:
            own = servers[voter.name].for_question(has_fallback=lambda: len(self._present) > 1)
            asked = replace(request, fields=voter.request(request.fields, server.dialect))
            self._draws[voter.name] = ServerDraws(own, asked, numbers, follow_up)

    @property
    def _present(self) -> list[str]:
        return [name for name in self._controller.voters if name not in self._tally.absent]

    @property
    def unfinished(self) -> Unfinished:
        told = (one.unfinished for one in self._draws.values())
        arriving, cancelled, run_on, prompts, untaken = zip(*told, strict=True)
        return Unfinished(sum(arriving), sum(cancelled), any(run_on), sum(prompts), sum(untaken))

    @property
    def room(self) -> int:
        return min(self._draws[name].room for name in self._present)

    def launch(self, draws: int, tally: Tally, *, single: bool = False, streamed: bool = False) -> list[int]:
        """Start so many draws of whom the controller chooses; beyond those, of all voters in turn."""
        self._tally, self._nothing_yet = tally, True
        self._places = Counter(self._tally.voters)
        chosen = self._controller.choose(self._tally)
        numbers = []
        for name, some in Counter(islice(chain(chosen, cycle(self._present)), draws)).items():
            numbers += self._draws[name].launch(some, tally, single=single, streamed=streamed)
            self._awaited += some
            for _ in range(some):
                self._begin(1, self._take, name)
        return numbers

    async def _take(self, name: str) -> None:
        arrived = await self._draws[name].next()
        self._awaited -= 1
        if isinstance(arrived, Failure):
            self._arrived.put_nowait(await self._failed(arrived, name))
            return
        self._nothing_yet = False
        self._places[name] += 1
        self._arrived.put_nowait(self._panel.counted(arrived, name, self._places[name] - 1))

    async def _failed(self, failure: Failure, name: str) -> Failure:
        """Leave the voter out; where a round brings nothing, others are asked in its place, if there are any."""
        if self._present != [name]:
            self._tally.absent.add(name)
            if self._nothing_yet and not self._awaited:
                self.launch(await in_thread(self._controller.next_round, self._tally) or 1, self._tally)
        return replace(failure, message=f"{name} is left out: {failure.message}")

    async def close(self) -> None:
        await super().close()
        self._awaited = 0  # an audit may launch more
        await asyncio.gather(*(one.close() for one in self._draws.values()))


async def voters_servers(
    panel: Panel, own: Sequence[Mapping[str, Any]], sampling: Sampling, stack: AsyncExitStack
) -> dict[str, Server]:
    """The server of each voter, by name: its own, or what the settings of other clients name."""
    import openai

    limiter, servers = Limiter(sampling.concurrency), {}
    for voter in panel.voters:
        target = voter.target
        several = [{"api_key": target.key, "base_url": target.url}] if target else own
        clients = [await stack.enter_async_context(openai.AsyncOpenAI(**one)) for one in several]
        servers[voter.name] = sampling.server(clients, limiter=limiter)
    return servers


def ask_panel(
    panel: Panel,
    own: Sequence[Mapping[str, Any]],
    messages: Sequence[Mapping[str, Any]],
    *,
    sampling: Sampling,
    watch: Watch | None = None,
    **request: Any,
) -> Outcome:
    """Ask a panel just enough times, as `sample` asks one model.

    `own` are the settings of clients for the voters that name no server; `watch` is called in another thread.
    """
    seed = request.get("seed")

    async def main() -> Outcome:
        async with AsyncExitStack() as stack:
            servers = await voters_servers(panel, own, sampling, stack)
            first = next(iter(servers.values()))
            fields = {**request, **first.dialect.fields(list(messages))}
            random = np.random.default_rng(None if seed is None else abs(seed))
            voting = panel.voting(sampling.voting, servers)
            vote = voting.begin(first, fields, random, watch)
            return await vote.outcome(sampling.deadline_seconds)

    return run_in_thread(main)
