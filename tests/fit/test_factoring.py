"""Banks of thin factors in Python: settings, sizes, parts and refusals."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import mkldist
from mkldist import KernelBank
from mkldist.bank.factor_bank import FactorBank
from mkldist.bank.factored_kernels import FactorLimits, least_bytes
from mkldist.errors import DataError, GramError, SpecError
from mkldist.fit import bank as factoring

X = np.random.default_rng(0).normal(size=(80, 3))
Y = np.where(X[:, 0] * X[:, 1] > 0, 1.0, -1.0)
ENTRIES = [{"function": "gaussian", "widths": [0.5, 2], "features": ["all", "each"]}]


@pytest.mark.parametrize("normalisation", ["none", "trace", "cosine", "variance"])
def test_factors_lie_below_the_normalised_kernels(normalisation):
    with (
        KernelBank(X, ENTRIES, normalisation=normalisation) as kernels,
        KernelBank(X, ENTRIES, normalisation=normalisation, backend="factors", rank=20) as bank,
    ):
        assert_allclose(bank.view.scale, kernels.view.scale, rtol=1e-10)
        assert isinstance(bank.view.bank, FactorBank)
        vectors = np.random.default_rng(1).normal(size=(80, 50))
        from mkldist.bank.requests import Quadratic
        from mkldist.bank.view import answer_views

        above, below = (
            answer_views([(view, Quadratic(vectors))])[0] for view in (kernels.view, bank.view)
        )
        exact = bank.factored.exactly(Quadratic(vectors))
        assert (below <= above * (1 + 1e-12)).all()
        assert_allclose(exact, above, rtol=1e-10)


def test_ranks_and_tolerance_are_kept():
    with KernelBank(
        X, ENTRIES, backend="factors", rank=12, tolerance=0.1, normalisation="trace"
    ) as bank:
        factors = bank.view.bank.factors
    assert all(factor.rank <= 12 for factor in factors)
    assert all(factor.rank == 12 or factor.left <= 0.1 for factor in factors)
    assert min(factor.rank for factor in factors) < 12
    assert "factors" in repr(bank)


def test_a_bank_of_some_kernels_shares_factors_and_is_certified():
    with KernelBank(X, ENTRIES, backend="factors", rank=30, normalisation="trace") as bank:
        part = bank[[0, 3, 5]]
        assert part.view.bank.factors[1] is bank.view.bank.factors[3]
        solution = mkldist.solve("level", part, Y, C=10.0, tol=0.2)
    with KernelBank(X, ENTRIES, normalisation="trace") as kernels:
        exact = mkldist.solve("level", kernels[[0, 3, 5]], Y, C=10.0, tol=1e-6)
    assert solution.exact_dual_objective <= exact.objective
    assert solution.objective >= exact.dual_objective


def test_a_path_is_certified_point_by_point():
    with KernelBank(X, ENTRIES, backend="factors", rank=40, normalisation="trace") as bank:
        path = mkldist.solve_path("level", bank, Y, C=[1.0, 10.0], tol=0.2)
        alone = [mkldist.solve("level", bank, Y, C=C, tol=0.2) for C in (1.0, 10.0)]
    for one, other in zip(path, alone, strict=True):
        assert one.exact_dual_objective <= other.objective
        assert other.exact_dual_objective <= one.objective


@pytest.mark.parametrize(
    ("methods", "dtype", "said"),
    [
        (
            "skm rmkl smo_mkl gmkl",
            "float64",
            "factors.*holds up to [0-9,]* points; .*level",
        ),
        ("spicymkl easymkl lp_mkl primalmkl", "float32", "factors of float32.*level.*.float64."),
    ],
)  # matrices are needed by the first, factors below their kernels by the others
def test_methods_that_cannot_do_are_refused_and_those_that_can_are_named(methods, dtype, said):
    settings = {"backend": "factors", "dtype": dtype, "rank": 5, "normalisation": "trace"}
    with KernelBank(X, ENTRIES, **settings) as bank:
        for method in methods.split():
            with pytest.raises(SpecError, match=f"{method} on a bank of {said}"):
                mkldist.solve(method, bank, Y)


@pytest.mark.parametrize(
    ("settings", "where"),
    [
        ({"rank": 0}, "rank"),
        ({"rank": 2.5}, "rank"),
        ({"tolerance": 1.0}, "tolerance"),
        ({"tolerance": "small"}, "tolerance"),
        ({"normalisation": "centre"}, "normalisation"),
        ({"backend": "auto", "rank": 5}, "rank"),
        ({"backend": "memory", "tolerance": 0.1}, "tolerance"),
        ({"backend": "memory", "device": "torch:cpu"}, "device"),
        ({"device": 0}, "device"),
        ({"backend": "factor"}, "backend"),
    ],
)
def test_settings_that_do_not_fit_are_refused(settings, where):
    with pytest.raises(SpecError) as raised:
        KernelBank(X, ENTRIES, **{"backend": "factors", **settings})
    assert raised.value.where == where


def test_a_factor_that_memory_does_not_hold_while_it_is_made_is_refused(monkeypatch):
    monkeypatch.setattr(factoring, "physical_memory", lambda: 100_000)
    with pytest.raises(DataError, match="rank 50 on 80 points, of which one takes") as raised:
        KernelBank(X, ENTRIES, backend="factors", rank=50, normalisation="trace")
    assert raised.value.hint == "Lower rank"


def test_factors_that_do_not_fit_lie_in_a_file_and_solve_alike(monkeypatch, tmp_path):
    many = [{**ENTRIES[0], "widths": [0.1, 0.2, 0.5, 2]}]

    def solved(**where):
        with KernelBank(
            X, many, backend="factors", rank=40, tolerance=0.0, normalisation="trace", **where
        ) as bank:
            return mkldist.solve("level", bank, Y, C=10.0, tol=0.2), bank

    roomy, bank = solved()
    cache = bank.factored.factors.cache
    assert cache.holds_all
    assert not cache.n_written
    least = least_bytes(len(X), FactorLimits(rank=40))
    monkeypatch.setattr(factoring, "physical_memory", lambda: 2 * least)
    tight, bank = solved(folder=tmp_path / "own")
    cache = bank.factored.factors.cache
    assert not cache.holds_all
    assert cache.n_written > 0
    assert list(tmp_path.iterdir()) == [tmp_path / "own"]
    assert list((tmp_path / "own").iterdir()) == []  # a file without a name
    assert cache.cached_bytes <= least
    assert tight.objective == roomy.objective
    assert tight.exact_dual_objective == roomy.exact_dual_objective
    assert_array_equal(tight.coefficients, roomy.coefficients)


@pytest.mark.parametrize("method", ["level", "uniform"])
def test_factors_in_single_precision_take_half_and_solve_as_certified(method):
    with KernelBank(X, ENTRIES, normalisation="trace") as kernels:
        exact = mkldist.solve(method, kernels, Y, C=10.0, tol=1e-6)
    with KernelBank(
        X, ENTRIES, backend="factors", dtype="float32", tolerance=1e-9, normalisation="trace"
    ) as bank:
        solution = mkldist.solve(method, bank, Y, C=10.0, tol=1e-3)
        factors = bank.factored.factors
        columns = sum(factor.rank for factor in factors.factors)
        assert factors.n_bytes == 4 * 80 * columns
        assert factors.cache.cached_bytes == 4 * 80 * columns
        assert "of float32, factors" in repr(bank)
        found = solution.decision_function(bank.on(X))
    assert solution.converged
    assert solution.gap == solution.exact_gap <= 1e-3
    assert solution.exact_dual_objective <= exact.objective
    assert solution.objective >= exact.dual_objective
    np.testing.assert_allclose(found, solution.training_values, atol=1e-9)


def test_kernels_too_large_for_single_precision_are_refused():
    entries = [{"function": "polynomial", "degrees": [20], "features": ["all"]}]
    settings = {"backend": "factors", "normalisation": "none", "rank": 3}
    with KernelBank(1e3 * X, entries, **settings) as bank:
        assert bank.factored.factors.factors[0].rank > 0
    with pytest.raises(GramError, match="the largest float32") as raised:
        KernelBank(1e3 * X, entries, dtype="float32", **settings)
    assert raised.value.hint == "Scale the features, or choose float64"


def test_other_backends_have_no_factors():
    assert KernelBank(X, ENTRIES, normalisation="trace").factored is None
