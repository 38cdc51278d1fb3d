"""Addresses that others can listen to; connections with certificates of the project's script."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from distributed.utils import get_ip

from mkldist.errors import ClusterError, SpecError, UnfitClusterError
from mkldist.run.cluster import ConnectOptions, check_encrypted, is_loopback, tls_settings
from tests.run.dask_processes import SCRIPT, dask_cluster, make_certificates
from tests.run.sweeps import records, run_here, sweep_text

OPENSSL = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")


@pytest.mark.parametrize(
    "address",
    ["tcp://127.0.0.1:1", "tcp://[::1]:1", "localhost:1", "tls://10.1.2.3:1", "inproc://x"],
)
def test_addresses_of_this_machine_and_encrypted_ones_are_taken(address):
    check_encrypted(address, "here", "Do that")


@pytest.mark.parametrize("address", ["tcp://10.1.2.3:8786", "10.1.2.3:8786", "ws://10.1.2.3:1"])
def test_an_unencrypted_address_that_others_can_reach_is_refused(address):
    with pytest.raises(UnfitClusterError, match=r"^here: found .*without encryption.* Do that\.$"):
        check_encrypted(address, "here", "Do that")
    assert UnfitClusterError.exit_code == 2


def test_a_name_is_loopback_where_all_its_addresses_are(monkeypatch):
    hosts = {"mine": ["127.0.0.1", "::1"], "ours": ["127.0.0.1", "10.1.2.3"]}
    found = {host: [(0, 0, 0, "", (one, 0)) for one in of_host] for host, of_host in hosts.items()}
    monkeypatch.setattr("socket.getaddrinfo", lambda host, _: found[host])
    assert is_loopback("mine")
    assert not is_loopback("ours")


def test_a_remote_scheduler_is_joined_unencrypted_only_if_that_is_allowed():
    with pytest.raises(UnfitClusterError, match=r"--scheduler: .*--allow-unencrypted"):
        ConnectOptions("tcp://10.1.2.3:8786").check()
    ConnectOptions("tcp://10.1.2.3:8786", allow_unencrypted=True).check()
    ConnectOptions("tls://10.1.2.3:8786").check()


@pytest.mark.skipif(is_loopback(get_ip()), reason="this machine has no address for others")
def test_a_cluster_file_whose_scheduler_others_reach_says_so_or_is_refused(tmp_path):
    path = tmp_path / "open.yaml"
    path.write_text(
        "class: distributed.LocalCluster\noptions: {n_workers: 0, processes: false, "
        f"protocol: 'tcp://', host: {get_ip()}, dashboard_address: '127.0.0.1:0'}}\n"
    )
    options = ConnectOptions(cluster_file=path)
    with pytest.raises(UnfitClusterError, match=r"allow_unencrypted: true"), options.connect():
        pass
    path.write_text(path.read_text() + "allow_unencrypted: true\n")
    with options.connect() as client:
        assert client.nthreads() == {}


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tls") / "mine"
    made = subprocess.run([SCRIPT, folder], capture_output=True, text=True, check=True)
    assert f"--tls {folder}" in made.stdout
    return folder


@OPENSSL
def test_the_script_leaves_certificates_that_are_there(certificates):
    again = subprocess.run([SCRIPT, certificates], capture_output=True, text=True, check=False)
    assert again.returncode == 2
    assert "exists already" in again.stderr
    assert (certificates / "key.pem").stat().st_mode & 0o077 == 0


@OPENSSL
@pytest.mark.slow
def test_a_sweep_is_run_over_tls_and_only_with_the_right_certificates(certificates, tmp_path):
    with dask_cluster(certificates) as address:
        assert address.startswith("tls://")
        with pytest.raises(UnfitClusterError, match="no certificates for it"):
            ConnectOptions(address).connect().__enter__()
        others = make_certificates(tmp_path / "others")
        with pytest.raises(ClusterError, match="certificate"):
            ConnectOptions(address, tls=others).connect().__enter__()
        with pytest.raises(ClusterError, match="found"):
            ConnectOptions(address.replace("tls", "tcp")).connect().__enter__()
        output = tmp_path / "small"
        options = ConnectOptions(address, tls=certificates)
        run_here(sweep_text({"uniform": [1.0]}), output, None, connect_options=options)
        assert len(records(output)) == 2


def test_an_unencrypted_address_beside_certificates_is_refused(tmp_path):
    for name in ("ca", "cert", "key"):
        (tmp_path / f"{name}.pem").write_text("")
    with pytest.raises(UnfitClusterError, match="without encryption, beside certificates"):
        ConnectOptions("tcp://127.0.0.1:1", tls=tmp_path).connect().__enter__()


def test_a_folder_without_certificates_is_refused(tmp_path):
    with pytest.raises(SpecError, match=r"ca\.pem: found a file that cannot be read .No such file"):
        tls_settings(tmp_path)


@pytest.mark.parametrize("folder", ["~no-such-user/x", "a\0b", "x" * 5000])
def test_a_folder_that_cannot_be_is_refused_as_one_that_is_not_there(folder):
    with pytest.raises(SpecError, match=r"ca\.pem: found a file that cannot be read"):
        tls_settings(Path(folder))
