"""Views in Python: blocks of features, Gram matrices beside them, and points that lack either."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics.pairwise import rbf_kernel

import mkldist
from mkldist.errors import DataError, GramError, SpecError
from mkldist.fit.bank import KernelBank, precomputed_views
from mkldist.kernels.objects import Precomputed
from tests.methods.instances import Instance
from tests.methods.references.simplex_svm import simplex_optimum
from tests.variants import quick

N, N_NEW = 40, 15
RNG = np.random.default_rng(8)
CLINICAL = pd.DataFrame(RNG.normal(size=(N + N_NEW, 2)), columns=["age", "bmi"])
GENES = RNG.normal(size=(N + N_NEW, 3))
GENES[RNG.permutation(N + N_NEW)[:12]] = np.nan
FACTORS = RNG.normal(size=(N + N_NEW, 4))
STRINGS = FACTORS @ FACTORS.T
LACK_STRINGS = RNG.permutation(N + N_NEW)[:10]
STRINGS[LACK_STRINGS] = np.nan
STRINGS[:, LACK_STRINGS] = np.nan
Y = np.sign(CLINICAL["age"].to_numpy() + np.nan_to_num(GENES)[:, 0] + FACTORS[:, 0])[:N]
TRAIN, NEW = slice(0, N), slice(N, None)


def views_at(rows: slice) -> dict[str, Any]:
    return {"clinical": CLINICAL[rows], "genes": GENES[rows]}


def kernels() -> list[Any]:
    return [
        mkldist.kernels.Precomputed(STRINGS[TRAIN, TRAIN], name="strings"),
        mkldist.kernels.Gaussian([1.0, 2.0], features="views"),
    ]


def explicit() -> np.ndarray:
    """Return the five kernels on all points, zero where a point lacks a view."""
    found = []
    for x in (CLINICAL.to_numpy(), GENES):
        has = ~np.isnan(x).any(axis=1)
        for width in (1.0, 2.0):
            gram = rbf_kernel(np.nan_to_num(x), gamma=0.5 / width**2)
            found.append(gram * np.outer(has, has))
    return np.array([*found, np.nan_to_num(STRINGS)])


@pytest.mark.slow
@pytest.mark.parametrize("backend", quick(["memory", "recompute", "stream", "mmap"], 2))
@pytest.mark.parametrize("normalisation", ["trace", "none"])
def test_a_bank_of_views_is_that_of_explicit_matrices(backend, normalisation):
    grams, C = explicit(), 20.0
    with KernelBank(
        views_at(TRAIN), kernels(), missing="zero", backend=backend, normalisation=normalisation
    ) as bank:
        own = grams[:, TRAIN, TRAIN]
        factors = np.ones(5)
        if normalisation == "trace":
            present = (np.diagonal(own, axis1=1, axis2=2) > 0).sum(axis=1)
            factors = present / (N * np.trace(own, axis1=1, axis2=2))
        scaled = factors[:, None, None] * own
        solution = mkldist.solve("level", bank, Y, C=C, tol=1e-7)
        optimum = simplex_optimum(Instance("views", scaled, Y, C), Y, {"C": C})
        assert solution.objective == pytest.approx(optimum, rel=1e-6)
        assert solution.dual_objective <= optimum * (1 + 1e-6)
        points = bank.on(views_at(NEW), grams={"strings": STRINGS[NEW, TRAIN]})
        weights = solution.kernel_weights * factors
        between = np.einsum("m,mij->ij", weights, grams[:, NEW, TRAIN])
        expected = between @ solution.coefficients + solution.bias
        assert_allclose(solution.decision_function(points), expected, rtol=1e-8, atol=1e-12)


def test_the_table_names_views_and_matrices():
    bank = KernelBank(views_at(TRAIN), kernels(), missing="zero")
    assert bank.kernels["name"].tolist() == [
        "gaussian(1)[clinical]", "gaussian(2)[clinical]", "gaussian(1)[genes]",
        "gaussian(2)[genes]", "precomputed[strings]",
    ]  # fmt: skip
    assert bank.kernels["features"].tolist()[1:] == ["clinical", "genes", "genes", "strings"]
    assert bank.kernels["columns"][0] == ("clinical.age", "clinical.bmi")
    assert bank.kernels["function"][4] == "precomputed"
    part = bank[[4, 2]]
    assert part.kernels["name"].tolist() == ["precomputed[strings]", "gaussian(1)[genes]"]
    solution = mkldist.solve("uniform", part, Y, C=1.0, tol=1e-9)
    whole = mkldist.solve("uniform", KernelBank(GENES[TRAIN], [
        Precomputed(STRINGS[TRAIN, TRAIN]), mkldist.kernels.Gaussian(1.0)
    ], missing="zero"), Y, C=1.0, tol=1e-9)  # fmt: skip
    values = solution.decision_function(
        part.on(views_at(NEW), grams={"strings": STRINGS[NEW, TRAIN]})
    )
    assert np.isfinite(values).all()
    assert solution.objective == pytest.approx(whole.objective, rel=1e-9)


def test_a_plain_array_may_lack_features_too():
    x = np.where(np.arange(N)[:, None] == 3, [[np.nan, 1.0, 2.0]], RNG.normal(size=(N, 3)))
    with pytest.raises(DataError, match="missing values in 'x0' "):
        KernelBank(x, [mkldist.kernels.Linear(features="each")])
    linear = [mkldist.kernels.Linear(features="each")]
    bank = KernelBank(x, linear, missing="zero", normalisation="trace")
    solution = mkldist.solve("uniform", bank, Y, C=1.0)
    found = solution.decision_function(bank.on(np.array([[np.nan, 0.5, 0.0]])))
    factors = [N - 1, N, N] / (N * np.nansum(x**2, axis=0))
    values = factors[1] * 0.5 * x[:, 1] / 3
    assert found[0] == pytest.approx(values @ solution.coefficients + solution.bias, rel=1e-9)


MISTAKES: list[tuple[Any, type[Exception], str]] = [
    (lambda: KernelBank({}, kernels()), DataError, "X: found no view; expected at least one block"),
    (lambda: KernelBank(views_at(TRAIN), kernels()), DataError, r"X\['genes'\]: found missing"),
    (lambda: KernelBank(CLINICAL[TRAIN], kernels(), missing="drop"), SpecError,
     "missing: found 'drop'; expected 'error' or 'zero'"),
    (lambda: KernelBank({"a": GENES[:3], "b": GENES[:4]}, kernels(), missing="zero"), DataError,
     "X: found rows that differ: 3 of 'a', 4 of 'b'; expected the same points in each view"),
    (lambda: KernelBank(CLINICAL[:7], kernels(), missing="zero"), GramError,
     r"Precomputed 'strings': found shape \(1, 40, 40\); expected matrices of the 7 points of X"),
    (lambda: KernelBank(CLINICAL[TRAIN], [*kernels()[:1], *kernels()[:1]], missing="zero"),
     SpecError, "Precomputed 'strings': found two views of this name"),
    (lambda: KernelBank(CLINICAL[TRAIN], kernels()[:1]), GramError,
     r"Precomputed 'strings': kernel 0: found entry \(\d+, \d+\) of nan"),
    (lambda: KernelBank(CLINICAL[:2], [Precomputed([[1.0, np.nan], [np.nan, np.nan]][::-1])],
                        missing="zero"), GramError, r"row 0 \(from 0\) of NaN beside other values"),
    (lambda: KernelBank(CLINICAL[:2], [Precomputed(-np.eye(2))]), GramError, "trace of -2"),
    (lambda: KernelBank(CLINICAL[:2], [Precomputed(np.eye(2))], normalisation="cosine"), SpecError,
     "'cosine' for given Gram matrices"),
    (lambda: KernelBank(views_at(TRAIN), kernels(), missing="zero", normalisation="centre"),
     SpecError, "'centre' for kernels that some points lack"),
    (lambda: KernelBank(CLINICAL[TRAIN], [{"function": "precomputed", "features": "k"}]), SpecError,
     r"kernels\[0\].features: found 'k' for a precomputed kernel .* expected the name of a view"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "error", "said"), MISTAKES)
def test_mistakes_in_views_are_told(make, error, said):
    with pytest.raises(error, match=said):
        make()


@pytest.mark.parametrize(
    ("new", "grams", "error", "said"),
    [
        (views_at(NEW), None, DataError,
         r"grams: found no matrices of 'strings'; expected kernel values .* \{'strings': "
         r"\(n_new, n\)\}. Call bank.on"),
        (views_at(NEW), {"string": 0}, DataError, "no matrices of 'strings'.*mean 'string'"),
        (views_at(NEW), {"strings": STRINGS[TRAIN, NEW]}, GramError,
         r"grams\['strings'\]: found shape \(1, 40, 15\); expected \(M, n_new, n\) = \(1, 15"),
        (CLINICAL, {}, DataError, "X_new: found one DataFrame; expected a mapping of the views"),
        ({"clinical": CLINICAL[NEW]}, {}, DataError, "X_new: found no view 'genes'"),
        ({}, {}, DataError, "X_new: found no views 'clinical', 'genes'"),
        (views_at(NEW) | {"gene": GENES}, {}, DataError, "X_new: found a view 'gene'; expected"),
        (views_at(NEW) | {"genes": GENES[:1]}, {}, DataError, "X_new: found rows that differ"),
    ],
)  # fmt: skip
def test_mistakes_in_new_points_are_told(new, grams, error, said):
    bank = KernelBank(views_at(TRAIN), kernels(), missing="zero")
    with pytest.raises(error, match=said):
        bank.on(new, grams=grams)


def test_matrices_by_name_need_a_view_of_the_bank():
    bank = KernelBank(CLINICAL[TRAIN], [mkldist.kernels.Linear()])
    with pytest.raises(GramError, match="grams: found matrices of 'k'; expected none"):
        bank.on(CLINICAL[NEW], grams={"k": np.ones((N_NEW, N))})
    mixed = KernelBank(CLINICAL[TRAIN], [Precomputed(np.eye(N))])
    solution = mkldist.solve("uniform", mixed, Y, C=1.0)
    with pytest.raises(GramError, match="found given Gram matrices; expected kernels of features"):
        mixed.expansion(solution)


def test_groups_of_columns_may_be_views():
    views = {"first": ["age"], "others": [1]}
    kernels = [mkldist.kernels.Linear(features="views"), mkldist.kernels.Linear(features="groups")]
    bank = KernelBank(CLINICAL[TRAIN], kernels, views=views, groups={"both": [0, 1]})
    assert bank.kernels["name"].tolist() == ["linear[first]", "linear[others]", "linear[both]"]
    with pytest.raises(DataError, match=r"X: groups\.v: found no feature 'y'"):
        KernelBank(CLINICAL[TRAIN], [mkldist.kernels.Linear()], views={"v": ["y"]})


def test_matrices_that_all_points_have_stay_as_they_are():
    from mkldist.fit.inputs import Features

    features = Features.of(CLINICAL[:3])
    [one] = precomputed_views([Precomputed(2 * np.eye(3), name="k")], features).values()
    assert one.present.all()
    assert one.missing is None
    assert (one.grams == 2 * np.eye(3)[None]).all()
    assert precomputed_views("xu2008", features) == {}
