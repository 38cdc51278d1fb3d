"""Gram stores and `blobs` on media that are full, read-only, forbidden, broken, or in memory."""

import errno
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

from mkldist.bank import byte_store
from mkldist.bank.build import build_blocks
from mkldist.bank.store import GramStore
from mkldist.core import durable
from mkldist.errors import OutputError, StoreError
from tests.bank import store_scripts as scripts
from tests.bank.store_checks import ENVIRONMENT, SCRIPT, assert_sound

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

    block = built.blocks[5]
    built.invalidate([block])
    with monkeypatch.context() as patch:
        patch.setattr(Path if call == "replace" else durable, call, refuse)
        with pytest.raises(OutputError, match=words) as caught:
            built.write(block, np.zeros(block.shape))
    assert caught.value.where.startswith(built.location)
    assert "repeat the command" in caught.value.hint
    assert caught.value.exit_code == 2
    assert built.missing() == [block]
    root = Path(built.location).parent
    assert list((root / byte_store.TEMPORARY).iterdir()) == []
    assert scripts.build(root).blocks == 1


def can_mount():
    unshare = shutil.which("unshare")
    if unshare is None or shutil.which("mount") is None:
        return False
    command = [unshare, "-rm", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


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
    n_blocks = len(scripts.create("memory://starve").blocks)
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


def test_unknown_protocols_are_named():
    with pytest.raises(StoreError, match="nonsense"):
        GramStore.open("nonsense://banks", "b")


def test_a_remote_that_breaks_is_an_output_error(monkeypatch):
    from fsspec.implementations.memory import MemoryFileSystem

    store = scripts.create("memory://breaks")

    def refuse(*args, **kwargs):
        raise RuntimeError("connection lost")

    with monkeypatch.context() as patch:
        patch.setattr(MemoryFileSystem, "pipe_file", refuse)
        with pytest.raises(OutputError, match="connection lost"):
            store.write(store.blocks[0], np.zeros(store.blocks[0].shape))
        store = pickle.loads(pickle.dumps(store))
        patch.setattr(MemoryFileSystem, "cat_file", refuse)
        with pytest.raises(StoreError, match="connection lost"):
            store.read(store.blocks[0])
    assert len(store.missing()) == len(store.blocks)
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
    store = GramStore.open("memory://same", scripts.BANK)
    assert receipt.blocks == len(store.blocks)
    assert_sound(store)
    assert build_blocks(scripts.PositionSource(), store, store.blocks).blocks == 0
    store.delete()
