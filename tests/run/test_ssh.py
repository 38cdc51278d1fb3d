"""A sweep through ``cluster/ssh.yaml`` on an SSH server of this machine, over TLS."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.run.dask_processes import CLUSTER, make_certificates
from tests.run.sweeps import records, run_process, sweep_text, wait_until

SSHD = shutil.which("sshd") or shutil.which("/usr/sbin/sshd")
LACKS = [
    *(["sshd"] if SSHD is None else []),
    *(["asyncssh"] if find_spec("asyncssh") is None else []),
    *(["the rights of root"] if os.geteuid() != 0 else []),
]
pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(bool(LACKS), reason=f"without {', '.join(LACKS)}"),
]
CONFIGURATION = """
ListenAddress 127.0.0.1
Port {port}
HostKey {folder}/host
AuthorizedKeysFile {folder}/user.pub
PidFile {folder}/sshd.pid
StrictModes no
UsePAM no
PasswordAuthentication no
PermitRootLogin prohibit-password
SetEnv PYTHONPATH={path}
"""


@pytest.fixture
def connect_options(tmp_path: Path) -> Iterator[dict[str, Any]]:
    """Start a server that one new key opens; return how asyncssh connects to it."""
    folder = tmp_path / "ssh"
    folder.mkdir()
    Path("/run/sshd").mkdir(exist_ok=True)
    for name in ("host", "user"):
        words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
        subprocess.run(words, check=True)
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    path = os.environ.get("PYTHONPATH", "")
    text = CONFIGURATION.format(port=port, folder=folder, path=path)
    (folder / "configuration").write_text(text)
    words = [str(SSHD), "-D", "-e", "-f", str(folder / "configuration")]
    with (folder / "log").open("wb") as log, subprocess.Popen(words, stderr=log) as server:
        try:
            wait_until(lambda: b"listening" in (folder / "log").read_bytes(), "sshd listens")
            key = str(folder / "user")
            yield {"port": port, "username": "root", "client_keys": [key], "known_hosts": None}
        finally:
            server.terminate()


def test_a_sweep_runs_on_machines_that_ssh_reaches(connect_options, tmp_path):
    content = yaml.safe_load((CLUSTER / "ssh.yaml").read_text())
    content["tls"] = str(make_certificates(tmp_path / "tls"))
    content["options"] |= {"hosts": ["127.0.0.1"] * 3, "connect_options": connect_options}
    content["options"]["worker_options"] |= {
        "n_workers": 1,
        "local_directory": str(tmp_path / "dask"),
        "env": {"MKLDIST_CACHE": str(tmp_path / "cache")},
    }
    profile = tmp_path / "ssh.yaml"
    profile.write_text(yaml.safe_dump(content))
    checked = subprocess.run(
        [sys.executable, "-m", "mkldist", "cluster", "check", profile, "--output", tmp_path,
         "--wait", "300"],
        capture_output=True, text=True, check=False, timeout=600, cwd=tmp_path,
    )  # fmt: skip
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "tls://" in checked.stdout
    assert "2 workers with 2 threads" in checked.stdout
    output = tmp_path / "small"
    code, said = run_process(sweep_text({"level": [1.0]}), output, "--cluster", str(profile))
    assert code == 0, said
    assert len(records(output)) == 2
