"""The gateway on Ray Serve: two replicas, each on a node of its own, that answer, agree, and end what they began."""

import json
import os
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from helpers.gateways import ASK, free_port, post
from helpers.keys import Desk
from helpers.live import boxed, until

import suffice.ray
from suffice import OptionError
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
        self.ann = self.desk.add("ann")
        self.votes = 2
        """The votes so far, once it has answered."""
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
    _answers_on_both_nodes(served)
    _learns_together(served)
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


def _answers_on_both_nodes(served: Served) -> None:
    while len(served.votes_by_node() - {served.votes}) == 0 or served.votes < 12:
        assert served.votes < 200, "both nodes are asked"
        assert post(served.url, ASK, headers=served.ann).status_code == 200
        served.votes += 1


def _learns_together(served: Served) -> None:
    def seen() -> list[int]:
        kept = (served.desk.state / "learned").glob("*.json")
        return [json.loads(path.read_bytes().partition(b"\n")[2])["seen"] for path in kept]

    assert until(lambda: seen() == [served.votes], AGREED_SECONDS), "one file has the votes of both"


def _ends(served: Served) -> None:
    from ray import serve

    replies: list[httpx.Response] = []
    asking = threading.Thread(target=lambda: replies.append(post(served.url, SLOW, headers=served.ann)))
    asking.start()
    assert until(lambda: served.upstream.in_flight > 0)
    serve.delete("default")
    asking.join()
    assert [reply.status_code for reply in replies] == [200], "it was let end"


def test_replicas_of_a_node_share_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", "")
    first, second, other = (share_node(name) for name in ("node app", "node app", "other app"))
    assert first == second != other and os.environ["PROMETHEUS_MULTIPROC_DIR"] == str(other.parent)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"upstream": "http://localhost:1/v1"}, "ask for keys \\(keys\\), or allow none"),
        ({"upstreams": "http://localhost:1/v1"}, 'there is no setting "upstreams"'),
        ({"upstream": "http://localhost:1/v1", "budget": "many"}, "budget must be a whole number, .* not .many."),
        ({"upstream": "http://localhost:1/v1", "budget": "0"}, "budget must be a whole number, at least 1, not 0"),
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
