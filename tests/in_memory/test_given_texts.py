"""Columns of texts in banks of Python, against scikit-learn's counts and a conic optimum."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics.pairwise import rbf_kernel

import mkldist
from mkldist.errors import DataError, GramError, SpecError
from mkldist.fit.inputs import divided
from mkldist.kernels import Custom, Gaussian, Precomputed, Spectrum
from tests.methods.instances import Instance
from tests.methods.references.simplex_svm import simplex_optimum

N, N_NEW = 36, 12
RNG = np.random.default_rng(3)
Y = np.where(RNG.permutation(N + N_NEW) % 2, 1.0, -1.0)
TABLE = pd.DataFrame(
    {
        "chain": ["".join(RNG.choice(list("abc"), 6)) + "ab" * int(y > 0) for y in Y],
        "x": np.round(RNG.normal(size=N + N_NEW) + Y, 3),
        "note": "n",
    }
)
TRAIN, NEW = TABLE[:N], TABLE[N:]
KERNELS = [Spectrum(length=[1, 2], features="chain"), Gaussian(1.0)]


def explicit(table: pd.DataFrame, *, cosine: bool = False) -> np.ndarray:
    """Return a Gaussian and two kernels of texts on all rows, zero where they lack a text."""
    has = (table["chain"] != "").to_numpy()
    found = [rbf_kernel(table[["x"]], gamma=0.5)]
    for length in (1, 2):
        counter = CountVectorizer(analyzer="char", ngram_range=(length, length))
        counts = counter.fit_transform(table["chain"]).toarray().astype(float)
        if cosine:
            counts /= np.maximum(np.linalg.norm(counts, axis=1), 1e-300)[:, None]
        found.append(counts @ counts.T * np.outer(has, has))
    return np.array(found)


def bank(table: pd.DataFrame = TRAIN, **settings: Any) -> mkldist.KernelBank:
    kernels = settings.pop("kernels", KERNELS)
    return mkldist.KernelBank(
        table, kernels, **{"texts": ["chain", "note"], "normalisation": "none", **settings}
    )


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["memory", "mmap", "stream", "recompute"])
@pytest.mark.parametrize("cosine", [False, True])
def test_a_bank_of_numbers_and_texts_is_that_of_explicit_matrices(backend, cosine):
    grams, y, C = explicit(TABLE, cosine=cosine), Y[:N], 2.0
    with bank(backend=backend, normalisation="cosine" if cosine else "none") as made:
        solution = mkldist.solve("level", made, y, C=C, tol=1e-7)
        optimum = simplex_optimum(Instance("texts", grams[:, :N, :N], y, C), y, {"C": C})
        assert solution.objective == pytest.approx(optimum, rel=1e-6)
        assert solution.dual_objective <= optimum * (1 + 1e-6)
        between = np.einsum("m,mij->ij", solution.kernel_weights, grams[:, N:, :N])
        expected = between @ solution.coefficients + solution.bias
        found = solution.decision_function(made.on(NEW.iloc[:, ::-1]))
        assert_allclose(found, expected, rtol=1e-8, atol=1e-12)


def test_the_table_names_columns_of_texts():
    made = bank()
    assert made.kernels["name"].tolist() == [
        "gaussian(1)[all]", "spectrum(1)[chain]", "spectrum(2)[chain]"
    ]  # fmt: skip
    assert made.kernels["features"].tolist() == ["all", "chain", "chain"]
    assert made.kernels["columns"].tolist() == [("x",), ("chain",), ("chain",)]
    assert made.groups is not None
    assert made.groups.tolist() == [0, 1, 1]
    part = made[[2, 0]]
    assert part.kernels["name"].tolist() == ["spectrum(2)[chain]", "gaussian(1)[all]"]
    solution = mkldist.solve("uniform", part, Y[:N], C=1.0)
    grams = explicit(TABLE)[[2, 0], N:, :N]
    between = np.einsum("m,mij->ij", solution.kernel_weights, grams)
    expected = between @ solution.coefficients + solution.bias
    assert_allclose(solution.decision_function(part.on(NEW)), expected, rtol=1e-9)


def test_points_may_lack_texts():
    table = TABLE.copy()
    table.loc[[2, 5, N + 1], "chain"] = None
    with pytest.raises(
        DataError, match=r"found no text in column 'chain' for row 2 \(from 0\), row 5;"
    ):
        bank(table[:N])
    made = bank(table[:N], missing="zero")
    solution = mkldist.solve("uniform", made, Y[:N], C=1.0)
    grams = explicit(table.fillna(""))[:, N:, :N]
    between = np.einsum("m,mij->ij", solution.kernel_weights, grams)
    expected = between @ solution.coefficients + solution.bias
    assert_allclose(solution.decision_function(made.on(table[N:])), expected, rtol=1e-9)
    with pytest.raises(DataError, match="X_new: found no text in column 'chain' for row 1"):
        bank().on(table[N:])


def test_decision_functions_live_apart_from_a_bank_with_texts():
    made = bank(views={"strings": ["chain"], "numbers": [0]}, missing="zero")[[2, 0]]
    solution = mkldist.solve("uniform", made, Y[:N], C=2.0)
    apart, x = made.expansion(solution), NEW[["x"]].to_numpy()
    texts = NEW[["chain", "note"]].to_numpy(object)
    assert apart.index.tolist() == [1, 0]  # the Gaussian first, then the kernel of texts
    grams = explicit(TABLE)[[0, 2], N:, :N]
    expected = np.einsum("mij,j->im", grams / 2, solution.coefficients)
    found = apart.contributions(["numbers", "strings"], x, texts=texts)[:, :2, 0]
    assert_allclose(found, expected, rtol=1e-8, atol=1e-12)
    values = apart.values(x, texts=texts)[:, 0]
    assert_allclose(values, expected.sum(axis=1) + solution.bias, rtol=1e-9)


def test_views_name_columns_of_texts():
    kernels = [Spectrum(2, features="views"), Gaussian(1.0, features="views")]
    made = bank(kernels=kernels, views={"strings": ["chain"], "both": [0, "note"]})
    assert made.kernels["name"].tolist() == [
        "gaussian(1)[both]", "spectrum(2)[strings]", "spectrum(2)[both]"
    ]  # fmt: skip


def equal_ends(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return 1 for texts of the same last letter, else 0."""
    return np.equal.outer([t[-1] for t in left[:, 0]], [t[-1] for t in right[:, 0]])


def test_texts_alone_with_a_function_of_ones_own_and_a_matrix():
    features = RNG.normal(size=(N + N_NEW, 4))
    gram = features @ features.T
    own = Custom(equal_ends, features="chain")
    made = bank(kernels=[own, Precomputed(gram[:N, :N], name="k")], texts=["chain", "note", "x"])
    solution = mkldist.solve("uniform", made, Y[:N], C=1.0)
    last = TABLE["chain"].str[-1].to_numpy()
    grams = np.array([np.equal.outer(last, last).astype(float), gram])[:, N:, :N]
    between = np.einsum("m,mij->ij", solution.kernel_weights, grams)
    expected = between @ solution.coefficients + solution.bias
    points = made.on(NEW, grams={"k": gram[N:, :N]})
    assert_allclose(solution.decision_function(points), expected, rtol=1e-9)
    with pytest.raises(GramError, match="bank: found given Gram matrices; expected kernels"):
        made.expansion(solution)


def test_a_table_without_texts_is_returned_as_it_is():
    given, texts = divided([[1.0]], (), "X")
    assert given == [[1.0]]
    assert texts is None


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda: bank(texts=["chains"]), DataError, "X: texts: found no column 'chains'.*'chain'"),
        (lambda: bank(texts=["chain", "chain"]), DataError, "found column 'chain' twice"),
        (
            lambda: bank(np.eye(3)),
            DataError,
            r"X: found one ndarray; expected a DataFrame, for columns of texts \('chain', 'note'\)",
        ),
        (lambda: bank().on(NEW.drop(columns="chain")), DataError, "X_new: texts: found no column"),
        (lambda: bank().on(NEW.drop(columns="x")), DataError, "X_new: found no column 'x'"),
        (lambda: bank(kernels=[Spectrum(2, "x")]), SpecError, "found 'x', a feature or group of"),
        (
            lambda: bank(kernels=[Gaussian(1.0, "chain")]),
            SpecError,
            "'chain', a column of texts, for a gaussian kernel",
        ),
    ],
    ids=["name", "twice", "array", "new text", "new number", "spectrum", "gaussian"],
)
def test_mistakes_are_told(call, error, said):
    with pytest.raises(error, match=said):
        call()
