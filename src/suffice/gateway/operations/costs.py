"""The tokens of requests, and those over one response, by model, key and evidence."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from operator import add, attrgetter
from typing import Any

from suffice.gateway.operations import metrics
from suffice.live import Outcome
from suffice.live.outcome import with_prompts
from suffice.planning.promises import OverOneCap

MOST_GROUPS = 200
"""The most groups that are told apart: clients may name any number of models."""


@dataclass(frozen=True)
class Spending:
    """What some requests took, in the words of their lines in the log."""

    requests: int = 0
    votes: int = 0
    changed: int = 0
    samples: int = 0
    tokens: int = 0
    over_one_samples: int = 0
    over_one_tokens: int = 0
    over_one_prompt_tokens: int = 0
    samples_saved: int = 0
    tokens_saved: int = 0
    would_vote: int = 0
    expected_samples: float = 0.0
    expected_tokens: int = 0

    @classmethod
    def of(cls, entry: Mapping[str, Any]) -> "Spending":
        """Read a line of the log; a cancelled vote is a vote too."""
        told = {name: entry[name] for name in _NAMES if entry.get(name) is not None}
        return cls(**{**told, "requests": 1, "votes": int("over_one_samples" in entry)})

    def __add__(self, other: "Spending") -> "Spending":
        return Spending(*map(add, _numbers(self), _numbers(other)))

    @property
    def most_tokens_over_one(self) -> int:
        """The tokens over one response; in the shadow, those expected."""
        return max(self.over_one_tokens, self.expected_tokens - self.tokens)

    @property
    def once_tokens(self) -> int:
        """What one response to each would have taken."""
        return self.tokens - self.over_one_tokens

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "once_tokens": self.once_tokens}

    def __str__(self) -> str:
        """What it cost and what it brought, in a sentence.

        >>> str(Spending(requests=100, votes=22, changed=3, tokens=1682, over_one_samples=68, over_one_tokens=682))
        '+3.1 samples a request on 22 % of the traffic, 1.68 times the tokens; 14 % of these answers changed'
        """
        if not self.votes:
            return "nothing was spent over one response: there was no vote"
        more, share = self.over_one_samples / self.votes, 100 * self.votes / self.requests
        times, changed = self.tokens / max(self.once_tokens, 1), 100 * self.changed / self.votes
        return (
            f"+{more:.1f} samples a request on {share:.0f} % of the traffic, {times:.2f} times the tokens; "
            f"{changed:.0f} % of these answers changed"
        )

    @property
    def foretold(self) -> str:
        """What `auto` would make of requests in the shadow, in a sentence.

        >>> Spending(requests=100, tokens=1000, would_vote=12, expected_samples=130.0, expected_tokens=1300).foretold
        'auto would vote on 12 % of requests and spend 1.3 times the tokens'
        """
        if not self.requests:
            return ""
        share, times = 100 * self.would_vote / self.requests, self.expected_tokens / max(self.tokens, 1)
        return f"auto would vote on {share:.0f} % of requests and spend {times:.1f} times the tokens"

    @property
    def savings(self) -> str:
        """What was saved of the budgets that clients asked for, in a sentence: every round sends its prompt again.

        >>> Spending(votes=2, samples=16, samples_saved=48, tokens_saved=4800, over_one_prompt_tokens=600).savings
        ... # doctest: +NORMALIZE_WHITESPACE
        '48 of 64 samples saved (75 %) in 2 votes asked for, about 4,800 tokens;
        with prompts sent again it took 4,200 tokens less'
        """
        if not self.votes:
            return ""
        full = self.samples + self.samples_saved
        share = f"{self.samples_saved:,} of {full:,} samples saved ({100 * self.samples_saved / full:.0f} %)"
        tokens = f"about {self.tokens_saved:,} tokens; {with_prompts(self.tokens_saved, self.over_one_prompt_tokens)}"
        votes = "1 vote" if self.votes == 1 else f"{self.votes:,} votes"
        return f"{share} in {votes} asked for, {tokens}"


_NAMES = [one.name for one in fields(Spending)]
_numbers = attrgetter(*_NAMES)

Group = tuple[str, str | None, str]
"""A model, the name of a key, and the kind of evidence."""


@dataclass
class SpendingByGroup:
    """What was spent, in groups; and what may be."""

    cap: OverOneCap | None = None
    groups: dict[Group, Spending] = field(default_factory=dict)
    asked_for: Spending = field(default_factory=Spending)
    """Votes that clients asked for, or named a budget for: only these save anything."""
    shadowed: Spending = field(default_factory=Spending)
    """What requests in the shadow took, and would have taken."""

    def add(self, entry: Mapping[str, Any]) -> None:
        """Count a request that took tokens, or a vote, by its line in the log."""
        if not (entry.get("tokens") or entry.get("over_one_samples")):
            return
        spent = Spending.of(entry)
        _measure(entry, spent)
        if self.cap:
            self.cap.observe(spent.over_one_tokens, spent.once_tokens, entry["time"])
            metrics.PRICE_FACTOR.set(self.cap.factor)
        group: Group = (entry.get("model") or "", entry.get("key"), entry.get("evidence") or "none")
        if group not in self.groups and len(self.groups) >= MOST_GROUPS:
            group = ("other", None, "other")
        self.groups[group] = self.groups.get(group, Spending()) + spent
        if "samples_saved" in entry:
            self.asked_for += spent
        if "would_vote" in entry:
            self.shadowed += spent

    @property
    def total(self) -> Spending:
        return sum(self.groups.values(), start=Spending())

    def summary(self, caller: str | None) -> dict[str, Any]:
        """Return sentences, and the groups, the dearest first: with keys, the caller's alone."""
        own = [(group, spent) for group, spent in self.groups.items() if caller in (None, group[1])]
        own.sort(key=lambda row: row[1].most_tokens_over_one, reverse=True)
        rows = [
            {"model": model, "key": key, "evidence": evidence, **spent.to_json()}
            for (model, key, evidence), spent in own
        ]
        return {
            "said": str(self.total),
            "savings": self.asked_for.savings,
            "shadow": self.shadowed.foretold,
            "cap": _of_cap(self.cap) if self.cap else "",
            "groups": rows,
        }


def _of_cap(cap: OverOneCap) -> str:
    """How far the cap is used, in a sentence."""
    price = "no more is spent now" if cap.exhausted else f"a draw has {cap.factor:.1f} times its price"
    return f"{100 * cap.spent:.0f} % over one response in the last hour, of {100 * cap.share:.0f} % at most: {price}"


MOST_MODELS = 100
_models: set[str] = set()


def model_label(model: str | None) -> str:
    """Return a model's label; after the first `MOST_MODELS` names it is "other"."""
    name = (model or "")[:100].encode(errors="replace").decode()
    if len(_models) < MOST_MODELS:
        _models.add(name)
    return name if name in _models else "other"


def _measure(entry: Mapping[str, Any], spent: Spending) -> None:
    evidence, model = entry.get("evidence") or "none", model_label(entry.get("model"))
    if key := entry.get("key"):
        metrics.KEY_SAMPLES.labels(key).inc(spent.samples)
        metrics.KEY_TOKENS.labels(key, "prompt").inc(entry.get("prompt_tokens", 0))
        metrics.KEY_TOKENS.labels(key, "completion").inc(spent.tokens)
        metrics.KEY_OVER_ONE_TOKENS.labels(key).inc(spent.over_one_tokens)
    metrics.ONCE_TOKENS.labels(model).inc(spent.once_tokens)
    if spent.votes:
        metrics.OVER_ONE_SAMPLES.labels(evidence, model).inc(spent.over_one_samples)
        metrics.OVER_ONE_TOKENS.labels(evidence, model).inc(spent.over_one_tokens)
        metrics.OVER_ONE_PROMPT_TOKENS.labels(evidence, model).inc(spent.over_one_prompt_tokens)
        metrics.CHANGED.labels(evidence, model).inc(spent.changed)
    if "would_vote" in entry:
        metrics.SHADOW_REQUESTS.labels("yes" if spent.would_vote else "no", evidence, model).inc()
        metrics.SHADOW_OVER_ONE_SAMPLES.labels(evidence, model).inc(spent.expected_samples - 1)
        metrics.SHADOW_OVER_ONE_TOKENS.labels(evidence, model).inc(spent.expected_tokens - spent.tokens)


def measure(outcome: Outcome) -> None:
    """Observe a vote that has ended; of a cancelled one, its tokens alone."""
    metrics.TOKENS.labels("prompt").inc(outcome.prompt_tokens)
    metrics.TOKENS.labels("completion").inc(outcome.completion_tokens)
    if outcome.stop_reason == "cancelled":
        return
    metrics.VOTES.labels(outcome.evidence or "none").inc()
    metrics.SAMPLES.observe(outcome.samples)
    metrics.ROUNDS.observe(outcome.rounds)
    metrics.SAMPLES_SAVED.inc(outcome.samples_saved)
    metrics.TOKENS_SAVED.inc(outcome.tokens_saved)
    histograms = (metrics.SAME_AS_FULL_VOTE, metrics.CERTAINTY, metrics.RIGHT)
    for histogram, value in zip(histograms, (outcome.confidence, outcome.certainty, outcome.right), strict=True):
        if value is not None:
            histogram.observe(value)
    if outcome.sure is not None:
        metrics.SURE.labels("yes" if outcome.sure else "no").inc()
