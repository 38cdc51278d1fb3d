"""The Gram store: what is read back is right or an error, whatever happened to it."""

import errno
import os
import pickle
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest
import zarr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mkldist.errors import OutputError, StoreError
from mkldist.gram import local_blobs, metadata
from mkldist.gram.build import build_blocks
from mkldist.gram.layout import TileLayout
from mkldist.gram.store import GramStore, list_banks
from tests.gram import store_scripts as scripts

SCRIPT = Path(scripts.__file__)
ENVIRONMENT = {
    **os.environ,
    "OMP_NUM_THREADS": "1",
    "PYTHONPATH": str(SCRIPT.parents[2]),
    "PYTHONDONTWRITEBYTECODE": "1",
}


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(metadata, "CHUNK_BYTES", 2048)
    monkeypatch.setattr(metadata, "KERNELS_PER_CHUNK", 4)


@pytest.fixture
def built(tmp_path):
    scripts.build(tmp_path)
    return GramStore.open(tmp_path, scripts.BANK)


def start(*command):
    return subprocess.Popen(
        [sys.executable, str(SCRIPT), *map(str, command)],
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def assert_sound(store):
    """Every block is missing or right."""
    expected, missing = scripts.expected_bank(), set(store.missing())
    for block in store.blocks:
        if block in missing:
            with pytest.raises(StoreError, match=f"block {block.index} "):
                store.read(block)
        else:
            np.testing.assert_array_equal(store.read(block), expected[block.kernels, block.entries])
    assert store.verify() == []


def chunk_path(store, block):
    row, column = divmod(block.index, store.shape.grid[1])
    return Path(store.location) / "gram" / "c" / str(row) / str(column)


# -- layout and round trips ------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("remote", [False, True])
@pytest.mark.parametrize(("n_kernels", "n_points", "tile"), [(41, 30, 4), (1, 1, 1), (3, 9, 9)])
def test_zarr_itself_reads_what_was_written(tmp_path, dtype, remote, n_kernels, n_points, tile):
    root = f"memory://{dtype}-{n_kernels}-{n_points}" if remote else tmp_path
    layout = TileLayout(n_points, tile)
    store = GramStore.create(root, "b", n_kernels, layout, dtype, {"kernels": "abc"})
    values = np.random.default_rng(0).normal(size=(n_kernels, layout.n_entries)).astype(dtype)
    assert [block.index for block in store.missing()] == list(range(len(store.blocks)))
    for block in store.blocks:
        store.write(block, values[block.kernels, block.entries])
        np.testing.assert_array_equal(store.read(block), values[block.kernels, block.entries])
    assert store.is_complete
    group = zarr.open_group(f"{root}/b", mode="r")
    np.testing.assert_array_equal(group["gram"][...], values)
    np.testing.assert_array_equal(group["complete"][...], 1)
    assert group["gram"].dtype == dtype
    assert group.attrs["kernels"] == "abc"
    opened = GramStore.open(root, "b")
    assert opened.is_complete
    assert opened.attrs == {"kernels": "abc"}
    assert opened.verify() == []
    assert list_banks(root) == ["b"]
    opened.delete()
    assert list_banks(root) == []
    with pytest.raises(StoreError, match="no such file"):
        GramStore.open(root, "b")


@settings(max_examples=300)
@given(
    n_kernels=st.integers(1, 5000),
    n_points=st.integers(1, 3000),
    tile=st.integers(1, 256),
    dtype=st.sampled_from(["float32", "float64"]),
)
def test_blocks_tile_the_bank_without_overlap(n_kernels, n_points, tile, dtype):
    metadata.CHUNK_BYTES, metadata.KERNELS_PER_CHUNK = 8 * 2**20, 16
    shape = metadata.BankShape(n_kernels, TileLayout(n_points, tile), dtype)
    kernels, tiles = shape.chunk
    rows, columns = shape.grid
    assert (rows - 1) * kernels < n_kernels <= rows * kernels
    assert columns * tiles == shape.layout.n_tiles
    n_bytes = kernels * tiles * shape.layout.tile_entries * np.dtype(dtype).itemsize
    one_column = 16 * shape.layout.tile_entries * np.dtype(dtype).itemsize
    assert n_bytes <= max(metadata.CHUNK_BYTES, one_column)
    assert rows == 1 or n_bytes >= metadata.CHUNK_BYTES / 8


def test_blocks_cover_every_entry_once():
    store = GramStore.create("memory://cover", "b", 41, TileLayout(30, 4), "float64")
    seen = np.zeros((41, store.layout.n_entries), dtype=int)
    for block in store.blocks:
        seen[block.kernels, block.entries] += 1
        assert block.shape == seen[block.kernels, block.entries].shape
        assert block.entries.start == block.tiles.start * 16
    assert len(store.blocks) > 20
    np.testing.assert_array_equal(seen, 1)
    store.delete()


def test_reading_into_an_array_of_the_caller(built):
    block = built.blocks[-1]
    expected = scripts.expected_bank()[block.kernels, block.entries]
    contiguous = np.empty(block.shape)
    assert built.read(block, out=contiguous) is contiguous
    np.testing.assert_array_equal(contiguous, expected)
    strided = np.empty((block.shape[0], 2 * block.shape[1]))[:, ::2]
    np.testing.assert_array_equal(built.read(block, out=strided), expected)
    single = np.empty(block.shape, dtype=np.float32)
    np.testing.assert_array_equal(built.read(block, out=single), expected.astype(np.float32))
    with pytest.raises(ValueError, match="expected"):
        built.read(block, out=np.empty((1, 1)))
    with pytest.raises(ValueError, match="expected"):
        built.write(block, np.empty((1, 1)))


def test_a_store_travels_to_another_process(built):
    assert_sound(pickle.loads(pickle.dumps(built)))


# -- damage ----------------------------------------------------------------------------------


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(data=st.data())
def test_a_flipped_bit_is_found_named_and_repaired(built, data):
    block = data.draw(st.sampled_from(built.blocks))
    path = chunk_path(built, block)
    content = bytearray(path.read_bytes())
    content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(content)
    with pytest.raises(StoreError, match=f"block {block.index} fails its checksum"):
        built.read(block)
    assert built.verify() == [block]
    built.invalidate([block])
    assert built.missing() == [block]
    assert scripts.build(path.parents[4]).blocks == 1
    assert_sound(built)


@pytest.mark.parametrize("size", [0, 1, 100, -1, -4, "longer", "gone"])
def test_a_chunk_cut_short_is_found_and_repaired(built, size):
    block = built.blocks[3]
    path = chunk_path(built, block)
    content = path.read_bytes()
    if size == "gone":
        path.unlink()
    else:
        path.write_bytes(content + b"\0" if size == "longer" else content[:size])
    with pytest.raises(StoreError, match=r"block 3 (has \d+ bytes|is marked complete but has no)"):
        built.read(block)
    assert built.verify() == [block]
    built.invalidate([block])
    assert scripts.build(path.parents[4]).blocks == 1
    assert_sound(built)


def test_an_incomplete_block_is_never_returned(built):
    built.invalidate(built.blocks[:2])
    with pytest.raises(StoreError, match="block 0 is not complete"):
        GramStore.open(Path(built.location).parent, scripts.BANK).read(built.blocks[0])
    assert built.missing() == built.blocks[:2]


@pytest.mark.parametrize("mark", [b"", b"\0", b"\x03", b"\x01\x01"])
def test_a_damaged_mark_means_incomplete(built, mark):
    (Path(built.location) / "complete" / "c" / "0" / "0").write_bytes(mark)
    assert built.missing() == [built.blocks[0]]


def test_stray_files_do_no_harm(built):
    for folder in ("gram/c/0", "complete/c/0", "complete", ""):
        (Path(built.location) / folder / "stray.tmp").write_bytes(b"\x01")
    assert_sound(GramStore.open(Path(built.location).parent, scripts.BANK))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)
@given(data=st.data())
def test_damaged_descriptions_are_errors_or_harmless(built, data):
    names = [metadata.GROUP, metadata.GRAM, metadata.COMPLETE]
    path = Path(built.location) / data.draw(st.sampled_from(names))
    whole = path.read_bytes()
    if data.draw(st.booleans()):
        damaged = whole[: data.draw(st.integers(0, len(whole) - 1))]
    else:
        damaged = bytearray(whole)
        damaged[data.draw(st.integers(0, len(whole) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(damaged)
    try:
        found = GramStore.open(Path(built.location).parent, scripts.BANK)
    except StoreError as error:
        outcome = scripts.BANK in error.where
    else:
        outcome = (found.shape, found.attrs) == (built.shape, built.attrs)
    path.write_bytes(whole)
    assert outcome


@pytest.mark.parametrize("name", [metadata.GRAM, metadata.COMPLETE])
def test_an_array_that_contradicts_the_bank_is_named(built, name):
    path = Path(built.location) / name
    path.write_bytes(path.read_bytes().replace(b'"shape": [\n    ', b'"shape": [\n    9'))
    with pytest.raises(StoreError, match=rf"{name}: shape = \[9"):
        GramStore.open(Path(built.location).parent, scripts.BANK)


def test_another_number_of_points_in_the_same_tiles_is_found(built):
    path = Path(built.location) / metadata.GROUP
    path.write_bytes(path.read_bytes().replace(b'"n_points": 30', b'"n_points": 31'))
    with pytest.raises(StoreError, match="fail their checksum"):
        scripts.create(Path(built.location).parent)


@pytest.mark.parametrize(
    ("document", "word"),
    [
        (b"[]", "list"),
        (b"{}", "describes no bank"),
        (b'{"attributes": {"bank": {"layout_version": 99}}}', "layout version 99"),
        (b'{"attributes": {"bank": {"layout_version": 1, "n_kernels": true}}}', "n_kernels"),
        (b'{"attributes": {"bank": {"layout_version": 1, "n_kernels": 41, "n_points": 30, '
         b'"tile": 4, "dtype": "int8"}}}', "int8"),
    ],
)  # fmt: skip
def test_a_foreign_group_is_no_bank(built, document, word):
    (Path(built.location) / metadata.GROUP).write_bytes(document)
    with pytest.raises(StoreError, match=word):
        scripts.create(Path(built.location).parent)
    with pytest.raises(StoreError, match="no such file"):
        GramStore.open(Path(built.location).parent, "elsewhere")


def test_another_bank_of_the_same_name_is_left_alone(built):
    root = Path(built.location).parent
    with pytest.raises(StoreError, match="n_kernels=41"):
        GramStore.create(root, scripts.BANK, 40, scripts.LAYOUT, "float64")
    assert_sound(GramStore.open(root, scripts.BANK))


def test_creating_again_keeps_blocks_and_attributes(built):
    again = GramStore.create(
        Path(built.location).parent, scripts.BANK, 41, scripts.LAYOUT, "float64", {"by": "other"}
    )
    assert again.attrs == {"by": os.getpid()}
    assert again.is_complete


# -- kills -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("step", "count"),
    [("half", 1), ("half", 3), ("half", 4), ("half", 8), ("half", 9), ("flush", 2),
     ("flush", 9), ("flush", 14), ("rename", 2), ("rename", 3), ("rename", 10), ("rename", 11),
     ("unlink", 12)],
)  # fmt: skip
def test_killed_at_any_step_of_a_write(tmp_path, step, count):
    process = start("build_until", tmp_path, step, count)
    output = process.communicate(timeout=60)[0]
    assert process.returncode == -9, output
    store = scripts.create(tmp_path)
    assert_sound(store)
    done = len(store.blocks) - len(store.missing())
    assert done < 12
    assert scripts.build(tmp_path).blocks == len(store.blocks) - done
    assert_sound(store)
    assert store.is_complete


def test_killed_again_and_again_at_random(tmp_path):
    rng = np.random.default_rng(0)
    for _ in range(6):
        process = start("build", tmp_path)
        marks = tmp_path / scripts.BANK / "complete"
        before = len(list(marks.rglob("*")))
        while process.poll() is None and len(list(marks.rglob("*"))) <= before:
            time.sleep(0.001)
        time.sleep(rng.uniform(0, 0.02))
        process.kill()
        process.communicate()
        if (tmp_path / scripts.BANK / metadata.GROUP).exists():
            assert_sound(GramStore.open(tmp_path, scripts.BANK))
    scripts.build(tmp_path)
    store = GramStore.open(tmp_path, scripts.BANK)
    assert store.is_complete
    assert_sound(store)


def test_files_of_killed_writers_are_removed_once_they_are_old(built, monkeypatch):
    root = Path(built.location).parent
    left = root / local_blobs.TEMPORARY / f"{scripts.BANK}.0"
    left.write_bytes(b"half")
    foreign = root / local_blobs.TEMPORARY / "beef.0"
    foreign.write_bytes(b"half")
    scripts.create(root)
    assert left.exists()
    for path in (left, foreign):
        os.utime(path, (0, 0))
    scripts.create(root)
    assert not left.exists()
    assert foreign.exists()


def test_an_interrupted_deletion_leaves_no_store(built, monkeypatch):
    monkeypatch.setattr(shutil, "rmtree", lambda *a, **k: None)
    built.delete()
    root = Path(built.location).parent
    assert list_banks(root) == []
    store = scripts.create(root)
    assert len(store.missing()) == len(store.blocks)


# -- races -----------------------------------------------------------------------------------


def test_racing_creators_and_writers_and_a_reader(tmp_path):
    at = time.time() + 1.5
    processes = [start(role, tmp_path, at) for role in ("race", "race", "race", "watch")]
    for process in processes:
        output = process.communicate(timeout=60)[0]
        assert process.returncode == 0, output
    store = GramStore.open(tmp_path, scripts.BANK)
    assert store.is_complete
    assert_sound(store)
    assert list((tmp_path / local_blobs.TEMPORARY).iterdir()) == []


# -- media that refuse -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (errno.ENOSPC, "no space is left"),
        (errno.EDQUOT, "quota"),
        (errno.EROFS, "read-only"),
        (errno.EACCES, "permission"),
        (errno.EIO, "Input/output error"),
    ],
)
@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_refused_write_says_where_and_what_to_do(built, monkeypatch, code, words, call):
    def refuse(*args, **kwargs):
        raise OSError(code, os.strerror(code))

    block = built.blocks[5]
    built.invalidate([block])
    with monkeypatch.context() as patch:
        patch.setattr(os if call == "fsync" else Path, call, refuse)
        with pytest.raises(OutputError, match=words) as caught:
            built.write(block, np.zeros(block.shape))
    assert caught.value.where.startswith(built.location)
    assert "repeat the command" in caught.value.hint
    assert caught.value.exit_code == 2
    assert built.missing() == [block]
    root = Path(built.location).parent
    assert list((root / local_blobs.TEMPORARY).iterdir()) == []
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
    assert "no space is left on the device" in lines[0]
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
        with pytest.raises(OutputError, match="permission to write is denied"):
            scripts.create(folder / "banks")
    finally:
        if as_root:
            os.seteuid(0)
        folder.rmdir()


def test_a_file_where_the_folder_should_be(tmp_path):
    (tmp_path / "banks").write_text("no folder")
    with pytest.raises(OutputError, match=r"part of the path is a file|file stands"):
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
        patch.setattr(MemoryFileSystem, "cat_file", refuse)
        with pytest.raises(StoreError, match="connection lost"):
            store.read(store.blocks[0])
    assert len(store.missing()) == len(store.blocks)
    store.delete()


def test_building_in_memory_is_the_same(monkeypatch):
    receipt = scripts.build("memory://same")
    store = GramStore.open("memory://same", scripts.BANK)
    assert receipt.blocks == len(store.blocks)
    assert_sound(store)
    assert build_blocks(scripts.PositionSource(), store, store.blocks).blocks == 0
    store.delete()


def test_a_block_is_on_the_device_before_it_has_its_name_and_its_mark(built, monkeypatch):
    events = []
    flush, rename = os.fsync, Path.replace

    def record_flush(descriptor):
        mode = os.fstat(descriptor).st_mode
        events.append("flush folder" if stat.S_ISDIR(mode) else "flush file")
        flush(descriptor)

    def record_rename(source, target):
        events.append(f"name {Path(target).relative_to(built.location).parts[0]}")
        return rename(source, target)

    monkeypatch.setattr(os, "fsync", record_flush)
    monkeypatch.setattr(Path, "replace", record_rename)
    built.write(built.blocks[0], np.zeros(built.blocks[0].shape))
    assert events == ["flush file", "name gram", "flush folder", "name complete"]
