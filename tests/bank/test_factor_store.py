"""Stores of factors, and building them: pieces, damage, kills."""

import subprocess
import sys
import time
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import zarr
from numpy.testing import assert_array_equal
from sklearn.metrics.pairwise import rbf_kernel

from mkldist.bank.bank import TileLayout
from mkldist.bank.build import StoredPieces, build_factors
from mkldist.bank.factor_bank import factorised
from mkldist.bank.sources import ArraySource
from mkldist.bank.store import BankShape, BankStore, list_banks
from mkldist.errors import StoreError

N = 130
POINTS = np.random.default_rng(0).normal(size=(N, 2))
# The first kernel has 130 pivots, the last one 2.
GRAMS = np.array([rbf_kernel(POINTS, gamma=20.0), rbf_kernel(POINTS), POINTS @ POINTS.T])
SOURCE = ArraySource(GRAMS)
SHAPE = BankShape(3, TileLayout.for_points(N), "float64", factored=True)
SINGLE = replace(SHAPE, dtype="float32")


@pytest.fixture
def store(tmp_path):
    return BankStore.create(tmp_path, "bank", SHAPE, {"label": "some"})


@pytest.fixture
def built(store):
    build_factors(SOURCE, store, 0, store.missing())
    return store


def factor(store, kernel=0, rank=N, source=SOURCE):
    kept = StoredPieces(store, kernel)
    return factorised(source, kernel, rank=rank, seed=0, kept=kept, dtype=store.shape.dtype)


class Nothing(ArraySource):
    """A source that computes no columns."""

    def between(self, *_):
        raise AssertionError("a column is computed")


def test_the_first_piece_of_every_kernel_is_built(store):
    assert store.missing() == [0, 2, 4]
    receipt = build_factors(SOURCE, store, 0, store.missing()[:2])
    assert (receipt.blocks, receipt.bytes) == (2, 2 * SHAPE.chunk_bytes)
    assert store.missing() == [4]
    assert build_factors(SOURCE, store, 0, [0]).blocks == 0
    assert store.n_bytes == 3 * SHAPE.chunk_bytes
    assert store.build_time() is None
    build_factors(SOURCE, store, 0, store.missing())
    assert store.build_time().seconds > 0.0


def test_factors_are_those_that_are_made_anew(built):
    for kernel, K in enumerate(GRAMS):
        values = factor(built, kernel, source=Nothing(GRAMS) if kernel == 2 else SOURCE).values
        assert_array_equal(values, factorised(SOURCE, kernel, rank=N, seed=0).values)
        assert np.abs(values @ values.T - K).max() <= 1e-9


def test_a_longer_factor_goes_on_from_what_is_stored(built):
    first = factor(built, rank=100, source=Nothing(GRAMS))
    whole = factor(built)
    assert_array_equal(whole.values[:, :100], first.values)
    assert built.numbers == [0, 1, 2, 4]
    assert_array_equal(factor(built, source=Nothing(GRAMS)).values, whole.values)


def test_any_zarr_library_reads_the_columns(built):
    whole = factor(built)
    array = zarr.open_array(built.location, mode="r")
    assert array.attrs["label"] == "some"
    for index, n_columns in ((0, 100), (1, 30)):
        piece = array[0, index, : 100 * N].reshape(100, N)
        columns = slice(100 * index, 100 * index + n_columns)
        assert_array_equal(piece.T[:, :n_columns], whole.values[:, columns])
        pivots = array[0, index, 100 * N : 100 * N + 100]
        assert_array_equal(pivots[:n_columns], whole.pivots[columns])
        assert_array_equal(pivots[n_columns:], -1)


def test_single_precision_takes_half_of_the_bytes_and_is_resumed_to_the_bit(tmp_path):
    stores = [BankStore.create(tmp_path, name, SINGLE) for name in ("a", "b")]
    at_once = factor(stores[0])
    factor(stores[1], rank=100)
    assert_array_equal(factor(stores[1]).values, at_once.values)
    assert SINGLE.chunk_bytes < SHAPE.chunk_bytes * 0.51
    assert (at_once.values == at_once.values.astype(np.float32)).all()


def damage(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)


@pytest.mark.parametrize("how", [damage, lambda path: path.write_bytes(b"x"), Path.unlink])
def test_a_damaged_piece_is_told_and_made_again(built, how):
    whole = factor(built, rank=100)
    how(Path(built.location) / "c/0/0/0")
    with pytest.raises(StoreError, match="block 0, which"):
        built.read(0)
    assert built.verify() == ([] if how is Path.unlink else [0])
    assert_array_equal(factor(built, rank=100).values, whole.values)
    assert built.verify() == []


def test_damaged_pieces_are_dropped_and_built_again(built):
    damage(Path(built.location) / "c/1/0/0")
    assert built.verify() == [2]
    built.remove([2])
    assert built.missing() == [2]
    assert build_factors(SOURCE, built, 0, built.missing()).blocks == 1


@pytest.mark.slow
def test_pieces_that_take_each_others_places_are_damaged(built, tmp_path):
    other = BankStore.create(tmp_path, "other", SHAPE)
    build_factors(SOURCE, other, 0, other.missing())
    factor(built), factor(other)
    places = [(one, index) for one in (built, other) for index in one.numbers]
    for first, second in combinations(places, 2):
        paths = [Path(one.location) / f"c/{i // 2}/{i % 2}/0" for one, i in (first, second)]
        contents = [path.read_bytes() for path in paths]
        for path, content in zip(paths, reversed(contents), strict=True):
            path.write_bytes(content)
        assert [(one, i) for one in (built, other) for i in one.verify()] == [first, second]
        for path, content in zip(paths, contents, strict=True):
            path.write_bytes(content)
    assert built.verify() == other.verify() == []


def test_a_damaged_description_is_mended_and_no_piece_made_again(built):
    path = Path(built.location) / "zarr.json"
    whole = path.read_bytes()
    for damaged in (whole[:-9], whole.replace(b"float64", b"float32"), whole.replace(b"3", b"4")):
        path.write_bytes(damaged)
        root = Path(built.location).parent
        with pytest.raises(StoreError):
            BankStore.open(root, "bank")
        assert BankStore.create(root, "bank", SHAPE, {"label": "some"}).missing() == []
        assert path.read_bytes() == whole


def test_a_bank_of_others_is_not_written_over(built):
    root = Path(built.location).parent
    with pytest.raises(StoreError, match="a bank of"):
        BankStore.create(root, "bank", SINGLE)


def test_banks_are_opened_by_what_they_are(built):
    root = Path(built.location).parent
    BankStore.create(root, "grams", BankShape(3, TileLayout.for_points(N), "float64"))
    assert list_banks(root) == ["bank", "grams"]
    opened = [BankStore.open(root, name) for name in ("bank", "grams")]
    assert [store.shape.factored for store in opened] == [True, False]
    built.delete()
    with pytest.raises(StoreError, match="no such file"):
        BankStore.open(root, "bank")


SLOWLY = """
import sys, time
import numpy as np
from sklearn.metrics.pairwise import rbf_kernel
from mkldist.bank.build import build_factors
from mkldist.bank.bank import TileLayout
from mkldist.bank.store import BankShape, BankStore
from mkldist.bank.sources import ArraySource

write = BankStore.write
BankStore.write = lambda *given, **more: (write(*given, **more), time.sleep(0.05))
points = np.random.default_rng(0).normal(size=(130, 2))
source = ArraySource(np.array([rbf_kernel(points, gamma=g) for g in np.geomspace(0.1, 50, 60)]))
shape = BankShape(60, TileLayout.for_points(130), "float64", factored=True)
store = BankStore.create(sys.argv[1], "bank", shape)
print(build_factors(source, store, 0, store.missing()).blocks)
"""


@pytest.mark.slow
def test_a_kill_while_factors_are_made_loses_at_most_the_piece_in_the_making(tmp_path):
    command = [sys.executable, "-c", SLOWLY, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        while process.poll() is None and len(list(tmp_path.glob("bank/c/*/*/0"))) < 5:
            time.sleep(0.005)
        process.kill()
    store = BankStore.open(tmp_path, "bank")
    kept = len(store.stored())
    assert 5 <= kept < 60
    assert store.verify() == []
    said = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout
    assert int(said) == 60 - kept
    assert store.missing() == store.verify() == []
