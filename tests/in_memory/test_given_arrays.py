"""Arrays of a user: those that are converted, and messages about those that are refused.

tests/in_memory/test_solve.py holds that ``mkldist.solve`` asks for these checks.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy import sparse

import mkldist
from mkldist.core.arrays import Target
from mkldist.errors import GramError, SpecError
from mkldist.fit.inputs import check_method, checked_laplacian, label_array
from mkldist.kernels.graph import graph_laplacian, graph_spec
from mkldist.methods.registry import METHODS


def test_labels_of_any_numbers_are_float64():
    for given in ([1, -1, 1], np.array([True, False, True]), np.array([1, -1, 1], np.int8)):
        labels = label_array(given, (3,))
        assert labels.dtype == np.float64
        np.testing.assert_array_equal(labels, np.asarray(given, dtype=np.float64))
    columns = np.asfortranarray([[1, -1], [-1, 1], [1, 1]])
    assert label_array(columns, (3,)).flags.c_contiguous


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        ([1.0, np.nan, np.inf], r"y\[1\]: found nan; expected a finite number. Leave this point"),
        ([[1.0, 1.0], [1.0, -np.inf], [1.0, 1.0]], r"y\[1, 1\]: found -inf; expected a finite"),
        (1.0, r"y: found shape \(\)"),
        ([[1.0], [1.0], [1.0]], r"y: found shape \(3, 1\); .* Use y.ravel\(\)"),
        ([[1.0, 1.0]] * 4, r"y: found shape \(4, 2\)"),
        (np.ones((3, 2, 2)), r"y: found shape \(3, 2, 2\)"),
    ],
)
def test_labels_of_other_shapes_or_not_finite_are_refused(labels, said):
    with pytest.raises(GramError, match=said):
        label_array(labels, (3,))


SIGNS = [-1.0, 1.0, 1.0]
LABELS = {
    "signs": SIGNS,
    "ones": [1.0, 1.0, 1.0],
    "minus ones": [-1.0, -1.0, -1.0],
    "partial": [-1.0, 0.0, 1.0],
    "one sign and zero": [0.0, 1.0, 1.0],
    "values": [0.5, 1.0, -1.0],
    "none": [],
}
FITTING = {
    Target.CLASSES: {"signs"},
    Target.PARTIAL: {"signs", "partial"},
    Target.ONE_CLASS: {"signs", "ones"},
    Target.VALUES: set(LABELS),
}


@pytest.mark.parametrize("target", Target)
@pytest.mark.parametrize("name", LABELS)
def test_labels_fit_what_a_method_learns(target, name):
    labels = np.array(LABELS[name])
    method = METHODS["uniform"]
    if name in FITTING[target]:
        check_method(method, target, labels, has_laplacian=False)
        return
    shown = ", ".join(f"{value:g}" for value in sorted(set(LABELS[name])))
    with pytest.raises(GramError) as caught:
        check_method(method, target, labels, has_laplacian=False)
    assert str(caught.value).startswith(f"y: found labels {{{shown}}}; expected ")


def test_the_first_column_that_does_not_fit_is_shown():
    columns = np.array([SIGNS, [1.0, 1.0, 1.0], [2.0, 3.0, 4.0]]).T
    with pytest.raises(
        GramError, match=r"found labels \{1\}; expected both classes, as -1 and \+1"
    ):
        check_method(METHODS["level"], Target.CLASSES, columns, has_laplacian=False)


def test_columns_are_for_methods_whose_classes_share_weights():
    columns = np.array([SIGNS, SIGNS[::-1]]).T
    check_method(METHODS["level"], Target.CLASSES, columns, has_laplacian=False)
    with pytest.raises(SpecError) as caught:
        check_method(METHODS["gmkl"], Target.CLASSES, columns, has_laplacian=False)
    said = str(caught.value)
    assert said.startswith(
        "method: found gmkl with labels of shape (3, 2), but it finds kernel weights for one class "
        "at "
        "a time; expected a method whose classes can share kernel weights: level, "
    )
    assert "lsvm" not in said  # without a Laplacian it would refuse the problem, too
    assert said.endswith("Or call it for one column at a time.")


def test_a_laplacian_is_given_if_and_only_if_the_method_uses_it():
    labels = np.array(SIGNS)
    check_method(METHODS["lapsvm"], Target.PARTIAL, labels, has_laplacian=True)
    with pytest.raises(SpecError) as caught:
        check_method(METHODS["lapsvm"], Target.PARTIAL, labels, has_laplacian=False)
    assert str(caught.value) == (
        "laplacian: found none for lapsvm, which needs a graph; expected a graph Laplacian of "
        'the points. Give laplacian=graph_laplacian(X, graph_spec({"neighbours": 10})), of the '
        "features X of the points, by functions of mkldist.kernels.graph."
    )
    with pytest.raises(SpecError) as caught:
        check_method(METHODS["level"], Target.CLASSES, labels, has_laplacian=True)
    assert str(caught.value) == (
        "laplacian: found one for level, which uses no graph; expected none, or a method on "
        "graphs: "
        "lapmkl, lapsvm, mklsvm, lsvm, glks or laprls"
    )


LAPLACIAN = np.array([[1.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 1.0]])


def test_laplacians_are_float64_and_stay_sparse():
    assert checked_laplacian(None, 3) is None
    dense = checked_laplacian(LAPLACIAN.astype(int).tolist(), 3)
    np.testing.assert_array_equal(dense, LAPLACIAN)
    thin = checked_laplacian(sparse.csr_array(LAPLACIAN.astype(np.float32)), 3)
    assert sparse.issparse(thin)
    assert thin.dtype == dense.dtype == np.float64


@pytest.mark.parametrize("form", [np.array, sparse.csr_array])
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda L: L[:2], r"found shape \(2, 3\); expected \(3, 3\)"),
        (lambda L: L * np.where(np.eye(3), np.inf, 1.0), "found entries that are not finite"),
        (lambda L: L + np.eye(3, k=1), "found an asymmetry of 1; expected a symmetric matrix"),
        (lambda L: L - 0.5 * np.eye(3), "found an eigenvalue of -0.5; expected a positive semi"),
    ],
)
def test_other_matrices_are_no_laplacians(form, change, said):
    with pytest.raises(GramError, match=f"laplacian: {said}"):
        checked_laplacian(form(change(LAPLACIAN)), 3)


def test_labels_0_and_1_are_told_how_to_be_written():
    bank = mkldist.KernelBank.from_grams(np.eye(4)[None])
    with pytest.raises(GramError, match=r"Write np.where\(y == 1, 1, -1\)"):
        mkldist.solve("uniform", bank, np.array([0, 1, 0, 1]), C=1.0)


def test_the_laplacian_that_the_message_names_does():
    x = np.random.default_rng(0).normal(size=(20, 2))
    y = np.where(np.arange(20) < 8, np.where(x[:, 0] > 0, 1, -1), 0)
    with pytest.raises(SpecError) as caught:
        mkldist.solve("lapmkl", [x @ x.T], y)
    given = re.search(r"laplacian=(\S+ .*?\)\)),", str(caught.value)).group(1)
    names = {"X": x, "graph_laplacian": graph_laplacian, "graph_spec": graph_spec}
    assert mkldist.solve("lapmkl", [x @ x.T], y, laplacian=eval(given, names)).converged
