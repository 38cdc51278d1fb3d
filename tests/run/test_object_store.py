"""Banks in a real S3 server of this machine, written and read by workers; results copied to it."""

import json
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml

from mkldist.run.upkeep import verify
from tests.run.sweeps import end, run_process, solutions, start_process, sweep_text
from tests.run.test_other_machines import folder_of_each, machines

MISSING = [name for name in ("moto", "s3fs") if find_spec(name) is None]
pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(bool(MISSING), reason=f"without the packages {', '.join(MISSING)}"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # of the server
]

ROOT = Path(__file__).parents[2]
BUCKET = "mkldist-test"
SWEEP = sweep_text({"level": [1.0, 10.0]}, backend="stream")


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """Start a server with an empty bucket; have this process and those that it starts find it."""
    from moto.server import ThreadedMotoServer

    here = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    here.start()
    address = "http://{}:{}".format(*here.get_host_and_port())
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {
            "AWS_ENDPOINT_URL": address,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_DEFAULT_REGION": "us-east-1",
        }.items():
            patch.setenv(name, value)
        store().mkdir(BUCKET)
        yield address
    here.stop()


def store() -> Any:
    import s3fs

    return s3fs.S3FileSystem(skip_instance_cache=True)


def sweep(output: Path, banks: str) -> str:
    code, said = run_process(SWEEP, output, "--set", f'outputs.banks="{banks}"')
    assert code == 0, said
    return said


def test_banks_in_a_bucket_give_the_results_of_a_folder_and_are_mended(server, tmp_path):
    banks = f"s3://{BUCKET}/banks"
    sweep(tmp_path / "local", str(tmp_path / "banks"))
    sweep(tmp_path / "remote", banks)
    assert solutions(tmp_path / "remote") == solutions(tmp_path / "local")
    blocks = [name for name in store().find(f"{BUCKET}/banks") if "/c/" in name]
    assert blocks
    store().pipe_file(blocks[0], store().cat_file(blocks[0])[:-7])  # cut short
    assert len(damaged_banks(tmp_path / "remote")) == 1
    sweep(tmp_path / "again", banks)
    assert solutions(tmp_path / "again") == solutions(tmp_path / "local")
    assert damaged_banks(tmp_path / "again") == ()


def test_a_misspelt_bucket_is_refused_by_name_and_not_made(server, tmp_path):
    banks = "s3://mkldist-tset/banks"
    code, said = run_process(SWEEP, tmp_path / "out", "--set", f'outputs.banks="{banks}"')
    assert code == 2, said
    assert f"{banks}: found no bucket 'mkldist-tset'" in " ".join(said.split())
    assert "mkldist-tset" not in store().ls("")


def damaged_banks(output: Path) -> tuple[str, ...]:
    [banks] = [one for one in verify(output) if one.kind == "banks"]
    assert banks.files > 1
    return banks.damaged


def test_workers_that_share_a_bucket_alone_take_data_and_banks_from_it(
    server, tmp_path, monkeypatch
):
    folder, banks = folder_of_each(tmp_path, monkeypatch), f"s3://{BUCKET}/of-machines"
    sweep(tmp_path / "local", str(tmp_path / "banks"))
    with machines(folder) as options:
        words = [*options, "--set", f'outputs.banks="{banks}"']
        process = start_process(SWEEP, folder / "small", *words)
        try:
            said, _ = process.communicate(timeout=600)
        finally:
            end(process)
    assert process.returncode == 0, said
    assert f"fetch the data from {banks}" in " ".join(said.split())
    assert solutions(folder / "small") == solutions(tmp_path / "local")
    assert store().find(f"{BUCKET}/of-machines/snapshots")
    assert damaged_banks(folder / "small") == ()


@pytest.mark.parametrize("sound", [True, False], ids=["reached", "unreached"])
def test_the_check_of_a_cluster_tries_the_store_from_every_worker(
    server, tmp_path, monkeypatch, sound
):
    if not sound:
        monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")  # nobody listens there
        monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    profile = tmp_path / "two.yaml"
    options = {"n_workers": 2, "threads_per_worker": 1, "memory_limit": 0}
    content = {"class": "distributed.LocalCluster", "workers": 2, "options": options}
    profile.write_text(yaml.safe_dump(content))
    words = ["cluster", "check", str(profile), "--banks", f"s3://{BUCKET}/banks", "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "mkldist", *words],
        capture_output=True, text=True, check=False, timeout=600, cwd=tmp_path,
    )  # fmt: skip
    document = json.loads(done.stdout)
    [banks] = [one for one in document["findings"] if one["name"] == "banks"]
    assert (document["sound"], banks["hinders"]) == (sound, not sound)
    assert ("by 2 workers" in banks["words"]) == sound
    assert done.returncode == (0 if sound else 2)


def test_the_job_of_kubernetes_copies_results_to_the_bucket(server, tmp_path):
    results = tmp_path / "results" / "my-sweep"
    (results / "records").mkdir(parents=True)
    (results / "sweep.json").write_text("{}")
    (results / "records" / "one").write_bytes(b"1")
    job = yaml.safe_load((ROOT / "cluster" / "kubernetes" / "sweep.yaml").read_text())
    [container] = job["spec"]["template"]["spec"]["containers"]
    copy = container["args"][0].partition("python ")[1:]
    script = "".join(copy).replace("python ", f"{sys.executable} ", 1)
    environment = {"RESULTS": f"s3://{BUCKET}/results/my-sweep"}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        subprocess.run(["bash", "-euc", script], cwd=tmp_path, check=True, timeout=600)
    names = {name.removeprefix(f"{BUCKET}/") for name in store().find(f"{BUCKET}/results")}
    assert names == {"results/my-sweep/sweep.json", "results/my-sweep/records/one"}
