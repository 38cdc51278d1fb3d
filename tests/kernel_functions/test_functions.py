"""Every kernel function keeps its contract, and has the values of its formula."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.special import kv
from sklearn.gaussian_process.kernels import ExpSineSquared, Matern
from sklearn.metrics import jaccard_score
from sklearn.metrics.pairwise import chi2_kernel, laplacian_kernel, polynomial_kernel, rbf_kernel

import mkldist
from mkldist.kernel_functions import registry
from mkldist.kernel_functions.bases import VANISHES_AT, exponential
from mkldist.kernel_functions.categorical import CATEGORICAL
from mkldist.kernel_functions.definition import KernelFunction, Parameter
from mkldist.kernel_functions.histograms import CHI_SQUARED, INTERSECTION, JACCARD, TANIMOTO
from mkldist.kernel_functions.products import LINEAR, POLYNOMIAL
from mkldist.kernel_functions.radial import ADDITIVE, GAUSSIAN, LAPLACIAN, MATERN, PERIODIC
from mkldist.kernel_functions.registry import FUNCTIONS
from mkldist.kernel_functions.text import spectrum_diagonal, spectrum_gram
from tests.kernel_functions.points import points_of, settings_of, values

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
            assert registry.PARAMETERS[parameter.key] is parameter


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
