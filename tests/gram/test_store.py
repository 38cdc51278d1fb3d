"""The Gram store returns right values or an error, with `local_blobs` and `remote_blobs`."""

import os
import pickle
from pathlib import Path

import numpy as np
import pytest
import zarr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mkldist.errors import StoreError, UnreadableError
from mkldist.gram.layout import TileLayout
from mkldist.gram.local_blobs import LocalBlobs
from mkldist.gram.store import GramStore, list_banks
from tests.gram import store_scripts as scripts
from tests.gram.store_checks import assert_sound

pytestmark = pytest.mark.usefixtures("small_blocks")


def chunk_path(store, block):
    row, column = divmod(block.index, store.shape.grid[1])
    return Path(store.location) / "gram" / "c" / str(row) / str(column)


# Layout and round trips


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
    assert not store.missing()
    group = zarr.open_group(f"{root}/b", mode="r")
    np.testing.assert_array_equal(group["gram"][...], values)
    np.testing.assert_array_equal(group["complete"][...], 1)
    assert group["gram"].dtype == dtype
    assert group.attrs["kernels"] == "abc"
    opened = GramStore.open(root, "b")
    assert not opened.missing()
    assert opened.attrs == {"kernels": "abc"}
    assert opened.verify() == []
    assert list_banks(root) == ["b"]
    opened.delete()
    assert list_banks(root) == []
    with pytest.raises(StoreError, match="no such file"):
        GramStore.open(root, "b")


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


# Damage


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None
)
@given(data=st.data())
@pytest.mark.slow
def test_a_flipped_bit_is_found_named_and_repaired(built, data):
    block = data.draw(st.sampled_from(built.blocks))
    path = chunk_path(built, block)
    content = bytearray(path.read_bytes())
    content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(content)
    with pytest.raises(StoreError, match=f"block {block.index}, which fails its checksum"):
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
    with pytest.raises(StoreError, match=r"block 3, which (has \d+ bytes|is marked complete)"):
        built.read(block)
    assert built.verify() == [block]
    built.invalidate([block])
    assert scripts.build(path.parents[4]).blocks == 1
    assert_sound(built)


def test_an_incomplete_block_is_never_returned(built):
    built.invalidate(built.blocks[:2])
    with pytest.raises(StoreError, match="block 0, which is not complete"):
        GramStore.open(Path(built.location).parent, scripts.BANK).read(built.blocks[0])
    assert built.missing() == built.blocks[:2]


@pytest.mark.parametrize("mark", [b"", b"\0", b"\x03", b"\x01\x01"])
def test_a_damaged_mark_means_incomplete(built, mark):
    (Path(built.location) / "complete" / "c" / "0" / "0").write_bytes(mark)
    assert built.missing() == built.verify() == [built.blocks[0]]
    assert built.drop_damaged() == [0]
    assert built.verify() == []
    assert built.missing() == [built.blocks[0]]


def test_a_mark_that_cannot_be_read_is_damaged_and_can_be_dropped(built, monkeypatch):
    real, unread = LocalBlobs.get, "complete/c/0/0"

    def get(blobs, name):
        if name == unread and (blobs.path / name).exists():
            raise UnreadableError(name, "a read that failed: Input/output error")
        return real(blobs, name)

    monkeypatch.setattr(LocalBlobs, "get", get)
    store = GramStore.open(Path(built.location).parent, scripts.BANK)
    with pytest.raises(UnreadableError):
        store.missing()
    assert store.verify() == [built.blocks[0]]
    assert store.drop_damaged() == [0]
    assert store.missing() == [built.blocks[0]]


@pytest.mark.parametrize("kind", ["gram", "complete", "seconds"])
def test_a_folder_in_the_place_of_a_file_is_no_file_and_gives_way(built, kind):
    block = built.blocks[0]
    values = np.array(built.read(block))
    place = Path(built.location) / kind / "c" / "0" / "0"
    place = place / "0" if kind == "seconds" else place
    place.unlink()
    (place / "inner").mkdir(parents=True)
    found = GramStore.open(Path(built.location).parent, scripts.BANK)
    assert found.verify() == ([block] if kind == "gram" else [])
    found.invalidate([block])
    assert found.missing() == [block]
    found.write(block, values)
    assert_sound(GramStore.open(Path(built.location).parent, scripts.BANK))


def test_stray_files_do_no_harm(built):
    for folder in ("gram/c/0", "complete/c/0", "complete", ""):
        (Path(built.location) / folder / "stray.tmp").write_bytes(b"\x01")
    assert_sound(GramStore.open(Path(built.location).parent, scripts.BANK))


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
    assert not again.missing()
