"""Compiled loops over kernel values: tiles, products, sums, values in arrays."""

import itertools

import numpy as np
import pytest

from mkldist.bank.device import TAKEN, ArrayValues, powers, takes
from mkldist.kernel_functions import FUNCTIONS
from mkldist.kernel_functions.bases import VANISHES_AT
from mkldist.kernels import loops
from mkldist.kernels.evaluate import diagonals, evaluate
from mkldist.kernels.families import kernel_list
from mkldist.kernels.kernel_list import KernelList
from mkldist.kernels.loops import (
    WIDE,
    WIDTH,
    expansion_sums,
    fill_tiles,
    kernel_forms,
    kernel_products,
    weighted_values,
)
from mkldist.spec.banks import BankSpec
from tests.kernels.made_up import DEVICES, bank, by_scikit_learn, device_there, kernels_of, listed


def tiles(
    kernels: KernelList, points: np.ndarray, edge: int, *, cosine: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Return all tiles of the upper triangle, (M, t, b, b), and where they are, (t, 2)."""
    n_edges = -(-len(points) // edge)
    rows, cols = np.triu_indices(n_edges)
    out = np.full((len(kernels), len(rows), edge, edge), np.nan)
    columns = np.ascontiguousarray(points.T)
    fill_tiles(kernels, columns, rows, cols, out, cosine=cosine)
    return out, np.stack([rows, cols], axis=1)


@pytest.mark.slow
@pytest.mark.parametrize("cosine", [False, True])
@pytest.mark.parametrize("d", [7, WIDE + 3])
def test_tiles_equal_scikit_learn_and_end_in_zeros(d, cosine):
    points = 3 + np.random.default_rng(0).normal(size=(11, d)) / np.sqrt(d)
    kernels, edge = bank(d), 4
    found, places = tiles(kernels, points, edge, cosine=cosine)
    for m in range(len(kernels)):
        expected = np.zeros((12, 12))
        expected[:11, :11] = by_scikit_learn(kernels, m, points, points, cosine=cosine)
        for tile, (row, col) in zip(found[m], places, strict=True):
            part = expected[row * edge :, col * edge :][:edge, :edge]
            np.testing.assert_allclose(tile, part, rtol=1e-9, atol=1e-11)
            np.testing.assert_array_equal(tile[part == 0], 0.0)
            if row == col:
                np.testing.assert_array_equal(tile, tile.T)


@pytest.mark.slow
def test_tiles_are_symmetric_where_their_row_begins_left_of_the_diagonal():
    points, edge = np.random.default_rng(3).normal(size=(11, WIDE + 3)) / 8, 4
    kernels, rows, cols = bank(WIDE + 3), np.array([2, 2, 2]), np.array([0, 1, 2])
    found = np.full((len(kernels), 3, edge, edge), np.nan)
    fill_tiles(kernels, np.ascontiguousarray(points.T), rows, cols, found)
    for m in range(len(kernels)):
        expected = by_scikit_learn(kernels, m, points[8:], points)
        whole = np.hstack(found[m])
        np.testing.assert_allclose(whole[:3, :11], expected, rtol=1e-9, atol=1e-11)
        np.testing.assert_array_equal(found[m, 2], found[m, 2].T)


@pytest.mark.slow
@pytest.mark.parametrize("d", [7, 2 * WIDE + 3])
@pytest.mark.parametrize("cosine", [False, True])
def test_diagonals_equal_scikit_learn(cosine, d):
    points, kernels = np.random.default_rng(1).normal(size=(9, d)) / np.sqrt(d), bank(d)
    found = diagonals(kernels, points, cosine=cosine)
    for m in range(len(kernels)):
        expected = np.diag(by_scikit_learn(kernels, m, points, points, cosine=cosine))
        np.testing.assert_allclose(found[m], expected, rtol=1e-12)


def test_a_point_of_no_length_has_zero_cosines():
    kernels = kernel_list(BankSpec(kernels=[{"function": "linear"}]), 1, ["x"], {}, 0)
    points = np.array([[0.0], [2.0], [-3.0]])
    found, _ = tiles(kernels, points, 3, cosine=True)
    np.testing.assert_array_equal(found[0, 0], [[0, 0, 0], [0, 1, -1], [0, -1, 1]])
    np.testing.assert_array_equal(diagonals(kernels, points, cosine=True), [[0, 1, 1]])


def test_values_of_distances_that_overflow_do_not_vanish():
    """The BLAS takes infinity from infinity where many features overflow."""
    spec, d = BankSpec(kernels=[{"function": "gaussian", "widths": 1.0}]), WIDE + 6
    kernels = kernel_list(spec, d, [f"f{j}" for j in range(d)], {}, 0)
    points = np.full((4, d), 1e200) * np.array([[1.0], [-1.0], [0.5], [2.0]])
    with np.errstate(all="ignore"):  # of what it is compared with
        expected = evaluate(kernels, points, points)[0]
    found, _ = tiles(kernels, points, 4)
    assert np.isnan(found).any()
    np.testing.assert_array_equal(found[0, 0], expected)


@pytest.mark.parametrize("function", ["gaussian", "laplacian-rbf"])
def test_exponentials_reach_from_one_to_where_they_vanish(function):
    kernels = kernel_list(
        BankSpec(kernels=[{"function": function, "widths": 1.0}]), 1, ["x"], {}, 0
    )
    points = np.linspace(0.0, 90.0, 300)[:, None]
    found, _ = tiles(kernels, points, 300)
    distances = np.abs(points - points.T)
    arguments = -0.5 * distances**2 if function == "gaussian" else -distances
    expected = np.where(arguments > VANISHES_AT, np.exp(arguments), 0.0)
    np.testing.assert_allclose(found[0, 0], expected, rtol=1e-13)
    assert found[found > 0].min() < 1e-33


RNG = np.random.default_rng(0)
KINDS = ["gaussian", "gaussian", "polynomial", "linear", "laplacian-rbf"]
KERNELS = listed(KINDS, [[0, 1, 2, 3, 4], [2], [4, 0]], [0.5, 2.0, 3.0, 1.0, 1.5])


@pytest.mark.parametrize("n_support", [1, 7, WIDTH - 1, WIDTH, 2 * WIDTH + 76])
@pytest.mark.parametrize("n_vectors", [1, 3])
def test_products_and_weighted_values_are_those_of_evaluated_kernels(n_support, n_vectors):
    points, x = RNG.normal(size=(n_support, 5)), RNG.normal(size=(13, 5))
    vectors, weights = RNG.normal(size=(n_support, n_vectors)), RNG.random(len(KERNELS))
    values = evaluate(KERNELS, x, points)
    expected = values @ vectors
    found = kernel_products(KERNELS, points, vectors, x)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * np.abs(expected).max())
    total = np.tensordot(weights, values, axes=1)
    found = weighted_values(KERNELS, weights, points, x)
    np.testing.assert_allclose(found, total, rtol=0, atol=1e-12 * np.abs(total).max())


@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 2, WIDTH + 1, WIDTH + 188])
def test_parts_of_the_triangle_add_up_to_forms(n):
    points, vectors = RNG.normal(size=(n, 5)), RNG.normal(size=(n, 2))
    expected = np.einsum("ir,mij,jr->mr", vectors, evaluate(KERNELS, points, points), vectors)
    cuts = sorted({0, n // 3, n // 2, n})
    parts = [slice(a, b) for a, b in itertools.pairwise(cuts)]
    found = sum(kernel_forms(KERNELS, points, vectors, rows) for rows in parts)
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_no_points_have_products_of_zero():
    found = kernel_products(KERNELS, np.zeros((0, 5)), np.zeros((0, 1)), RNG.normal(size=(3, 5)))
    assert found.shape == (len(KERNELS), 3, 1)
    assert not found.any()


G, P, L, R = (
    FUNCTIONS[name].code for name in ("gaussian", "polynomial", "linear", "laplacian-rbf")
)


def coded(functions: list[int], subsets: list[list[int]]) -> KernelList:
    """Return every function on every subset, with parameters of its own."""
    n = len(functions) * len(subsets)
    function = np.tile(functions, len(subsets))
    width = RNG.uniform(0.3, 3.0, n)
    return KernelList(
        function=function,
        parameter=np.where(function == P, 3.0, np.where(function == L, 1.0, width)),
        offset=np.where(function == P, 1.0, 0.0),
        subset=np.repeat(np.arange(len(subsets)), len(functions)),
        subset_indptr=np.cumsum([0, *map(len, subsets)]),
        subset_indices=np.concatenate(subsets),
    )


@pytest.mark.parametrize("own", [False, True], ids=["shared", "own"])
@pytest.mark.parametrize("n_functions", [1, 4])
@pytest.mark.parametrize("n_support", [1, 7, 64])
@pytest.mark.parametrize(
    ("functions", "subsets"),
    [([G], [[0, 1, 2, 3, 4]]), ([G, G, P, L, R], [[0, 1, 2, 3, 4], [2], [4, 0]]), ([L, P], [[3]])],
    ids=["gaussian", "all", "products"],
)
def test_sums_are_those_of_evaluated_kernels(functions, subsets, n_support, n_functions, own):
    kernels = coded(functions, subsets)
    points, x = (
        RNG.normal(size=(n_support, 5)),
        RNG.normal(size=(13, 5)),
    )
    weights = RNG.random(len(kernels))
    shape = (len(kernels), n_support, n_functions) if own else (n_support, n_functions)
    coefficients = RNG.normal(size=shape)
    values = evaluate(kernels, x, points)
    expected = (weights[:, None, None] * (values @ coefficients)).sum(axis=0)
    found = expansion_sums(kernels, points, weights, coefficients, x)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11 * np.abs(expected).max())


def test_far_points_have_no_share():
    kernels = coded([G, R], [[0, 1]])
    points = np.zeros((3, 2))
    found = expansion_sums(kernels, points, np.ones(2), np.ones((3, 1)), np.full((1, 2), 1e6))
    assert 0.0 <= found[0, 0] < 1e-300


def test_no_new_points_have_no_sums():
    kernels = coded([G], [[0]])
    found = expansion_sums(kernels, np.ones((2, 1)), np.ones(1), np.ones((2, 3)), np.ones((0, 1)))
    assert found.shape == (0, 3)


def test_kernels_on_many_features_are_left_to_products_of_matrices():
    assert loops.takes(coded([G], [list(range(WIDE))]))
    assert not loops.takes(coded([G], [[0], list(range(WIDE + 1))]))


POINTS = np.abs(np.random.default_rng(0).normal(size=(11, 3)))
POINTS[3] = 0.0
EDGE = 4


def products(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    return left @ right.T


def mixed() -> KernelList:
    """Return kernels of compiled and other functions, in turn."""
    entries = [
        {"function": "gaussian", "widths": [0.5, 1], "features": ["all", "each"]},
        {"function": "matern", "widths": 1, "features": ["all", "each"]},
        {"function": "linear"},
        {"function": "jaccard", "features": ["each", "all"]},
        {"function": "intersection"},
        {"function": "periodic", "widths": 1, "period": [1, 2], "features": "all"},
        {"function": products},
        {"function": "polynomial", "degrees": 2, "features": "all"},
    ]
    return kernel_list(BankSpec(kernels=entries), 3, ["a", "b", "c"], {}, 0)


def filled(kernels: KernelList, dtype: type, *, cosine: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the tiles of the upper triangle and their places, (2, t)."""
    places = np.array(np.triu_indices(3))
    out = np.full((len(kernels), places.shape[1], EDGE, EDGE), np.nan, dtype)
    fill_tiles(kernels, np.ascontiguousarray(POINTS.T), *places, out, cosine=cosine)
    return out, places


@pytest.mark.parametrize("cosine", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_tiles_are_parts_of_the_gram_matrices_and_end_in_zeros(dtype, cosine):
    kernels = mixed()
    expected = np.zeros((len(kernels), 12, 12))
    expected[:, :11, :11] = evaluate(kernels, POINTS, POINTS, cosine=cosine)
    found, places = filled(kernels, dtype, cosine=cosine)
    rounding = 1e-6 if dtype is np.float32 else 1e-12
    for tiles, (row, col) in zip(found.swapaxes(0, 1), places.T, strict=True):
        part = expected[:, row * EDGE :, col * EDGE :][:, :EDGE, :EDGE]
        np.testing.assert_allclose(tiles, part, rtol=rounding, atol=rounding)
        if row == col:
            np.testing.assert_array_equal(tiles, tiles.swapaxes(1, 2))


@pytest.mark.parametrize("cosine", [False, True])
def test_diagonals_are_those_of_the_gram_matrices(cosine):
    kernels = mixed()
    expected = np.einsum("mii->mi", evaluate(kernels, POINTS, POINTS, cosine=cosine))
    found = diagonals(kernels, np.ascontiguousarray(POINTS.T).T, cosine=cosine)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    np.testing.assert_allclose(diagonals(kernels, POINTS, cosine=cosine), expected, rtol=1e-12)


def test_kernels_of_compiled_functions_take_one_call_of_the_loop(monkeypatch):
    calls = []
    fill = loops._fill
    monkeypatch.setattr(loops, "_fill", lambda *args: calls.append(fill(*args)))
    family = kernel_list(BankSpec(family="xu2008"), 3, ["a", "b", "c"], {}, 0)
    filled(family, np.float64, cosine=True)
    assert len(calls) == 1


def test_the_codes_of_the_loop_are_those_of_its_functions():
    assert [function.code for function in loops.COMPILED] == [0, 1, 2, 3]


@pytest.fixture(params=DEVICES)
def device(request):
    return device_there(request.param)


@pytest.mark.parametrize("n_features", [1, 5, 70])
def test_values_are_those_of_the_formulas(device, n_features):
    points = RNG.normal(100.0, 3.0, (17, n_features))
    kernels = kernels_of(n_features)
    values = ArrayValues(device, points, kernels)
    rows, cols = slice(2, 9), np.array([16, 0, 3])
    chosen = np.array([3, 0, 1, 2, 7, 5])
    found = np.stack([device.host(one) for _, one in values.tile(chosen, rows, cols)])
    expected = evaluate(kernels.select(chosen), points[rows], points[cols])
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-13)
    [(_, own)] = values.tile(np.array([0]), rows, rows, diagonal=True)
    assert (np.diagonal(device.host(own)) == 1.0).all()


def test_narrow_kernels_lose_no_digits_far_from_the_origin(device):
    points = 1e6 + RNG.normal(size=(6, 5))
    kernels = kernels_of(5).select([0])
    kernels.parameter[:] = 0.5
    [(_, found)] = ArrayValues(device, points, kernels).tile(
        np.array([0]), slice(0, 6), slice(0, 6)
    )
    near = (points - 1e6).astype(np.longdouble)  # exact
    squares = ((near[:, None] - near) ** 2).sum(axis=2)
    np.testing.assert_allclose(device.host(found), np.exp(-2.0 * squares), rtol=1e-8)


def test_values_far_away_vanish_and_overflow_shows(device):
    points = np.array([[0.0], [30.0], [1e100]])
    kernels = kernels_of(1).select([0])
    kernels.parameter[:] = 1.0
    tile = ArrayValues(device, points, kernels).tile(np.array([0]), slice(0, 3), slice(0, 3))
    [(_, found)] = tile
    np.testing.assert_array_equal(device.host(found), np.eye(3))
    points[1:] = np.nan
    tile = ArrayValues(device, points, kernels).tile(np.array([0]), slice(0, 3), slice(0, 3))
    [(_, found)] = tile
    assert np.isnan(device.host(found)[0, 1:]).all()


def test_rows_and_columns_have_factors(device):
    points, kernels = RNG.normal(size=(5, 2)), kernels_of(2)
    factors = RNG.random((len(kernels), 5))
    [(place, found)] = ArrayValues(device, points, kernels, factors).tile(
        np.array([4]), slice(0, 5), slice(1, 4)
    )
    plain = evaluate(kernels.select([4]), points, points[1:4])[0]
    assert place == 0
    np.testing.assert_allclose(device.host(found), plain * np.outer(factors[4], factors[4, 1:4]))


@pytest.mark.parametrize("degree", [1, 2, 3, 6, 13])
def test_powers(degree):
    assert powers(np.array([-1.5, 2.0]), degree) == pytest.approx([(-1.5) ** degree, 2.0**degree])


def test_only_some_functions_are_taken():
    kernels = kernels_of(3)
    assert takes(kernels)
    other = KernelList(
        function=[FUNCTIONS["matern"].code],
        parameter=[1.0],
        offset=[2.5],
        subset=[0],
        subset_indptr=[0, 1],
        subset_indices=[0],
    )
    assert not takes(other)
    assert TAKEN == ("gaussian", "polynomial", "linear", "laplacian-rbf")


def test_distances_that_overflow_are_not_zero(device):
    points = np.full((4, 70), 1e200) * np.array([[1.0], [-1.0], [0.5], [2.0]])
    values = ArrayValues(device, points, kernels_of(70))
    with np.errstate(all="ignore"):
        [(_, found)] = values.tile(np.array([0]), slice(0, 4), slice(0, 4))
        expected = evaluate(kernels_of(70).select([0]), points, points)[0]
    assert np.isnan(expected).any()
    assert not (device.host(found) == 1.0).any()
