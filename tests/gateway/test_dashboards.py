"""The dashboard and the alerts ask for nothing that `/metrics` does not tell, by no label that it does not have."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from helpers.gateways import ASK, always, gateway, post
from helpers.keys import Desk
from helpers.labels import easy_and_hard
from helpers.live import until
from prometheus_client.parser import text_string_to_metric_families

from suffice import calibrate
from suffice.testing import FakeServer

DEPLOY = Path(__file__).parents[2] / "deploy"
FUNCTIONS = {"sum", "min", "max", "by", "rate", "increase", "histogram_quantile", "absent", "offset"}
SCRAPED = {"job", "instance"}
"""Labels that Prometheus adds itself."""

Told = dict[str, dict[str, set[str]]]
"""The values of each label, by the name of the series."""


def panels() -> list[dict[str, Any]]:
    board = json.loads((DEPLOY / "grafana.json").read_text())
    return [panel for panel in board["panels"] if panel["type"] != "row"]


def rules() -> list[dict[str, Any]]:
    read = yaml.safe_load((DEPLOY / "alerts.yaml").read_text())
    return [rule for group in read["groups"] for rule in group["rules"]]


def questions() -> list[str]:
    return [target["expr"] for panel in panels() for target in panel["targets"]] + [rule["expr"] for rule in rules()]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Told:
    """What a gateway tells after requests of every kind."""
    desk = Desk(tmp_path_factory.mktemp("desk"))
    team = desk.add("team")
    with FakeServer(always) as upstream, gateway(upstream, vote="shadow") as url:
        post(url, ASK)
    with FakeServer(always) as upstream, gateway(upstream, vote="auto", learn_share=1.0) as url:
        post(url, {**ASK, "messages": [{"role": "user", "content": "And the last one?"}]})
        assert until(lambda: "suffice_looks_total{" in httpx.get(f"{url}/metrics").text)
    calibrate(easy_and_hard(easy=0.9)).save(tmp_path_factory.getbasetemp() / "right.json")
    right = {"right": str(tmp_path_factory.getbasetemp() / "right.json"), "risk": 0.1}
    with FakeServer(always) as upstream, gateway(upstream, **right) as url:
        for is_right in (True, False):
            told = {"id": post(url, ASK).json()["id"], "right": is_right}
            httpx.post(f"{url}/v1/suffice/feedback", json=told).raise_for_status()
    with FakeServer(always) as upstream, desk.gateway(upstream, vote="auto", audit=1.0) as url:
        httpx.get(f"{url}/healthz")
        post(url, ASK)
        post(url, b"{", headers=team)
        for words in ("What is 6 * 7?", "And the last one?", "Write a poem about the sea."):
            post(url, {**ASK, "messages": [{"role": "user", "content": words}]}, headers=team)
        desk.path.write_text("nonsense")
        assert until(lambda: post(url, ASK).status_code and 'result="refused"' in httpx.get(f"{url}/metrics").text)
        assert until(lambda: "suffice_audits_total{" in httpx.get(f"{url}/metrics").text)
        return _read(httpx.get(f"{url}/metrics").text)


def _read(text: str) -> Told:
    series: Told = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = series.setdefault(sample.name, {})
            for name, value in sample.labels.items():
                labels.setdefault(name, set()).add(value)
    return series


def selectors(question: str) -> Iterator[tuple[str, list[tuple[str, str, str]]]]:
    """Each series that is asked for, with its conditions."""
    for name, conditions in re.findall(r"\b(suffice_\w+)(?:\{([^}]*)\})?", question):
        yield name, re.findall(r'(\w+)\s*(=~|!=|=)\s*"([^"]*)"', conditions)


@pytest.mark.parametrize("question", questions())
def test_it_asks_for_what_is_told(question: str, told: Told) -> None:
    asked = list(selectors(question))
    assert asked
    known = set(SCRAPED)
    for name, conditions in asked:
        assert name in told, f"/metrics has no {name}"
        known |= set(told[name])
        for label, relation, value in conditions:
            assert label in set(told[name]) | SCRAPED, f"{name} has no label {label}"
            if label not in SCRAPED and relation in ("=", "!="):
                assert value in told[name][label], f'{name} never has {label}="{value}"'
    for group in re.findall(r"\bby \(([^)]*)\)", question):
        assert {label.strip() for label in group.split(",")} <= known, group


@pytest.mark.parametrize("question", questions())
def test_it_is_promql_as_far_as_that_is_seen(question: str) -> None:
    bare = re.sub(r'"[^"]*"', "", question)
    for opening, closing in ("()", "[]", "{}"):
        assert bare.count(opening) == bare.count(closing)
    bare = re.sub(r"\{[^}]*\}|\bby \([^)]*\)", "", bare)
    assert set(re.findall(r"\[([^\]]*)\]", bare)) <= {"5m", "10m", "15m", "1h", "$__rate_interval", "$__range"}
    bare = re.sub(r"\[[^\]]*\]|offset 1d", "", bare)
    assert {word for word in re.findall(r"[a-z_]\w*", bare) if not word.startswith("suffice_")} <= FUNCTIONS
    for name in re.findall(r"suffice_\w+", re.sub(r"(?:rate|increase)\([^)]*\)", "", question)):
        assert not name.endswith(("_total", "_bucket", "_sum", "_count")), f"{name} only grows: ask for its rate"
    for name in re.findall(r"(?:rate|increase)\((\w+)", question):
        assert name.endswith(("_total", "_bucket", "_sum", "_count")), f"{name} is no counter"


def test_a_name_that_is_not_there_would_be_found(told: Told) -> None:
    with pytest.raises(AssertionError):
        test_it_asks_for_what_is_told("sum(suffice_nothing)", told)
    with pytest.raises(AssertionError):
        test_it_asks_for_what_is_told('sum(suffice_requests_total{outcome="nonsense"})', told)


def test_every_figure_is_on_the_dashboard(told: Told) -> None:
    shown = " ".join(target["expr"] for panel in panels() for target in panel["targets"])
    names = {name.removesuffix("_created") for name in told if name.startswith("suffice_")}
    families = {re.sub(r"_(bucket|sum|count)$", "", name) for name in names}
    assert not {name for name in families if name.removesuffix("_total") not in shown}


def test_panels_can_be_shown() -> None:
    assert len({panel["id"] for panel in panels()}) == len(panels())
    for panel in panels():
        assert panel["datasource"]["uid"] == "${datasource}" and panel["title"] and panel["targets"]
        assert panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24
        for target in panel["targets"]:
            labels = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
            grouped = ",".join(re.findall(r"by \(([^)]*)\)", target["expr"]))
            assert labels <= set(re.findall(r"\w+", grouped))


def test_alerts_say_what_is_wrong() -> None:
    assert len({rule["alert"] for rule in rules()}) == len(rules())
    for rule in rules():
        assert set(rule) == {"alert", "expr", "for", "labels", "annotations"}
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert re.fullmatch(r"\d+[mh]", rule["for"]) and rule["annotations"].keys() == {"summary", "description"}
