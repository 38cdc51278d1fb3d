"""Every kernel function keeps its contract, and has the values of its formula."""

import itertools
import math
import re
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array, random_array
from scipy.special import kv
from sklearn.gaussian_process.kernels import ExpSineSquared, Matern
from sklearn.metrics import jaccard_score
from sklearn.metrics.pairwise import chi2_kernel, laplacian_kernel, polynomial_kernel, rbf_kernel

import mkldist
from mkldist.kernel_functions import FUNCTIONS, MODULES, PARAMETERS
from mkldist.kernel_functions.bases import (
    DIRECT_FEATURES,
    VANISHES_AT,
    Base,
    Tile,
    city_block_distances,
    exponential,
    inner_products,
    inverse_lengths,
    is_sparse,
    mirror,
    squared_distances,
    squared_lengths,
    sums_of_minima,
)
from mkldist.kernel_functions.definition import KernelFunction, Parameter
from mkldist.kernel_functions.histograms import (
    CATEGORICAL,
    CHI_SQUARED,
    INTERSECTION,
    JACCARD,
    TANIMOTO,
)
from mkldist.kernel_functions.products import LINEAR, POLYNOMIAL, integer_power
from mkldist.kernel_functions.radial import ADDITIVE, GAUSSIAN, LAPLACIAN, MATERN, PERIODIC
from mkldist.kernel_functions.text import spectrum_diagonal, spectrum_gram
from mkldist.kernels.evaluate import evaluate
from mkldist.kernels.families import kernel_list
from mkldist.kernels.kernel_list import KernelList
from mkldist.spec.banks import BankSpec
from tests.kernel_functions.made_up import points_of, settings_of, values


def test_every_function_has_a_code_and_a_name_of_its_own():
    defined = [
        one
        for module in MODULES
        for one in vars(module).values()
        if isinstance(one, KernelFunction)
    ]
    assert [one.code for one in FUNCTIONS.values()] == sorted(one.code for one in defined)
    assert all(re.fullmatch("[a-z]+(-[a-z]+)*", one.name) for one in defined)


EACH = pytest.mark.parametrize(
    ("function", "settings"),
    [
        pytest.param(function, settings, id=function.head(*settings))
        for function in FUNCTIONS.values()
        for settings in settings_of(function)
    ],
)


@EACH
def test_gram_matrices_are_symmetric_and_positive_semi_definite(function, settings):
    for seed in range(5):
        points = points_of(function, 24, seed)
        gram = values(function, points, points, *settings, symmetric=True)
        np.testing.assert_array_equal(gram, gram.T)
        assert np.linalg.eigvalsh(gram).min() >= -1e-10 * np.trace(gram)


@EACH
def test_values_between_two_sets_are_a_part_of_the_gram_matrix(function, settings):
    points = points_of(function, 15)
    gram = values(function, points, points, *settings, symmetric=True)
    crossed = values(function, points[:9], points[4:], *settings)
    np.testing.assert_allclose(crossed, gram[:9, 4:], rtol=1e-12, atol=1e-14)


@EACH
def test_the_diagonal_is_that_of_the_gram_matrix(function, settings):
    points = points_of(function, 15)
    gram = values(function, points, points, *settings, symmetric=True)
    if function.diagonal is None:
        np.testing.assert_array_equal(np.diag(gram), 1.0)
    else:
        found = function.diagonal(points, *settings)
        np.testing.assert_allclose(found, np.diag(gram), rtol=1e-13)


def test_codes_are_those_of_banks_that_exist():
    first = ["gaussian", "polynomial", "linear", "laplacian-rbf", "matern", "periodic"]
    rest = ["chi-squared", "intersection", "jaccard", "tanimoto", "categorical", "spectrum"]
    assert list(FUNCTIONS)[:13] == [*first, *rest, "additive"]
    assert [function.code for function in FUNCTIONS.values()] == list(range(len(FUNCTIONS)))


def test_a_key_of_sweep_files_means_one_parameter():
    for function in FUNCTIONS.values():
        assert len(function.parameters) <= 2
        for parameter in function.parameters:
            assert PARAMETERS[parameter.key] is parameter


def test_names_leave_out_a_default_but_never_the_first_parameter():
    place = Parameter("place", "Places.", "count", default=1.0)
    function = KernelFunction("some", 199, "", lambda *_: None, parameters=(place, place))
    assert function.head(1.0, 1.0) == "some(1)"
    assert function.head(2.0, 3.0) == "some(2, place=3)"
    assert FUNCTIONS["linear"].head(1.0, 0.0) == "linear"


RNG = np.random.default_rng(0)
X, Z = RNG.normal(size=(8, 3)), RNG.normal(size=(5, 3))
Z[0] = X[0]


def test_gaussian_and_laplacian():
    found = values(GAUSSIAN, X, Z, 0.7)
    np.testing.assert_allclose(found, rbf_kernel(X, Z, gamma=0.5 / 0.49), rtol=1e-12)
    found = values(LAPLACIAN, X, Z, 0.7)
    np.testing.assert_allclose(found, laplacian_kernel(X, Z, gamma=1 / 0.7), rtol=1e-12)


def test_additive_is_the_mean_of_functions_of_single_features():
    squares = (X[:, None] - Z) ** 2
    found = values(ADDITIVE, X, Z, 0.7)
    np.testing.assert_allclose(found, (1.0 / (1.0 + squares / 0.49)).mean(axis=2), rtol=1e-13)
    far = values(ADDITIVE, X, Z + 1e300, 1e-3)
    np.testing.assert_array_equal(far, 0.0)


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5, 0.3, 3.0, 7.2, 20.0])
def test_matern(nu):
    found = values(MATERN, X, Z, 0.8, nu)
    assert found[0, 0] == 1.0  # of two equal points, where scikit-learn rounds or overflows
    np.testing.assert_allclose(found[1:], Matern(0.8, nu=nu)(X[1:], Z), rtol=1e-10)


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])
def test_the_closed_forms_are_the_bessel_function(nu):
    distances = np.linspace(0.01, 30.0, 200)[:, None]
    t = math.sqrt(2 * nu) * distances / 1.3
    expected = 2 ** (1 - nu) / math.gamma(nu) * t**nu * kv(nu, t)
    found = values(MATERN, distances, np.zeros((1, 1)), 1.3, nu)
    np.testing.assert_allclose(found, expected, rtol=1e-11)


@pytest.mark.parametrize("nu", [0.3, 0.5, 1.5, 2.5, 9.0, 20.0])
def test_matern_is_finite_from_no_distance_to_the_largest(nu):
    distances = np.array([[0.0], [1e-300], [1e-12], [1e-3], [1e3], [1e10]])
    found = values(MATERN, distances, np.zeros((1, 1)), 1.0, nu)[:, 0]
    np.testing.assert_allclose(found[:2], 1.0, rtol=0, atol=1e-15)
    assert np.all(np.diff(found) <= 0)
    assert found[-1] == 0.0


def test_a_smooth_matern_is_almost_a_gaussian():
    smooth, gauss = values(MATERN, X, Z, 1.0, 20.0), values(GAUSSIAN, X, Z, 1.0)
    np.testing.assert_allclose(smooth, gauss, atol=0.02)


def test_periodic_on_one_feature_is_that_of_scikit_learn():
    found = values(PERIODIC, X[:, :1], Z[:, :1], 0.9, 1.7)
    expected = ExpSineSquared(length_scale=0.9, periodicity=1.7)(X[:, :1], Z[:, :1])
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_periodic_on_several_features_is_the_product():
    found = values(PERIODIC, X, Z, 0.9, 1.7)
    factors = [values(PERIODIC, X[:, [j]], Z[:, [j]], 0.9, 1.7) for j in range(3)]
    np.testing.assert_allclose(found, np.prod(factors, axis=0), rtol=1e-12)
    shifted = values(PERIODIC, X + 1.7, Z, 0.9, 1.7)
    np.testing.assert_allclose(shifted, found, rtol=1e-10)


def test_chi_squared_takes_features_that_are_zero_in_both():
    x, z = np.abs(X), np.abs(Z)
    x[:, 1], z[:2, 1] = 0.0, 0.0
    found = values(CHI_SQUARED, x, z, 2.5)
    np.testing.assert_allclose(found, chi2_kernel(x, z, gamma=1 / 2.5), rtol=1e-12)


RNG = np.random.default_rng(0)
SIMILAR_X, SIMILAR_Z = RNG.normal(size=(8, 4)), RNG.normal(size=(5, 4))
COUNTS, OTHERS = RNG.integers(0, 5, (8, 4)).astype(float), RNG.integers(0, 5, (5, 4)).astype(float)
SETS, MORE = (COUNTS > 2).astype(float), (OTHERS > 2).astype(float)


def by_pair(of_pair, left, right) -> np.ndarray:
    return np.array([[of_pair(x, z) for z in right] for x in left])


def test_products():
    np.testing.assert_allclose(
        values(LINEAR, SIMILAR_X, SIMILAR_Z), SIMILAR_X @ SIMILAR_Z.T, rtol=1e-12
    )
    found = values(POLYNOMIAL, SIMILAR_X, SIMILAR_Z, 3.0, 0.5)
    expected = polynomial_kernel(SIMILAR_X, SIMILAR_Z, degree=3, gamma=1.0, coef0=0.5)
    np.testing.assert_allclose(found, expected, rtol=1e-11)


def test_intersection():
    expected = by_pair(lambda x, z: np.minimum(x, z).sum(), COUNTS, OTHERS)
    np.testing.assert_array_equal(values(INTERSECTION, COUNTS, OTHERS), expected)


def test_jaccard_of_sets_is_that_of_scikit_learn():
    expected = by_pair(lambda x, z: jaccard_score(x, z, zero_division=1.0), SETS, MORE)
    np.testing.assert_allclose(values(JACCARD, SETS, MORE), expected, rtol=1e-14)
    np.testing.assert_allclose(values(TANIMOTO, SETS, MORE), expected, rtol=1e-14)


def test_jaccard_of_counts():
    expected = by_pair(lambda x, z: np.minimum(x, z).sum() / np.maximum(x, z).sum(), COUNTS, OTHERS)
    np.testing.assert_allclose(values(JACCARD, COUNTS, OTHERS), expected, rtol=1e-14)


def test_tanimoto_of_vectors():
    expected = by_pair(lambda x, z: x @ z / (x @ x + z @ z - x @ z), SIMILAR_X, SIMILAR_Z)
    np.testing.assert_allclose(values(TANIMOTO, SIMILAR_X, SIMILAR_Z), expected, rtol=1e-12)


def test_two_empty_sets_are_equal_and_one_is_unlike_others():
    some = np.array([[0.0, 0.0], [1.0, 0.0]])
    for function in (JACCARD, TANIMOTO):
        np.testing.assert_array_equal(values(function, some, some), np.eye(2))


def test_categories_are_equal_in_every_feature():
    expected = by_pair(lambda x, z: float((x == z).all()), COUNTS[:, :2], OTHERS[:, :2])
    assert 0.0 < expected.mean() < 1.0
    found = values(CATEGORICAL, COUNTS[:, :2], OTHERS[:, :2])
    np.testing.assert_array_equal(found, expected)


def test_the_coding_of_categories_makes_no_difference():
    codes = RNG.integers(0, 3, 20)
    indicators = np.eye(3)[codes]
    scaled = (indicators - indicators.mean(axis=0)) / indicators.std(axis=0)
    by_number = values(CATEGORICAL, codes[:, None].astype(float), codes[:, None])
    for coded in (indicators, scaled):
        np.testing.assert_array_equal(values(CATEGORICAL, coded, coded), by_number)


LEFT = ["".join(RNG.choice(list("acgt"), size=size)) for size in (0, 1, 2, 5, 12, 30)]
RIGHT = ["".join(RNG.choice(list("acgt"), size=size)) for size in (2, 9, 25)]


def counts(text: str, length: int) -> np.ndarray:
    """Count every word of the alphabet in a text, overlapping."""
    words = map("".join, itertools.product("acgt", repeat=length))
    return np.array(
        [sum(text.startswith(word, start) for start in range(len(text))) for word in words]
    )


@pytest.mark.parametrize("length", [1, 2, 3])
def test_values_are_products_of_counts(length):
    left, right = (np.array([counts(t, length) for t in texts]) for texts in (LEFT, RIGHT))
    np.testing.assert_array_equal(spectrum_gram(LEFT, RIGHT, length), left @ right.T)
    np.testing.assert_array_equal(spectrum_gram(LEFT, length=length), left @ left.T)
    np.testing.assert_array_equal(spectrum_diagonal(LEFT, length), (left**2).sum(axis=1))


def test_normalised_values_are_cosines():
    left, right = (np.array([counts(t, 2) for t in texts]) for texts in (LEFT, RIGHT))
    lengths = np.outer(np.linalg.norm(left, axis=1), np.linalg.norm(right, axis=1))
    expected = np.divide(left @ right.T, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    found = spectrum_gram(LEFT, RIGHT, 2, normalised=True)
    np.testing.assert_allclose(found, expected, rtol=1e-14)
    assert not found[:2].any()


def test_texts_without_a_substring_are_zero():
    np.testing.assert_array_equal(spectrum_gram(["ab", ""], ["abc"], 4), [[0.0], [0.0]])
    assert spectrum_gram([], ["abc"]).shape == (0, 1)


def test_a_bank_of_texts_learns_from_their_gram_matrices():
    texts = ["aba" * (i + 1) for i in range(6)] + ["bcc" * (i + 1) for i in range(6)]
    y = np.repeat([1.0, -1.0], 6)
    lengths = (1, 2, 3)
    of = mkldist.kernels.spectrum_gram
    grams = np.array([of(texts, length=k, normalised=True) for k in lengths])
    bank = mkldist.KernelBank.from_grams(grams)
    solution = mkldist.solve("level", bank, y, C=10.0)
    new = ["abaaba", "ccbccb"]
    crossed = np.array([of(new, texts, k, normalised=True) for k in lengths])
    assert np.sign(solution.decision_function(bank.on(crossed))).tolist() == [1.0, -1.0]


FAR = np.geomspace(1e-3, 1e6, 4000)[:, None]
ORIGIN = np.zeros((1, 1))
OF_DISTANCES = [
    (GAUSSIAN, 0.0), (LAPLACIAN, 0.0), (CHI_SQUARED, 0.0), (MATERN, 0.3), (MATERN, 0.5),
    (MATERN, 1.5), (MATERN, 2.5), (MATERN, 9.0), (PERIODIC, 3.0),
]  # fmt: skip


def test_exponentials_are_numpys_or_zero():
    arguments = np.array([0.0, -1.0, VANISHES_AT + 1e-9, VANISHES_AT, -700.0, -740.0, -np.inf])
    found = arguments.copy()
    exponential(found)
    np.testing.assert_array_equal(found[:3], np.exp(arguments[:3]))
    assert not found[3:].any()


@pytest.mark.parametrize(("function", "second"), OF_DISTANCES)
def test_no_value_is_so_small_that_processors_are_slow_with_it(function, second):
    found = values(function, FAR, ORIGIN, 0.05, second)
    some = found[found > 0.0]
    assert len(some) < len(found)
    assert some.min() > 1e3 * np.finfo(np.float32).tiny
    assert some.max() > 0.9


def test_a_value_that_vanishes_is_lost_in_rounding_beside_the_diagonal():
    assert 1.0 + 1e15 * np.exp(VANISHES_AT) == 1.0


@pytest.mark.parametrize("n_features", [1, 2, DIRECT_FEATURES, DIRECT_FEATURES + 1, 40])
def test_bases_equal_brute_force(n_features):
    rng = np.random.default_rng(n_features)
    left, right = rng.normal(size=(7, n_features)), rng.normal(size=(5, n_features))
    out = np.empty((7, 5))
    difference = left[:, None] - right[None]
    inner_products(left, right, 0.0, out)
    np.testing.assert_allclose(out, np.sum(left[:, None] * right[None], axis=2), atol=1e-12)
    squared_distances(left, right, 0.0, out)
    np.testing.assert_allclose(out, np.sum(difference**2, axis=2), rtol=1e-12)
    city_block_distances(left, right, 0.0, out)
    np.testing.assert_allclose(out, np.sum(np.abs(difference), axis=2), rtol=1e-12)
    sums_of_minima(left, right, 0.0, out)
    np.testing.assert_allclose(out, np.sum(np.minimum(left[:, None], right), axis=2), rtol=1e-12)


@pytest.mark.parametrize("n_features", [1, 30])
def test_squared_distances_survive_points_far_from_the_origin(n_features):
    rng = np.random.default_rng(0)
    points = rng.normal(size=(20, n_features)) + 1e6
    out = np.empty((20, 20))
    squared_distances(points, points, 0.0, out)
    exact = np.array(
        [
            [float(sum((Fraction(a) - Fraction(b)) ** 2 for a, b in zip(x, z, strict=True)))
             for z in points.tolist()]
            for x in points.tolist()
        ]
    )  # fmt: skip
    np.testing.assert_allclose(out, exact, rtol=1e-9, atol=1e-12)


@given(st.integers(1, 40), st.floats(-3, 3))
def test_integer_power_equals_power(exponent, value):
    values = np.array([value])
    with np.errstate(under="ignore"):
        integer_power(values, exponent)
        expected = np.array([value]) ** exponent
    np.testing.assert_allclose(values, expected, rtol=1e-13, atol=1e-300)


def test_inverse_lengths_are_zero_where_a_point_has_no_length():
    found = inverse_lengths(np.array([[4.0, 0.0], [-1e-20, 0.25]]))
    np.testing.assert_array_equal(found, [[0.5, 0.0], [0.0, 2.0]])


def counted(*, is_distance: bool) -> tuple[Base, list[float]]:
    """Return a base that is asymmetric, and the parameters of its computations."""
    calls: list[float] = []

    def compute(left, right, parameter, out):
        calls.append(parameter)
        out[...] = parameter + np.arange(out.size).reshape(out.shape)

    return Base("some", compute, is_distance=is_distance), calls


def test_a_base_is_computed_once_for_a_parameter_and_points():
    base, calls = counted(is_distance=False)
    tile = Tile.of(np.zeros((2, 1)), np.zeros((3, 1)))
    assert tile.base(base, 2.0) is tile.base(base, 2.0)
    assert tile.base(base, 5.0)[0, 0] == 5.0
    assert tile.base(base, 2.0)[0, 0] == 2.0
    tile.enter(np.ones((2, 1)), np.ones((3, 1)))
    tile.base(base, 2.0)
    assert calls == [2.0, 5.0, 2.0, 2.0]


def test_bases_of_equal_points_are_symmetric_and_distances_zero():
    points = np.zeros((3, 1))
    for is_distance, diagonal in ((False, [0, 4, 8]), (True, [0, 0, 0])):
        base, _ = counted(is_distance=is_distance)
        found = Tile.of(points, points, symmetric=True).base(base)
        np.testing.assert_array_equal(found, found.T)
        assert np.diag(found).tolist() == diagonal
        assert found[1, 0] == 1.0


def test_the_upper_triangle_is_mirrored():
    square = np.arange(9.0).reshape(3, 3)
    mirror(square)
    np.testing.assert_array_equal(square, [[0, 1, 2], [1, 4, 5], [2, 5, 8]])


D = 50


def sparse_kernels() -> KernelList:
    features: list[Any] = ["all", "f3", "some", {"count": 3}]
    entries = [
        {"function": "gaussian", "widths": [0.5, 2.0], "features": features},
        {"function": "polynomial", "degrees": [1, 3], "features": features},
        {"function": "linear", "features": features},
    ]
    names = tuple(f"f{j}" for j in range(D))
    spec = BankSpec.model_validate({"kernels": entries})
    return kernel_list(spec, D, names, {"some": tuple(range(0, D, 7))}, 0)


def sparse_points(n: int, seed: int) -> csr_array:
    return csr_array(random_array((n, D), density=0.1, rng=np.random.default_rng(seed)))


@pytest.mark.parametrize("cosine", [False, True])
def test_kernels_are_those_of_dense_points(cosine):
    kernels, points, others = sparse_kernels(), sparse_points(20, 0), sparse_points(9, 1)
    for left, right in ((points, points), (points, others)):
        expected = evaluate(
            kernels, left.toarray(), right.toarray(), cosine=cosine, symmetric=left is right
        )
        found = evaluate(kernels, left, right, cosine=cosine)
        assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
    square = evaluate(kernels, points, points, cosine=cosine)
    assert_array_equal(square, square.swapaxes(1, 2))


def test_points_are_never_made_dense(monkeypatch):
    points = sparse_points(20, 0)
    made: list[tuple[int, ...]] = []
    plain = csr_array.toarray

    def toarray(self: csr_array, *args: Any, **kwargs: Any) -> np.ndarray:
        made.append(self.shape)
        return plain(self, *args, **kwargs)

    monkeypatch.setattr(csr_array, "toarray", toarray)
    evaluate(sparse_kernels(), points, points)
    assert set(made) == {(20, 20)}


def test_lengths_and_kinds():
    points = sparse_points(5, 2)
    assert_allclose(squared_lengths(points), (points.toarray() ** 2).sum(axis=1), rtol=1e-14)
    assert_allclose(squared_lengths(points.toarray()), squared_lengths(points), rtol=1e-14)
    assert is_sparse(points)
    assert not is_sparse(points.toarray())
