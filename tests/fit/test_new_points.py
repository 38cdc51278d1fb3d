"""Decision functions at new points and apart from the bank."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest

import mkldist
from mkldist import KernelBank
from mkldist.errors import GramError
from mkldist.fit import decision as expansion_module
from mkldist.kernels import Gaussian, Polynomial

RNG = np.random.default_rng(0)
X, NEW = RNG.normal(size=(50, 3)), RNG.normal(size=(17, 3))
Y = np.where(X[:, 0] * X[:, 1] > 0, 1.0, -1.0)
KERNELS = [Gaussian(widths=[0.5, 1.0, 2.0], features=["all", "each"]), Polynomial(degrees=[1, 2])]


@pytest.mark.parametrize("normalisation", ["trace", "variance", ["centre", "trace"], "cosine"])
@pytest.mark.parametrize("method", ["level", "spicymkl"])  # the latter has coefficients per kernel
def test_values_are_those_on_the_bank(method, normalisation):
    bank = KernelBank(X, KERNELS, normalisation=normalisation)
    options = {"C": 1000.0} if method == "level" else {"C": 100.0}
    solution = mkldist.solve(method, bank, Y, **options)
    expansion = bank.expansion(solution)
    expected = solution.decision_function(bank.on(NEW))
    np.testing.assert_allclose(expansion.values(NEW)[:, 0], expected, atol=1e-10)
    assert len(expansion.kernels) == np.count_nonzero(solution.kernel_weights)


@pytest.mark.parametrize("normalisation", ["none", "variance", ["centre", "trace"], "cosine"])
def test_grams_at_new_points_are_those_that_decision_functions_take(normalisation):
    bank = KernelBank(X, KERNELS, normalisation=normalisation)
    solution = mkldist.solve("uniform", bank, Y)
    grams = bank.on(NEW).grams()
    assert grams.shape == (len(bank), len(NEW), len(X))
    expected = solution.decision_function(bank.on(NEW))
    np.testing.assert_allclose(solution.decision_function(grams), expected, atol=1e-10)


def test_classes_that_share_weights_are_columns():
    bank = KernelBank(X, KERNELS)
    columns = np.stack([Y, np.where(X[:, 2] > 0, 1.0, -1.0)], axis=1)
    solution = mkldist.solve("level", bank, columns, C=100.0)
    expected = solution.decision_function(bank.on(NEW))
    np.testing.assert_allclose(bank.expansion(solution).values(NEW), expected, atol=1e-10)


def test_it_keeps_support_points_alone_and_evaluates_in_bounded_memory():
    bank = KernelBank(X, KERNELS)
    solution = mkldist.solve("level", bank, Y, C=1000.0)
    expansion = bank.expansion(solution)
    assert len(expansion.points) == np.count_nonzero(solution.coefficients) < len(X)
    many = np.tile(NEW, (4000, 1))
    tracemalloc.start()
    kernels = expansion.names(("a", "b", "c"))
    found = expansion.contributions(kernels, many)
    taken = tracemalloc.get_traced_memory()[1] - found.nbytes
    tracemalloc.stop()
    assert taken < found.size * len(expansion.points)  # an eighth of the bytes of all values
    np.testing.assert_allclose(
        found[-len(NEW) :], expansion.contributions(kernels, NEW), atol=1e-12
    )
    np.testing.assert_allclose(
        expansion.contributions(kernels, NEW).sum(axis=1), expansion.values(NEW), atol=1e-12
    )


@pytest.mark.parametrize("method", ["level", "spicymkl"])
def test_many_values_come_from_the_compiled_loop(method, monkeypatch):
    bank = KernelBank(X, KERNELS)
    solution = mkldist.solve(method, bank, Y, C=1000.0 if method == "level" else 100.0)
    expansion = bank.expansion(solution)
    plain = expansion.values(NEW)
    calls = []
    sums = expansion_module.expansion_sums

    def counted(*given):
        calls.append(len(given[-1]))
        return sums(*given)

    monkeypatch.setattr(expansion_module, "expansion_sums", counted)
    np.testing.assert_allclose(expansion.values(NEW, many_values=1), plain, rtol=0, atol=1e-12)
    assert calls == [len(NEW)]
    cosines = KernelBank(X, KERNELS, normalisation="cosine")
    of_cosines = cosines.expansion(mkldist.solve("uniform", cosines, Y))
    of_cosines.values(NEW, many_values=1)
    assert calls == [len(NEW)]  # cosines are left to products of matrices


FRAME = pd.DataFrame(np.random.default_rng(0).normal(size=(9, 2)), columns=["age", "bmi"])
ENTRIES = [
    {"function": "gaussian", "widths": [0.5, 2], "features": ["all", "bmi"]},
    {"function": "polynomial", "degrees": 3, "offset": 2.0},
    {"function": "linear", "features": "age"},
    {"function": "laplacian-rbf", "widths": 4, "features": "age"},
]


def on_features(normalisation="none"):
    return KernelBank(FRAME[:6], ENTRIES, normalisation=normalisation)


def test_the_table_describes_every_kernel():
    columns = ["function", "width", "degree", "offset", "features", "columns", "name"]
    table = on_features().kernels[columns]
    both, nan = ("all", ("age", "bmi")), np.nan
    age, bmi = ("age", ("age",)), ("bmi", ("bmi",))
    expected = pd.DataFrame(
        [
            ("gaussian", 0.5, nan, nan, *both, "gaussian(0.5)[all]"),
            ("gaussian", 2.0, nan, nan, *both, "gaussian(2)[all]"),
            ("polynomial", nan, 3.0, 2.0, *both, "polynomial(3, offset=2)[all]"),
            ("gaussian", 0.5, nan, nan, *bmi, "gaussian(0.5)[bmi]"),
            ("gaussian", 2.0, nan, nan, *bmi, "gaussian(2)[bmi]"),
            ("linear", nan, nan, nan, *age, "linear[age]"),
            ("laplacian-rbf", 4.0, nan, nan, *age, "laplacian-rbf(4)[age]"),
        ],
        columns=columns,
    )
    assert set(map(tuple, table.astype(str).to_numpy())) == set(
        map(tuple, expected.astype(str).to_numpy())
    )


def test_part_of_the_kernels_keep_their_descriptions():
    whole, order = on_features(), [4, 0, 6]
    part, table = whole[order].kernels, whole.kernels
    columns = ["function", "width", "degree", "features"]
    pd.testing.assert_frame_equal(part[columns], table[columns].iloc[order].reset_index(drop=True))


def values_at(points, kernel):
    """Return the values of one kernel, as stored, between new points and those of its bank."""
    one = np.zeros(points.view.n_kernels)
    one[kernel] = 1.0
    units = np.eye(points.view.n_points)
    return np.array([points.decision_values(one, unit, 0.0) for unit in units]).T


def test_kernels_at_new_points_are_their_formulas():
    bank, new, train = on_features(), FRAME.to_numpy()[6:], FRAME.to_numpy()[:6]
    points, names = bank.on(FRAME[6:]), bank.kernels.name.tolist()
    squares = ((new[:, None] - train) ** 2).sum(axis=2)
    found = values_at(points, names.index("gaussian(2)[all]"))
    np.testing.assert_allclose(found, np.exp(-squares / 8), rtol=1e-12)
    found = values_at(points, names.index("polynomial(3, offset=2)[all]"))
    np.testing.assert_allclose(found, (2 + new @ train.T) ** 3, rtol=1e-12)
    found = values_at(points, names.index("laplacian-rbf(4)[age]"))
    np.testing.assert_allclose(found, np.exp(-abs(new[:, None, 0] - train[:, 0]) / 4), rtol=1e-12)


def test_cosines_at_new_points_have_the_lengths_of_both():
    bank, new, train = on_features("cosine"), FRAME.to_numpy()[6:], FRAME.to_numpy()[:6]
    kernel = bank.kernels.name.tolist().index("polynomial(3, offset=2)[all]")
    lengths = [np.sqrt((2 + (x**2).sum(axis=1)) ** 3) for x in (new, train)]
    expected = (2 + new @ train.T) ** 3 / np.outer(*lengths)
    np.testing.assert_allclose(values_at(bank.on(FRAME[6:]), kernel), expected)


def test_given_values_are_read_kernel_by_kernel():
    cross = np.random.default_rng(1).normal(size=(3, 4, 6)).astype(np.float32)
    bank = KernelBank.from_grams(np.stack([np.eye(6)] * 3), names=["a", "b", "c"])
    np.testing.assert_array_equal(values_at(bank.on(cross), 1), cross[1])
    np.testing.assert_array_equal(values_at(bank.on(cross.tolist()), 2), cross[2])
    part = bank[[2, 0]]
    assert part.kernels.name.tolist() == ["c", "a"]
    np.testing.assert_array_equal(values_at(part.on(cross[[2, 0]]), 1), cross[0])
    with pytest.raises(GramError, match=r"X_new: found shape \(3, 4, 6\); .* \(2, n_new, 6\)"):
        part.on(cross)


def test_matrices_have_names():
    grams = np.stack([np.eye(3)] * 2)
    assert KernelBank.from_grams(grams).kernels.name.tolist() == ["gram[0]", "gram[1]"]
    named = KernelBank.from_grams(grams, names=[1, "b"])
    assert named.kernels.name.tolist() == ["1", "b"]
    with pytest.raises(
        GramError, match="names: found 1 name for 2 matrices; expected one a matrix"
    ):
        KernelBank.from_grams(grams, names=["a"])
