"""Parts of pandas whose indexes name their rows: `sweep`, banks, `solve` and the estimators."""

import re
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

import mkldist
from mkldist.data.checks import common_rows
from mkldist.data.inputs import input_data
from mkldist.errors import DataError
from mkldist.kernels import Gaussian, Precomputed

N = 24
NAMES = [f"P{i:02d}" for i in range(N)]
DRAW = np.random.default_rng(0)
X = pd.DataFrame(DRAW.normal(size=(N, 2)), columns=["a", "b"], index=NAMES)
Y = pd.Series(np.where(X["a"] > 0, 1.0, -1.0), index=NAMES)
PLAIN = X.reset_index(drop=True)
K = pd.DataFrame(np.exp(-((X.to_numpy()[:, None] - X.to_numpy()) ** 2).sum(-1)), NAMES, NAMES)
KERNELS = [Gaussian(1.0)]
MIXED = "in another order.*reindex"

AGREE = {
    "the same names": (X, Y),
    "no names": (X, Y.to_numpy()),
    "names beside a plain range": (X, Y.reset_index(drop=True)),
    "a plain range beside names": (PLAIN, Y),
    "the same part of a range": (PLAIN[5:], Y.reset_index(drop=True)[5:]),
    "a shuffled range twice": (PLAIN[::-1], Y.reset_index(drop=True)[::-1]),
    "whole numbers as floats": (PLAIN, Y.set_axis(np.arange(float(N)))),
}
DIFFER = {
    "another order": (X, Y[::-1], r"y\.reindex\(X\.index\)"),
    "another order of a range": (PLAIN, Y.reset_index(drop=True)[::-1], r"y\.reindex\(X\.index\)"),
    "a range of another order": (PLAIN[::-1], Y.reset_index(drop=True), r"y\.reindex\(X\.index\)"),
    "other names": (X, Y.set_axis([f"Q{i}" for i in range(N)]), "24 names .* 24 lacking.*'Q0'"),
    "fewer rows": (X, Y[3:], r"0 names .* 3 lacking.*'P00'.*intersection"),
    "another part of a range": (PLAIN[5:], Y.reset_index(drop=True)[3:-2], "2 names .* 2 lacking"),
    "names twice": (
        X.set_axis(["one", "two"] * (N // 2)),
        Y.set_axis(["two", "one"] * (N // 2)),
        "occur twice",
    ),
}


@pytest.mark.parametrize("case", AGREE)
def test_equal_indexes_and_plain_ranges_agree(case):
    points, labels = AGREE[case]
    common_rows("", {"X": points, "y": labels})
    raw = input_data((points, labels), "data")
    np.testing.assert_array_equal(raw.arrays["column 0"], points["a"])
    solution = mkldist.solve("level", mkldist.KernelBank(points, KERNELS), labels)
    plain = mkldist.KernelBank(points.to_numpy(), KERNELS)
    expected = mkldist.solve("level", plain, np.asarray(labels))
    assert solution.objective == expected.objective
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mkldist.MKLClassifier().fit(points, labels)


@pytest.mark.parametrize("case", DIFFER)
def test_other_indexes_are_refused_and_estimators_warn(case):
    points, labels, words = DIFFER[case]
    with pytest.raises(DataError, match=f"data: y.*{words}"):
        input_data((points, labels), "data")
    with pytest.raises(DataError, match=words):
        mkldist.solve("level", mkldist.KernelBank(points, KERNELS), labels)
    if len(points) == len(labels):
        with pytest.warns(UserWarning, match=f"{words}.*taken by their places"):
            found = mkldist.MKLClassifier().fit(points, labels)
        expected = mkldist.MKLClassifier().fit(points.to_numpy(), labels.to_numpy())
        assert found.objective_ == expected.objective_


@pytest.mark.parametrize("name", ["y", "groups", "order", "weights"])
def test_all_that_belongs_to_rows_of_a_sweep_is_compared(name):
    values = pd.Series(np.arange(1.0, N + 1), index=NAMES)
    given = {"x": X, "y": Y, name: values[::-1]}
    with pytest.raises(DataError, match=f"data: {name}: .*{MIXED}"):
        input_data(given, "data")
    with pytest.raises(DataError, match=MIXED):
        input_data({"grams": [K], "y": Y, name: values[::-1]}, "data")
    input_data({**given, name: values}, "data")


@pytest.mark.parametrize(
    "fit",
    [
        lambda w: mkldist.MKLClassifier().fit(X, Y, sample_weight=w),
        lambda w: mkldist.MKLClassifierCV().fit(X, Y, groups=w),
        lambda w: mkldist.MKLRegressor().fit(X, Y, sample_weight=w),
        lambda w: mkldist.OneClassMKL().fit(X, sample_weight=w),
        lambda w: mkldist.SemiSupervisedMKLClassifier().fit(X, Y + 1, sample_weight=w),
        lambda w: mkldist.MKLClassifier().fit(X, Y).score(X, Y, w),
        lambda w: mkldist.MKLClassifierCV().fit(X, Y).score(X, Y[w.index]),
        lambda w: mkldist.MKLRegressor().fit(X, Y).score(X, Y[w.index]),
    ],
    ids=["classes", "groups", "values", "one class", "few labels", "weights", "score", "R2"],
)
def test_estimators_warn_of_weights_and_groups_too(fit):
    with pytest.warns(UserWarning, match=MIXED):
        fit(pd.Series(np.arange(N) // 4 + 1.0, index=NAMES)[::-1])


def test_views_and_gram_matrices_of_a_bank_name_the_same_points():
    views = {"A": X[["a"]], "B": X[["b"]]}
    bank = mkldist.KernelBank(views, [Gaussian(1.0, features="views"), Precomputed(K, name="K")])
    assert bank.rows.tolist() == NAMES
    for kernels, blocks, where in (
        (KERNELS, {**views, "B": X[["b"]][::-1]}, "X['B']"),
        ([Precomputed(K.iloc[::-1], name="K")], views, "rows of grams"),
        ([Precomputed(K.iloc[:, ::-1], name="K")], views, "columns of grams"),
    ):
        with pytest.raises(DataError, match=f"{re.escape(where)}: .*{MIXED}"):
            mkldist.KernelBank(blocks, kernels)
    new: dict[str, Any] = {name: block[:5] for name, block in views.items()}
    bank.on(new, grams={"K": K[:5]})
    for blocks, grams, where in (
        ({**new, "B": X[["b"]][4::-1]}, K[:5], "X_new['B']"),
        (new, K[4::-1], "rows of grams['K']"),
        (new, K.iloc[:5, ::-1], "columns of grams['K']"),
    ):
        with pytest.raises(DataError, match=f"{re.escape(where)}: .*{MIXED}"):
            bank.on(blocks, grams={"K": grams})


def test_a_bank_of_frames_of_gram_matrices_knows_their_rows():
    bank = mkldist.KernelBank.from_grams([K, K**2])
    expected = mkldist.solve("level", bank, Y).objective
    assert expected == mkldist.solve("level", [K, K**2], Y).objective
    for grams in (bank, bank[[0]], [K, K**2]):
        with pytest.raises(DataError, match=f"y: .*{MIXED}"):
            mkldist.solve("level", grams, Y[::-1])
    with pytest.raises(DataError, match=MIXED):
        mkldist.KernelBank.from_grams([K, K.iloc[::-1, ::-1]])
    with pytest.raises(DataError, match=f"columns of X_new.*{MIXED}"):
        bank.on([K.iloc[:3, ::-1], K.iloc[:3]])
    shuffled = [K.iloc[:, ::-1]]
    with pytest.raises(DataError) as caught:
        mkldist.solve("level", shuffled, Y)
    remedy = caught.value.hint.removeprefix("Write ").partition(", or ")[0]
    pd.testing.assert_frame_equal(eval(remedy, {"grams": shuffled}), K)


def test_weights_of_solve_are_compared():
    bank = mkldist.KernelBank(X, KERNELS)
    with pytest.raises(DataError, match=f"weights: .*{MIXED}"):
        mkldist.solve("level", bank, Y, weights=pd.Series(1.0, index=NAMES)[::-1])
