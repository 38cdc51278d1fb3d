"""Cluster files: the classes that they name, and options that these refuse."""

from __future__ import annotations

import gc
import shutil
import signal
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import dask
import pytest

from mkldist.errors import ClusterError, SpecError
from mkldist.run.cluster import (
    ClusterFile,
    ConnectOptions,
    cluster_class,
    read_cluster_file,
    started,
    tls_settings,
)
from tests.run.dask_processes import make_certificates

ROOT = Path(__file__).parents[2]
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
    texts = [path.read_text() for path in (ROOT / "cluster").rglob("*") if path.is_file()]
    lines = [line for text in texts for line in text.splitlines()]
    commands = [line for line in lines if "DASK_CONFIG=cluster/dask.yaml dask" in line]
    assert len(commands) == 6
    assert [line for line in commands if not line.endswith("$private")] == []
    [said] = {line.strip() for line in lines if line.strip().startswith("private=")}
    assert said == 'private="--dashboard-address 127.0.0.1:0"'


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


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("class: [", "text that is not YAML"),
        (f"class: {'[' * 3000}{']' * 3000}", "too deep to read"),
        ("class: a.B\noptions: {a: 2020-13-45}", "that there is not .month must be in 1"),
        ("class: a.B\nworkers: 2020-01-01 99:99:99", "that there is not .hour must be in 0"),
        (f"class: a.B\nworkers: {'1' * 5000}", "that there is not .Exceeds the limit"),
        (f"class: a.B\noptions: {{a: 1{':00' * 400}.0}}", "that there is not .int too large"),
        ("class: a.B\noptions: {a: !!timestamp x}", "that there is not"),
        ("class: a.B\noptions: {a: !!bool x}", "that there is not"),
        ("class: ..x", "which cannot be imported"),
        ("- a", "no mapping"),
        ("clas: x", "Did you mean 'class'"),
        ("options: {}", "such as dask_jobqueue"),
        ("class: a.B\noptions: 3", "keyword arguments"),
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
    with pytest.raises(SpecError, match=message):
        cluster_class(read_cluster_file(path))


@pytest.mark.parametrize(
    ("content", "where", "said"),
    [
        (
            LOCAL + "n_workers: 1, no_such: 1}",
            r"mine\.yaml: options\.no_such",
            "TypeError: .*unexpected keyword argument 'no_such'",
        ),
        (
            LOCAL + "n_worker: 1}",
            r"mine\.yaml: options\.n_worker",
            "Did you mean 'n_workers'",
        ),
        (
            LOCAL + "n_workers: 1, memory_limit: 4 GuB}",
            r"mine\.yaml: options",
            "ValueError: Could not interpret 'GuB' as a byte unit",
        ),
        pytest.param(
            "class: dask_jobqueue.SLURMCluster\noptions: {cores: 1, memory: 4GiB, no_such: 1}",
            r"mine\.yaml: options\.no_such",
            "TypeError: .*unexpected keyword argument 'no_such'",
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
