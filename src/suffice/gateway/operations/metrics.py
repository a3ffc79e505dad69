"""Figures for Prometheus; with several workers they are summed over all."""

import os
from pathlib import Path

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

_COUNTS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 28, 32, 48, 64, 128)

REQUESTS = Counter("suffice_requests", "Requests by what became of them.", ["outcome"])
VOTES = Counter("suffice_votes", "Votes, by what shows their answers.", ["evidence"])
ROUTES = Counter("suffice_routes", "Requests to a model, by route: vote, look or relay.", ["route"])
LOOKS = Counter(
    "suffice_looks", "Requests that were drawn a few times more to learn, by whether draws agreed.", ["agreed"]
)
LOOK_TOKENS = Counter("suffice_look_tokens", "Tokens of these draws, beyond the replies.")
SAMPLES = Histogram("suffice_samples", "Samples of a vote.", buckets=_COUNTS)
ROUNDS = Histogram("suffice_rounds", "Rounds of a vote.", buckets=_COUNTS)
TOKENS = Counter("suffice_tokens", "Tokens spent on votes.", ["kind"])
ONCE_TOKENS = Counter("suffice_once_tokens", "Tokens of one response to each request: the first of a vote.", ["model"])
_OF = ["evidence", "model"]
OVER_ONE_SAMPLES = Counter("suffice_over_one_samples", "Samples that votes took over one response.", _OF)
OVER_ONE_TOKENS = Counter("suffice_over_one_tokens", "Tokens of responses that votes took over one.", _OF)
OVER_ONE_PROMPT_TOKENS = Counter("suffice_over_one_prompt_tokens", "Tokens of prompts that votes sent again.", _OF)
CHANGED = Counter("suffice_changed_votes", "Votes that elected another answer than the first response's.", _OF)
SHADOW_REQUESTS = Counter(
    "suffice_shadow_requests", "Requests in the shadow, by whether auto would vote on them.", ["would_vote", *_OF]
)
SHADOW_OVER_ONE_SAMPLES = Counter("suffice_shadow_over_one_samples", "Samples that auto would likely take more.", _OF)
SHADOW_OVER_ONE_TOKENS = Counter("suffice_shadow_over_one_tokens", "Tokens that auto would likely take more.", _OF)
SAMPLES_SAVED = Counter("suffice_samples_saved", "Samples that votes saved of the budgets that clients asked for.")
TOKENS_SAVED = Counter("suffice_tokens_saved", "The same in tokens of responses, by the mean of a vote.")
_SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.999, 1)

SAME_AS_FULL_VOTE = Histogram(
    "suffice_same_as_full_vote", "That the full budget elects the same answer.", buckets=_SHARES
)
CERTAINTY = Histogram("suffice_certainty", "That unlimited sampling elects the same answer.", buckets=_SHARES)
RIGHT = Histogram("suffice_right", "That the elected answer is right, by a calibration.", buckets=_SHARES)
SURE = Counter("suffice_sure", "Votes, by whether they are sure enough for the risk.", ["sure"])
FEEDBACK = Counter(
    "suffice_feedback", "What was said of replies, and whether they were sure enough.", ["right", "sure"]
)
RISK_BROKEN = Counter("suffice_risk_broken", "Times that feedback broke a promised risk.")
RISK_EVIDENCE = Gauge(
    "suffice_risk_evidence",
    "What speaks against a promised risk, when feedback last came.",
    multiprocess_mode="livemax",
)
SCOUTS = Counter("suffice_scouts", "Scouts, by whether a vote came of them.", ["vote"])
UPSTREAM_SECONDS = Histogram(
    "suffice_upstream_seconds",
    "Time of a request to the upstream.",
    buckets=(0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000),
)
IN_FLIGHT = Gauge("suffice_draws_in_flight", "Draws on the way.", multiprocess_mode="livesum")
IN_PROGRESS = Gauge("suffice_requests_in_progress", "Votes under way.", multiprocess_mode="livesum")
QUEUED = Gauge("suffice_requests_queued", "Votes that wait for others to end.", multiprocess_mode="livesum")
UPSTREAM_IN_FLIGHT = Gauge(
    "suffice_upstream_draws_in_flight", "Draws on the way, by upstream.", ["upstream"], multiprocess_mode="livesum"
)
UPSTREAM_HEALTHY = Gauge(
    "suffice_upstream_healthy", "1, or 0 where it is set aside.", ["upstream"], multiprocess_mode="livemin"
)
UPSTREAM_QUESTIONS = Counter("suffice_upstream_questions", "Questions, by where they ended.", ["upstream"])
RETRIES = Counter("suffice_retries", "Requests to the upstream that were tried again.")
AUDITS = Counter("suffice_audits", "Votes that were drawn to the full budget, by whether it agreed.", ["agreed"])
AUDITS_ONCE = Counter("suffice_audits_once", "Audits, by whether one response agreed with the full budget.", ["agreed"])
AUDIT_TOKENS = Counter("suffice_audit_tokens", "Tokens that audits took beyond the votes themselves.")
PLANS = Counter("suffice_plans", "Plans that were made while serving, by what was learned or promised.")
PRICE_FACTOR = Gauge(
    "suffice_price_factor", "What multiplies the price of a draw to keep to --over-one.", multiprocess_mode="livemax"
)
CANCELLATIONS = Counter("suffice_cancellations", "Votes that ended because the client hung up.")
KEY_REQUESTS = Counter("suffice_key_requests", "Requests, by key.", ["key"])
KEY_SAMPLES = Counter("suffice_key_samples", "Samples, by key.", ["key"])
KEY_TOKENS = Counter("suffice_key_tokens", "Tokens of votes, scouts and relayed requests, by key.", ["key", "kind"])
KEY_OVER_ONE_TOKENS = Counter("suffice_key_over_one_tokens", "Tokens over one response, by key.", ["key"])
KEY_RELOADS = Counter("suffice_key_reloads", "Times that the file of keys was read again.", ["result"])


def _forget_the_dead(folder: Path) -> None:
    """Leave out what workers that are gone had under way."""
    for path in folder.glob("gauge_live*_*.db"):
        try:
            os.kill(int(path.stem.rpartition("_")[2]), 0)
        except ProcessLookupError:
            path.unlink(missing_ok=True)


def text() -> bytes:
    """All figures, as Prometheus reads them."""
    registry = REGISTRY
    folder = os.environ.get("PROMETHEUS_MULTIPROC_DIR")
    if folder:
        _forget_the_dead(Path(folder))
        registry = CollectorRegistry()
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return generate_latest(registry)
