"""What is in deploy/ fits what is deployed: options, settings, schemas, times, paths and ports."""

import configparser
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from helpers.commands import command

from suffice.gateway import Settings, with_file
from suffice.gateway.operations.traces import FLUSH_SECONDS

DEPLOY = Path(__file__).parents[1] / "deploy"
SERVE = command("serve")
OPTIONS = {name for parameter in SERVE.params for name in parameter.opts}


def documents() -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text()))


def of_kind(kind: str) -> dict[str, Any]:
    (one,) = [document for document in documents() if document["kind"] == kind]
    return one


def pod() -> dict[str, Any]:
    spec: dict[str, Any] = of_kind("Deployment")["spec"]["template"]["spec"]
    return spec


def container() -> dict[str, Any]:
    (one,) = pod()["containers"]
    return dict(one)


def settings_of(text: str, tmp_path: Path) -> Settings:
    file = tmp_path / "suffice.toml"
    file.write_text(text)
    return with_file({}, file)


def compose() -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    return {**read["services"]["suffice"], "all": read}


def unit() -> configparser.SectionProxy:
    parser = configparser.RawConfigParser(strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string((DEPLOY / "suffice.service").read_text())
    return parser["Service"]


def dockerfile(word: str) -> list[str]:
    found = re.findall(rf"^{word} \[(.*)\]$", (DEPLOY / "Dockerfile").read_text(), re.MULTILINE)
    assert len(found) == 1
    return [part.strip().strip('"') for part in found[0].split(", ")]


def commands() -> dict[str, list[str]]:
    """What is run, of each file that runs something."""
    image = dockerfile("ENTRYPOINT")
    return {
        "Dockerfile": image + dockerfile("CMD"),
        "compose.yaml": image + compose()["command"],
        "kubernetes.yaml": container()["command"] + container()["args"],
        "suffice.service": shlex.split(unit()["ExecStart"]),
    }


@pytest.mark.parametrize("file", ["Dockerfile", "compose.yaml", "kubernetes.yaml", "suffice.service"])
def test_every_command_is_one_that_suffice_takes(file: str) -> None:
    program, serve, *arguments = commands()[file]
    assert (Path(program).name, serve) == ("suffice", "serve")
    context = SERVE.make_context("serve", list(arguments))  # as the command line reads it
    given = {name for name in arguments if name.startswith("--")}
    assert given <= OPTIONS and context.params


def test_every_option_that_is_written_anywhere_exists() -> None:
    for path in DEPLOY.iterdir():
        ours = path.read_text()
        for line in ours.splitlines():
            if "suffice" in line and "kubectl" not in line and "useradd" not in line:
                assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", line)) <= OPTIONS, f"{path.name}: {line}"


def test_every_setting_exists(tmp_path: Path) -> None:
    for text in ((DEPLOY / "suffice.toml").read_text(), of_kind("ConfigMap")["data"]["suffice.toml"]):
        settings = settings_of(text, tmp_path)
        assert settings.targets and settings.host == "0.0.0.0"
    assert set(Settings.model_fields) > {"drain_seconds", "otel"}


@pytest.mark.slow
@pytest.mark.parametrize("version", ["1.31", "1.37"])
def test_the_manifest_fits_kubernetes_s_own_schema(version: str) -> None:
    import kubernetes_validate

    found = documents()
    assert {one["kind"] for one in found} == {"ConfigMap", "Deployment", "Service", "PodDisruptionBudget"}
    for document in found:
        kubernetes_validate.validate(document, version, strict=True)


@pytest.mark.slow
def test_a_mistake_in_the_manifest_would_be_found() -> None:
    import kubernetes_validate

    document = of_kind("Deployment")
    document["spec"]["template"]["spec"]["containers"][0]["readynessProbe"] = {}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(document, "1.31", strict=True)


def test_the_manifest_s_parts_fit_together(tmp_path: Path) -> None:
    labels = of_kind("Deployment")["spec"]["template"]["metadata"]["labels"]
    assert of_kind("Deployment")["spec"]["replicas"] == 2
    assert of_kind("Deployment")["spec"]["selector"]["matchLabels"] == labels
    assert of_kind("Service")["spec"]["selector"] == labels
    budget = of_kind("PodDisruptionBudget")["spec"]
    assert budget["selector"]["matchLabels"] == labels and budget["minAvailable"] == 1
    settings = settings_of(of_kind("ConfigMap")["data"]["suffice.toml"], tmp_path)
    (port,) = container()["ports"]
    assert port["containerPort"] == settings.port
    assert of_kind("Service")["spec"]["ports"][0]["targetPort"] == port["name"]
    mounts = {mount["name"]: mount["mountPath"] for mount in container()["volumeMounts"]}
    assert set(mounts) == {volume["name"] for volume in pod()["volumes"]}
    assert settings.keys == f"{mounts['keys']}/keys"
    assert container()["args"][1].startswith(mounts["settings"])
    named = {one["name"] for one in container()["env"]}
    assert {target.key_env for target in settings.targets} <= named
    for probe, path in [("startup", "/healthz"), ("liveness", "/healthz"), ("readiness", "/readyz")]:
        assert container()[f"{probe}Probe"]["httpGet"] == {"path": path, "port": port["name"]}


def test_there_is_time_to_drain(tmp_path: Path) -> None:
    """Everywhere what ends the processes by force waits for longer than they take at most."""
    settings = settings_of(of_kind("ConfigMap")["data"]["suffice.toml"], tmp_path)
    assert pod()["terminationGracePeriodSeconds"] > settings.drain_seconds + FLUSH_SECONDS
    assert 5 <= settings.unready_seconds < settings.drain_seconds, "load balancers have the time to notice"
    drain = float(compose()["command"][compose()["command"].index("--drain-seconds") + 1])
    assert int(compose()["stop_grace_period"].removesuffix("s")) > drain + FLUSH_SECONDS
    settings = settings_of((DEPLOY / "suffice.toml").read_text(), tmp_path)
    assert int(unit()["TimeoutStopSec"]) > settings.drain_seconds + FLUSH_SECONDS


def test_nothing_runs_as_root_or_may_write_where_it_need_not() -> None:
    text = (DEPLOY / "Dockerfile").read_text()
    (user,) = re.findall(r"^USER (\d+)$", text, re.MULTILINE)
    assert text.index("USER") < text.index("ENTRYPOINT") and int(user) > 0
    assert pod()["securityContext"]["runAsUser"] == int(user) and pod()["securityContext"]["runAsNonRoot"]
    assert container()["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert compose()["read_only"] and compose()["cap_drop"] == ["ALL"]
    assert unit()["DynamicUser"] == unit()["NoNewPrivileges"] == "yes"


def test_the_compose_file_s_parts_fit_together() -> None:
    service = compose()
    whole = service["all"]
    assert set(service["secrets"]) == set(whole["secrets"]) and set(whole["services"]) == {"vllm", "suffice"}
    assert f"/run/secrets/{service['secrets'][0]}" in service["command"]
    assert service["depends_on"]["vllm"]["condition"] == "service_healthy"
    assert "healthcheck" in service and "healthcheck" in whole["services"]["vllm"]
    assert (DEPLOY / service["build"]["context"] / service["build"]["dockerfile"]).resolve() == DEPLOY / "Dockerfile"
    for path in re.findall(r"^COPY ((?:[\w.]+ )+)/", (DEPLOY / "Dockerfile").read_text(), re.MULTILINE):
        assert all((DEPLOY.parent / name).exists() for name in path.split())


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="there is no systemd here")
def test_the_unit_is_one_that_systemd_takes(tmp_path: Path) -> None:
    text = (DEPLOY / "suffice.service").read_text()
    there = tmp_path / "suffice.service"
    there.write_text(text.replace("/opt/suffice/bin/suffice", sys.executable))
    done = subprocess.run(["systemd-analyze", "verify", there], capture_output=True, text=True)
    ours = [line for line in done.stderr.splitlines() if "suffice" in line]
    assert (ours, done.returncode) == ([], 0), done.stderr
    there.write_text(there.read_text().replace("ProtectHome=yes", "ProtectHom=yes"))
    done = subprocess.run(["systemd-analyze", "verify", there], capture_output=True, text=True)
    assert "ProtectHom" in done.stderr


def test_litellm_asks_the_gateway_with_a_key_of_its_own() -> None:
    config = yaml.safe_load((DEPLOY / "litellm.yaml").read_text())
    assert set(config) == {"model_list", "general_settings"}
    assert config["general_settings"]["master_key"].startswith("os.environ/")
    for model in config["model_list"]:
        asked = model["litellm_params"]
        assert asked["model"].startswith("openai/") and asked["api_base"] == "http://suffice:8000/v1"
        assert asked["api_key"] == "os.environ/SUFFICE_KEY"
        assert asked["timeout"] > Settings(upstream="http://127.0.0.1:9/v1").deadline_seconds
        assert asked["max_retries"] == 0
