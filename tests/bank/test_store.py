"""The Gram store returns right values or an error, from folders and from URLs."""

import os
import pickle
import shutil
import uuid
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import zarr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mkldist.bank import store as bank_store
from mkldist.bank.bank import TileLayout
from mkldist.bank.byte_store import list_folders, open_bytes
from mkldist.bank.store import TAG, TIMES, BankShape, BankStore, BuildTime, list_banks
from mkldist.errors import StoreError
from tests.bank import store_scripts as scripts
from tests.bank.stores import assert_sound, read

pytestmark = pytest.mark.usefixtures("small_blocks")


def chunk_name(store, block):
    row, column = divmod(block.index, store.shape.grid[1])
    return f"c/{row}/{column}/0"


def chunk_path(store, block):
    return Path(store.location) / chunk_name(store, block)


# Round trips


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("remote", [False, True])
@pytest.mark.parametrize(("n_kernels", "n_points", "tile"), [(41, 30, 4), (1, 1, 1), (3, 9, 9)])
def test_zarr_itself_reads_what_was_written(tmp_path, dtype, remote, n_kernels, n_points, tile):
    root = f"memory://{dtype}-{n_kernels}-{n_points}" if remote else tmp_path
    layout = TileLayout(n_points, tile)
    store = BankStore.create(root, "b", BankShape(n_kernels, layout, dtype), {"kernels": "abc"})
    values = np.random.default_rng(0).normal(size=(n_kernels, layout.n_entries)).astype(dtype)
    assert store.missing() == list(range(len(store.shape.blocks)))
    for block in store.shape.blocks:
        store.write(block.index, values[block.kernels, block.entries])
        np.testing.assert_array_equal(read(store, block), values[block.kernels, block.entries])
    assert not store.missing()
    array = zarr.open_array(f"{root}/b", mode="r")
    for block in store.shape.blocks:
        found = array[divmod(block.index, store.shape.grid[1])]
        size = np.prod(block.shape)
        expected = values[block.kernels, block.entries]
        np.testing.assert_array_equal(found[:size].reshape(block.shape), expected)
        assert (found[size : -TIMES - TAG] == 0).all()
    assert array.dtype == dtype
    assert array.attrs["kernels"] == "abc"
    opened = BankStore.open(root, "b")
    assert not opened.missing()
    assert opened.attrs == {"kernels": "abc"}
    assert opened.verify() == []
    assert list_banks(root) == ["b"]
    opened.delete()
    assert list_banks(root) == []
    with pytest.raises(StoreError, match="no such file"):
        BankStore.open(root, "b")


def test_a_store_travels_to_another_process(built):
    assert_sound(pickle.loads(pickle.dumps(built)))


# Damage


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None
)
@given(data=st.data())
@pytest.mark.slow
def test_a_flipped_bit_is_found_named_and_repaired(built, data):
    block = data.draw(st.sampled_from(built.shape.blocks))
    path = chunk_path(built, block)
    content = bytearray(path.read_bytes())
    content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(content)
    with pytest.raises(StoreError, match=f"block {block.index}, which fails its checksum"):
        read(built, block)
    assert built.verify() == [block.index]
    built.remove([block.index])
    assert built.missing() == [block.index]
    assert scripts.build(Path(built.location).parent).blocks == 1
    assert_sound(built)


@pytest.mark.slow
@pytest.mark.parametrize("size", [0, 1, 100, -1, -4, "longer", "gone", "folder"])
@pytest.mark.parametrize("remote", [False, True])
def test_a_chunk_cut_short_is_found_and_repaired(tmp_path, size, remote):
    root = f"memory://cut-{size}" if remote else tmp_path
    scripts.build(root)
    store = BankStore.open(root, scripts.BANK)
    name, block = chunk_name(store, store.shape.blocks[3]), store.shape.blocks[3]
    content = store.blobs.get(name)
    store.blobs.remove(name)
    if size == "folder":
        store.blobs.put(f"{name}/inner", [b"x"])
    elif size != "gone":
        store.blobs.put(name, [content + b"\0" if size == "longer" else content[:size]])
    with pytest.raises(StoreError, match=r"block 3, which (has|fails|is not complete)"):
        read(store, block)
    damaged = [] if size in ("gone", "folder") else [3]
    assert store.verify() == damaged
    store.remove(damaged)
    assert store.missing() == [3]
    if size != "folder":
        assert scripts.build(root).blocks == 1
        assert_sound(store)
    store.delete()


@pytest.mark.slow
@pytest.mark.parametrize("remote", [False, True])
def test_blocks_that_take_each_others_places_are_damaged(tmp_path, monkeypatch, remote):
    """Every two files of a kind, within a bank and between banks of one shape."""
    root = f"memory://places-{tmp_path.name}" if remote else tmp_path
    monkeypatch.setattr(bank_store, "CHUNK_BYTES", 2048)
    layout = TileLayout(15, 5)
    stores = [BankStore.create(root, name, BankShape(8, layout, "float32")) for name in ("a", "b")]
    for store in stores:
        for block in store.shape.blocks:
            store.write(block.index, np.ones(block.shape))  # whose values are all the same
    places = [(store, block) for store in stores for block in store.shape.blocks]
    assert len(places) == 8
    for (first, one), (second, other) in combinations(places, 2):
        exchange(first, chunk_name(first, one), second, chunk_name(second, other))
        found = [(store, index) for store in stores for index in store.verify()]
        assert found == [(first, one.index), (second, other.index)]
        with pytest.raises(StoreError, match="is that of another bank or place"):
            read(first, one)
        exchange(first, chunk_name(first, one), second, chunk_name(second, other))
    assert not any(store.verify() for store in stores)
    exchange(stores[0], "zarr.json", stores[1], "zarr.json")
    with pytest.raises(StoreError, match="of another bank"):
        BankStore.open(root, "a")
    again = [BankStore.create(root, one, BankShape(8, layout, "float32")) for one in ("a", "b")]
    assert not any(store.missing() or store.verify() for store in again)
    for store in stores:
        store.delete()


def exchange(first, name, second, other):
    """Exchange two files."""
    contents = first.blobs.get(name), second.blobs.get(other)
    first.blobs.put(name, [contents[1]])
    second.blobs.put(other, [contents[0]])


@pytest.mark.parametrize("place", [-5, -20, -40, -45])
def test_a_damaged_time_or_tag_is_found_without_the_values(built, place):
    name = chunk_name(built, built.shape.blocks[0])
    content = bytearray(built.blobs.get(name))
    content[place] ^= 16
    built.blobs.put(name, [bytes(content)])
    assert built.build_time() is None
    assert built.verify() == [0]
    built.remove([0])
    assert built.missing() == [0]
    assert scripts.build(Path(built.location).parent).blocks == 1
    assert built.build_time() is not None


def test_stray_files_do_no_harm(built):
    for folder in ("c/0", "c/0/0", "c", ""):
        (Path(built.location) / folder / "stray.tmp").write_bytes(b"\x01")
    assert_sound(BankStore.open(Path(built.location).parent, scripts.BANK))


def test_another_bank_of_the_same_name_is_left_alone(built):
    root = Path(built.location).parent
    with pytest.raises(StoreError, match="n_kernels=41"):
        BankStore.create(root, scripts.BANK, BankShape(40, scripts.LAYOUT, "float64"))
    assert_sound(BankStore.open(root, scripts.BANK))


def test_creating_again_keeps_blocks_and_attributes(built):
    again = BankStore.create(
        Path(built.location).parent,
        scripts.BANK,
        BankShape(41, scripts.LAYOUT, "float64"),
        {"by": "other"},
    )
    assert again.attrs == {"by": os.getpid()}
    assert not again.missing()


# Times


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_times_are_summed_once_all_blocks_have_one(tmp_path, dtype):
    shape = BankShape(41, scripts.LAYOUT, dtype)
    store = BankStore.create(tmp_path, "b", shape)
    for block in shape.blocks:
        assert store.build_time() is None
        store.write(block.index, np.ones(block.shape), spent=BuildTime(10.1, 5.3))
    found, n = BankStore.open(tmp_path, "b").build_time(), len(shape.blocks)
    assert (found.seconds, found.cpu_seconds) == pytest.approx((10.1 * n, 5.3 * n))
    store.write(0, np.ones(shape.blocks[0].shape))  # built again
    assert store.build_time().seconds == pytest.approx(10.1 * (n - 1))


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(
    n_kernels=st.integers(1, 5000),
    n_points=st.integers(1, 3000),
    tile=st.integers(1, 256),
    dtype=st.sampled_from(["float32", "float64"]),
)
def test_blocks_tile_the_bank_without_overlap(n_kernels, n_points, tile, dtype):
    bank_store.CHUNK_BYTES, bank_store.KERNELS_PER_CHUNK = 8 * 2**20, 16
    shape = bank_store.BankShape(n_kernels, TileLayout(n_points, tile), dtype)
    kernels, tiles = shape.chunk
    rows, columns = shape.grid
    assert (rows - 1) * kernels < n_kernels <= rows * kernels
    assert columns * tiles == shape.layout.n_tiles
    n_bytes = kernels * tiles * shape.layout.tile_entries * np.dtype(dtype).itemsize
    one_column = 16 * shape.layout.tile_entries * np.dtype(dtype).itemsize
    assert n_bytes <= max(bank_store.CHUNK_BYTES, one_column)
    assert rows == 1 or n_bytes >= bank_store.CHUNK_BYTES / 8


def test_blocks_cover_every_entry_once():
    store = BankStore.create("memory://cover", "b", BankShape(41, TileLayout(30, 4), "float64"))
    seen = np.zeros((41, store.shape.layout.n_entries), dtype=int)
    for block in store.shape.blocks:
        seen[block.kernels, block.entries] += 1
        assert block.shape == seen[block.kernels, block.entries].shape
        assert block.entries.start == block.tiles.start * 16
    assert len(store.shape.blocks) > 20
    np.testing.assert_array_equal(seen, 1)
    store.delete()


@pytest.fixture(params=["path", "file", "memory"])
def root(request, tmp_path):
    """Return an empty place of each kind."""
    places = {
        "path": str(tmp_path),
        "file": f"file://{tmp_path}",
        "memory": f"memory://{uuid.uuid4().hex}",
    }
    return places[request.param]


def test_what_is_put_is_there_and_its_folder_is_listed(root):
    assert list_folders(root) == []
    for folder in ("b", "a", ".hidden"):
        blobs = open_bytes(root, folder)
        blobs.put("gram/c/0", [b"abc", memoryview(b"de")])
        assert blobs.get("gram/c/0") == b"abcde"
        assert blobs.get("gram/c/1") is None
        assert blobs.names("gram") == ["gram/c/0"]
        assert (blobs.has("gram/c/0"), blobs.has("gram/c"), blobs.has("x")) == (True, False, False)
        blobs.put("gram/c/0", [b"abcde"])
        blobs.remove("nothing")
    assert list_folders(root) == ["a", "b"]
    open_bytes(root, "a").clear()
    assert open_bytes(root, "a").get("gram/c/0") is None
    assert open_bytes(root, "b").get("gram/c/0") == b"abcde"


def test_a_removal_that_is_cut_short_leaves_no_part_of_a_bank_in_its_place(tmp_path, monkeypatch):
    blobs = open_bytes(tmp_path, "a")
    blobs.put("c/0", [b"abc"])

    def interrupt(folder):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", interrupt)
        with pytest.raises(KeyboardInterrupt):
            blobs.clear()
    assert (blobs.names(), list_folders(tmp_path)) == ([], [])


def test_urls_of_files_are_paths(tmp_path):
    assert open_bytes(f"file://{tmp_path}", "a") == open_bytes(tmp_path, "a")
    assert open_bytes(tmp_path, "a").is_local
    assert not open_bytes("memory://x", "a").is_local


def test_a_place_that_is_not_there_has_no_folders(tmp_path):
    assert list_folders(tmp_path / "nowhere") == []
    (tmp_path / "file").write_text("")
    assert list_folders(tmp_path / "file") == []


def test_urls_that_nothing_can_open_are_named():
    with pytest.raises(StoreError, match="nonsense://banks"):
        list_folders("nonsense://banks")
