"""`suffice serve` as a real process: its end, its workers, its settings, and the embedded model behind it."""

import signal
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from helpers.commands import command, fails
from helpers.gateways import ASK, post, refuses
from helpers.keys import key_file
from helpers.live import until
from helpers.pages import ROOT
from helpers.serving import serving

from suffice.cli.command import declared
from suffice.gateway import Settings
from suffice.testing import FakeServer, Reply, completion


def slow(request: dict[str, Any], number: int) -> Reply:
    return Reply(completion(["42"] * request.get("n", 1)), delay=1.0 if "slowly" in str(request) else 0.0)


def test_settings_come_from_a_file_options_go_before_it_and_sigterm_lets_what_is_under_way_end(tmp_path: Path) -> None:
    config = tmp_path / "gateway.toml"
    with FakeServer(slow) as upstream:
        config.write_text(
            f'upstream = "{upstream.base_url}"\ncontroller = "sc"\nbudget = 7\nmax_budget = 9\n'
            f'keys = "{key_file(tmp_path, alice="sk-alice")}"\ndeadline_seconds = 20\ncors_origins = ["https://chat.example"]\n'
            "unready_seconds = 0\n"
        )
        with serving("--config", str(config), "--budget", "5") as (url, process):
            headers = {"authorization": "Bearer sk-alice"}
            told = post(url, ASK, headers=headers).json()["suffice"]
            assert told["samples"] == 5
            assert post(url, ASK).status_code == 401
            headers["origin"] = "https://chat.example"
            reply = post(url, ASK, headers=headers)
            assert reply.headers["access-control-allow-origin"] == headers["origin"]
            body = {**ASK, "messages": [{"role": "user", "content": "What is 6 * 7, slowly?"}]}
            with ThreadPoolExecutor(1) as clients:
                asking = clients.submit(post, url, body, headers=headers)
                assert until(lambda: upstream.in_flight > 0, 60)
                process.send_signal(signal.SIGHUP)  # ends nothing
                process.send_signal(signal.SIGTERM)
                assert until(lambda: refuses(url), 60)
            assert process.wait(60) == 0
        assert asking.result().status_code == 200


def test_bad_settings_get_one_sentence(tmp_path: Path) -> None:
    config = tmp_path / "gateway.toml"
    upstream = ["--upstream", "http://127.0.0.1:9/v1"]
    config.write_text("speed = 3")
    assert f'--config {config}: there is no setting "speed"' in fails("serve", "--config", config)
    assert "--controller can't be nope: unknown" in fails("serve", *upstream, "--controller", "nope")
    config.write_text("budget = 'many'")
    assert "budget must be a whole number" in fails("serve", "--config", config)
    config.write_text("budget =")
    assert "not TOML" in fails("serve", "--config", config)
    assert "can't be read" in fails("serve", "--config", tmp_path / "none.toml")
    assert "--host 0.0.0.0 lets others in" in fails("serve", *upstream, "--host", "0.0.0.0")
    assert "unknown controller" in fails("serve", *upstream, "--controller", "nonsense")
    assert "--budget must be a whole number, at least 1" in fails("serve", *upstream, "--budget", "0")
    assert "--budget can't be 513: there are plans up to" in fails("serve", *upstream, "--budget", "513")
    config.write_text('[[policy]]\nmodel = "a"\nbudget = 600')
    assert 'policy of model "a": budget can\'t be 600' in fails("serve", *upstream, "--config", config)
    assert "--upstream nonsense" in fails("serve", "--upstream", "nonsense")
    assert "not both" in fails("serve", *upstream, "--gguf", config)
    assert "--risk needs a calibration" in fails("serve", *upstream, "--risk", "0.05")
    assert "--port" in fails("serve", *upstream, "--port", "99999")
    assert "--drain-seconds" in fails("serve", *upstream, "--drain-seconds", "inf")
    assert "--forward-auth" in fails("serve", *upstream, "--forward-auth", "--keys", config)
    assert "can't be listened on" in fails("serve", *upstream, "--host", "203.0.113.1", "--allow-no-key")
    config.write_text("cors_origins = 'chat.example'")
    assert f"suffice: --config {config}: cors_origins must be a list of texts" in fails(
        "serve", *upstream, "--config", config
    )
    config.write_text("retries = -1")
    assert f"suffice: --config {config}: retries must be" in fails("serve", *upstream, "--config", config)
    config.write_text("flow = 'order=size'")
    assert f"--config {config}: flow can't be" in fails("serve", *upstream, "--config", config)
    config.write_text("keys = 5")
    assert "keys must be text" in fails("serve", "--config", config)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert "can't be listened on" in fails("serve", *upstream, "--port", str(taken.getsockname()[1]))


def test_each_setting_is_an_option_or_has_its_row_in_the_table_of_those_in_files_alone() -> None:
    options = {option.name: option.help or "" for option in command("serve").params}
    page = (ROOT / "docs/deploy.md").read_text()
    for name, (_, given, about) in declared(Settings).items():
        default = f"{given:g}" if isinstance(given, float) else str(given).lower()
        if about["file_only"]:
            shown = "" if given in (None, ()) else f"`{default}`"
            assert f"| `{name}` | {shown} | {about['about']} |".replace("|  |", "| |") in page
            assert name in options["config"]
        else:
            assert options[name].startswith(about["about"])


@pytest.mark.slow
def test_with_no_upstream_the_embedded_model_answers() -> None:
    question: Any = [{"role": "user", "content": "What is 2 + 3? Reply with just the number."}]
    with serving("--budget", "8") as (url, _), openai.OpenAI(base_url=f"{url}/v1", api_key="none") as client:
        (model,) = client.models.list()
        reply = client.chat.completions.create(model=f"{model.id}+vote", messages=question, max_tokens=24)
        assert reply.choices[0].message.content
        assert 1 <= reply.model_dump()["suffice"]["samples"] <= 8
        streamed = client.chat.completions.create(model=model.id, messages=question, max_tokens=24, stream=True)
        assert "".join(chunk.choices[0].delta.content or "" for chunk in streamed if chunk.choices)
        plain = client.chat.completions.create(model=model.id, messages=question, max_tokens=8, n=2)
        assert len(plain.choices) == 2
        assert httpx.get(f"{url}/readyz").status_code == 200
