"""What estimators print with `verbose`: the bank, each problem, and how its solver ended."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris

import mkldist
from mkldist.fit.estimators import BANKS

X, Y = load_iris(return_X_y=True)


def test_the_bank_and_each_class_are_told(capsys):
    BANKS.clear()
    model = mkldist.MKLClassifier(verbose=True, shared_weights=False).fit(X, Y)
    said = capsys.readouterr().out
    assert "[MKLClassifier] makes the kernels of 150 rows and 4 features" in said
    assert "[MKLClassifier] 7 kernels on 150 points, 0.7 MiB of float64, memory" in said
    for number, solution in enumerate(model.solutions_):
        assert f"[MKLClassifier] class {number} against the rest, {number + 1} of 3" in said
        assert f"[level] converged at {solution.objective:.6g}, " in said


@pytest.mark.parametrize(
    ("model", "method"),
    [
        (mkldist.MKLRegressor(verbose=1), "primalmkl"),
        (mkldist.OneClassMKL(verbose=1), "primalmkl"),
        (mkldist.SemiSupervisedMKLClassifier(verbose=1), "lapmkl"),
        (mkldist.MKLClassifier(verbose=1, shared_weights=True), "level"),
    ],
    ids=str,
)
def test_every_estimator_tells_how_its_solver_ended(model, method, capsys):
    model.fit(X, Y)
    said = capsys.readouterr().out
    assert f"[{type(model).__name__}] " in said
    assert f"[{method}] converged at " in said


def test_it_is_silent_unless_asked(capsys):
    mkldist.MKLClassifier().fit(X, Y)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("name", ["weights", "verbose", "laplacian"])
def test_arguments_of_solve_are_no_parameters_of_a_method(name):
    model = mkldist.MKLClassifier(method_params={name: np.ones(150)})
    with pytest.raises(ValueError, match=rf"level\.{name}: found an unknown parameter"):
        model.fit(X, Y)
