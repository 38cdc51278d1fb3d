"""Products of entries and columns: those of numpy, the same bits whatever stands beside them."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel

from mkldist.bank import bank as layouts
from mkldist.bank import products as tile_products
from mkldist.bank.bank import Bank, MemoryBank, TileLayout
from mkldist.bank.build import open_bank
from mkldist.bank.cache import NodeCache
from mkldist.bank.passes import answer, needs_pass, squared_radius
from mkldist.bank.products import (
    COLUMNS,
    ENTRIES,
    FEW,
    MANY,
    Columns,
    OuterProducts,
    add_dots,
    add_dots_of_one,
    add_rows,
    flat,
    multiply,
    quadratic_forms,
)
from mkldist.bank.readers import DamagedBlocksError, MappedBank
from mkldist.bank.requests import Inner, Quadratic, Radii
from mkldist.bank.store import BankStore
from mkldist.core.compiled import CompiledFunction
from tests.bank.bank_suite import random_grams
from tests.bank.stores import damage, stored
from tests.methods import plain_bank

N_ENTRIES = (COLUMNS // FEW + 1) * ENTRIES + 77
RNG = np.random.default_rng(0)
VALUES = RNG.normal(size=(9, N_ENTRIES))
RIGHT = RNG.normal(size=(2 * COLUMNS + 1, N_ENTRIES))


def dots(values, lines, columns):
    sums = np.zeros((len(lines), len(columns)))
    add_dots(values, np.asarray(lines), np.ascontiguousarray(columns), sums)
    return sums


def dots_of_one(values, lines, column, first=0):
    memory, step = flat(values)
    sums = np.zeros(len(lines))
    add_dots_of_one(memory, first, np.array(lines, dtype=np.intp) * step, column, sums)
    return sums


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_columns", [1, 2, 3, FEW, FEW + 1, COLUMNS, 2 * COLUMNS + 1])
@pytest.mark.parametrize("lines", [[4], [8, 0, 3], list(range(9))])
def test_products_are_those_of_numpy(dtype, n_columns, lines):
    values, columns = VALUES.astype(dtype), RIGHT[:n_columns]
    expected = values[lines].astype(np.float64) @ columns.T
    assert_allclose(dots(values, lines, columns), expected, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("lines", [[], [4], [8, 0, 3], [7, 2, 2], list(range(9))])
@pytest.mark.parametrize(("first", "size"), [(0, N_ENTRIES), (40, 3 * ENTRIES + 5), (40, 3)])
def test_products_with_one_column_are_those_of_numpy(dtype, lines, first, size):
    values, column = VALUES.astype(dtype), RIGHT[0, :size]
    expected = values[lines, first : first + size].astype(np.float64) @ column
    found = dots_of_one(values, lines, column, first)
    assert_allclose(found, expected, rtol=1e-10, atol=1e-11)
    alone = [dots_of_one(values, [line], column, first)[0] for line in lines]
    assert_array_equal(found, alone)


@pytest.mark.slow
def test_products_are_added():
    sums = np.ones((9, 2))
    add_dots(VALUES, np.arange(9), RIGHT[:2], sums)
    assert_allclose(sums, 1.0 + VALUES @ RIGHT[:2].T, rtol=1e-11)
    of_one = np.ones(9)
    add_dots_of_one(VALUES.reshape(-1), 0, np.arange(9) * N_ENTRIES, RIGHT[0], of_one)
    assert_allclose(of_one, sums[:, 0], rtol=1e-11)


def test_a_product_does_not_depend_on_the_lines_and_columns_beside_it():
    whole = dots(VALUES, range(9), RIGHT)
    for line in range(9):
        for column in range(len(RIGHT)):
            alone = dots(VALUES, [line], RIGHT[column : column + 1])
            assert alone[0, 0] == whole[line, column]
    assert_array_equal(dots(VALUES, [7, 2, 2], RIGHT[3:8]), whole[[7, 2, 2], 3:8])


@pytest.mark.parametrize("part", [np.s_[2:7, 5:50], np.s_[1:9, :], np.s_[:, ::2], np.s_[::-1, :]])
def test_parts_of_an_array_have_the_products_of_a_copy(part):
    some = VALUES[part]
    lines, columns = range(len(some)), RIGHT[:4, : some.shape[1]]
    assert_array_equal(dots(some, lines, columns), dots(some.copy(), lines, columns))
    of_one = dots_of_one(some, lines, columns[0, 3:], 3)
    assert_array_equal(of_one, dots_of_one(some.copy(), lines, columns[0, 3:], 3))


def test_entries_that_cannot_be_written_are_read():
    mapped = VALUES.copy()
    mapped.flags.writeable = False
    assert_array_equal(dots(mapped, range(9), RIGHT[:2]), dots(VALUES, range(9), RIGHT[:2]))
    of_one = dots_of_one(mapped, range(9), RIGHT[0])
    assert_array_equal(of_one, dots_of_one(VALUES, range(9), RIGHT[0]))


N_POINTS = 11
VECTORS = RNG.normal(size=(N_POINTS, 7))
MATRICES = random_grams(2, N_POINTS, seed=5)


@pytest.mark.parametrize("tile", [1, 4, 11])
@pytest.mark.parametrize("tiles_at_once", [1, 2, 100])
def test_products_of_entries_and_columns_are_what_was_asked_for(tile, tiles_at_once):
    layout = TileLayout(N_POINTS, tile)
    requests = [Quadratic(VECTORS), Inner(MATRICES), Quadratic(VECTORS[:, 0])]
    columns = Columns(layout, requests)
    assert [(part.start, part.stop) for part in columns.slices] == [(0, 7), (7, 9), (9, 10)]
    assert columns.n_columns == 10
    grams = random_grams(3, N_POINTS)
    entries = layout.pack(grams)
    found = np.zeros((3, 10))
    step = tiles_at_once * layout.tile_entries
    for start in range(0, layout.n_entries, step):
        some = slice(start, min(start + step, layout.n_entries))
        part = columns.over(some)
        assert part.shape == (10, some.stop - some.start)
        assert_array_equal(OuterProducts(layout, VECTORS).over(some), part[:7])
        found += entries[:, some] @ part.T
    forms = np.einsum("ir,mij,jr->mr", VECTORS, grams, VECTORS)
    inner = np.einsum("mij,rij->mr", grams, MATRICES)
    assert_allclose(found, np.hstack([forms, inner, forms[:, :1]]), rtol=1e-11)


LAYOUTS = [TileLayout(1, 1), TileLayout(13, 5), TileLayout(16, 4), TileLayout(7, 7)]
SLABS = TileLayout(190, 24)  # two slabs of entries
LINES = np.array([4, 0, 2, 4, 3])
SHAPES = [(), (1,), (3,), (4,), (5,), (9,), (MANY,), (MANY + 1,)]

every_case = pytest.mark.parametrize("shape", SHAPES, ids=str)
every_layout = pytest.mark.parametrize("layout", LAYOUTS, ids=str)
every_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def packed(layout: TileLayout, dtype: type) -> tuple[np.ndarray, np.ndarray]:
    """Return five matrices, whole and packed."""
    grams = random_grams(5, layout.n_points)
    return grams, layout.pack(grams.astype(dtype))


@pytest.mark.slow
@pytest.mark.parametrize("layout", [*LAYOUTS, SLABS], ids=str)
@every_case
@every_dtype
def test_products_with_vectors(layout, shape, dtype):
    grams, values = packed(layout, dtype)
    vectors = np.random.default_rng(1).normal(size=(layout.n_points, *shape))
    found = multiply(layout, values, LINES, vectors)
    assert found.dtype == np.float64
    assert_allclose(found, grams[LINES] @ vectors, rtol=1e-12, atol=1e-12)
    forms = quadratic_forms(layout, values, LINES, vectors)
    expected = np.einsum("i...,sij,j...->s...", vectors, grams[LINES], vectors)
    assert_allclose(forms, expected, rtol=1e-12, atol=1e-12)


@every_layout
@every_dtype
@pytest.mark.parametrize("n_lines", [0, 1, 3, 4, 5])
def test_sums_are_added_to_what_is_there(layout, dtype, n_lines):
    grams, values = packed(layout, dtype)
    lines, weights = LINES[:n_lines], np.array([0.5, -1.0, 2.0, 0.25, 3.0])[:n_lines]
    total = layout.pack(np.eye(layout.n_points))
    add_rows(values, lines, weights[None], total[None])
    expected = np.eye(layout.n_points) + np.einsum("s,sij->ij", weights, grams[lines])
    assert_allclose(layout.unpack(total), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("shape", [(), (3,)], ids=str)
def test_products_of_a_matrix_do_not_depend_on_those_beside_it(shape):
    layout = LAYOUTS[1]
    _, values = packed(layout, np.float64)
    vectors = np.random.default_rng(1).normal(size=(layout.n_points, *shape))
    together = multiply(layout, values, LINES, vectors)
    forms = quadratic_forms(layout, values, LINES, vectors)
    for s, line in enumerate(LINES):
        alone = np.array([line])
        np.testing.assert_array_equal(multiply(layout, values, alone, vectors)[0], together[s])
        np.testing.assert_array_equal(quadratic_forms(layout, values, alone, vectors)[0], forms[s])


@pytest.mark.parametrize("part", [np.s_[::2, :], np.s_[:, :-9], np.s_[::-1, :]])
def test_rows_that_lie_apart_are_read_where_they_are(part):
    layout = TileLayout(12, 3)
    values = np.random.default_rng(0).normal(size=(6, layout.n_entries + 9))
    some = values[part][:, : layout.n_entries]
    lines, vector = np.arange(len(some))[::-1].copy(), np.ones(12)
    for function in (multiply, quadratic_forms):
        expected = function(layout, some.copy(), lines, vector)
        np.testing.assert_array_equal(function(layout, some, lines, vector), expected)


def test_one_function_reads_banks_in_memory_and_mapped_ones():
    layout = LAYOUTS[1]
    _, values = packed(layout, np.float64)
    vector = np.random.default_rng(1).normal(size=layout.n_points)
    total, weights = np.zeros(layout.n_entries), np.ones(len(LINES))
    found = []
    for writeable in (True, False):
        values.flags.writeable = writeable
        multiply(layout, values, LINES, vector)
        quadratic_forms(layout, values, LINES, vector)
        quadratic_forms(layout, values, LINES, np.stack([vector, vector], axis=1))
        add_rows(values, LINES, weights[None], total[None])
        layout.unpack(values[0])
        layout.submatrix(values[0], LINES)
        found.append(
            [
                len(function.signatures)
                for module in (dots, layouts, tile_products)
                for function in vars(module).values()
                if isinstance(function, CompiledFunction)
            ]
        )
    assert found[0] == found[1]


N_KERNELS, N_BALL_POINTS = 30, 20
SUBSET = np.array([3, 17, 0, 8, 12, 5])


def kernels() -> Iterator[tuple[str, np.ndarray]]:
    rng = np.random.default_rng(0)
    for n, d in ((2, 3), (3, 1), (40, 1), (60, 3), (90, 20)):
        x = rng.standard_normal((n, d))
        for width in (0.05, 0.5, 2.0, 20.0):
            yield f"Gaussian {width} in {d}, n={n}", rbf_kernel(x, gamma=1 / (2 * width**2))
        for degree in (1, 3):
            yield f"degree {degree} in {d}, n={n}", polynomial_kernel(x, degree=degree)
    x = rng.standard_normal((25, 2))
    yield "every point twice", np.kron(rbf_kernel(x), np.ones((2, 2)))
    yield "far from the origin", (1e4 + x) @ (1e4 + x).T


@pytest.mark.parametrize("K", [pytest.param(K, id=name) for name, K in kernels()])
@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_radius_is_the_conic_solvers(K, scale):
    accuracy = max(1e-10, 1e-15 * np.trace(K) / (np.trace(K) - K.mean() * len(K)))
    assert squared_radius(scale * K) == pytest.approx(
        scale * plain_bank.squared_radius(K), rel=accuracy
    )


def test_rounding_to_float32_costs_no_more_than_it_must():
    x = np.random.default_rng(0).standard_normal((200, 1))
    for width in (0.03, 0.3, 3.0):
        K = rbf_kernel(x, gamma=1 / (2 * width**2))
        rounded = K.astype(np.float32).astype(np.float64)
        assert squared_radius(rounded) == pytest.approx(plain_bank.squared_radius(K), rel=3e-6)


def test_radii_that_are_known():
    assert squared_radius(np.eye(8)) == pytest.approx(1 - 1 / 8, rel=1e-14)
    line = np.array([[-1.0], [0.5], [3.0]])
    assert squared_radius(line @ line.T) == pytest.approx(4.0, rel=1e-12)
    angles = np.linspace(0, 2 * np.pi, 12)
    circle = 3.0 * np.column_stack([np.cos(angles), np.sin(angles)]) + 7.0
    assert squared_radius(circle @ circle.T) == pytest.approx(9.0, rel=1e-11)


@pytest.mark.parametrize("value", [0.0, 0.1, 1e-300, 1e12])
def test_points_that_coincide_have_radius_zero(value):
    assert squared_radius(np.full((7, 7), value)) == 0.0
    assert squared_radius(np.array([[value]])) == 0.0


@pytest.fixture(scope="module")
def grams() -> np.ndarray:
    return random_grams(N_KERNELS, N_BALL_POINTS)


@pytest.fixture
def store(tmp_path: Path, grams: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> BankStore:
    monkeypatch.setattr("mkldist.bank.store.CHUNK_BYTES", 4_000)
    return stored(tmp_path / "banks", grams, "float64")


def opened(store: BankStore, backend: str, tmp_path: Path) -> Bank:
    return open_bank(store, backend, 20_000, NodeCache(tmp_path / "cache"))  # type: ignore[arg-type]


@pytest.mark.parametrize("backend", ["memory", "mmap", "stream"])
@pytest.mark.parametrize("index", [None, SUBSET], ids=["all", "subset"])
def test_bank_answers_what_the_matrices_say(store, grams, tmp_path, backend, index):
    bank = opened(store, backend, tmp_path)
    [found] = answer(bank, [Radii(index)])
    part = grams if index is None else grams[:, index[:, None], index]
    assert_allclose(found, plain_bank.squared_radii(part), rtol=1e-9)
    assert (found.dtype, found.shape) == (np.float64, (N_KERNELS,))


def test_radii_are_computed_once_by_one_traversal_for_all_who_ask(grams):
    bank = MemoryBank.from_grams(grams)
    asked = [
        Radii(),
        Quadratic(np.ones(N_BALL_POINTS)),
        Radii(SUBSET),
        Radii(),
        Radii(SUBSET[::-1]),
    ]
    found = answer(bank, asked)
    assert bank.counter.radii == 2
    assert bank.counter.passes == 2
    assert bank.counter.bytes_read == 2 * bank.n_bytes
    assert_array_equal(found[0], found[3])
    assert_array_equal(found[2], found[4])
    found[0][:] = np.nan
    assert_array_equal(answer(bank, [Radii(np.arange(N_BALL_POINTS))])[0], found[3])
    assert (bank.counter.radii, bank.counter.passes) == (2, 2)


def test_only_the_first_to_ask_needs_a_pass(grams):
    bank = MemoryBank.from_grams(grams)
    assert needs_pass(bank, Radii(SUBSET))
    answer(bank, [Radii(SUBSET)])
    assert not needs_pass(bank, Radii(SUBSET))
    assert needs_pass(bank, Radii())


@pytest.mark.parametrize("index", [np.array([0, 20]), np.array([-1]), np.zeros((2, 2), int), []])
def test_points_outside_the_bank_are_refused(grams, index):
    with pytest.raises(ValueError, match=r"Radii: found points .*; expected some of 0\.\.19"):
        answer(MemoryBank.from_grams(grams), [Radii(np.asarray(index, dtype=np.intp))])


def test_a_mapped_bank_over_its_limit_gives_pages_back(store, tmp_path, monkeypatch):
    given_back = []
    monkeypatch.setattr(MappedBank, "give_back", lambda bank: given_back.append(bank))
    answer(open_bank(store, "mmap", 1_000, NodeCache(tmp_path / "cache")), [Radii(SUBSET)])
    assert given_back


def test_a_damaged_block_is_named(store, tmp_path):
    damage(store, store.shape.blocks[1])
    with pytest.raises(DamagedBlocksError) as caught:
        answer(opened(store, "stream", tmp_path), [Radii()])
    assert caught.value.blocks == (1,)


@every_layout
@every_dtype
def test_vectors_of_one_entry_take_rows_of_a_matrix(layout, dtype):
    grams, values = packed(layout, dtype)
    vectors = np.zeros((layout.n_points, layout.n_points + 5))
    vectors[np.arange(layout.n_points)[::-1], np.arange(layout.n_points)] = 2.0
    np.testing.assert_array_equal(multiply(layout, values, LINES, vectors), grams[LINES] @ vectors)
