"""One C for methods and numbers of rows: with kernels of variance 1, C = 1 is near the best."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.preprocessing import StandardScaler

import mkldist
from mkldist.kernels import Gaussian, Linear

pytestmark = pytest.mark.slow

CS = [0.01, 0.1, 1.0, 10.0]
KERNELS = [Gaussian(relative_widths=[0.25, 0.5, 1.0, 2.0]), Linear()]


@pytest.mark.parametrize("method", ["level", "spicymkl", "primalmkl"])
def test_a_good_c_does_not_depend_on_the_number_of_rows(method):
    X, classes = load_breast_cancer(return_X_y=True)
    y = np.where(classes == 1, 1.0, -1.0)
    for n in (80, 240):
        errors = np.zeros(len(CS))
        draws = StratifiedShuffleSplit(2, train_size=n, test_size=200, random_state=0)
        for train, test in draws.split(X, y):
            scaler = StandardScaler().fit(X[train])
            bank = mkldist.KernelBank(scaler.transform(X[train]), KERNELS)
            new = bank.on(scaler.transform(X[test]))
            path = mkldist.solve_path(method, bank, y[train], C=CS)
            signs = [np.sign(one.decision_function(new)) for one in path]
            errors += [np.mean(sign != y[test]) / 2 for sign in signs]
        assert errors[2] <= errors.min() + 0.015, n
        assert errors[0] >= errors[2] + 0.01, n
