"""Gram stores and `blobs` on media that are full, read-only, forbidden, broken, or in memory."""

import errno
import json
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest
from fsspec.implementations.local import LocalFileSystem
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mkldist.bank import byte_store
from mkldist.bank.build import build_blocks
from mkldist.bank.store import BankShape, BankStore
from mkldist.core import durable
from mkldist.core.checksums import content_id
from mkldist.errors import OutputError, StoreError
from tests.bank import store_scripts as scripts
from tests.bank.stores import ENVIRONMENT, SCRIPT, assert_sound, read, start

pytestmark = pytest.mark.usefixtures("small_blocks")


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (errno.ENOSPC, "no space left"),
        (errno.EDQUOT, "quota"),
        (errno.EROFS, "read-only"),
        (errno.EACCES, "permission"),
        (errno.EIO, "Input/output error"),
    ],
)
@pytest.mark.parametrize("call", ["_write", "replace"])
def test_a_refused_write_says_where_and_what_to_do(built, monkeypatch, code, words, call):
    def refuse(*args, **kwargs):
        raise OSError(code, os.strerror(code))

    block = built.shape.blocks[5]
    built.remove([block.index])
    with monkeypatch.context() as patch:
        patch.setattr(Path if call == "replace" else durable, call, refuse)
        with pytest.raises(OutputError, match=words) as caught:
            built.write(block.index, np.zeros(block.shape))
    assert caught.value.where.startswith(built.location)
    assert "repeat the command" in caught.value.hint
    assert caught.value.exit_code == 2
    assert built.missing() == [block.index]
    root = Path(built.location).parent
    assert list((root / byte_store.TEMPORARY).iterdir()) == []
    assert scripts.build(root).blocks == 1


def can_mount():
    unshare = shutil.which("unshare")
    if unshare is None or shutil.which("mount") is None:
        return False
    command = [unshare, "-rm", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


@pytest.mark.slow
@pytest.mark.skipif(not can_mount(), reason="needs user namespaces to mount a small file system")
def test_a_disk_that_really_fills_up_and_turns_read_only(tmp_path):
    command = ["unshare", "-rm", sys.executable, str(SCRIPT), "starve", str(tmp_path)]
    result = subprocess.run(
        command, env=ENVIRONMENT, capture_output=True, text=True, timeout=60, check=False
    )
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert lines[0].startswith(f"full OutputError {tmp_path}")
    assert "no space left on the device" in lines[0]
    assert lines[1].split()[:2] == ["full", "missing"]
    missing = int(lines[1].split()[2])
    n_blocks = len(scripts.create("memory://starve").numbers)
    assert 0 < missing < n_blocks
    assert lines[1].endswith("bad 0")
    assert lines[2] == "full leftovers 0"
    assert lines[3] == f"grown built {missing}"
    assert lines[4] == "grown missing 0 bad 0"
    assert lines[6].startswith("read-only OutputError")
    assert "read-only" in lines[6].removeprefix("read-only")
    assert lines[7] == "read-only bad 0"


def test_a_folder_without_permission_to_write():
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o555)
    as_root = os.geteuid() == 0
    try:
        if as_root:
            os.seteuid(65534)
        with pytest.raises(OutputError, match="no permission to write"):
            scripts.create(folder / "banks")
    finally:
        if as_root:
            os.seteuid(0)
        folder.rmdir()


def test_a_file_where_the_folder_should_be(tmp_path):
    (tmp_path / "banks").write_text("no folder")
    with pytest.raises(OutputError, match=r"file as a part of the path|a file where"):
        scripts.create(tmp_path / "banks")


def test_a_remote_that_breaks_is_an_output_error(monkeypatch):
    from fsspec.implementations.memory import MemoryFileSystem

    store = scripts.create("memory://breaks")

    def refuse(*args, **kwargs):
        raise RuntimeError("connection lost")

    with monkeypatch.context() as patch:
        patch.setattr(MemoryFileSystem, "pipe_file", refuse)
        with pytest.raises(OutputError, match="connection lost"):
            store.write(store.shape.blocks[0].index, np.zeros(store.shape.blocks[0].shape))
        store = pickle.loads(pickle.dumps(store))
        patch.setattr(MemoryFileSystem, "cat_file", refuse)
        with pytest.raises(StoreError, match="connection lost"):
            read(store, store.shape.blocks[0])
    assert len(store.missing()) == len(store.shape.blocks)
    store.delete()


def test_a_bucket_that_does_not_exist_is_named_and_not_made():
    import fsspec
    from fsspec.implementations.memory import MemoryFileSystem

    class Store(MemoryFileSystem):
        protocol = ("oci",)

        def makedirs(self, path, exist_ok=False):
            raise AssertionError(f"made {path}")

        def pipe_file(self, path, value, **kwargs):
            raise FileNotFoundError("The specified bucket does not exist")

    fsspec.register_implementation("oci", Store, clobber=True)
    with pytest.raises(OutputError, match=r"^oci://misspelt/banks: found no bucket 'misspelt'"):
        scripts.create("oci://misspelt/banks")


def test_building_in_memory_is_the_same(monkeypatch):
    receipt = scripts.build("memory://same")
    store = BankStore.open("memory://same", scripts.BANK)
    assert receipt.blocks == len(store.shape.blocks)
    assert_sound(store)
    assert build_blocks(scripts.PositionSource(), store, store.numbers).blocks == 0
    store.delete()


NAME = "zarr.json"


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None
)
@given(data=st.data())
def test_damaged_descriptions_are_errors_or_harmless(built, data):
    path = Path(built.location) / NAME
    whole = path.read_bytes()
    if data.draw(st.booleans()):
        damaged = whole[: data.draw(st.integers(0, len(whole) - 1))]
    else:
        damaged = bytearray(whole)
        damaged[data.draw(st.integers(0, len(whole) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(damaged)
    try:
        found = BankStore.open(Path(built.location).parent, scripts.BANK)
    except StoreError as error:
        outcome = scripts.BANK in error.where
    else:
        outcome = (found.shape, found.attrs, found.missing()) == (built.shape, built.attrs, [])
        outcome &= np.array_equal(
            read(found, found.shape.blocks[0]), read(built, built.shape.blocks[0])
        )
    path.write_bytes(whole)
    assert outcome


@pytest.mark.parametrize("how", ["cut", "flip", "gone", "deep", "folder"])
def test_a_damaged_description_is_written_again_and_no_block_built_again(built, how):
    path, root = Path(built.location) / NAME, Path(built.location).parent
    whole = path.read_bytes()
    path.unlink()
    if how == "folder":
        path.mkdir()
    elif how != "gone":
        flipped = bytearray(whole)
        flipped[len(whole) // 2] ^= 16
        deep = b'{"attributes": ' + b"[" * 100_000
        path.write_bytes({"cut": whole[:-9], "flip": flipped, "deep": deep}[how])
    with pytest.raises(StoreError) as caught:
        BankStore.open(root, scripts.BANK)
    assert caught.value.where == str(path)
    mended = scripts.create(root)
    assert (mended.shape, mended.missing(), mended.verify()) == (built.shape, [], [])
    assert len(path.read_bytes()) == len(whole)


def test_another_number_of_points_in_the_same_tiles_is_found(built):
    path = Path(built.location) / "zarr.json"
    path.write_bytes(path.read_bytes().replace(b'"n_points": 30', b'"n_points": 31'))
    with pytest.raises(StoreError, match="fail their checksum"):
        BankStore.open(Path(built.location).parent, scripts.BANK)


def test_a_bank_under_the_name_of_another_is_none(built):
    root = Path(built.location).parent
    Path(built.location).rename(root / "other")
    with pytest.raises(StoreError, match="of another bank"):
        BankStore.open(root, "other")
    renamed = BankStore.create(root, "other", BankShape(41, scripts.LAYOUT, "float64"))
    assert renamed.verify() == renamed.numbers


def with_checksum(**facts):
    bank = {**facts, "checksum": content_id(facts=facts, attributes={})}
    document = {"zarr_format": 3, "node_type": "group", "attributes": {"bank": bank}}
    return json.dumps(document).encode()


@pytest.mark.parametrize(
    "document",
    [
        b"[]",
        b"{}",
        b'{"zarr_format": 3, "node_type": "group"}',
        b'{"zarr_format": 3, "node_type": "group", "attributes": {"bank": 3}}',
        with_checksum(version=99),
        with_checksum(version=2, n_kernels=1, n_points=3, cut=1, dtype="float64", kind="gram"),
    ],
)
def test_a_foreign_group_is_no_bank(built, document):
    root = Path(built.location).parent
    (Path(built.location) / "zarr.json").write_bytes(document)
    with pytest.raises(StoreError):
        BankStore.open(root, scripts.BANK)
    with pytest.raises(StoreError, match="no such file"):
        BankStore.open(root, "elsewhere")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("step", "count"),
    [*(("half", n) for n in (1, 3, 4, 8, 9, 12, 14, 15)), *(("rename", n) for n in (2, 3, 10, 11))],
)
def test_killed_at_any_step_of_a_write(tmp_path, step, count):
    process = start("build_until", tmp_path, step, count)
    output = process.communicate(timeout=60)[0]
    assert process.returncode == -9, output
    store = scripts.create(tmp_path)
    assert list((tmp_path / byte_store.TEMPORARY).iterdir()) == []
    assert_sound(store)
    done = len(store.shape.blocks) - len(store.missing())
    assert done < count
    assert scripts.build(tmp_path).blocks == len(store.shape.blocks) - done
    assert_sound(store)
    assert not store.missing()


@pytest.mark.slow
def test_killed_again_and_again_at_random(tmp_path):
    rng = np.random.default_rng(0)
    for _ in range(6):
        process = start("build", tmp_path)
        chunks = tmp_path / scripts.BANK / "c"
        before = len(list(chunks.rglob("0")))
        while process.poll() is None and len(list(chunks.rglob("0"))) <= before:
            time.sleep(0.001)
        time.sleep(rng.uniform(0, 0.02))
        process.kill()
        process.communicate()
        if (tmp_path / scripts.BANK / "zarr.json").exists():
            assert_sound(BankStore.open(tmp_path, scripts.BANK))
    scripts.build(tmp_path)
    store = BankStore.open(tmp_path, scripts.BANK)
    assert not store.missing()
    assert_sound(store)


def test_an_interrupted_deletion_leaves_no_store(built, monkeypatch):
    monkeypatch.setattr(LocalFileSystem, "rm", lambda *a, **k: None)
    built.delete()
    root = Path(built.location).parent
    with pytest.raises(StoreError, match="no such file"):
        BankStore.open(root, scripts.BANK)
    assert_sound(scripts.create(root))


@pytest.mark.slow
def test_racing_creators_and_writers_and_a_reader(tmp_path):
    at = time.time() + 1.5
    processes = [start(role, tmp_path, at) for role in ("race", "race", "race", "watch")]
    for process in processes:
        output = process.communicate(timeout=60)[0]
        assert process.returncode == 0, output
    store = BankStore.open(tmp_path, scripts.BANK)
    assert not store.missing()
    assert_sound(store)
    assert list((tmp_path / byte_store.TEMPORARY).iterdir()) == []
