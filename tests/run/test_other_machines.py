"""Workers on other machines: without a shared disk, behind a link that is cut, through SSH."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml

from mkldist.errors import EXIT_INTERNAL
from tests.run.dask_processes import CLUSTER, dask_cluster, dask_workers, make_certificates
from tests.run.sweeps import (
    end,
    misbehaving_methods,
    record_times,
    records,
    run_here,
    run_process,
    solutions,
    start_process,
    sweep_text,
    wait_until,
)

pytestmark = pytest.mark.cluster

UNSHARE = shutil.which("unshare")
HIDE = 'mount -t tmpfs none "$0" && exec "$@"'
SLOW = sweep_text({"slow": [float(c) for c in range(1, 13)]}, execution="isolated", repeats=2)
QUICK = sweep_text({"level": [1.0, 10.0], "uniform": [1.0]}, backend="{backend}")


def hiding(folder: Path) -> list[str]:
    """Return the words that run a command which sees an empty disk in place of a folder."""
    return [str(UNSHARE), "--mount", "sh", "-c", HIDE, str(folder)]


def folder_of_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of outputs, banks and node caches; each worker has one of its own there."""
    found = tmp_path / "disk"
    found.mkdir()
    if UNSHARE is None or subprocess.run([*hiding(found), "true"], capture_output=True).returncode:
        pytest.skip("mount namespaces are not allowed")
    monkeypatch.setenv("MKLDIST_CACHE", str(found / "cache"))
    return found


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return folder_of_each(tmp_path, monkeypatch)


@contextmanager
def machines(folder: Path) -> Iterator[list[str]]:
    """Yield the options of a sweep on two workers, each with a disk of its own."""
    certificates = make_certificates(folder.parent / "tls")
    with dask_cluster(certificates, through=[hiding(folder)] * 2) as address:
        yield ["--scheduler", address, "--tls", str(certificates)]


def workers() -> list[psutil.Process]:
    """Return the processes of workers, which their nannies started."""
    found = []
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):  # one that has ended
            if "multiprocessing.spawn" in " ".join(process.cmdline()):
                found.append(process)
    return found


def sweep(text: str, output: Path, options: list[str]) -> str:
    process = start_process(text, output, *options)
    try:
        said, _ = process.communicate(timeout=600)
    finally:
        end(process)
    assert process.returncode == 0, said
    return " ".join(said.split())


@pytest.mark.parametrize("backend", ["memory", "mmap", "sharded"])
def test_the_results_are_those_of_one_machine_to_the_bit(folder, tmp_path, backend):
    text = QUICK.replace("{backend}", backend)
    run_here(text, tmp_path / "here" / "small", None)
    with machines(folder) as options:
        said = sweep(text, folder / "small", options)
        again = sweep(text, folder / "small", options)
    assert f"workers do not share {folder}/small: they fetch the data from the scheduler" in said
    assert ("each machine builds banks for itself" in said) == (backend != "sharded")
    assert "Nothing to do" in again
    assert solutions(folder / "small") == solutions(tmp_path / "here" / "small")
    assert len(solutions(folder / "small")) == 6


def test_kills_of_a_worker_and_of_the_coordinator_lose_no_record(folder, tmp_path):
    with misbehaving_methods():
        run_here(SLOW, tmp_path / "here" / "small", None)
    output = folder / "small"
    with machines(folder) as options:
        process = start_process(SLOW, output, *options)
        try:
            wait_until(lambda: len(record_times(output)) >= 4, "4 runs are recorded", process)
            workers()[0].send_signal(signal.SIGKILL)
            n = len(record_times(output))
            wait_until(lambda: len(record_times(output)) >= n + 4, "4 more are", process)
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
        finally:
            end(process)
        before = record_times(output)
        assert 8 <= len(before) < 24
        sweep(SLOW, output, options)
    assert solutions(output) == solutions(tmp_path / "here" / "small")
    after = record_times(output)
    assert {name: after[name] for name in before} == before
    assert not [path for path in output.rglob("*") if "partial" in path.name]


def test_the_check_of_a_cluster_tells_that_it_shares_nothing(folder):
    (folder / "results").mkdir()
    with machines(folder) as options:
        words = [sys.executable, "-m", "mkldist", "cluster", "check", *options, "--json"]
        done = subprocess.run(
            [*words, "--output", str(folder / "results"), "--wait", "30"],
            capture_output=True, text=True, check=False, timeout=600,
        )  # fmt: skip
    found = {one["name"]: one for one in json.loads(done.stdout)["findings"]}
    assert done.returncode == 0
    assert "through the scheduler instead" in found["results"]["words"]
    assert "each machine builds banks for itself" in found["banks"]["words"]


IP = shutil.which("ip")
NAMESPACE, HERE, THERE = f"mkldist-{os.getpid()}", "10.213.7.1", "10.213.7.2"
NEAR, FAR = f"mkln{os.getpid() % 10**6}", f"mklf{os.getpid() % 10**6}"
LONG = sweep_text({"slow": [float(c) for c in range(1, 31)]}, execution="isolated", repeats=1)


def ip(*words: str) -> bool:
    """Run a command of iproute2; return False if the system refuses it."""
    done = subprocess.run([str(IP), *words], capture_output=True, check=False)
    return done.returncode == 0


@contextmanager
def namespace() -> Iterator[bool]:
    """Make a namespace that one link joins to this one; yield False if that is not allowed."""
    try:
        made = IP is not None and ip("netns", "add", NAMESPACE)
        yield (
            made
            and ip("link", "add", NEAR, "type", "veth", "peer", "name", FAR, "netns", NAMESPACE)
            and ip("addr", "add", f"{HERE}/30", "dev", NEAR)
            and ip("link", "set", NEAR, "up")
            and ip("-n", NAMESPACE, "addr", "add", f"{THERE}/30", "dev", FAR)
            and ip("-n", NAMESPACE, "link", "set", FAR, "up")
            and ip("-n", NAMESPACE, "link", "set", "lo", "up")
        )
    finally:
        if IP is not None:
            ip("link", "del", NEAR)
            ip("netns", "del", NAMESPACE)


def cut(seconds: float) -> None:
    """Take the link down for some seconds."""
    assert ip("link", "set", NEAR, "down")
    time.sleep(seconds)
    assert ip("link", "set", NEAR, "up")


@pytest.fixture(scope="module")
def inside() -> Iterator[list[str]]:
    """Return the words that run a command on the other side of the link."""
    with namespace() as made:
        if not made:
            pytest.skip("without iproute2, or network namespaces are not allowed")
        yield [str(IP), "netns", "exec", NAMESPACE]


@pytest.mark.parametrize("seconds", [5, 60])
def test_workers_behind_a_cut_link_return_or_others_do_and_no_result_differs(
    inside, tmp_path, seconds
):
    certificates = make_certificates(tmp_path / "tls")
    output, expected = tmp_path / "small", tmp_path / "undisturbed"
    with misbehaving_methods():
        run_here(LONG, expected, None)
    with dask_cluster(certificates, host=HERE, n_workers=2, through=[inside]) as address:
        process = start_process(LONG, output, "--scheduler", address, "--tls", str(certificates))
        try:
            wait_until(lambda: len(record_times(output)) >= 4, "4 runs are recorded", process)
            before = record_times(output)
            cut(seconds)
            # A connection of Dask ends after 30 s without an answer, and its worker with it.
            anew = dask_workers(certificates, n_workers=2, through=[inside])
            with anew if seconds >= 30 else nullcontext():
                said, _ = process.communicate(timeout=600)
        finally:
            end(process)
    assert process.returncode == 0, said
    assert solutions(output) == solutions(expected)
    after = record_times(output)
    assert {name: after[name] for name in before} == before


def test_a_scheduler_behind_a_cut_link_is_lost_or_found_and_the_command_resumes(inside, tmp_path):
    certificates = make_certificates(tmp_path / "tls")
    output = tmp_path / "small"
    with dask_cluster(certificates, host=HERE, n_workers=2) as address:
        words = ["--scheduler", address, "--tls", str(certificates)]
        process = start_process(LONG, output, *words, through=inside)
        try:
            wait_until(lambda: len(record_times(output)) >= 4, "4 runs are recorded", process)
            cut(30)
            said, _ = process.communicate(timeout=600)
        finally:
            end(process)
        if process.returncode:
            assert process.returncode == EXIT_INTERNAL, said
            assert "Repeat the command" in said
            before = record_times(output)
            process = start_process(LONG, output, *words, through=inside)
            said, _ = process.communicate(timeout=600)
            assert process.returncode == 0, said
            after = record_times(output)
            assert {name: after[name] for name in before} == before
    assert len(solutions(output)) == 30


SSHD = shutil.which("sshd") or shutil.which("/usr/sbin/sshd")
LACKS = [
    *(["sshd"] if SSHD is None else []),
    *(["asyncssh"] if find_spec("asyncssh") is None else []),
    *(["the rights of root"] if os.geteuid() != 0 else []),
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


@pytest.mark.skipif(bool(LACKS), reason=f"without {', '.join(LACKS)}")
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
