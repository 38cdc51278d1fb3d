"""The manifests of ``cluster/kubernetes``: names, ports and commands that fit each other."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from distributed.cli import dask_scheduler, dask_worker

from mkldist.cli import command as mkldist
from tests.test_readme import check

FOLDER = Path(__file__).parents[1] / "cluster" / "kubernetes"
TLS = ["--tls-ca-file", "/tls/ca.pem", "--tls-cert", "/tls/cert.pem", "--tls-key", "/tls/key.pem"]


def objects() -> dict[str, dict[str, Any]]:
    """Return all objects of the manifests by kind and name."""
    texts = [path.read_text() for path in sorted(FOLDER.glob("*.yaml"))]
    found = [one for text in texts for one in yaml.safe_load_all(text)]
    return {f"{one['kind']} {one['metadata']['name']}": one for one in found}


def pod(name: str) -> dict[str, Any]:
    spec: dict[str, Any] = objects()[name]["spec"]["template"]["spec"]
    return spec


PODS = ["Deployment mkldist-scheduler", "Deployment mkldist-workers", "Job mkldist-sweep"]


def test_there_are_a_scheduler_workers_a_sweep_and_what_they_share():
    assert set(objects()) == {
        *PODS, "Service mkldist-scheduler", "PersistentVolumeClaim mkldist-work",
    }  # fmt: skip


@pytest.mark.parametrize("name", PODS)
def test_every_volume_is_there_and_mounted(name):
    spec = pod(name)
    [container] = spec["containers"]
    mounted = {one["name"]: one["mountPath"] for one in container["volumeMounts"]}
    assert mounted.keys() == {one["name"] for one in spec["volumes"]}
    assert mounted["tls"] == "/tls"
    claims = [one["persistentVolumeClaim"]["claimName"] for one in spec["volumes"]
              if "persistentVolumeClaim" in one]  # fmt: skip
    assert claims == ([] if "scheduler" in name else ["mkldist-work"])
    assert container["image"] == "REGISTRY/mkldist:0.1.0"


@pytest.mark.parametrize("name", PODS[:2])
def test_selectors_choose_their_pods(name):
    spec = objects()[name]["spec"]
    assert spec["selector"]["matchLabels"] == spec["template"]["metadata"]["labels"]


def test_the_service_leads_to_the_port_of_the_scheduler():
    service = objects()["Service mkldist-scheduler"]["spec"]
    [container] = pod("Deployment mkldist-scheduler")["containers"]
    labels = objects()["Deployment mkldist-scheduler"]["spec"]["template"]["metadata"]["labels"]
    assert service["selector"] == labels
    [port], [opened] = service["ports"], container["ports"]
    assert port["targetPort"] == opened["name"]
    assert opened["containerPort"] == port["port"] == 8786


def test_scheduler_and_workers_understand_their_commands_and_speak_tls():
    [scheduler] = pod("Deployment mkldist-scheduler")["containers"]
    [worker] = pod("Deployment mkldist-workers")["containers"]
    assert scheduler["command"][:4] == ["dask", "scheduler", "--protocol", "tls"]
    assert worker["command"][:3] == ["dask", "worker", "tls://mkldist-scheduler:8786"]
    for container, command in ((scheduler, dask_scheduler.main), (worker, dask_worker.main)):
        words = container["command"][2:]
        assert words[-6:] == TLS
        assert words[words.index("--dashboard-address") + 1] == "127.0.0.1:0"
        done = CliRunner().invoke(command, [*words[:-6], "--version"])
        assert done.exit_code == 0, done.output


def test_the_sweep_understands_its_commands():
    [container] = pod("Job mkldist-sweep")["containers"]
    environment = {one["name"]: one["value"] for one in container["env"]}
    assert environment["SCHEDULER"] == "tls://mkldist-scheduler:8786"
    text = container["args"][0]
    for name, value in environment.items():
        text = text.replace(f"${name}", value)
    calls = [line for line in text.splitlines() if line.startswith("mkldist ")]
    assert len(calls) == 2
    for call in calls:
        check(mkldist, shlex.split(call)[1:])


def test_the_image_has_what_the_pods_call():
    text = (FOLDER / "Dockerfile").read_text()
    assert "s3fs" in text
    assert re.search(r"^ENV MKLDIST_CACHE=/cache", text, re.MULTILINE)
    assert "cp /src/cluster/dask.yaml /etc/dask/" in text
