"""Topics: requests that are alike, and whether their draws have taught that there is an answer to vote on.

Of the requests that are passed on a few are looked at: drawn a few times more after their reply has gone, and read.
Where the draws of several requests agree on a short answer, more are voted on from then on, and while that stays so.
"""

import asyncio
import hashlib
import re
import time
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

import numpy as np

from suffice.answers import get_extractor
from suffice.answers.requests import texts_of
from suffice.answers.words import folded
from suffice.controllers import get_controller
from suffice.errors import SufficeError
from suffice.gateway.operations import metrics
from suffice.gateway.operations.state import SharedLog
from suffice.gateway.requests.parse import ParsedRequest, Route, route_of
from suffice.gateway.settings import Settings
from suffice.live import Voting
from suffice.live.servers.server import Server
from suffice.planning import FIRST_SIGHT, Prior
from suffice.planning.learning import FIRST
from suffice.planning.promises import OverOneCap
from suffice.response import Response
from suffice.tally import Tally

DRAWS = 4
"""The draws of a request that is looked at, its reply among them."""

MIN_LOOKS, MAX_LOOKS = 3, 20
"""The looks from which on a topic may be taught, and the last ones that count."""

MIN_AGREEMENT = 0.4
"""The share of pairs of draws that agree, in the mean of a topic's looks; where each draw has its own, it is 0."""

MOST_TOPICS = 1000
"""Cache size (LRU)."""

TEMPLATE_WORDS = 4

FINAL = get_extractor("final")
ROUTES = {"relay": "passed on", "look": "looked at", "vote": "voted on"}


@dataclass(frozen=True)
class TopicLook:
    """One request that was looked at, or voted on in a taught topic."""

    model: str
    topic: str
    request: str
    """A mark of its question: several requests with the same one count once."""
    agreement: float
    time: float


@dataclass
class Topic:
    """The requests of a topic by route, and what the last looks at it have shown."""

    routes: Counter[str] = field(default_factory=Counter)
    agreements: OrderedDict[str, float] = field(default_factory=OrderedDict)
    """Of the last requests that were looked at."""
    votes: int = 0
    looks: int = 0
    tokens: int = 0
    """What looks took."""
    taught: str = ""
    """The route that was taught: vote, look or none."""
    since: float = field(default_factory=time.time)

    @property
    def agreement(self) -> float | None:
        return sum(self.agreements.values()) / len(self.agreements) if self.agreements else None

    def observe(self, look: TopicLook) -> None:
        self.looks += 1
        self.agreements.pop(look.request, None)
        self.agreements[look.request] = look.agreement
        if len(self.agreements) > MAX_LOOKS:
            self.agreements.popitem(last=False)
        agreed = sum(one > 0 for one in self.agreements.values()) / len(self.agreements)
        is_taught = len(self.agreements) >= MIN_LOOKS and (self.agreement or 0) >= MIN_AGREEMENT and agreed >= 0.6
        taught = ("vote" if agreed >= 0.9 else "look") if is_taught else ""
        if taught != self.taught:
            self.taught, self.since = taught, look.time

    def to_json(self) -> dict[str, Any]:
        usual = max(self.routes, key=lambda kind: self.routes[kind], default="relay")
        route = self.taught or usual
        if self.taught:
            why = f"draws agreed in {self.agreement:.0%} of pairs, over {len(self.agreements)} requests"
        elif route == "relay":
            why = "no answer named, and none was taught" if self.looks else "no answer named"
        else:
            why = "it names its answer" if route == "vote" else "a first response shows whether there is one"
        counts = {name.replace(" ", "_"): self.routes[kind] for kind, name in ROUTES.items()}
        about = {"looks": self.looks, "agreement": self.agreement, "look_tokens": self.tokens}
        return {"route": ROUTES[route], "why": why, "since": round(self.since, 3), **counts, **about}


class Topics:
    """The topics of this process; with a state folder, looks are shared by all."""

    def __init__(self, settings: Settings, log: "SharedLog[TopicLook] | None", cap: OverOneCap | None) -> None:
        teaches = settings.learn and not settings.forward_auth and settings.vote in ("auto", "shadow")
        self._every = round(1 / settings.learn_share) if teaches and settings.learn_share else 0
        self._log = log
        self._cap = cap
        self._topics: OrderedDict[tuple[str, str], Topic] = OrderedDict()
        self._ends: OrderedDict[str, int] = OrderedDict()

    def name(self, parsed: ParsedRequest) -> str:
        """Return a request's topic: what the client or its key says, or else the mark of its template."""
        return parsed.options.topic or self._template(parsed.messages)

    def _template(self, messages: Sequence[Mapping[str, Any]]) -> str:
        """Return a mark of the system prompt, or of that end of the question which more requests have had."""
        system, asked = texts_of(messages)
        words = re.sub(r"\d+", "0", folded(asked[:200] + " " + asked[-200:])).split()
        ends = [" ".join(words[:TEMPLATE_WORDS])[:60], " ".join(words[-TEMPLATE_WORDS:])[-60:]]
        for end in ends:
            self._ends[end] = self._ends.pop(end, 0) + 1
        while len(self._ends) > MOST_TOPICS:
            self._ends.popitem(last=False)
        shown = system or max(ends, key=lambda end: self._ends.get(end, 0))
        return _mark(shown)

    def _topic(self, model: str | None, name: str) -> Topic:
        key = (model or "", name)
        topic = self._topics[key] = self._topics.pop(key) if key in self._topics else Topic()
        if len(self._topics) > MOST_TOPICS:
            self._topics.popitem(last=False)
        return topic

    def route(self, parsed: ParsedRequest, name: str, chosen: Route) -> Route:
        """Return the route of a request, which the topic may have taught, and count it: in the shadow that of auto."""
        chosen = self.taught(parsed, name, chosen)
        counted = self.foretold(parsed, name) if chosen.why == "shadow" else chosen
        self._topic(parsed.client.model, name).routes[counted.kind] += 1
        return chosen

    def taught(self, parsed: ParsedRequest, name: str, chosen: Route) -> Route:
        taught = self._topic(parsed.client.model, name).taught if chosen.may_be_taught else ""
        return Route("vote" if taught == "vote" else "look", "taught", asked=False) if taught else chosen

    def foretold(self, parsed: ParsedRequest, name: str) -> Route:
        """Return the route that `auto` would choose."""
        return self.taught(parsed, name, route_of(replace(parsed, vote="auto")))

    def expected_draws(self, response: Response) -> float:
        """Return the draws that looks add to a request with this reply, in the mean."""
        return (DRAWS - 1) / self._every if self._every and FINAL.extract(response) is not None else 0.0

    def is_due(self, parsed: ParsedRequest, name: str, route: Route) -> bool:
        """Whether to look at a request that is passed on, or that was looked at and has no value."""
        topic = self._topic(parsed.client.model, name)
        due = self._every and route.may_be_taught and topic.routes[route.kind] % self._every == 0
        is_sampled = parsed.fields.get("temperature") != 0 and parsed.options.learn
        return bool(due) and is_sampled and not (self._cap and self._cap.exhausted) and not parsed.client.mistake

    async def look(
        self,
        parsed: ParsedRequest,
        name: str,
        server: Server,
        response: Response,
        ready: Callable[[], Awaitable[None]],
    ) -> bool:
        """Draw a request a few times more, if its reply may be an answer; return whether that worked."""
        extractor = FINAL.for_request(parsed.messages)
        tally, tokens = Tally(DRAWS), 0
        if extractor.extract(response) is not None:
            await ready()
            voting = Voting(get_controller(f"sc:draws={DRAWS}"), extractor, DRAWS)
            vote = voting.begin(server, parsed.fields, np.random.default_rng(), numbers=count(1))
            await vote.take(response)
            try:
                outcome = await vote.outcome(parsed.options.deadline_seconds)
            except SufficeError:
                return False
            tally, tokens = vote.tally, outcome.over_one.tokens
        agreement = agreement_of(tally)
        metrics.LOOKS.labels("yes" if agreement else "no").inc()
        metrics.LOOK_TOKENS.inc(tokens)
        if self._cap:
            self._cap.observe(tokens, 0, time.time())
        self._topic(parsed.client.model, name).tokens += tokens
        look = _look(parsed, name, agreement)
        if self._log:
            await asyncio.to_thread(self._log.append, look)
        else:
            self.take_in([look])
        return True

    def certainty_prior(self, model: str | None, name: str) -> Prior | None:
        """Return what the certainty of a vote goes by; None for what was learned, after some votes of its topic."""
        return None if self._topic(model, name).votes >= FIRST else FIRST_SIGHT

    def voted(self, parsed: ParsedRequest, name: str, route: Route, tally: Tally) -> None:
        """Count a vote. Its first draws are a look if its topic was taught, or if one is due."""
        self._topic(parsed.client.model, name).votes += 1
        is_look = route.why == "taught" or self.is_due(parsed, name, route)
        if not is_look or tally.draws < 2:
            return
        first = Tally(DRAWS)
        for answer in tally.answers[:DRAWS]:
            first.add(answer)
        self.take_in([_look(parsed, name, agreement_of(first))])

    def missed(self, parsed: ParsedRequest, name: str, route: Route) -> None:
        """Learn that a request of a taught topic had no answer in its first response."""
        if route.why == "taught":
            self.take_in([_look(parsed, name, 0.0)])

    def take_in(self, looks: Sequence[TopicLook]) -> None:
        for look in looks:
            self._topic(look.model, look.topic).observe(look)

    def share(self) -> None:
        """Take in the looks of all workers, in the order of the file."""
        if self._log:
            self.take_in(self._log.news())

    def summary(self, key: str | None) -> dict[str, Any]:
        """Describe the topics, the last asked first; with a key, its own."""
        rows = [
            {"model": model, "topic": name, **topic.to_json()}
            for (model, name), topic in reversed(self._topics.items())
            if key in (None, name)
        ]
        return {"learn_share": 1 / self._every if self._every else 0.0, "topics": rows}


def _mark(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def _look(parsed: ParsedRequest, name: str, agreement: float) -> TopicLook:
    asked = _mark(texts_of(parsed.messages)[1])
    return TopicLook(parsed.client.model or "", name, asked, agreement, round(time.time(), 3))


def agreement_of(tally: Tally) -> float:
    """Return the share of pairs of draws that have the same answer.

    >>> tally = Tally(4)
    >>> tally.add_round(["a", "a", "b", None])
    >>> round(agreement_of(tally), 2)
    0.17
    """
    pairs = max(tally.draws * (tally.draws - 1), 1)
    return sum(votes * (votes - 1) for votes in tally.votes.values()) / pairs


def as_taught(parsed: ParsedRequest, route: Route) -> ParsedRequest:
    """A request of a taught topic, whose answer is what responses come to at their end."""
    taught = route.why == "taught"
    return replace(parsed, options=parsed.options.replaced(answer="final")) if taught else parsed
