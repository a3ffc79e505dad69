"""The gateway on Ray Serve: two replicas, each on a node of its own, that answer, agree, and end what they began."""

import json
import os
import re
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from helpers.gateways import ASK, free_port, post
from helpers.keys import Desk
from helpers.live import boxed, until

import suffice.ray
from suffice import OptionError
from suffice.gateway import Settings
from suffice.gateway.accounts.store import Counts, Store
from suffice.gateway.accounts.usage import LAG_SECONDS, Usage
from suffice.gateway.errors import GatewayError
from suffice.gateway.operations.shared import COUNTERS, REQUESTS, SharedCounters
from suffice.gateway.votes.learning import SYNC_SECONDS
from suffice.ray.counters import Counters, SharedStore
from suffice.ray.serving import deployment_options, settings_of, share_node
from suffice.testing import FakeServer, Reply
from suffice.testing.replies import reply_at

pytestmark = [
    pytest.mark.filterwarnings("ignore:Using extra keyword arguments on `Field`:DeprecationWarning"),  # Ray Serve's own
    pytest.mark.timeout(480),  # a cluster takes its time where all cores are busy
]

DOCS = Path(__file__).parents[1] / "docs" / "ray.md"

AGREED_SECONDS = 60.0
"""Far more than the lag, for a busy machine."""

SLOW = {**ASK, "messages": [{"role": "user", "content": "slow: what is 6 * 7?"}]}


def script(request: dict[str, Any], number: int) -> Reply | str:
    slow = "slow" in str(request["messages"])
    return Reply(reply_at("/v1/chat/completions", [boxed(42)] * (request.get("n") or 1)), delay=1.5 * slow)


class Served:
    """The gateway on a Ray of its own, two nodes of one core each, with a replica on each."""

    def __init__(self, folder: Path) -> None:
        import ray
        from ray import cluster_utils, serve

        self.desk = Desk(folder)
        self.ann, self.bob = self.desk.add("ann", requests_per_minute=1000), self.desk.add("bob", tokens_per_day=100)
        self.eve = self.desk.add("eve", requests_per_minute=4)
        self.upstream = FakeServer(script, streams=True)
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        node = {"num_cpus": 1, "object_store_memory": 80 << 20, "include_dashboard": False}
        self._cluster: Any = cluster_utils.Cluster(initialize_head=True, head_node_args=node)
        self._cluster.add_node(num_cpus=1, object_store_memory=80 << 20)
        runtime_env = {"env_vars": {"TMPDIR": str(folder)}}
        ray.init(self._cluster.address, runtime_env=runtime_env, log_to_driver=False)
        serve.start(http_options={"host": "127.0.0.1", "port": port}, proxy_location="HeadOnly")
        settings = {"upstream": self.upstream.base_url, "keys": self.desk.path, "state": self.desk.state}
        fixed = {"workers": 2, "vote": "always", "drain_seconds": 20.0, "unready_seconds": 0.1}
        serve.run(suffice.ray.deployment({name: str(value) for name, value in settings.items()} | fixed))

    def usage(self, name: str) -> dict[str, Any]:
        return self.desk.usage(self.url)[name]

    def votes_by_node(self) -> set[int]:
        """The votes on each node, as its own figures say."""
        pages = [httpx.get(f"{self.url}/metrics").text for _ in range(8)]
        found = [re.search(r'^suffice_requests_total{outcome="vote"} (\d+)', page, re.MULTILINE) for page in pages]
        return {int(one[1]) for one in found if one}

    def end(self) -> None:
        import ray

        ray.shutdown()
        self._cluster.global_state.disconnect()  # it would end this process where it misses its cluster for a minute
        self._cluster.shutdown()
        self.upstream.close()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    before = dict(os.environ)
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_SERVE_PROXY_PREFER_LOCAL_NODE_ROUTING": "0"}
    os.environ |= {"RAY_worker_niceness": "0"}  # replicas answer while other tests run
    try:
        one = Served(tmp_path_factory.mktemp("served"))
        yield one
        one.end()
    finally:
        os.environ.clear()
        os.environ |= before


@pytest.mark.slow
def test_replicas_answer_and_agree_and_end_what_they_began(served: Served) -> None:
    """One test, in one order: to start Ray takes longer than all of it."""
    _answers(served)
    _agrees_on_keys(served)
    _learns_together(served)
    _forgets_nothing_when_the_owner_dies(served)
    _ends(served)


def _answers(served: Served) -> None:
    reply = post(served.url, ASK, headers=served.ann)
    assert reply.status_code == 200 and reply.json()["suffice"]["answer"] == "42"
    assert post(served.url, ASK).status_code == 401
    body = {**SLOW, "stream": True}
    with httpx.stream("POST", f"{served.url}/v1/chat/completions", json=body, headers=served.ann, timeout=60) as stream:
        pieces = list(stream.iter_raw())
    assert len(pieces) > 1 and b"".join(pieces).endswith(b"data: [DONE]\n\n"), "a stream comes piece by piece"
    models = httpx.get(f"{served.url}/v1/models", headers=served.ann)
    assert models.json()["data"][0]["id"] == "fake"
    assert httpx.get(f"{served.url}/readyz").text == "ready\n"
    assert "suffice_requests_total" in httpx.get(f"{served.url}/metrics").text


def _agrees_on_keys(served: Served) -> None:
    votes = 2
    while len(served.votes_by_node() - {votes}) == 0 or votes < 12:
        assert votes < 200, "both nodes are asked"
        assert post(served.url, ASK, headers=served.ann).status_code == 200
        votes += 1
    assert until(lambda: served.usage("ann")["votes"] == votes, AGREED_SECONDS), "those of both nodes are counted"
    assert {served.usage("ann")["votes"] for _ in range(6)} == {votes}, "whichever is asked"
    while post(served.url, ASK, headers=served.bob).status_code == 200:
        assert served.usage("bob")["votes"] < 20
    assert until(lambda: _refused(served, served.bob) == 6, AGREED_SECONDS), "both know that the tokens are spent"
    sent = 0
    while post(served.url, ASK, headers=served.eve).status_code == 200:
        sent += 1
        assert until(lambda: _used(served) == {sent}, AGREED_SECONDS)  # noqa: B023
    assert sent == 4, "the requests of a minute are counted over both nodes"


def _used(served: Served) -> set[int]:
    """The requests of the last minute, as both replicas have them: one of many that are asked is the other."""
    return {served.usage("eve")["used"]["requests_per_minute"] for _ in range(12)}


def _refused(served: Served, key: dict[str, str]) -> int:
    return sum(post(served.url, ASK, headers=key).status_code == 429 for _ in range(6))


def _learns_together(served: Served) -> None:
    votes = sum(served.usage(name)["votes"] for name in ("ann", "bob", "eve"))

    def seen() -> list[int]:
        kept = (served.desk.state / "learned").glob("*.json")
        return [json.loads(path.read_bytes().partition(b"\n")[2])["seen"] for path in kept]

    assert until(lambda: seen() == [votes], AGREED_SECONDS), "one file has the votes of both"


def _forgets_nothing_when_the_owner_dies(served: Served) -> None:
    import ray

    votes = served.usage("ann")["votes"]
    (owner,) = [one for one in ray.util.list_named_actors(all_namespaces=True) if one["namespace"] == "suffice"]
    ray.kill(ray.get_actor(**owner), no_restart=False)
    assert post(served.url, ASK, headers=served.ann).status_code == 200

    def told() -> Any:
        reply = httpx.get(f"{served.url}/v1/suffice/usage", headers=served.desk.operator)
        assert reply.status_code in (200, 503), reply.text
        return reply.status_code == 200 and {one["name"]: one["votes"] for one in reply.json()["keys"]}["ann"]

    assert until(lambda: told() == votes + 1, AGREED_SECONDS), "it is begun again, and told what it missed"


def _ends(served: Served) -> None:
    from ray import serve

    votes = served.usage("ann")["votes"]
    replies: list[httpx.Response] = []
    asking = threading.Thread(target=lambda: replies.append(post(served.url, SLOW, headers=served.ann)))
    asking.start()
    assert until(lambda: served.upstream.in_flight > 0)
    serve.delete("default")
    asking.join()
    assert [reply.status_code for reply in replies] == [200], "it was let end"
    with closing(Store(served.desk.state / "usage.db")) as store:
        assert until(lambda: store.totals().counts["ann"].votes == votes + 1, AGREED_SECONDS)


@pytest.mark.slow
def test_nodes_count_together_by_their_owner(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    ann = desk.add("ann", requests_per_minute=3)["authorization"].removeprefix("Bearer ")
    settings = Settings(upstream="http://127.0.0.1:1/v1", keys=str(desk.path), state=str(desk.state))
    owner = Counters(settings.usage_file)

    def ask(method: str, *arguments: Any) -> Any:
        return getattr(owner, method)(*arguments)

    nodes = [Usage(settings, store=SharedStore(name, ask)) for name in "ab"]
    key = nodes[0].who([ann])
    assert key
    for node in nodes:
        node.flush()
    for node in (nodes[0], nodes[0], nodes[1]):
        node.admit(key, spends=True)
    nodes[0].add("ann", Counts(requests=2, prompt_tokens=7))
    for node in (*nodes, *nodes):
        node.flush()
    assert [node.summary()["keys"][1]["used"]["requests_per_minute"] for node in nodes] == [3, 3]
    assert [node.summary()["keys"][1]["tokens"] for node in nodes] == [7, 7]
    for node in nodes:
        with pytest.raises(GatewayError, match="3 requests a minute"):
            node.admit(key, spends=True)
    again = Usage(settings, store=SharedStore("c", ask))
    owner.close()
    owner = Counters(settings.usage_file)
    again.flush()
    again.admit(key, spends=True)
    with pytest.raises(GatewayError, match="3 requests a minute"):
        again.admit(key, spends=True)
    owner.close()
    assert (LAG_SECONDS, SYNC_SECONDS) == (1, 2), "as docs/ray.md says"


def test_replicas_of_a_node_share_their_counters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    for name in (COUNTERS, "PROMETHEUS_MULTIPROC_DIR"):
        monkeypatch.setenv(name, "")
    share_node("node app")
    first = SharedCounters.of_machine()
    share_node("node app")
    second = SharedCounters.of_machine()
    assert first and second
    assert first.take(REQUESTS, 2, most=3) and not second.take(REQUESTS, 2, most=3)
    share_node("other app")
    assert len({path.parent for path in tmp_path.glob("*/counters")}) == 2
    first.close()
    second.close()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"upstream": "http://localhost:1/v1"}, "ask for a key, or allow none"),
        ({"upstreams": "http://localhost:1/v1"}, 'there is no setting "upstreams"'),
        ({"upstream": "http://localhost:1/v1", "budget": "many"}, "budget can't be 'many'"),
        ({"upstream": "http://localhost:1/v1", "budget": "0"}, "budget must be at least 1, not 0"),
    ],
)
def test_settings_that_can_not_be_are_refused_before_anything_is_deployed(
    settings: dict[str, str], message: str
) -> None:
    with pytest.raises(OptionError, match=message):
        suffice.ray.deployment(settings)


@pytest.mark.slow
def test_the_docs_file_can_be_deployed() -> None:
    import yaml
    from ray.serve.schema import ServeDeploySchema

    (block,) = re.findall(r"^```yaml\n(.*?)^```$", DOCS.read_text(), re.DOTALL | re.MULTILINE)
    (application,) = ServeDeploySchema.model_validate(yaml.safe_load(block)).applications
    assert application.import_path == "suffice.ray:deployment"
    assert suffice.ray.deployment(application.args)
    chosen = deployment_options(settings_of(application.args))
    assert application.deployments[0].name == chosen["name"]


@pytest.mark.slow
def test_settings_decide_on_what_is_deployed() -> None:
    given = {"upstream": "http://localhost:1/v1", "workers": "3", "drain_seconds": "7", "unready_seconds": "2"}
    assert deployment_options(settings_of(given)) == {
        "name": "suffice", "num_replicas": 3, "max_ongoing_requests": 512 + 2048,
        "graceful_shutdown_timeout_s": 7, "graceful_shutdown_wait_loop_s": 2,
    }  # fmt: skip
