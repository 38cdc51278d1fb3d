"""Connections and their clear messages; what is found of this machine and of clusters."""

import gc
import logging
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, suppress
from dataclasses import replace
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import dask
import numba
import pytest
from distributed import Scheduler, SpecCluster
from distributed.deploy.spec import ProcessInterface
from distributed.utils import get_ip

from mkldist.bank.cache import SUFFIX
from mkldist.core.threads import n_processors
from mkldist.errors import ClusterError, SpecError, UnfitClusterError
from mkldist.run import cluster, doctor
from mkldist.run.cluster import (
    DASK_CONFIG,
    ClusterFile,
    ConnectOptions,
    check_answers,
    check_encrypted,
    cluster_class,
    is_loopback,
    joined,
    read_cluster_file,
    started,
    tls_settings,
)
from mkldist.run.doctor import (
    Finding,
    alike,
    clock_finding,
    examine,
    examine_cluster,
    machine_findings,
    place_findings,
    version_findings,
)
from mkldist.run.probe import NO_LOCK, NOT_SEEN, Difference, Environment
from tests.run.dask_processes import SCRIPT, dask_cluster, make_certificates
from tests.run.sweeps import records, run_here, sweep_text

ROOT = Path(__file__).parents[2]


def environment() -> dict[str, str | None]:
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    return {name: os.environ.get(name) for name in names}


def worker_facts():

    import dask

    return (
        environment(),
        [dask.config.get(f"distributed.worker.memory.{name}") for name in ("pause", "terminate")],
    )


@pytest.mark.slow
def test_a_local_cluster_is_pinned_and_a_running_scheduler_can_be_joined():
    with ConnectOptions(n_workers=1).connect() as client:
        variables, limits = client.submit(worker_facts, pure=False).result(timeout=30)
        assert set(variables.values()) == {"1"}
        assert limits == [False, False]
        address = client.scheduler_info()["address"]
        with ConnectOptions(scheduler=address).connect() as second:
            assert second.submit(sum, (1, 2)).result(timeout=30) == 3
        assert client.submit(sum, (2, 2)).result(timeout=30) == 4


@pytest.mark.slow
def test_a_scheduler_that_does_not_answer_is_named(monkeypatch):
    monkeypatch.setattr("mkldist.run.cluster.CONNECT_SECONDS", 0.5)
    with (
        pytest.raises(ClusterError, match=r"tcp://127\.0\.0\.1:1: found no answer"),
        ConnectOptions(scheduler="tcp://127.0.0.1:1").connect(),
    ):
        pass


def test_a_program_that_says_something_else_is_no_scheduler():
    with socket.create_server(("127.0.0.1", 0)) as server, ExitStack() as connections:

        def greet():
            with suppress(OSError):  # the end
                while True:
                    connection = connections.enter_context(server.accept()[0])
                    connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")

        greeting = threading.Thread(target=greet)
        greeting.start()
        options = ConnectOptions(f"tcp://127.0.0.1:{server.getsockname()[1]}")
        with pytest.raises(ClusterError, match="a program that does not speak as schedulers do"):
            options.connect().__enter__()
        server.shutdown(socket.SHUT_RDWR)
        greeting.join()
    gc.collect()  # Dask's failed client, whose end would wait for the start of another


@pytest.mark.slow
def test_a_cluster_file_starts_its_class(tmp_path):
    path = tmp_path / "tiny.yaml"
    path.write_text(
        "class: distributed.LocalCluster\n"
        "options: {n_workers: 1, threads_per_worker: 2, processes: false, "
        "dashboard_address: '127.0.0.1:0'}\n"
    )
    with ConnectOptions(cluster_file=path).connect() as client:
        assert sum(client.nthreads().values()) == 2


def test_a_missing_cluster_file_and_two_places_to_run_are_refused(tmp_path):
    with (
        pytest.raises(SpecError, match="No such file"),
        ConnectOptions(cluster_file=tmp_path / "missing.yaml").connect(),
    ):
        pass
    with (
        pytest.raises(SpecError, match="found both"),
        ConnectOptions(scheduler="tcp://x:1", cluster_file=tmp_path / "a.yaml").connect(),
    ):
        pass


@pytest.mark.slow
def test_workers_that_die_while_they_start_are_an_error_of_the_cluster(tmp_path):
    (tmp_path / "dying.py").write_text("import os; os._exit(1)")
    with (
        dask.config.set({"distributed.worker.preload": [str(tmp_path / "dying.py")]}),
        pytest.raises(ClusterError) as caught,
        ConnectOptions(n_workers=1).connect(),
    ):
        pass
    for word in ("workers", "this machine that did not start", "workers=0", "Repeat the command"):
        assert word in str(caught.value)


class RefusedJob(ProcessInterface):
    """A job that no queue takes."""

    async def start(self):
        raise RuntimeError("sbatch: error: invalid partition")


class RefusedJobs(SpecCluster):
    """A cluster whose jobs are refused."""

    def __init__(self, **options):
        scheduler = {"cls": Scheduler, "options": {"dashboard_address": "127.0.0.1:0"}}
        super().__init__(scheduler=scheduler, worker={"cls": RefusedJob, "options": {}}, **options)


@pytest.mark.slow
def test_what_refuses_jobs_is_told(tmp_path):
    path = tmp_path / "refused.yaml"
    path.write_text(f"class: {__name__}.RefusedJobs\nworkers: 1\nallow_unencrypted: true\n")
    *_, last = examine_cluster(ConnectOptions(cluster_file=path), {}, 2.0)
    assert last.hinders
    assert "invalid partition" in last.words


def test_isolated_runs_have_one_worker_of_this_machine():
    asked = ConnectOptions(n_workers=4, threads_per_worker=2)
    assert asked.of_execution("isolated").expected_threads() == 1
    assert asked.of_execution("shared") == asked
    elsewhere = ConnectOptions("tcp://host:1")
    assert elsewhere.of_execution("isolated") == elsewhere


def test_threads_are_counted_over_workers_as_far_as_they_are_known(tmp_path, monkeypatch):
    monkeypatch.setattr("mkldist.run.cluster.n_processors", lambda: 8)
    assert ConnectOptions().expected_threads() == 8
    assert ConnectOptions(threads_per_worker=3).expected_threads() == 6
    assert ConnectOptions(n_workers=5, threads_per_worker=2).expected_threads() == 10
    assert ConnectOptions("tcp://elsewhere").expected_threads() == 0
    path = tmp_path / "cluster.yaml"
    path.write_text("class: dask_jobqueue.SLURMCluster\nworkers: 12")
    assert ConnectOptions(cluster_file=path).expected_threads() == 12
    assert ConnectOptions(cluster_file=path, n_workers=3).expected_threads() == 3


@pytest.mark.slow
def test_only_a_cluster_that_replaces_workers_gives_lost_ones_up(tmp_path):
    name, path = "distributed.deploy.lost-worker-timeout", tmp_path / "tiny.yaml"
    usual = dask.config.get(name)
    path.write_text(
        "class: distributed.LocalCluster\n"
        "options: {n_workers: 1, processes: false, dashboard_address: '127.0.0.1:0'}\n"
    )
    with ConnectOptions(cluster_file=path).connect():
        assert dask.config.get(name) == "365 days"
    with ConnectOptions(cluster_file=path, n_workers=1).connect():
        assert dask.config.get(name) == usual


def test_the_settings_for_ones_own_scheduler_are_those_of_a_local_cluster():
    with dask.config.set(DASK_CONFIG):
        expected = {key: dask.config.get(key) for key in DASK_CONFIG}
    given = dask.config.collect(paths=[str(ROOT / "cluster" / "dask.yaml")], env={})
    assert {key: dask.config.get(key, config=given) for key in DASK_CONFIG} == expected


@pytest.mark.slow
def test_tasks_that_nobody_awaits_print_nothing_while_a_client_is_open(scheduler, caplog):
    of_asyncio = logging.getLogger("asyncio")
    with caplog.at_level(logging.WARNING, "asyncio"):
        with joined(ConnectOptions(scheduler=scheduler)):
            of_asyncio.error("Task exception was never retrieved")
        assert not caplog.records
        of_asyncio.error("of others")
        assert [record.message for record in caplog.records] == ["of others"]


# The usual port of the dashboard may be taken by another scheduler of this machine.
LOCAL = "class: distributed.LocalCluster\noptions: {dashboard_address: ':0', "
JOBQUEUE = pytest.mark.skipif(
    find_spec("dask_jobqueue") is None, reason="dask-jobqueue is not installed"
)


PROFILES = sorted(path for path in (ROOT / "cluster").glob("*.yaml") if path.name != "dask.yaml")


@pytest.mark.parametrize("path", PROFILES, ids=lambda path: path.stem)
def test_the_cluster_files_of_the_project_are_sound(path):
    description = read_cluster_file(path)
    assert description.options
    assert not description.allow_unencrypted
    assert bool(description.tls) == (path.stem != "local")
    if description.cls.startswith("distributed."):
        assert callable(cluster_class(description))


def test_no_command_of_the_project_shows_a_dashboard_to_other_machines():
    files = [*(ROOT / "cluster").rglob("*"), *(ROOT / "docs" / "howto").glob("*.md")]
    texts = [path.read_text() for path in files if path.is_file()]
    lines = [line for text in texts for line in text.splitlines()]
    private = "--dashboard-address 127.0.0.1:0"
    commands = [line for line in lines if re.search("dask (scheduler|worker) .*--", line)]
    assert len(commands) == 8
    assert [line for line in commands if "$private" not in line and private not in line] == []
    said = {line.strip().split("#")[0].rstrip() for line in lines if "private=" in line}
    assert said == {f'private="{private}"'}


@pytest.mark.slow
@JOBQUEUE
@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("slurm", ["#SBATCH -n 1", "#SBATCH -N 1", "#SBATCH --cpus-per-task=8", "#SBATCH --mem=32G",
                   "#SBATCH -t 04:00:00"]),
        ("pbs", ["#PBS -l select=1:ncpus=8:mem=32GB", "#PBS -l walltime=04:00:00"]),
        ("lsf", ["#BSUB -n 8", '#BSUB -R "span[hosts=1]"', "#BSUB -M 34360", "#BSUB -W 04:00"]),
        ("sge", ["#$ -l h_rt=04:00:00", "#$ -pe smp 8"]),
    ],
)  # fmt: skip
def test_a_job_scheduler_is_given_the_job_that_its_file_describes(tmp_path, name, lines):
    """No scheduler of jobs is asked: the class of dask-jobqueue writes the script."""
    folder = make_certificates(tmp_path / "tls")
    description = read_cluster_file(ROOT / "cluster" / f"{name}.yaml")
    with dask.config.set(tls_settings(folder)), started(replace(description, workers=None)) as here:
        job = here.job_script()
    assert [line for line in lines if line not in job.splitlines()] == []
    for word in (
        "tls://",
        f"--tls-key {folder}/key.pem",
        "--nthreads 1 --memory-limit 4.00GiB --nworkers 8",
        "--lifetime 3h50m",
        "--dashboard-address 127.0.0.1:0",
        "OPENBLAS_NUM_THREADS=1",
        "MKLDIST_CACHE=",
    ):
        assert word in job


@pytest.mark.slow
@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("class: [", "text that is not YAML"),
        (f"class: {'[' * 3000}{']' * 3000}", "text that is not YAML: maximum recursion"),
        ("class: a.B\noptions: {a: 2020-13-45}", "not YAML: month must be in 1"),
        ("class: a.B\nworkers: 2020-01-01 99:99:99", "not YAML: hour must be in 0"),
        (f"class: a.B\nworkers: {'1' * 5000}", "not YAML: Exceeds the limit"),
        (f"class: a.B\noptions: {{a: 1{':00' * 400}.0}}", "not YAML: int too large"),
        ("class: a.B\noptions: {a: !!timestamp x}", "not YAML"),
        ("class: a.B\noptions: {a: !!bool x}", "not YAML"),
        ("class: ..x", "which cannot be imported"),
        ("- a", "no mapping"),
        ("clas: x", "Did you mean 'class'"),
        ("options: {}", "such as dask_jobqueue"),
        ("class: a.B\noptions: 3", "keyword arguments"),
        ("class: a.B\noptions: [S3CRET]", "keyword arguments"),
        ('class: a.B\noptions: {password: "S3CRET', "not YAML: while scanning"),
        ("class: a.B\nworkers: 0", "a number of workers"),
        ("class: a.B\nworkers: true", "a number of workers"),
        ("class: a.B\ntls: 3", "tls: found 3; expected a folder of certificates"),
        ("class: a.B\nallow_unencrypted: 2", "allow_unencrypted: found 2; expected true or false"),
        ("class: nowhere.Cluster", "nowhere.Cluster, which cannot be imported"),
        ("class: Cluster", "Cluster, which cannot be imported"),
    ],
)
def test_a_bad_cluster_file_is_refused(tmp_path, content, message):
    path = tmp_path / "bad.yaml"
    path.write_text(content)
    with pytest.raises(SpecError, match=message) as caught:
        cluster_class(read_cluster_file(path))
    assert "S3CRET" not in str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("content", "where", "said"),
    [
        (
            LOCAL + "n_workers: 1, no_such: 1}",
            r"mine\.yaml: options",
            "TypeError: .*unexpected keyword argument 'no_such'",
        ),
        (
            LOCAL + "n_workers: 1, memory_limit: 4 GuB}",
            r"mine\.yaml: options",
            "ValueError: Could not interpret 'GuB' as a byte unit",
        ),
        pytest.param(
            "class: dask_jobqueue.SLURMCluster\noptions: {cores: 1, memory: 4GiB, no_such: 1}",
            r"mine\.yaml: options",
            "ValueError: .*unexpected keyword argument 'no_such'",
            marks=JOBQUEUE,
        ),
        pytest.param(
            "class: dask_jobqueue.SLURMCluster\noptions: {cores: 1}",
            r"mine\.yaml: options",
            "ValueError: You must specify how much cores and memory",
            marks=JOBQUEUE,
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:unclosed cluster:ResourceWarning")
def test_options_that_a_class_refuses_are_one_message(
    tmp_path, monkeypatch, capfd, content, where, said
):
    monkeypatch.chdir(tmp_path)
    Path("mine.yaml").write_text(content)
    pattern = rf"^{where}: found .* that [\w.]+ refuses \(.*{said}"
    options = ConnectOptions(cluster_file=Path("mine.yaml"))
    with pytest.raises(SpecError, match=pattern), options.connect():
        pass
    gc.collect()  # Dask warns of clusters that have half started when they are forgotten
    assert capfd.readouterr() == ("", "")


def test_a_cluster_that_does_not_start_for_another_reason_is_no_mistake_of_the_file(
    tmp_path, monkeypatch
):
    lines = ["class Mine:", "    def __init__(self):", "        raise OSError('no\\n  sbatch')"]
    (tmp_path / "does_not_start.py").write_text("\n".join(lines))
    monkeypatch.syspath_prepend(tmp_path)
    said = "Mine that did not start: OSError: no sbatch; .* Repeat the command"
    with pytest.raises(ClusterError, match=said):
        started(ClusterFile("mine.yaml", "does_not_start.Mine"))


def test_a_cluster_class_leaves_the_handlers_of_signals(tmp_path, monkeypatch):
    lines = "import signal", "signal.signal(signal.SIGINT, signal.SIG_IGN)", "class Mine: pass"
    (tmp_path / "sets_a_handler.py").write_text("\n".join(lines))
    monkeypatch.syspath_prepend(tmp_path)
    before = signal.getsignal(signal.SIGINT)
    found = cluster_class(ClusterFile("mine.yaml", "sets_a_handler.Mine", None, {}))
    assert found.__name__ == "Mine"
    assert signal.getsignal(signal.SIGINT) is before


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


@pytest.mark.slow
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


@pytest.mark.parametrize("folder", ["not-there", "~no-such-user/x", "a\0b", "x" * 5000])
def test_a_folder_without_certificates_is_refused_as_one_that_cannot_be(folder):
    with pytest.raises(SpecError, match=r"ca\.pem: found a file that cannot be read"):
        tls_settings(Path(folder))


@pytest.mark.parametrize(
    ("address", "said"),
    [
        (
            "nonsense",
            "scheduler nonsense: found no host and port.*; expected an address such as tls://",
        ),
        (
            "tcp://host:port",
            "scheduler tcp://host:port: found no address .Port could",
        ),
        (
            "ftp://host:8786",
            "scheduler ftp://host:8786: found no host and port of a scheme of Dask; expected an",
        ),
        ("wss://127.0.0.1:1", r"no answer within 0\.3 s: connection refused"),
        ("tcp://127.0.0.1:1", r"no answer within 0\.3 s: connection refused"),
        ("tcp://a-name-of-no-host.invalid:8786", r"no answer within 0\.3 s: .*name"),
    ],
)
def test_an_address_without_a_scheduler_is_told(monkeypatch, address, said):
    monkeypatch.setattr(cluster, "CONNECT_SECONDS", 0.3)
    with pytest.raises(ClusterError, match=said):
        check_answers(address)


def test_a_scheduler_that_is_about_to_start_is_waited_for():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]

    def listen():
        time.sleep(0.3)
        with socket.create_server(("127.0.0.1", port)) as server:
            connection, _ = server.accept()
            connection.sendall(b"a greeting")
            connection.close()

    starting = threading.Thread(target=listen, daemon=True)
    starting.start()
    check_answers(f"tcp://127.0.0.1:{port}")
    check_answers("inproc://is/not/tried:1")
    starting.join()


@pytest.mark.parametrize("closes", [False, True])
def test_a_program_that_is_no_scheduler_is_told(monkeypatch, closes):
    """It accepts connections by the system, and says nothing; Dask would wait without end."""
    monkeypatch.setattr(cluster, "CONNECT_SECONDS", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        if closes:
            threading.Thread(target=lambda: server.accept()[0].close(), daemon=True).start()
        with pytest.raises(ClusterError, match="a program that says nothing"):
            check_answers(address)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """Return the node cache, and write 2 pieces in place of 64."""
    monkeypatch.setenv("MKLDIST_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(doctor, "PIECES", 2)
    return tmp_path / "cache"


def findings(folder) -> dict[str, Finding]:
    return {finding.name: finding for finding in examine(folder)}


@pytest.mark.slow
@pytest.mark.usefixtures("cache")
def test_a_sound_machine_is_described_and_nothing_stays(tmp_path, cache):
    folder = tmp_path / "results"
    folder.mkdir()
    cache.mkdir()
    (cache / f"one{SUFFIX}").write_bytes(bytes(2**29))
    found = findings(folder)
    assert not [one for one in found.values() if one.hinders]
    for package in ("numpy", "zarr", "distributed"):
        assert f"{package} {metadata.version(package)}" in found["packages"].words
    assert found["processors"].words.startswith(str(n_processors()))
    assert "threads" in found["BLAS"].words
    assert str(folder) in found["disk"].words
    assert "MiB/s written and flushed" in found["disk speed"].words
    assert found["locks"].words == "work"
    assert found["node cache"].words == f"512.00 MiB of 32.00 GiB in {cache}"
    assert list(folder.iterdir()) == []


@pytest.mark.usefixtures("cache")
def test_missing_packages_hinder(tmp_path, monkeypatch):
    monkeypatch.setattr(doctor, "PACKAGES", ("numpy", "no-such-package"))
    found = findings(tmp_path)["packages"]
    assert found.hinders
    assert "no-such-package" in found.advice


@pytest.mark.usefixtures("cache")
def test_a_disk_that_refuses_hinders(tmp_path, monkeypatch):
    def refused(*given):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(doctor, "write_file", refused)
    found = findings(tmp_path)
    assert found["disk"].hinders
    assert "No space left" in found["disk"].words
    assert "locks" not in found


@pytest.mark.usefixtures("cache")
def test_little_memory_slow_disks_and_uncompiled_code_are_met_with_advice(tmp_path, monkeypatch):
    monkeypatch.setattr(doctor, "available_memory", lambda: 2**30)
    monkeypatch.setattr(doctor, "SLOW", float("inf"))
    found = findings(tmp_path)
    assert found["memory"].words.startswith("1.00 GiB of ")
    assert "--memory" in found["memory"].advice
    assert "outputs.banks" in found["disk speed"].advice


@pytest.mark.usefixtures("cache")
def test_numbas_switch_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(numba.config, "DISABLE_JIT", 1)
    assert "NUMBA_DISABLE_JIT" in findings(tmp_path)["compiled code"].words


TINY = (
    "class: distributed.LocalCluster\nworkers: {workers}\n"
    "options: {{n_workers: 2, threads_per_worker: 1, dashboard_address: '127.0.0.1:0'}}\n"
)


def examined(options: ConnectOptions, folder: Path, wait: float = 30) -> dict[str, Finding]:
    places = {"results": str(folder), "banks": f"memory://{folder.name}"}
    return {one.name: one for one in examine_cluster(options, places, wait)}


@pytest.mark.slow
def test_a_scheduler_without_the_same_mkldist_on_its_worker_is_told(tmp_path):
    older = tmp_path / "mkldist-0.0.1.dist-info"
    older.mkdir()
    (older / "METADATA").write_text("Metadata-Version: 2.1\nName: mkldist\nVersion: 0.0.1\n")
    with ConnectOptions(n_workers=1).connect() as client:
        options = ConnectOptions(client.scheduler_info()["address"])
        found = examined(options, tmp_path)
        assert found["workers"].words == "1 worker with 1 thread"
        assert found["versions"].words.endswith("everywhere")
        # The store is of one process alone, as a folder of a disk of one machine would be.
        assert [name for name, one in found.items() if one.hinders] == ["banks"]
        assert NOT_SEEN in found["banks"].words
        (worker,) = client.run(lambda: sys.path.insert(0, str(tmp_path)))
        found = examined(options, tmp_path)
    assert list(found) == ["scheduler", "workers", "versions"]
    assert found["versions"].words.startswith(f"worker {worker}: version 0.0.1 of mkldist; ")


@pytest.mark.slow
def test_a_profile_is_started_checked_and_stopped(tmp_path):
    profile = tmp_path / "tiny.yaml"
    profile.write_text(TINY.format(workers=2).replace("n_workers: 2", "processes: false"))
    found = examined(ConnectOptions(cluster_file=profile), tmp_path)
    assert not [one for one in found.values() if one.hinders]
    assert found["workers"].words == "2 workers with 2 threads"
    assert f"{tmp_path}, read and written by 2 workers" in found["results"].words
    assert list(tmp_path.iterdir()) == [profile]


def test_workers_that_do_not_join_are_told(tmp_path):
    profile = tmp_path / "tiny.yaml"
    profile.write_text(TINY.format(workers="null").replace("n_workers: 2", "n_workers: 0"))
    found = examined(ConnectOptions(cluster_file=profile), tmp_path, wait=0.2)
    assert list(found) == ["scheduler", "workers"]
    assert found["workers"].words == "none joined within 0.2 s"
    assert found["workers"].hinders


GIB = 2**30
ONE = Environment("a", 4, 8 * GIB, "/scratch", 100 * GIB, False, (), {})
TWO = {"tcp://a:1": ONE, "tcp://a:2": ONE}
THREE = {**TWO, "tcp://b:1": replace(ONE, host="b")}


def test_equal_versions_are_one_finding_and_each_difference_is_a_fault():
    [same] = version_findings([], 2)
    assert same.words.startswith("Python 3.")
    assert not same.hinders
    older = [Difference(f"tcp://a:{i}", "numpy", "version 1", "version 2") for i in range(5)]
    lacks = Difference("scheduler", "mkldist", "no installation", "version 2")
    found = list(version_findings([*older, lacks], 1))
    assert [one.hinders for one in found] == [False, True]
    assert found[0].words == (
        "worker tcp://a:0, worker tcp://a:1, worker tcp://a:2, … 2 more: "
        "version 1 of numpy; version 2 here; sweeps leave such workers out"
    )
    assert all(one.hinders for one in version_findings(older, 0))
    assert found[1].words == "scheduler: no installation of mkldist; version 2 here"


def test_a_folder_that_a_worker_does_not_share_is_no_fault_but_a_store_that_none_reaches_is():
    wrong = {"tcp://a:1": "", "tcp://b:1": NOT_SEEN}
    good, other = place_findings("banks", "/b", wrong)
    assert good.words == "/b, read and written by 1 worker"
    assert (good.hinders, other.hinders) == (False, False)
    instead = "each machine builds banks for itself instead"
    assert other.words == f"worker tcp://b:1: /b: {NOT_SEEN}; {instead}"
    [records] = place_findings("results", "/r", {"tcp://a:1": NOT_SEEN})
    assert records.words.endswith("workers fetch the data through the scheduler instead")
    assert [one.hinders for one in place_findings("banks", "s3://b", wrong)] == [False, False]
    [unreached] = place_findings("banks", "s3://b", {"tcp://a:1": NOT_SEEN})
    assert unreached.hinders
    [unlocked] = place_findings("results", "/r", {"tcp://a:1": NO_LOCK})
    assert not unlocked.hinders
    assert "one machine alone" in unlocked.advice


LIMITED = {**TWO, "tcp://b:1": replace(ONE, host="b", limits=("pause", "terminate"))}


@pytest.mark.parametrize(
    ("found", "threads", "name", "words", "advised"),
    [
        (THREE, {}, "node cache", ["a, b: /scratch, with at least the 32.00 GiB free"], False),
        ({"w": replace(ONE, cache_bytes=5 * GIB)}, {}, "node cache", ["with less than"], False),
        ({"w": replace(ONE, cache_bytes=-1)}, {}, "node cache", ["cannot be written"], True),
        ({"w": replace(ONE, cache_is_remote=True)}, {}, "node cache", ["other machines"], True),
        (TWO, {"tcp://a:1": 3, "tcp://a:2": 3}, "threads", ["a: 6 threads on 4 proc"], True),
        (THREE, {}, "threads", ["a: 2 threads on 4 processors", "b: 1 thread on 4"], False),
        (THREE, {}, "memory", ["at least 4.00 GiB for each thread, on a"], False),
        (TWO, {"tcp://a:1": 4, "tcp://a:2": 4}, "memory", ["at least 1.00 GiB"], True),
        (TWO, {}, "settings", [], False),
        (LIMITED, {}, "settings", ["worker tcp://b:1: memory limits of Dask hold: pause"], True),
    ],
)
def test_machines_that_are_alike_are_told_together(found, threads, name, words, advised):
    named = [one for one in machine_findings(found, threads) if one.name == name]
    assert len(named) == len(words)
    assert all(part in one.words for one, part in zip(named, words, strict=True))
    assert any(one.advice for one in named) == advised
    assert not any(one.hinders for one in named)


@pytest.mark.parametrize(
    ("seconds", "said", "advised", "hinders"),
    [
        (0.0, "within 0.1 s", False, False),
        (61.0, "61 s away", True, False),
        (3000.0, "3000 s", True, True),
    ],
)
def test_clocks_may_differ_by_a_minute(seconds, said, advised, hinders):
    one = clock_finding({"tcp://a:1": 0.0, "tcp://b:1": seconds})
    assert said in one.words
    assert (bool(one.advice), one.hinders) == (advised, hinders)


def test_few_processes_are_named_and_alike_states_are_one_finding():
    states = [(f"tcp://a:{i}", "cannot be examined", "", True) for i in (1, 2)]
    [one] = alike("workers", states)
    assert one == Finding(
        "workers", "worker tcp://a:1, worker tcp://a:2: cannot be examined", "", True
    )
