"""Machines on factors, certified for the kernels, err as often as those of the kernels."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.preprocessing import StandardScaler

import mkldist
from tests.benchmarks.problems import LEVEL_NAMES

pytestmark = pytest.mark.slow

TOL = 0.01
SPLITS = StratifiedShuffleSplit(3, test_size=0.5, random_state=0)


def tables(data_dir):
    """Yield features and labels: of the papers' tables, or of data bundled with scikit-learn."""
    if data_dir is None:
        x, target = load_breast_cancer(return_X_y=True)
        yield x, np.where(target == 0, 1.0, -1.0)
        x, digit = load_digits(n_class=4, return_X_y=True)
        yield x, np.where(digit % 2 == 0, 1.0, -1.0)
        return
    for name in LEVEL_NAMES:
        table = np.genfromtxt(data_dir / f"{name}.csv", delimiter=",", skip_header=1)
        yield table[:, :-1], table[:, -1]


def rights(kernels, y, x_new, y_new):
    """Return how many new points a machine on a bank gets right."""
    solution = mkldist.solve("level", kernels, y, C=100.0, tol=TOL)
    decided = solution.decision_function(kernels.on(x_new))
    return solution, int((np.sign(decided) == y_new).sum())


def test_accuracies_are_those_of_the_kernels_to_a_thousandth(data_dir):
    n_points, on_kernels, on_factors = 0, 0, 0
    for x, y in tables(data_dir):
        for train, test in SPLITS.split(x, y):
            x_all = StandardScaler().fit(x[train]).transform(x)
            new = x_all[test], y[test]
            with mkldist.KernelBank(x_all[train], "xu2008") as bank:
                on_kernels += rights(bank, y[train], *new)[1]
            with mkldist.KernelBank(x_all[train], "xu2008", backend="factors") as bank:
                solution, right = rights(bank, y[train], *new)
            assert solution.exact_gap <= TOL
            on_factors += right
            n_points += len(test)
    assert abs(on_factors - on_kernels) <= 0.001 * n_points, (on_kernels, on_factors, n_points)
