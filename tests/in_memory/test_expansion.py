"""Decision functions apart from their bank: those of the bank, for every kind of coefficients."""

from __future__ import annotations

import tracemalloc

import numpy as np
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


def test_gram_matrices_have_no_points():
    grams = np.array([X @ X.T])
    bank = KernelBank.from_grams(grams)
    with pytest.raises(GramError, match="found given Gram matrices; expected kernels of features"):
        bank.expansion(mkldist.solve("uniform", bank, Y))


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
