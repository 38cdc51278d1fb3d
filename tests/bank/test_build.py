"""Computing, storing and opening blocks, and the sources of their values."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from mkldist.bank import store as bank_store
from mkldist.bank.bank import TileLayout
from mkldist.bank.build import BlockBuilder, build_blocks
from mkldist.bank.readers import BankBuffer
from mkldist.bank.sources import FEW_POINTS, ArraySource, FeatureSource, PlainSource, SelectedSource
from mkldist.bank.store import BankShape, BankStore
from mkldist.errors import GramError, OutputError
from mkldist.kernels.families import kernel_list
from mkldist.kernels.loops import WIDE
from mkldist.spec.banks import BankSpec
from tests.bank.stores import read
from tests.kernel_functions.test_functions import sparse_kernels, sparse_points

ALL_FUNCTIONS = BankSpec(
    kernels=[
        {"function": "gaussian", "widths": [0.5, 2.0], "features": ["all", "each"]},
        {"function": "polynomial", "degrees": [2, 3], "features": ["all", "each"]},
        {"function": "linear", "features": ["all", {"count": 2}]},
        {"function": "laplacian-rbf", "widths": 1.0, "features": ["all", "each"]},
    ]
)


def kernels_on(d, spec=ALL_FUNCTIONS):
    return kernel_list(spec, d, [f"f{j}" for j in range(d)], {}, 0)


def gram_matrices(kernels, points, cosine=False):
    """Every Gram matrix by the definition, without any sharing."""
    grams = []
    for m in range(len(kernels)):
        x = points[:, kernels.features_of(m)]
        name, p = kernels.function_of(m).label, kernels.parameter[m]
        difference = x[:, None] - x[None]
        if name == "gaussian":
            gram = np.exp(-np.sum(difference**2, axis=2) / (2 * p**2))
        elif name == "laplacian-rbf":
            gram = np.exp(-np.sum(np.abs(difference), axis=2) / p)
        else:
            gram = (kernels.offset[m] + x @ x.T) ** (p if name == "polynomial" else 1)
        if cosine:
            lengths = np.sqrt(np.outer(np.diag(gram), np.diag(gram)))
            gram = np.divide(gram, lengths, out=np.zeros_like(gram), where=lengths > 0)
        grams.append(gram)
    return np.array(grams)


def built(source, layout, dtype="float64"):
    """Build a bank in memory and return its store and all its entries."""
    store = BankStore.create("memory://build", "b", BankShape(source.n_kernels, layout, dtype))
    try:
        receipt = build_blocks(source, store, store.missing())
        assert receipt.blocks == len(store.shape.blocks)
        entries = np.empty((store.shape.n_kernels, layout.n_entries), dtype)
        for block in store.shape.blocks:
            entries[block.kernels, block.entries] = read(store, block)
    finally:
        store.delete()
    return entries


@pytest.fixture(autouse=True)
def several_blocks(monkeypatch):
    monkeypatch.setattr(bank_store, "CHUNK_BYTES", 4096)
    monkeypatch.setattr(bank_store, "KERNELS_PER_CHUNK", 5)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(
    n=st.integers(1, 33),
    d=st.integers(1, 6),
    tile=st.integers(1, 12),
    cosine=st.booleans(),
    seed=st.integers(0, 99),
)
def test_blocks_of_features_equal_whole_matrices(n, d, tile, cosine, seed):
    points = np.random.default_rng(seed).normal(size=(n, d))
    kernels, layout = kernels_on(d), TileLayout(n, tile)
    entries = built(FeatureSource(points, kernels, cosine), layout)
    expected = layout.pack(gram_matrices(kernels, points, cosine))
    np.testing.assert_allclose(entries, expected, rtol=1e-10, atol=1e-10)
    for m in range(len(kernels)):
        whole = layout.unpack(entries[m])
        np.testing.assert_array_equal(whole, whole.T)
        if cosine or kernels.function_of(m).label in {"gaussian", "laplacian-rbf"}:
            np.testing.assert_array_equal(np.diag(whole), 1.0)


@pytest.mark.slow
def test_single_precision_is_rounded_from_double():
    points, layout = np.random.default_rng(0).normal(size=(20, 3)), TileLayout(20, 7)
    source = FeatureSource(points, kernels_on(3))
    np.testing.assert_array_equal(
        built(source, layout, "float32"), built(source, layout).astype(np.float32)
    )


@pytest.mark.parametrize("cosine", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_blocks_of_matrices_equal_the_matrices(cosine, dtype):
    points, layout = np.random.default_rng(0).normal(size=(23, 4)), TileLayout(23, 5)
    kernels = kernels_on(4)
    given_grams = gram_matrices(kernels, points)
    given_grams[3] = 0.0
    entries = built(ArraySource(given_grams, cosine), layout, dtype)
    expected = gram_matrices(kernels, points, cosine)
    expected[3] = 0.0
    tolerance = 1e-12 if dtype == "float64" else 1e-6
    np.testing.assert_allclose(entries, layout.pack(expected), rtol=tolerance, atol=tolerance)


def test_rounding_asymmetry_of_given_matrices_is_averaged():
    gram = np.array([[[2.0, 1.0], [1.0 + 1e-9, 2.0]]])
    layout = TileLayout(2, 2)
    whole = layout.unpack(built(ArraySource(gram), layout)[0])
    assert whole[0, 1] == whole[1, 0] == pytest.approx(1 + 5e-10, abs=1e-15)


def test_only_missing_blocks_are_computed(tmp_path, monkeypatch):
    points, layout = np.random.default_rng(0).normal(size=(30, 3)), TileLayout(30, 8)
    source = FeatureSource(points, kernels_on(3))
    store = BankStore.create(tmp_path, "b", BankShape(source.n_kernels, layout, "float64"))
    first = build_blocks(source, store, range(2))
    assert first.blocks == 2
    assert first.bytes == 2 * store.shape.chunk_bytes
    assert build_blocks(source, store, store.numbers).blocks == len(store.shape.blocks) - 2
    assert build_blocks(source, store, store.numbers).blocks == 0


@pytest.mark.slow
@pytest.mark.parametrize("cosine", [False, True])
@pytest.mark.parametrize(("n_points", "tile"), [(1, 1), (23, 5), (30, 30), (64, 8)])
@pytest.mark.parametrize(
    ("d", "shift", "rtol"),
    [(6, 0.0, 1e-13), (WIDE + 9, 0.0, 1e-11), (WIDE + 9, 1e3, 1e-11)],
)  # many features are multiplied by the BLAS
def test_compiled_tiles_are_those_of_the_definition(n_points, tile, cosine, d, shift, rtol):
    rng = np.random.default_rng(n_points)
    points, layout = rng.normal(size=(n_points, d)) * 3.0 + shift, TileLayout(n_points, tile)
    points[0] *= shift != 0.0  # of zero self-similarity for linear kernels
    kernels = kernels_on(d)
    plain = gram_matrices(kernels, points, cosine)
    compiled = built(FeatureSource(points, kernels, cosine), layout)
    np.testing.assert_allclose(compiled, layout.pack(plain), rtol=rtol, atol=0.01 * rtol)
    for m, entries in enumerate(compiled):
        gram = layout.unpack(entries)
        assert (gram == gram.T).all()
        assert (np.diag(gram)[np.diag(plain[m]) == 1.0] == 1.0).all()


@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "degree"), [("float32", 15), ("float64", 150)])
def test_overflow_names_the_kernel_and_stores_nothing(tmp_path, dtype, degree):
    spec = BankSpec(kernels=[{"function": "polynomial", "degrees": [1, degree]}])
    source = FeatureSource(np.full((4, 1), 1e2), kernels_on(1, spec))
    store = BankStore.create(tmp_path, "b", BankShape(2, TileLayout(4, 2), dtype))
    with pytest.raises(GramError, match=rf"kernel 1, polynomial\({degree}\).*range of {dtype}"):
        build_blocks(source, store, store.numbers)
    assert len(store.missing()) == len(store.shape.blocks)


@pytest.mark.parametrize("n_blocks", [0, 2, 5])
@pytest.mark.parametrize("chunk_bytes", [300, 10_000])  # with several tiles, or all of them
def test_what_is_loaded_is_read_where_complete_and_else_computed(
    tmp_path, monkeypatch, n_blocks, chunk_bytes
):
    monkeypatch.setattr(bank_store, "CHUNK_BYTES", chunk_bytes)
    grams = np.array([m + np.eye(9) for m in range(12)])
    store = BankStore.create(tmp_path, "b", BankShape(12, TileLayout(9, 4), "float64"))
    build_blocks(ArraySource(grams), store, store.numbers[:n_blocks])
    n_missing = len(store.missing())
    with BlockBuilder(ArraySource(grams + 1.0), store) as builder:
        values = builder.load(BankBuffer())
    assert builder.receipt.blocks == n_missing
    assert builder.receipt.bytes == n_missing * store.shape.chunk_bytes
    assert not store.missing()
    packed = store.shape.layout.pack(grams)
    for number, block in enumerate(store.shape.blocks):
        expected = packed[block.kernels, block.entries] + (number >= n_blocks)
        padded = packed[block.kernels, block.entries] == 0
        part = values[block.kernels, block.entries]
        np.testing.assert_array_equal(part[~padded], expected[~padded])
        np.testing.assert_array_equal(read(store, block), part)


def test_what_a_disk_refuses_of_a_loaded_bank_is_said_at_the_end(tmp_path, monkeypatch):
    store = BankStore.create(tmp_path, "b", BankShape(2, TileLayout(4, 2), "float64"))

    def refuse(*_, **__):
        raise OutputError("disk", "full")

    monkeypatch.setattr(BankStore, "write", refuse)
    source = ArraySource(np.ones((2, 4, 4)))
    with pytest.raises(OutputError, match="full"), BlockBuilder(source, store) as builder:
        assert (builder.load(BankBuffer()) == 1.0).all()
    with pytest.raises(IndexError), BlockBuilder(source, store) as builder:
        builder.load(BankBuffer())[99]  # what ended the batch is what is to be told
    assert builder.receipt.blocks == 0


def test_a_source_of_another_shape_is_refused(tmp_path):
    store = BankStore.create(tmp_path, "b", BankShape(2, TileLayout(4, 2), "float64"))
    with pytest.raises(ValueError, match="2 on 4"):
        build_blocks(ArraySource(np.ones((2, 5, 5))), store, store.numbers)


@pytest.mark.slow
@pytest.mark.parametrize("cosine", [False, True])
@pytest.mark.parametrize("n_points", [7, FEW_POINTS + 5])
def test_tiles_and_diagonals_are_those_of_dense_points(n_points, cosine):
    kernels, points = sparse_kernels(), sparse_points(n_points, 3)
    source = PlainSource(points, kernels, cosine)
    dense = FeatureSource(points.toarray(), kernels, cosine)
    layout = TileLayout.for_points(n_points)
    assert (source.n_kernels, source.n_points) == (len(kernels), n_points)
    for some in (slice(0, len(kernels)), slice(3, 8)):
        for tiles in (slice(0, layout.n_tiles), slice(4, 9)):
            count = tiles.stop - tiles.start
            shape = (some.stop - some.start, count, layout.tile, layout.tile)
            found, expected = np.full(shape, np.nan), np.full(shape, np.nan)
            source.fill(some, tiles, layout, found)
            dense.fill(some, tiles, layout, expected)
            assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
        assert_allclose(source.diagonals(some), dense.diagonals(some), rtol=1e-9, atol=1e-12)
    assert source.presence is None
    assert source.name(0) == dense.name(0)


SPEC = BankSpec.model_validate(
    {"kernels": [{"function": "gaussian", "widths": [0.5, 2], "features": ["all", "each"]}]}
)
POINTS = np.random.default_rng(0).normal(size=(70, 3))
POINTS[:4, 1] = np.nan
WHOLE = FeatureSource(POINTS, kernel_list(SPEC, 3, ["a", "b", "c"], {}, 0))


@pytest.mark.parametrize("index", [[3], [2, 3, 4], [7, 1, 2, 5, 0], [6, 6]])
def test_kernels_are_those_of_the_whole(index):
    part, layout = SelectedSource(WHOLE, np.array(index)), TileLayout.for_points(70)
    shape = (layout.n_tiles, layout.tile, layout.tile)
    tiles = slice(0, layout.n_tiles)
    every, found = np.empty((8, *shape)), np.empty((len(index), *shape))
    WHOLE.fill(slice(0, 8), tiles, layout, every)
    part.fill(slice(0, len(index)), tiles, layout, found)
    assert (part.n_kernels, part.n_points) == (len(index), 70)
    assert_array_equal(found, every[index])
    part.fill(slice(len(index) - 1, len(index)), tiles, layout, found[:1])
    assert_array_equal(found[0], every[index[-1]])
    kernels = slice(0, len(index))
    assert_array_equal(part.diagonals(kernels), WHOLE.diagonals(slice(0, 8))[index])
    assert_array_equal(part.presence[kernels], WHOLE.presence[np.array(index)])
    rows = np.array([5, 2])
    last = len(index) - 1
    assert_array_equal(
        part.between(last, rows, slice(0, 70)), WHOLE.between(index[-1], rows, slice(0, 70))
    )
    assert part.name(last) == WHOLE.name(index[-1])


def test_a_source_without_gaps_has_no_presence():
    whole = FeatureSource(np.nan_to_num(POINTS), WHOLE.kernels)
    assert SelectedSource(whole, np.array([1])).presence is None
